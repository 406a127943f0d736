//! Merging lists of objects by merge key and lists of scalars as sets.

use super::directives::{PATCH, remove_marked};
use super::lookup::{FieldMerge, Node, Strategy};
use super::order::{Key, Ranks, arrange, ranks_after_merge};
use super::{StrategicError, merge_maps, same_type};
use kubelith_meta::{Map, Str, Value};
use std::collections::{HashMap, HashSet};

/// Merges `patch` into `original`, a list whose elements merge; `is_deletion` if the patch came as
/// `$deleteFromPrimitiveList`.
pub(super) fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &FieldMerge<'_>,
    is_deletion: bool,
) -> Result<Vec<Value>, StrategicError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let merge_key = field.merge_key;
    if element_type(&original, &patch)? == ElementType::Map {
        let key = merge_key.ok_or_else(|| StrategicError::NoMergeKey(field.node.kind()))?;
        return merge_keyed(original, patch, key, &field.node);
    }
    if is_deletion {
        let deleted: HashSet<Key> = patch.iter().filter_map(Key::of).collect();
        let kept = |v: &Value| Key::of(v).is_none_or(|k| !deleted.contains(&k));
        return Ok(original.into_iter().filter(kept).collect());
    }
    if let Some(first) = merge_key.and(original.first().or(patch.first())) {
        return Err(StrategicError::not_a_map(first));
    }
    let (patch_order, server_order) = (Ranks::of(&patch, None), Ranks::of(&original, None));
    let mut seen = HashSet::new();
    let mut merged = original;
    merged.extend(patch);
    merged.retain(|v| Key::of(v).is_none_or(|k| seen.insert(k)));
    Ok(arrange(merged, None, &patch_order, &server_order))
}

#[derive(PartialEq, Eq)]
enum ElementType {
    Map,
    Scalar,
}

/// The one type of all elements of two lists.
fn element_type(a: &[Value], b: &[Value]) -> Result<ElementType, StrategicError> {
    let mut all = a.iter().chain(b);
    let first = all.next().ok_or(StrategicError::NoElements)?;
    match first {
        Value::Array(_) => return Err(StrategicError::ListOfLists),
        Value::Null => return Err(StrategicError::NullElement),
        _ => {}
    }
    if !all.all(|v| same_type(first, v)) {
        return Err(StrategicError::MixedTypes(a.to_vec(), b.to_vec()));
    }
    Ok(if matches!(first, Value::Object(_)) { ElementType::Map } else { ElementType::Scalar })
}

/// Merges lists of objects by their merge key.
fn merge_keyed(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &Str,
    node: &Node<'_>,
) -> Result<Vec<Value>, StrategicError> {
    let Special { plain, deleted, replace } = split_special(patch, merge_key)?;
    if replace {
        check_keys(&plain, merge_key)?;
        return Ok(plain);
    }
    if !deleted.is_empty() {
        original.retain(|v| Key::of_element(v, Some(merge_key)).is_none_or(|k| !deleted.contains(&k)));
    }
    check_keys(&plain, merge_key)?;
    let patch_order = Ranks::of(&plain, Some(merge_key));
    let server_order = Ranks::of(&original, Some(merge_key));
    let mut merged = original;
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (i, element) in merged.iter().enumerate() {
        if let Some(key) = Key::of_element(element, Some(merge_key)) {
            places.entry(key).or_insert(i);
        }
    }
    for element in plain {
        let key = Key::of_element(&element, Some(merge_key));
        match (key.as_ref().and_then(|k| places.get(k)), element) {
            (Some(&i), Value::Object(patch)) => merge_maps(merged[i].make_object(), patch, node)?,
            (_, element) => {
                places.extend(key.map(|k| (k, merged.len())));
                merged.push(element);
            }
        }
    }
    check_keys(&merged, merge_key)?;
    Ok(arrange(merged, Some(merge_key), &patch_order, &server_order))
}

/// A patch list taken apart.
struct Special {
    plain: Vec<Value>,
    deleted: HashSet<Key>,
    replace: bool,
}

fn split_special(patch: Vec<Value>, merge_key: &Str) -> Result<Special, StrategicError> {
    let mut special = Special { plain: Vec::with_capacity(patch.len()), deleted: HashSet::new(), replace: false };
    for element in patch {
        let Value::Object(map) = element else { continue };
        match map.get(PATCH).map(Value::as_str) {
            None => special.plain.push(Value::Object(map)),
            Some(Some("delete")) => match map.get(merge_key) {
                Some(value) => special.deleted.extend(Key::of(value)),
                None => return Err(StrategicError::MissingMergeKey(map, merge_key.clone())),
            },
            Some(Some("replace")) => special.replace = true,
            Some(Some("merge")) => return Err(StrategicError::MergeInList),
            Some(_) => {
                let directive = map.get(PATCH).cloned().unwrap_or_default();
                return Err(StrategicError::UnknownDirective(directive, map));
            }
        }
    }
    Ok(special)
}

