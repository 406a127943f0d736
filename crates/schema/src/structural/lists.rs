//! Lists that are sets, or maps by their keys: no element twice.

use super::{List, Structural};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{Map, Str, Value, text};
use std::collections::HashMap;

/// Every element that occurs twice in a set, or shares its keys with another in a map. It is reported at the second
/// occurrence only.
pub fn validate_lists(schema: &Structural, object: &Value) -> ErrorList {
    let mut errors = ErrorList::default();
    if schema.any(&|s| matches!(s.list, Some(List::Set | List::Map(_)))) {
        walk(schema, object, &Path::ROOT, &mut errors);
    }
    errors
}

fn walk(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Object(map) => {
            for (key, member) in map.iter() {
                if let Some(property) = schema.property(key) {
                    walk(property, member, &path.child(key), errors);
                } else if let Some(additional) = schema.additional_schema() {
                    walk(additional, member, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                Some(List::Set) => set(items, path, errors),
                Some(List::Map(keys)) => keyed(keys, items, path, errors),
                _ => {}
            }
            if let Some(schema) = schema.items.as_deref() {
                for (i, item) in items.iter().enumerate() {
                    walk(schema, item, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn set(items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for i in repeated(items.iter().map(text::json)) {
        errors.push(Error::duplicate(&path.index(i), &items[i]));
    }
}

fn keyed(keys: &[Str], items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    if let Some((i, item)) = items.iter().enumerate().find(|(_, v)| !matches!(v, Value::Object(_) | Value::Null)) {
        let what = "must be an object for an array of list-type map";
        errors.push(Error::invalid(&path.index(i), item, what));
        return;
    }
    let key_of =
        |item: &Value| -> Map { keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect() };
    for i in repeated(items.iter().map(|item| text::json(&Value::Object(key_of(item))))) {
        errors.push(Error::duplicate(&path.index(i), Value::Object(key_of(&items[i]))));
    }
}

/// The indices at which something occurs for the second time.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (i, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(i);
        }
    }
    found
}
