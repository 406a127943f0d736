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

/// What is wrong with a new object, as messages.
pub fn check_create(group: &str, plural: &str, object: &str) -> Vec<String> {
    let request = crate::Request { group, version: "v1", subresource: "", env: env() };
    let errors = (crate::rules(group, plural).create)(request, &value(object));
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with a change, as messages.
pub fn check_update(group: &str, plural: &str, subresource: &str, new: &str, old: &str) -> Vec<String> {
    let request = crate::Request { group, version: "v1", subresource, env: env() };
    let errors = (crate::rules(group, plural).update)(request, &value(new), &value(old));
    errors.iter().map(ToString::to_string).collect()
}
