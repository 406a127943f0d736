//! The annotation in which `kubectl apply` keeps what it applied from the client's side.
//!
//! When kubectl turns to server-side apply, an updater (kubectl itself, in earlier days) owns all these fields. They
//! are no conflict, as long as they still have the values of the annotation; and the annotation is kept up to date, so
//! that one can turn back.

use super::names::kind_of;
use crate::fieldset::Set;
use crate::typed::{Duplicates, Type};
use kubelith_meta::{GroupVersionKind, Value, text};

pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The one manager that all this is for.
pub(super) const KUBECTL: &str = "kubectl";

/// What all annotations of an object may take, keys and values, in bytes.
const MAX_ANNOTATIONS_SIZE: usize = 256 * 1024;

/// The fields of `live` that still are as they were applied from the client's side. `None` if that is not known.
pub(super) fn excused_fields(live: &Value, ty: Type<'_>, kind: &GroupVersionKind) -> Option<Set> {
    let annotation = annotation(live)?;
    ty.validate(live, Duplicates::Refused).ok()?;
    let applied = crate::json::parse(annotation).ok()?;
    let applied_kind = kind_of(&applied);
    if applied_kind.group_version() != kind.group_version() || applied_kind.kind.is_empty() {
        return None;
    }
    ty.validate(&applied, Duplicates::Refused).ok()?;
    let changes = ty.compare(&applied, live).ok()?;
    let fields = ty.field_set(&applied);
    Some(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Writes `patch` into the annotation of `object`, if it has one.
pub(super) fn renew(object: &mut Value, patch: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = patch.clone();
    if let Some(annotations) = applied.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
    let mut config = text::json(&applied);
    config.push('\n');
    let Some(annotations) = object.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else { return };
    annotations.insert(LAST_APPLIED_ANNOTATION, config);
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS_SIZE {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object.at(&["metadata", "annotations", LAST_APPLIED_ANNOTATION])?.as_str().filter(|a| !a.is_empty())
}
