//! The patch that kubectl apply makes: from what was applied before, what the user wants now, and the live object.
//! Only a test oracle here; the server never makes patches.

use super::directives::{DELETE_FROM_PREFIX, PATCH, RETAIN_KEYS, SET_ORDER_PREFIX};
use super::lookup::{FieldMerge, Node, Strategy};
use super::order::Key;
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::TypedSchema;

/// A patch that takes `live` to `wanted` where `wanted` says something, and removes what only `applied` had.
pub(crate) fn three_way(applied: &Value, wanted: &Value, live: &Value, schema: &TypedSchema) -> Value {
    let map = |v: &Value| v.as_object().cloned().unwrap_or_default();
    Value::Object(maps(&map(applied), &map(wanted), &map(live), &Node::root(schema)))
}

fn maps(applied: &Map, wanted: &Map, live: &Map, node: &Node<'_>) -> Map {
    let mut patch = Map::new();
    for (key, want) in wanted.iter() {
        match (live.get(key), want) {
            (None, want) => {
                patch.insert(key, want.clone());
            }
            (Some(have), want) if have == want => {}
            (Some(Value::Object(have)), Value::Object(want)) => {
                // Entries of maps have no merge hints of their own: they are replaced.
                let Ok(field) = node.member(key) else {
                    patch.insert(key, want.clone());
                    continue;
                };
                let was = applied.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
                let mut change = maps(&was, want, have, &field.node);
                if !change.is_empty() {
                    retain(&mut change, want, node, key);
                    patch.insert(key, change);
                }
            }
            (Some(Value::Array(have)), Value::Array(want)) => {
                let was = applied.get(key).and_then(Value::as_array).unwrap_or_default();
                let field = node.list_member(key).expect("a list");
                match (field.strategy, field.merge_key) {
                    (Strategy::Merge, Some(merge_key)) => {
                        keyed(&mut patch, key, (was, want, have), merge_key, &field, node)
                    }
                    (Strategy::Merge, None) => scalars(&mut patch, key, was, want, have),
                    _ => {
                        patch.insert(key, Value::Array(want.clone()));
                    }
                }
            }
            (Some(_), want) => {
                patch.insert(key, want.clone());
            }
        }
    }
    for key in applied.keys().filter(|k| !wanted.contains_key(k) && live.contains_key(k)) {
        patch.insert(key, Value::Null);
    }
    patch
}

/// Adds `$retainKeys` where the field `key` has that strategy.
fn retain(change: &mut Map, wanted: &Map, node: &Node<'_>, key: &str) {
    if node.retains_keys(key) {
        change.insert(RETAIN_KEYS, wanted.keys().map(Value::from).collect::<Vec<_>>());
    }
}

fn keyed(
    patch: &mut Map,
    name: &str,
    (applied, wanted, live): (&[Value], &[Value], &[Value]),
    merge_key: &Str,
    field: &FieldMerge<'_>,
    parent: &Node<'_>,
) {
    let find = |list: &[Value], element: &Value| -> Option<Map> {
        let key = Key::of_element(element, Some(merge_key));
        list.iter().find(|e| Key::of_element(e, Some(merge_key)) == key)?.as_object().cloned()
    };
    let mut changes = Vec::new();
    for element in wanted {
        let want = element.as_object().expect("an object");
        match find(live, element) {
            None => changes.push(element.clone()),
            Some(have) => {
                let mut change = maps(&find(applied, element).unwrap_or_default(), want, &have, &field.node);
                if !change.is_empty() {
                    retain(&mut change, want, parent, name);
                    change.insert(merge_key.clone(), element.get(merge_key).expect("a key").clone());
                    changes.push(Value::Object(change));
                }
            }
        }
    }
    for element in applied.iter().filter(|e| find(wanted, e).is_none() && find(live, e).is_some()) {
        let key = element.get(merge_key).expect("a key").clone();
        changes.push(Value::from([(Str::from(PATCH), Value::from("delete")), (merge_key.clone(), key)]));
    }
    let order: Vec<Value> =
        wanted.iter().map(|e| Value::from([(merge_key.clone(), e.get(merge_key).expect("a key").clone())])).collect();
    patch.insert(format!("{SET_ORDER_PREFIX}/{name}"), order);
    if !changes.is_empty() {
        patch.insert(name, changes);
    }
}

fn scalars(patch: &mut Map, name: &str, applied: &[Value], wanted: &[Value], live: &[Value]) {
    let added: Vec<Value> = wanted.iter().filter(|v| !live.contains(v)).cloned().collect();
    let gone: Vec<Value> = applied.iter().filter(|v| !wanted.contains(v) && live.contains(v)).cloned().collect();
    patch.insert(format!("{SET_ORDER_PREFIX}/{name}"), wanted.to_vec());
    if !added.is_empty() {
        patch.insert(name, added);
    }
    if !gone.is_empty() {
        patch.insert(format!("{DELETE_FROM_PREFIX}/{name}"), gone);
    }
}
