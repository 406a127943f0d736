//! The directives of a patch map and what is left of a value without them.

use super::StrategicError;
use kubelith_meta::{Map, Value};

pub(super) const PATCH: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const SET_ORDER_PREFIX: &str = "$setElementOrder";
pub(super) const DELETE_FROM_PREFIX: &str = "$deleteFromPrimitiveList";

/// The field that a directive such as `$setElementOrder/containers` is about. `None` if there is no slash right
/// after the prefix.
pub(super) fn suffix_after<'a>(directive: &'a str, prefix: &str) -> Option<&'a str> {
    directive.strip_prefix(prefix)?.strip_prefix('/')
}

/// Clears what `keys` does not name from `original`. A patch that sets a member it does not retain is wrong.
pub(super) fn retain_keys(original: &mut Map, patch: &Map, keys: Value) -> Result<(), StrategicError> {
    let Value::Array(keys) = keys else { return Err(StrategicError::BadRetainKeys) };
    let mut names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    let retained = |key: &str| names.binary_search(&key).is_ok();
    let all_named = patch.iter().all(|(key, value)| {
        value.is_null() || key.starts_with(DELETE_FROM_PREFIX) || key.starts_with(SET_ORDER_PREFIX) || retained(key)
    });
    if !all_named {
        return Err(StrategicError::BadRetainKeys);
    }
    original.retain(|key, _| retained(key));
    Ok(())
}

/// Removes null members of objects at any depth.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(m) => m.retain(|_, v| {
            discard_nulls(v);
            !v.is_null()
        }),
        Value::Array(a) => a.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Removes objects that carry a `$patch`, at any depth. False if that is the value itself.
pub(super) fn remove_marked(value: &mut Value) -> bool {
    match value {
        Value::Object(m) => {
            if m.contains_key(PATCH) {
                return false;
            }
            m.retain(|_, v| remove_marked(v));
        }
        Value::Array(a) => a.retain_mut(remove_marked),
        _ => {}
    }
    true
}
