//! JSON of tokens, key sets and reviews, to and from the value type.

use kubelith_meta::{Map, Value};

/// Reads one JSON document. Depth is limited by the reader.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    Ok(convert(value))
}

fn convert(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(i) => Value::Int(i),
            None => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s),
        serde_json::Value::Array(a) => Value::Array(a.into_iter().map(convert).collect()),
        serde_json::Value::Object(o) => Value::Object(o.into_iter().map(|(k, v)| (k, convert(v))).collect::<Map>()),
    }
}

pub fn write(value: &Value) -> String {
    kubelith_meta::text::json(value)
}
