//! Values as Go's `%#v` prints them, for the two messages about keys that cannot be keys.

use super::scalar::Scalar;
use kubelith_meta::{Value, text};

pub(super) fn scalar(s: &Scalar) -> String {
    match s {
        Scalar::Null => "<nil>".into(),
        Scalar::Bool(b) => b.to_string(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Uint(u) => format!("{u:#x}"),
        Scalar::Float(f) => text::float_v(*f),
        Scalar::Str(s) => text::quote(s),
    }
}

/// Deeper values are cut short; a message is no place for them.
const MAX_DEPTH: usize = 16;

pub(super) fn value(v: &Value) -> String {
    if v.is_null() {
        return "<nil>".into();
    }
    let mut out = String::new();
    push(&mut out, v, 0);
    out
}

fn push(out: &mut String, v: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        return out.push_str("...");
    }
    match v {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(itoa::Buffer::new().format(*i)),
        Value::Float(f) => out.push_str(&text::float_v(*f)),
        Value::String(s) => out.push_str(&text::quote(s)),
        // YAML that is read has none.
        Value::Raw(text) => out.push_str(text),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push(out, item, depth + 1);
            }
            out.push('}');
        }
        Value::Object(members) => {
            out.push_str("map[interface {}]interface {}{");
            for (i, (key, member)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(&text::quote(key));
                out.push(':');
                push(out, member, depth + 1);
            }
            out.push('}');
        }
    }
}
