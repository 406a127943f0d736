//! Small moves inside of objects that conversions are made of.

use kubelith_meta::{Map, Value};

/// Moves the member `from` to the name `to`.
pub fn rename(map: &mut Map, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to, value);
    }
}

/// The member `key` as an object.
pub fn object<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Map> {
    value.get_mut(key)?.as_object_mut()
}

/// The object that `path` leads to.
pub fn object_at<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Map> {
    value.at_mut(path)?.as_object_mut()
}

/// The objects in the list that `path` leads to; none if there is no list.
pub fn objects_at<'v>(value: &'v mut Value, path: &[&str]) -> impl Iterator<Item = &'v mut Map> + use<'v> {
    let items = value.at_mut(path).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    items.iter_mut().filter_map(Value::as_object_mut)
}

/// Inserts what is there.
pub fn put(map: &mut Map, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        map.insert(key, value);
    }
}