/// Every element must be an object with the merge key.
fn check_keys(list: &[Value], merge_key: &Str) -> Result<(), StrategicError> {
    for element in list {
        let map = element.as_object().ok_or_else(|| StrategicError::not_a_map(element))?;
        if !map.contains_key(merge_key) {
            return Err(StrategicError::MissingMergeKey(map.clone(), merge_key.clone()));
        }
    }
    Ok(())
}

/// Merges the list `key` of `patch`, if it is there, and brings the result into the order of `$setElementOrder`.
pub(super) fn merge_in_order(
    original: &mut Map,
    patch: &mut Map,
    key: &str,
    order: Vec<Value>,
    node: &Node<'_>,
) -> Result<(), StrategicError> {
    let original_list = optional_list(original.get(key))?;
    let patch_list = optional_list(patch.get(key))?;
    let field = node.list_member(key)?;
    check_order(patch_list.unwrap_or_default(), &order, field.merge_key)?;
    if original_list.is_none() && patch_list.is_none() {
        return Ok(());
    }
    let server_order = match (field.merge_key, original_list, patch_list) {
        (Some(key), Some(original), Some(patch)) if field.strategy == Strategy::Merge => {
            ranks_after_merge(original, patch, key, PATCH)
        }
        _ => Ranks::of(original_list.unwrap_or_default(), field.merge_key),
    };
    element_type(original_list.unwrap_or_default(), patch_list.unwrap_or_default())?;

    let had_list = original_list.is_some();
    let current = match original.get_mut(key) {
        Some(Value::Array(list)) => std::mem::take(list),
        _ => Vec::new(),
    };
    let merged = match patch.remove(key) {
        Some(mut added) if !had_list => {
            remove_marked(&mut added);
            into_list(added)
        }
        Some(patch) if field.strategy == Strategy::Merge => merge_lists(current, into_list(patch), &field, false)?,
        Some(patch) => into_list(patch),
        None => current,
    };
    if let Some(merge_key) = field.merge_key {
        check_keys(&merged, merge_key)?;
        check_partition(&merged, &order, merge_key)?;
        check_keys(&order, merge_key)?;
    }
    let order = Ranks::of(&order, field.merge_key);
    original.insert(key, Value::Array(arrange(merged, field.merge_key, &order, &server_order)));
    Ok(())
}

/// Elements are looked up in `order` one by one, which fails at the first that is no object.
fn check_partition(merged: &[Value], order: &[Value], merge_key: &Str) -> Result<(), StrategicError> {
    match order.iter().position(|o| o.as_object().is_none()) {
        Some(at) => {
            let before = Ranks::of(&order[..at], Some(merge_key));
            let all_before = merged.iter().all(|element| before.get(element, Some(merge_key)).is_some());
            if all_before { Ok(()) } else { Err(StrategicError::ScalarInOrder(at)) }
        }
        None => Ok(()),
    }
}

fn optional_list(value: Option<&Value>) -> Result<Option<&[Value]>, StrategicError> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(StrategicError::not_a_list(other)),
    }
}

fn into_list(value: Value) -> Vec<Value> {
    if let Value::Array(list) = value { list } else { Vec::new() }
}

/// The elements of the patch list, deletions aside, must all be in `order` and stand in its order.
fn check_order(patch: &[Value], order: &[Value], merge_key: Option<&Str>) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut pending = Vec::with_capacity(patch.len());
    for element in patch {
        if merge_key.is_some() && element.as_object().is_none() {
            return Err(StrategicError::not_a_map(element));
        }
        if merge_key.is_none() || element.get(PATCH).and_then(Value::as_str) != Some("delete") {
            pending.push(element);
        }
    }
    let (mut p, mut o) = (0, 0);
    while p < pending.len() && o < order.len() {
        if pending[p].get(PATCH).is_some() {
            p += 1;
            continue;
        }
        p += usize::from(equal_elements(pending[p], &order[o], merge_key)?);
        o += 1;
    }
    // Whatever is left mismatches, a trailing `$patch: replace` too.
    if p < pending.len() { Err(StrategicError::OrderMismatch(patch.to_vec(), order.to_vec())) } else { Ok(()) }
}

fn equal_elements(a: &Value, b: &Value, merge_key: Option<&Str>) -> Result<bool, StrategicError> {
    let Some(merge_key) = merge_key else {
        return Ok(Key::of(a).is_some() && Key::of(a) == Key::of(b));
    };
    let key_of = |v: &Value| match v.as_object() {
        None => Err(StrategicError::not_a_map(v)),
        Some(map) if !map.contains_key(merge_key) => {
            Err(StrategicError::MissingMergeKey(map.clone(), merge_key.clone()))
        }
        Some(_) => Ok(Key::of_element(v, Some(merge_key))),
    };
    let (a, b) = (key_of(a)?, key_of(b)?);
    Ok(a.is_some() && a == b)
}
