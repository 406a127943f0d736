//! What the comprehensions with two variables build maps with.

use super::{Run, global, map, of, param};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Map, Val};
use std::sync::Arc;

pub fn functions() -> Vec<Function> {
    const K: Type = param("K");
    const V: Type = param("V");
    vec![of(
        "cel.@mapInsert",
        [
            global("@mapInsert_map_key_value", [map(K, V), K, V], map(K, V)),
            global("@mapInsert_map_map", [map(K, V), map(K, V)], map(K, V)),
        ],
    )]
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "@mapInsert_map_key_value" => Run::Many(|a| {
            let mut map = copy(&a[0])?;
            put(&mut map, a[1].clone(), a[2].clone())?;
            Ok(Val::Map(Arc::new(map)))
        }),
        "@mapInsert_map_map" => Run::Binary(|map, more| {
            let mut map = copy(map)?;
            put_all(&mut map, more)?;
            Ok(Val::Map(Arc::new(map)))
        }),
        _ => return None,
    })
}

fn copy<'a>(map: &Val<'a>) -> Result<Map<'a>, EvalError> {
    let view = map.as_map().ok_or_else(EvalError::no_overload)?;
    let mut copy = Map::with_capacity(view.len() + 1);
    for (key, value) in view.entries() {
        copy.insert(key, value?)?;
    }
    Ok(copy)
}

/// Puts an entry in whose key must be new.
pub fn put<'a>(map: &mut Map<'a>, key: Val<'a>, value: Val<'a>) -> Result<(), EvalError> {
    if map.find(&key)?.is_some() {
        return Err(EvalError::new(format!("insert failed: key {key} already exists")));
    }
    map.insert(key, value)
}

pub fn put_all<'a>(map: &mut Map<'a>, more: &Val<'a>) -> Result<(), EvalError> {
    let more = more.as_map().ok_or_else(EvalError::no_overload)?;
    for (key, value) in more.entries() {
        put(map, key, value?)?;
    }
    Ok(())
}
