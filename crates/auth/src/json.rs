//! JSON of tokens, key sets and reviews, to and from the value type.

use kubelith_codec::json::StrictError;
use kubelith_meta::Value;

/// Levels of nesting that are read: far more than any token, key set or review has.
const MAX_DEPTH: usize = 64;

/// Reads one JSON document.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value = kubelith_codec::json::parse(bytes).map_err(|e| e.to_string())?;
    if is_deeper(&value, MAX_DEPTH) { Err("exceeded max depth".into()) } else { Ok(value) }
}

/// Reads one JSON document; also the path of the first member that is there twice.
pub fn parse_noting_repeats(bytes: &[u8]) -> Result<(Value, Option<String>), String> {
    let decoded = kubelith_codec::json::parse_strict(bytes).map_err(|e| e.to_string())?;
    if is_deeper(&decoded.value, MAX_DEPTH) {
        return Err("exceeded max depth".into());
    }
    let repeated = decoded.strict.into_iter().find_map(|e| match e {
        StrictError::DuplicateField(path) => Some(path),
        _ => None,
    });
    Ok((decoded.value, repeated))
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(list) => levels == 0 || list.iter().any(|v| is_deeper(v, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|v| is_deeper(v, levels - 1)),
        _ => false,
    }
}

pub fn write(value: &Value) -> String {
    kubelith_meta::text::json(value)
}
