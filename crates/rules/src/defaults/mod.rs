//! Defaults that depend on other fields, by type, and what such rules share.

pub mod amounts;

use kubelith_meta::{Map, Value};
use kubelith_schema::defaults::Rule;

/// Defaults by the OpenAPI names of their types.
pub type Defaults = &'static [(&'static str, Rule)];

/// A text member, or `""`.
pub fn text<'a>(map: &'a Map, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Whether a Go pointer, slice or map would be nil.
pub fn is_absent(map: &Map, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

/// Whether a Go value would be zero, or have no elements.
pub fn is_zero(map: &Map, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_empty)
}

/// Sets a Go pointer that is nil.
pub fn set_absent(map: &mut Map, key: &str, value: impl Into<Value>) {
    if is_absent(map, key) {
        map.insert(key, value);
    }
}

pub fn object_mut<'a>(map: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    map.get_mut(key)?.as_object_mut()
}

/// Drops annotations of an object, and with the last one the member that had them.
pub fn drop_annotations(object: &mut Map, names: &[&str]) {
    let Some(metadata) = object_mut(object, "metadata") else { return };
    let Some(annotations) = object_mut(metadata, "annotations") else { return };
    for name in names {
        annotations.remove(name);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// The objects of a list, where there is one.
pub fn elements_mut<'a>(map: &'a mut Map, key: &str) -> impl Iterator<Item = &'a mut Map> {
    let items = map.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}
