//! Scalars between YAML and JSON.

use super::resolve::{Resolved, resolve};
use crate::base64;
use kubelith_meta::{Str, Value, text};

/// A scalar as the YAML library sees it; also a key of a mapping before it becomes a string.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(Str),
}

impl Scalar {
    pub fn read(value: &str, tag: &str, implicit: bool) -> Result<Scalar, String> {
        if tag.is_empty() && !implicit {
            return Ok(Scalar::Str(value.into()));
        }
        if tag == "tag:yaml.org,2002:binary" {
            let bytes = base64::decode(value).map_err(|_| "!!binary value contains invalid base64 data")?;
            let mut text = String::with_capacity(bytes.len());
            crate::json::lexer::push_repaired(&mut text, &bytes);
            return Ok(Scalar::Str(text.into()));
        }
        Ok(match resolve(tag, value)? {
            Resolved::Null => Scalar::Null,
            Resolved::Bool(b) => Scalar::Bool(b),
            Resolved::Int(i) => Scalar::Int(i),
            Resolved::Uint(u) => Scalar::Uint(u),
            Resolved::Float(f) => Scalar::Float(f),
            Resolved::Timestamp | Resolved::Str => Scalar::Str(value.into()),
        })
    }

    pub fn into_value(self) -> Value {
        match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => Value::Int(i),
            Scalar::Uint(u) => Value::Float(u as f64),
            Scalar::Str(s) => Value::String(s),
            Scalar::Float(f) => whole(f).map_or(Value::Float(f), Value::Int),
        }
    }

    /// The key as a string, if it can be one.
    pub fn key(&self) -> Option<Str> {
        Some(match self {
            Scalar::Str(s) => s.clone(),
            Scalar::Int(i) => itoa::Buffer::new().format(*i).into(),
            Scalar::Bool(b) => if *b { "true" } else { "false" }.into(),
            // The reference prints keys with the digits of a single-precision number.
            Scalar::Float(f) => float_key(*f).into(),
            Scalar::Null | Scalar::Uint(_) => return None,
        })
    }
}

fn float_key(f: f64) -> String {
    if f.is_nan() {
        return ".nan".into();
    }
    let single = f as f32;
    if single.is_infinite() {
        return if f > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    // The shortest digits of the single-precision number, in the notation that Go chooses for them.
    let digits: f64 = format!("{single:e}").parse().unwrap_or(f);
    text::float_v(digits)
}

/// The integer that a double is printed as in JSON, if it is one that reads back as an integer.
pub(super) fn whole(f: f64) -> Option<i64> {
    // 2^63 itself does not fit; everything below does exactly.
    (f.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f)).then_some(f as i64)
}
