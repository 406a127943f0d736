//! JSON of tokens, key sets and reviews, to and from the value type.

use kubelith_meta::Value;

/// Levels of nesting that are read: far more than any token, key set or review has.
const MAX_DEPTH: usize = 64;

/// Reads one JSON document.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value = kubelith_codec::json::parse(bytes).map_err(|e| e.to_string())?;
    if is_deeper(&value, MAX_DEPTH) { Err("exceeded max depth".into()) } else { Ok(value) }
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
