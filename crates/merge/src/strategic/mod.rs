//! Strategic merge patch: a merge patch whose lists merge by key where the type says so, with directives
//! (`$patch`, `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`) for what plain merging cannot say.
//!
//! Directives count only where patch and object meet. A value that the object does not have is taken over with just
//! `$patch` markers removed: `{"data": {"$retainKeys": ["z"]}}` on an object without data is then a decoding error.

#[cfg(test)]
mod diff;
mod directives;
mod error;
mod lists;
mod lookup;
mod order;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use diff::three_way;
pub use error::StrategicError;

use crate::PatchError;
use directives::{DELETE_FROM_PREFIX, PATCH, RETAIN_KEYS, SET_ORDER_PREFIX, suffix_after};
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::TypedSchema;
use lists::merge_lists;
use lookup::{Node, Strategy};

/// Applies `patch` to `object`, whose type `schema` describes. The result still has to be decoded: the patch may have
/// brought unknown fields, wrong types and nulls. After an error `object` is of no use.
pub fn apply(object: &mut Value, patch: Value, schema: &TypedSchema) -> Result<(), PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch,
        // The reference decodes null into an empty patch.
        Value::Null => Map::new(),
        other => {
            let kind = kubelith_meta::text::json_kind(&other);
            return Err(PatchError::BadRequest(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    merge_maps(object.make_object(), patch, &Node::root(schema))?;
    Ok(())
}

/// Merges `patch` into `original`.
fn merge_maps(original: &mut Map, mut patch: Map, node: &Node<'_>) -> Result<(), StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                *original = patch;
            }
            Some("delete") => *original = Map::new(),
            _ => return Err(StrategicError::UnknownDirective(directive.clone(), patch)),
        }
        return Ok(());
    }
    // Directives sort before every field name, so whether there is one shows at the first key.
    if patch.keys().next().is_some_and(|k| k.starts_with('$')) {
        if let Some(keys) = patch.remove(RETAIN_KEYS) {
            directives::retain_keys(original, &patch, keys)?;
        }
        merge_ordered_lists(original, &mut patch, node)?;
    }
    for (key, value) in patch {
        merge_member(original, key, value, node)?;
    }
    Ok(())
}

/// Merges each list that has a `$setElementOrder/x` beside it and takes both out of the patch.
fn merge_ordered_lists(original: &mut Map, patch: &mut Map, node: &Node<'_>) -> Result<(), StrategicError> {
    let directives: Vec<Str> = patch.keys().filter(|k| k.starts_with(SET_ORDER_PREFIX)).map(Str::from).collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(StrategicError::not_a_list(&other.unwrap_or_default())),
        };
        let key = suffix_after(&directive, SET_ORDER_PREFIX).ok_or(StrategicError::BadSetElementOrder)?;
        lists::merge_in_order(original, patch, key, order, node)?;
    }
    Ok(())
}

fn merge_member(original: &mut Map, key: Str, patch: Value, node: &Node<'_>) -> Result<(), StrategicError> {
    let (key, is_deletion) = if key.starts_with(DELETE_FROM_PREFIX) {
        let list = suffix_after(&key, DELETE_FROM_PREFIX).ok_or(StrategicError::BadPrimitiveList)?;
        (if list.is_empty() { key } else { Str::from(list) }, true)
    } else {
        (key, false)
    };
    if patch.is_null() {
        original.remove(&key);
        return Ok(());
    }
    match (original.get_mut(&key), patch) {
        (Some(Value::Object(current)), Value::Object(patch)) => {
            let field = node.member(&key)?;
            if field.strategy == Strategy::Replace {
                *current = patch;
                Ok(())
            } else {
                merge_maps(current, patch, &field.node)
            }
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            let field = node.list_member(&key)?;
            if is_deletion || field.strategy == Strategy::Merge {
                let merged = merge_lists(std::mem::take(current), patch, &field, is_deletion)?;
                *current = merged;
            } else {
                *current = patch;
            }
            Ok(())
        }
        // A list of deletions that meets no list deletes nothing.
        (None, _) if is_deletion => Ok(()),
        (Some(current), patch) if is_deletion && !same_type(current, &patch) => Ok(()),
        (_, patch) => {
            take_over(original, key, patch);
            Ok(())
        }
    }
}

/// Sets a member that cannot be merged: without nulls and without what a `$patch` marks.
fn take_over(original: &mut Map, key: Str, mut patch: Value) {
    directives::discard_nulls(&mut patch);
    if directives::remove_marked(&mut patch) {
        original.insert(key, patch);
    } else {
        original.remove(&key);
    }
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
