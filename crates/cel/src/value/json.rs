//! JSON as its schema means it.

use super::timestamp::Layout;
use super::{EvalError, Res, Timestamp, Val, unescape};
use crate::declared::{self, Declared, MemberKind};
use base64::Engine;
use kubelith_meta::text::go_type;
use kubelith_meta::{Duration, Map, Value};

/// JSON as it comes.
#[inline]
pub fn json_val(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(b) => Val::Bool(*b),
        Value::Int(i) => Val::Int(*i),
        Value::Float(f) => Val::Double(*f),
        Value::String(s) => Val::Str(s),
        Value::Array(_) | Value::Object(_) => Val::Json(value, None),
        Value::Raw(_) => Val::Preserved(value),
    }
}

pub fn list_of(declared: &Declared) -> Option<&declared::List> {
    match &declared.kind {
        MemberKind::List(list) => Some(list),
        _ => None,
    }
}

/// A member of an object with declared fields, where null is absence.
#[inline]
pub fn member<'a>(value: Option<&'a Value>, declared: &'a Declared) -> Result<Option<Val<'a>>, EvalError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => typed(value, declared).map(Some),
    }
}

#[inline]
pub fn typed<'a>(value: &'a Value, declared: &'a Declared) -> Res<'a> {
    match (&declared.kind, value) {
        (MemberKind::String | MemberKind::IntOrString, Value::String(s)) => Ok(Val::Str(s)),
        (MemberKind::Int | MemberKind::IntOrString, Value::Int(i)) => Ok(Val::Int(*i)),
        (MemberKind::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
        (MemberKind::Double, Value::Float(f)) => Ok(Val::Double(*f)),
        (MemberKind::Double, Value::Int(i)) => Ok(Val::Double(*i as f64)),
        (MemberKind::Object(_) | MemberKind::Map(_), Value::Object(_)) => Ok(Val::Json(value, Some(declared))),
        (MemberKind::List(_), Value::Array(_)) => Ok(Val::Json(value, Some(declared))),
        _ => typed_rarely(value, declared),
    }
}

/// JSON in which names may be written escaped.
pub fn escaped<'a>(value: &'a Value, declared: &'a Declared) -> Val<'a> {
    match value {
        Value::Array(_) | Value::Object(_) => Val::Json(value, Some(declared)),
        scalar => json_val(scalar),
    }
}

/// A member by a name that may be escaped.
pub fn escaped_member<'a>(map: &'a Map, name: &str, declared: &'a Declared) -> Option<Val<'a>> {
    let value = match unescape(name) {
        Some(name) => map.get(&name),
        None => map.get(name),
    };
    value.map(|value| escaped(value, declared))
}

fn typed_rarely<'a>(value: &'a Value, declared: &'a Declared) -> Res<'a> {
    if let MemberKind::Escaped = declared.kind {
        return Ok(escaped(value, declared));
    }
    if value.is_null() {
        if declared.nullable {
            return Ok(Val::Null);
        }
        return Err(EvalError::fixed("invalid data, got null for schema with nullable=false"));
    }
    let string = || match value {
        Value::String(s) => Ok(s.as_str()),
        other => Err(EvalError::new(format!("invalid data, expected string, got {}", go_type(other)))),
    };
    match &declared.kind {
        MemberKind::Dyn | MemberKind::Library | MemberKind::Escaped => Ok(Val::Preserved(value)),
        MemberKind::IntOrString => {
            Err(EvalError::fixed("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        MemberKind::Object(_) | MemberKind::Map(_) => {
            Err(EvalError::fixed("invalid data, expected a map for the provided schema with type=object"))
        }
        MemberKind::List(_) => {
            Err(EvalError::fixed("invalid data, expected an array for the provided schema with type=array"))
        }
        MemberKind::Bool => Err(EvalError::new(format!("invalid data, expected bool, got {}", go_type(value)))),
        MemberKind::Int => Err(EvalError::new(format!("invalid data, expected int, got {}", go_type(value)))),
        MemberKind::Double => Err(EvalError::new(format!("invalid data, expected float, got {}", go_type(value)))),
        MemberKind::String => string().map(Val::Str),
        MemberKind::Duration => string().and_then(duration),
        MemberKind::Date => string().and_then(date),
        MemberKind::DateTime => string().and_then(date_time),
        MemberKind::Bytes => string().and_then(bytes),
    }
}

/// Durations as Go reads them, else numbers with names of units.
fn duration(text: &str) -> Res<'static> {
    if let Ok(duration) = Duration::parse(text) {
        return Ok(Val::Duration(duration.as_nanos()));
    }
    let failed = |why: String| EvalError::new(format!("Invalid duration {text}: {why}"));
    let mut nanos = 0i64;
    let mut found = false;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let trimmed = after.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let letters = trimmed.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(trimmed.len());
        rest = if letters == 0 { after } else { &trimmed[letters..] };
        if letters == 0 {
            continue;
        }
        let factor: i64 =
            number.parse().map_err(|_| failed(format!("strconv.Atoi: parsing \"{number}\": value out of range")))?;
        if let Some(unit) = unit(&trimmed[..letters].to_lowercase()) {
            found = true;
            nanos = nanos.wrapping_add(factor.wrapping_mul(unit));
        }
    }
    if found { Ok(Val::Duration(nanos)) } else { Err(failed(format!("unable to parse {text} as duration"))) }
}

/// The last name of each unit may go on: `hrs` begins with `hr`.
fn unit(name: &str) -> Option<i64> {
    const SECOND: i64 = 1_000_000_000;
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3600 * SECOND),
        (&["d", "day"], 86_400 * SECOND),
        (&["w", "wk", "week"], 7 * 86_400 * SECOND),
    ];
    let is = |names: &[&str]| names.contains(&name) || names.last().is_some_and(|last| name.starts_with(last));
    UNITS.iter().find(|(names, _)| is(names)).map(|(_, nanos)| *nanos)
}

fn date(text: &str) -> Res<'static> {
    let time = Timestamp::parse_local(text, Layout::Date);
    let time = time.map_err(|why| EvalError::new(format!("Invalid date formatted string {text}: {why}")))?;
    Ok(Val::Timestamp(time))
}

fn date_time(text: &str) -> Res<'static> {
    if text.is_empty() {
        return Ok(Val::Timestamp(Timestamp::utc(0, 0)));
    }
    if let Some(time) = Timestamp::parse(text) {
        return Ok(Val::Timestamp(time));
    }
    let time = Timestamp::parse_local(text, Layout::DateTime);
    let time = time.map_err(|why| EvalError::new(format!("Invalid date-time formatted string {text}: {why}")))?;
    Ok(Val::Timestamp(time))
}

fn bytes(text: &str) -> Res<'static> {
    // The reference reads the variant for URLs, with padding.
    let stripped: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    match base64::engine::general_purpose::URL_SAFE.decode(&stripped) {
        Ok(bytes) => Ok(Val::Blob(bytes.into())),
        Err(why) => {
            let at = match why {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => stripped.len(),
            };
            let message = format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}");
            Err(EvalError::new(message))
        }
    }
}
