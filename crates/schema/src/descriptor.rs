//! A resource as the engine serves it.

use crate::TypedSchema;
use kubelith_meta::{GroupResource, GroupVersionKind, Str, Value};

/// One resource of one API group in all its versions.
#[derive(Debug, Clone)]
pub struct Descriptor {
    pub group: Str,
    /// Plural in lower case, as in URLs.
    pub plural: Str,
    pub singular: Str,
    pub kind: Str,
    pub list_kind: Str,
    pub scope: Scope,
    pub short_names: Vec<Str>,
    pub categories: Vec<Str>,
    /// Served and unserved versions, the preferred one first.
    pub versions: Vec<Version>,
    pub storage: Storage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// A resource in one version.
#[derive(Debug, Clone)]
pub struct Version {
    pub name: Str,
    pub served: bool,
    /// Schema of one object, apiVersion, kind and metadata included.
    pub schema: TypedSchema,
    /// Sorted. Empty for resources that are only a place for subresources or reviews.
    pub verbs: Vec<Str>,
    pub subresources: Vec<Subresource>,
    pub columns: Vec<Column>,
    /// Field selectors beyond metadata.name and metadata.namespace.
    pub selectable: Vec<SelectableField>,
    /// What a field selector on any other label is answered with.
    pub unselectable: Unselectable,
    pub deprecation: Option<Deprecation>,
    /// The minor releases of Kubernetes that serve it, as far as they can be emulated.
    pub releases: ServedReleases,
}

/// From which minor release on, and before which; 0 stands for no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServedReleases {
    pub since: u32,
    pub removed: u32,
}

#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: Str,
    /// What it takes and answers: the parent's own kind for `status`, `autoscaling/v1 Scale` for `scale`.
    pub kind: GroupVersionKind,
    pub verbs: Vec<Str>,
    /// Kinds that a POST to it takes besides (pods/eviction, serviceaccounts/token).
    pub accepted: Vec<GroupVersionKind>,
    /// Schema of `kind` if it is not the parent's.
    pub schema: Option<TypedSchema>,
    /// For custom resources with scale: where the numbers are.
    pub scale: Option<ScalePaths>,
}

#[derive(Debug, Clone)]
pub struct ScalePaths {
    pub spec_replicas: Str,
    pub status_replicas: Str,
    pub label_selector: Option<Str>,
}

/// A column of a Table.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: Str,
    /// OpenAPI type: string, integer, number, boolean, date.
    pub kind: Str,
    /// OpenAPI format: `name` for the primary column, or empty.
    pub format: Str,
    pub description: Str,
    /// 0 is always shown; others only with `-o wide`.
    pub priority: i32,
    pub cell: Cell,
    /// Paths that a `Cell::Function` reads; empty if it looks at the whole object.
    pub arguments: Vec<Str>,
    /// The cell if the path leads nowhere, or the function has nothing to say.
    pub absent: Value,
}

/// Where a cell comes from. It is read from the object in the version that the request asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// JSONPath in Kubernetes' dialect, without braces (`.spec.replicas`).
    Path(Str),
    /// A named function of the kube crate, for cells that no path gives.
    Function(Str),
}

#[derive(Debug, Clone)]
pub struct SelectableField {
    /// As clients write it: `spec.nodeName`.
    pub name: Str,
    /// Where it is, as a simple path: `.spec.nodeName`. Empty for a label that is accepted and never has a value.
    pub path: Str,
    /// Where it is looked for if `path` gives nothing (the `source` of events).
    pub fallback: Option<Str>,
    /// Value if the field is absent: "" for strings, "false" for booleans.
    pub absent: Str,
}

/// How labels outside of `selectable` are refused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unselectable {
    /// `metadata.namespace` is one of them, too.
    pub namespace: bool,
    /// The message, with `{}` for the label and `{:?}` for the label in quotes. Empty for the usual one.
    pub message: Str,
}

#[derive(Debug, Clone)]
pub struct Deprecation {
    /// The text after `299 - "..."`.
    pub warning: Str,
}

/// Where and how objects are kept.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The kind objects are stored as; `events.k8s.io` events are stored as core ones.
    pub kind: GroupVersionKind,
    pub resource: GroupResource,
    /// Key segments below the store's prefix: `pods`, `services/specs`, `apiregistration.k8s.io/apiservices`.
    /// Empty for resources of which nothing is kept (reviews, bindings).
    pub prefix: Str,
    pub encoding: Encoding,
    /// Servers of minor releases before this one can read this version only.
    pub before: Option<(u32, Str)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `k8s\0` envelope and protobuf: built-in kinds.
    Protobuf,
    /// Plain JSON: custom resources, APIServices and CRDs.
    Json,
}

impl Descriptor {
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group.clone(), self.plural.clone())
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.name == name)
    }

    pub fn gvk(&self, version: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group.clone(), version, self.kind.clone())
    }
}

impl Storage {
    /// False for resources of which nothing is kept.
    pub fn keeps_objects(&self) -> bool {
        !self.prefix.is_empty()
    }
}

impl Unselectable {
    /// The error for `label`, as the reference words it.
    pub fn message_for(&self, label: &str) -> String {
        if self.message.is_empty() {
            return format!(r#"{label:?} is not a known field selector: only "metadata.name", "metadata.namespace""#);
        }
        self.message.replace("{:?}", &format!("{label:?}")).replace("{}", label)
    }
}

impl Version {
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}
