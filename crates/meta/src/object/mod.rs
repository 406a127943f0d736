//! The metadata that every object has: a borrowed view to read it, setters to change it, rules to check it.

mod set;
mod validate;

pub use set::ObjectMetaMut;
pub use validate::{
    ANNOTATIONS_MAX_BYTES, Namespacing, validate_annotations, validate_conditions, validate_field_manager,
    validate_finalizer_name, validate_finalizers, validate_immutable, validate_kube_finalizer,
    validate_kube_finalizers, validate_managed_fields, validate_object_meta, validate_object_meta_update,
    validate_owner_references,
};

use crate::{GroupVersion, GroupVersionKind, Map, Time, Value};

pub const FINALIZER_ORPHAN: &str = "orphan";
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of namespaces, in their spec.
pub const FINALIZER_KUBERNETES: &str = "kubernetes";

/// A view of an object's `metadata`. Fields that are absent or of a wrong type read as empty.
#[derive(Debug, Clone, Copy)]
pub struct ObjectMeta<'a>(Option<&'a Map>);

/// An entry of `ownerReferences`.
#[derive(Debug, Clone, Copy)]
pub struct OwnerReference<'a>(&'a Value);

impl Value {
    /// The metadata of this object.
    pub fn meta(&self) -> ObjectMeta<'_> {
        ObjectMeta(self.get("metadata").and_then(Value::as_object))
    }

    /// The metadata of this object, to change; made empty first if there is none.
    pub fn meta_mut(&mut self) -> ObjectMetaMut<'_> {
        ObjectMetaMut::new(self.make_object().entry_or_null("metadata").make_object())
    }

    /// The `apiVersion` and `kind` of this object; a malformed `apiVersion` counts as a group without version.
    pub fn gvk(&self) -> GroupVersionKind {
        let api_version = self.str_at(&["apiVersion"]);
        GroupVersion::parse(api_version).unwrap_or_default().with_kind(self.str_at(&["kind"]))
    }

    /// Whether this is an object of that kind and version.
    pub fn is_of(&self, kind: &GroupVersionKind) -> bool {
        let version = self.str_at(&["apiVersion"]);
        let version = match kind.group.as_str() {
            "" => Some(version),
            group => version.strip_prefix(group).and_then(|v| v.strip_prefix('/')),
        };
        version == Some(kind.version.as_str()) && self.str_at(&["kind"]) == kind.kind
    }
}

impl<'a> ObjectMeta<'a> {
    /// A view of what stands in `metadata`.
    pub fn new(metadata: &'a Map) -> ObjectMeta<'a> {
        ObjectMeta(Some(metadata))
    }

    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|v| !v.is_null())
    }

    fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    fn time(self, key: &str) -> Option<Time> {
        Time::parse(self.get(key)?.as_str()?).ok()
    }

    pub fn name(self) -> &'a str {
        self.text("name")
    }

    pub fn generate_name(self) -> &'a str {
        self.text("generateName")
    }

    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    pub fn generation(self) -> i64 {
        self.get("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    pub fn labels(self) -> Option<&'a Map> {
        self.get("labels").and_then(Value::as_object)
    }

    pub fn annotations(self) -> Option<&'a Map> {
        self.get("annotations").and_then(Value::as_object)
    }

    pub fn label(self, key: &str) -> Option<&'a str> {
        self.labels()?.get(key)?.as_str()
    }

    pub fn annotation(self, key: &str) -> Option<&'a str> {
        self.annotations()?.get(key)?.as_str()
    }

    pub fn creation_timestamp(self) -> Option<Time> {
        self.time("creationTimestamp")
    }

    pub fn deletion_timestamp(self) -> Option<Time> {
        self.time("deletionTimestamp")
    }

    pub fn deletion_grace_period_seconds(self) -> Option<i64> {
        self.get("deletionGracePeriodSeconds").and_then(Value::as_i64)
    }

    /// Whether a deletion has begun. True even for a timestamp that cannot be read.
    pub fn is_being_deleted(self) -> bool {
        self.get("deletionTimestamp").is_some()
    }

    fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).unwrap_or(&[])
    }

    pub fn finalizers(self) -> impl ExactSizeIterator<Item = &'a str> {
        self.list("finalizers").iter().map(|f| f.as_str().unwrap_or(""))
    }

    pub fn has_finalizer(self, name: &str) -> bool {
        self.finalizers().any(|f| f == name)
    }

    pub fn owner_references(self) -> impl ExactSizeIterator<Item = OwnerReference<'a>> {
        self.list("ownerReferences").iter().map(OwnerReference)
    }

    /// The owner that manages this object.
    pub fn controller(self) -> Option<OwnerReference<'a>> {
        self.owner_references().find(|owner| owner.is_controller())
    }

    pub fn managed_fields(self) -> &'a [Value] {
        self.list("managedFields")
    }
}

impl<'a> OwnerReference<'a> {
    pub fn api_version(self) -> &'a str {
        self.0.str_at(&["apiVersion"])
    }

    pub fn kind(self) -> &'a str {
        self.0.str_at(&["kind"])
    }

    pub fn name(self) -> &'a str {
        self.0.str_at(&["name"])
    }

    pub fn uid(self) -> &'a str {
        self.0.str_at(&["uid"])
    }

    pub fn is_controller(self) -> bool {
        self.0.get("controller").and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn value(self) -> &'a Value {
        self.0
    }
}

#[cfg(test)]
mod tests;
