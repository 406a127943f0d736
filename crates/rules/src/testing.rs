//! What tests share.

use crate::Env;
use kubelith_meta::Value;
use std::sync::LazyLock;

/// With all features as they are by default.
pub fn env() -> &'static Env {
    static ENV: LazyLock<Env> = LazyLock::new(Env::default);
    &ENV
}

/// Values from JSON as tests write it.
pub fn value(json: &str) -> Value {
    fn convert(v: serde_json::Value) -> Value {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => b.into(),
            serde_json::Value::Number(n) => n.as_i64().unwrap_or_default().into(),
            serde_json::Value::String(s) => s.into(),
            serde_json::Value::Array(a) => Value::Array(a.into_iter().map(convert).collect()),
            serde_json::Value::Object(m) => Value::Object(m.into_iter().map(|(k, v)| (k, convert(v))).collect()),
        }
    }
    convert(serde_json::from_str(json).expect("a test's JSON"))
}
