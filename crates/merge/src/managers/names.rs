//! Names of managers, and of objects in messages.

use kubelith_meta::text::is_printable;
use kubelith_meta::{GroupVersion, GroupVersionKind, Value};

/// In bytes.
pub const FIELD_MANAGER_MAX_LENGTH: usize = 128;

/// The manager that a request names, or else what its User-Agent starts with.
pub fn manager_or_user_agent(manager: &str, user_agent: &str) -> String {
    if !manager.is_empty() {
        return manager.to_owned();
    }
    let prefix = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in prefix.chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > FIELD_MANAGER_MAX_LENGTH {
            break;
        }
        name.push(c);
    }
    name
}

/// The kind that an object says it is. An `apiVersion` of several slashes makes all of it empty.
pub(super) fn kind_of(object: &Value) -> GroupVersionKind {
    match GroupVersion::parse(object.str_at(&["apiVersion"])) {
        Some(version) => version.with_kind(object.str_at(&["kind"])),
        None => GroupVersionKind::default(),
    }
}

/// `namespace/name; group/version, Kind=kind`: how messages about apply name an object.
pub fn describe(object: &Value) -> String {
    let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
    format!("{namespace}/{name}; {}", kind_of(object))
}
