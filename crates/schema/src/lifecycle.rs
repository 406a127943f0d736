//! What the life cycles of objects ask of a kind, and what clients ask of them: plain values.

use kubelith_meta::{Str, Value};

/// The part of an object that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The resource itself.
    Main,
    Status,
    /// Any other subresource that updates the object, by name.
    Other(&'a str),
}

impl<'a> Part<'a> {
    pub fn of(subresource: &'a str) -> Part<'a> {
        match subresource {
            "" => Part::Main,
            "status" => Part::Status,
            other => Part::Other(other),
        }
    }
}

/// What happens to dependents if a delete says nothing about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GarbageCollection {
    DeleteDependents,
    OrphanDependents,
    /// The kind has no dependents; propagation policies are ignored.
    Unsupported,
}

/// What a client asked to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    OfOne,
    /// All objects that a selection matches; this is one of them.
    OfCollection,
}

/// How a kind's own rule for deletion goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteStep {
    /// By grace period and finalizers, like all others.
    Generic,
    /// The object was marked: write it and wait.
    Mark,
    /// It is marked already and still waits: answer it as it is.
    Stay,
}

/// What makes metadata.generation grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// It is not kept.
    None,
    /// 1 at first, one more with each change of `spec`.
    Spec,
    /// As `Spec`, and with changes of metadata.annotations (Deployments).
    SpecAndAnnotations,
    /// With each change of anything but metadata and status (custom resources).
    AllButMetadataAndStatus,
    /// With each change of anything but metadata (custom resources without status subresource).
    AllButMetadata,
    /// 1 at first, one more with each change of this member (pod templates, webhook configurations).
    Member(&'static str),
    /// As `Member`, and an empty list or map in it is another thing than none.
    ExactMember(&'static str),
    /// 1 at first, one more with each change of content or labels (EndpointSlices).
    ContentAndLabels,
    /// Changes of `spec` count from nothing: a new object has none (CSIDrivers).
    SpecChanges,
    /// 1, whatever changes (PriorityClasses).
    One,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<Str>,
    pub resource_version: Option<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub preconditions: Preconditions,
    pub orphan_dependents: Option<bool>,
    pub propagation: Option<Propagation>,
    /// Delete even what cannot be read: `ignoreStoreReadErrorWithClusterBreakingPotential`.
    pub ignore_read_error: bool,
}

/// One more change in metadata.generation than `old` has.
pub fn count_change(object: &mut Value, old: &Value) {
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
    object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
}
