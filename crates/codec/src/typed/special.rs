//! Values that parse themselves: times, durations, quantities, int-or-string, bytes; and zero values.

use super::decoder::Place;
use crate::base64;
use crate::error::DecodeError;
use crate::json::lexer::Token;
use crate::json::number;
use kubelith_meta::Value;
use kubelith_meta::quantity::Quantity;
use kubelith_meta::time::{Duration, Time};
use kubelith_schema::{Shape, TypeTable};

#[derive(Clone, Copy)]
pub(super) enum Special {
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
}

pub(super) enum SpecialError {
    /// Read as a Go type of its own first, and not of that type.
    WrongType {
        found: String,
        expected: &'static str,
    },
    Malformed(String),
}

impl SpecialError {
    pub fn into_decode_error(self, wrong_type: impl FnOnce(&str, Option<&str>) -> DecodeError) -> DecodeError {
        match self {
            SpecialError::WrongType { found, expected } => wrong_type(&found, Some(expected)),
            SpecialError::Malformed(message) => DecodeError::Malformed(message),
        }
    }
}

type Read = Result<Option<Value>, SpecialError>;

impl Special {
    /// Reads the token that `raw` is the text of. `None` stands for null.
    pub fn read(self, token: &Token<'_>, raw: &[u8]) -> Read {
        if matches!(token, Token::Null) {
            return Ok(None);
        }
        match self {
            Special::Quantity => quantity(raw),
            Special::IntOrString => int_or_string(token),
            Special::Time => text(token, time),
            Special::MicroTime => text(token, micro_time),
            Special::Duration => text(token, duration),
        }
    }
}

impl Special {
    /// Reads a string that was parsed already. `None` stands for nothing, which the zero time is.
    pub fn read_text(self, text: &str) -> Result<Option<Value>, String> {
        match self {
            Special::Time => time(text),
            Special::MicroTime => micro_time(text),
            Special::Duration => duration(text),
            Special::IntOrString => Ok(Some(text.into())),
            Special::Quantity => match Quantity::parse(text.trim()) {
                Ok(q) => Ok(Some(Value::String(q.into_text()))),
                Err(e) => Err(e.to_string()),
            },
        }
    }
}

fn text(token: &Token<'_>, read: fn(&str) -> Result<Option<Value>, String>) -> Read {
    match token {
        Token::String(s) => read(s).map_err(SpecialError::Malformed),
        other => Err(SpecialError::WrongType { found: other.kind().into(), expected: "string" }),
    }
}

/// Seconds in UTC; the zero time is null.
fn time(s: &str) -> Result<Option<Value>, String> {
    let time = Time::parse(s).map_err(|e| e.to_string())?;
    if time.is_zero() {
        return Ok(None);
    }
    // Twenty characters with a Z leave no room for a fraction or another zone.
    let canonical = s.len() == 20 && s.ends_with('Z');
    Ok(Some(if canonical { s.into() } else { time.rfc3339().into() }))
}

fn micro_time(s: &str) -> Result<Option<Value>, String> {
    let time = Time::parse_micro(s).map_err(|e| e.to_string())?;
    if time.is_zero() {
        return Ok(None);
    }
    let canonical = s.len() == 27 && s.ends_with('Z');
    Ok(Some(if canonical { s.into() } else { time.rfc3339_micro().into() }))
}

fn duration(s: &str) -> Result<Option<Value>, String> {
    Duration::parse(s).map(|d| Some(d.to_string().into())).map_err(|e| e.to_string())
}

/// The raw text counts: a number is as good as a string, and escapes are not undone.
fn quantity(raw: &[u8]) -> Read {
    let raw = String::from_utf8_lossy(raw);
    let text = raw.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(&raw);
    match Quantity::parse(text.trim()) {
        Ok(q) => Ok(Some(Value::String(q.into_text()))),
        Err(e) => Err(SpecialError::Malformed(e.to_string())),
    }
}

fn int_or_string(token: &Token<'_>) -> Read {
    let found = match token {
        Token::String(s) => return Ok(Some(s.as_ref().into())),
        Token::Number(n) => match number::integer(*n).filter(|i| i32::try_from(*i).is_ok()) {
            Some(i) => return Ok(Some(Value::Int(i))),
            None => format!("number {}", n.text),
        },
        other => other.kind().into(),
    };
    Err(SpecialError::WrongType { found, expected: "int32" })
}

/// Base64 in its canonical form.
pub(super) fn bytes(s: &str) -> Result<Value, String> {
    if base64::is_canonical(s) {
        return Ok(s.into());
    }
    base64::decode(s).map(|bytes| base64::encode(&bytes).into()).map_err(|e| e.to_string())
}

/// What Go has where JSON says null, in a list or a map.
pub(super) fn zero(table: &TypeTable, place: Place<'_>) -> Value {
    let schema = match place {
        Place::Schema(schema) => schema,
        Place::Type(_) => return Value::object(),
        Place::String => return "".into(),
        Place::Byte => return Value::Int(0),
    };
    if table.resolve(schema).is_some() {
        return Value::object();
    }
    match schema.shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::Int(0),
        Shape::String => "".into(),
        Shape::Quantity => "0".into(),
        Shape::Duration => "0s".into(),
        _ => Value::Null,
    }
}
