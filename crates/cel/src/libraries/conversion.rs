//! From one type to another: `int(x)`, `string(x)`.

use super::Run;
use crate::value::{EvalError, Res, Timestamp, Val};
use kubelith_meta::Duration;
use kubelith_meta::text::{float_v, parse_bool};

pub fn run(id: &str) -> Option<Run> {
    Some(Run::Unary(match id {
        "bool_to_bool"
        | "bytes_to_bytes"
        | "double_to_double"
        | "duration_to_duration"
        | "int64_to_int64"
        | "string_to_string"
        | "timestamp_to_timestamp"
        | "uint64_to_uint64" => |x| Ok(x.clone()),
        "string_to_bool" => to_bool,
        "string_to_bytes" => to_bytes,
        "int64_to_double" | "string_to_double" | "uint64_to_double" => to_double,
        "int64_to_duration" | "string_to_duration" => to_duration,
        "double_to_int64" | "duration_to_int64" | "string_to_int64" | "timestamp_to_int64" | "uint64_to_int64" => {
            to_int
        }
        "bool_to_string"
        | "bytes_to_string"
        | "double_to_string"
        | "duration_to_string"
        | "int64_to_string"
        | "timestamp_to_string"
        | "uint64_to_string" => to_string,
        "int64_to_timestamp" | "string_to_timestamp" => to_timestamp,
        "double_to_uint64" | "int64_to_uint64" | "string_to_uint64" => to_uint,
        _ => return None,
    }))
}

fn failed<'a>(from: &Val<'a>, to: &str) -> Res<'a> {
    Err(EvalError::new(format!("type conversion error from '{}' to '{to}'", from.type_name())))
}

pub fn to_bool<'a>(x: &Val<'a>) -> Res<'a> {
    match x.as_str().and_then(parse_bool) {
        Some(b) => Ok(Val::Bool(b)),
        None => failed(x, "bool"),
    }
}

pub fn to_bytes<'a>(x: &Val<'a>) -> Res<'a> {
    match x {
        Val::Str(s) => Ok(Val::Bytes(s.as_bytes())),
        Val::Text(s) => Ok(Val::Blob(s.as_bytes().into())),
        _ => failed(x, "bytes"),
    }
}

pub fn to_double<'a>(x: &Val<'a>) -> Res<'a> {
    match x {
        Val::Int(i) => Ok(Val::Double(*i as f64)),
        Val::Uint(u) => Ok(Val::Double(*u as f64)),
        Val::Double(d) => Ok(Val::Double(*d)),
        _ => match x.as_str().and_then(parse_double) {
            Some(d) => Ok(Val::Double(d)),
            None => failed(x, "double"),
        },
    }
}

/// Go's `strconv.ParseFloat`: underscores between digits, hexadecimal floats, names of infinities.
pub fn parse_double(text: &str) -> Option<f64> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    let mut lower = body.to_ascii_lowercase();
    if lower == "inf" || lower == "infinity" {
        return Some(sign * f64::INFINITY);
    }
    if lower == "nan" {
        // NaN has no sign.
        return (body.len() == text.len()).then_some(f64::NAN);
    }
    if lower.contains('_') {
        if !separates_digits(&lower) {
            return None;
        }
        lower.retain(|c| c != '_');
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return parse_hex(hex).map(|d| sign * d).filter(|d| d.is_finite());
    }
    let is_decimal = lower.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-'));
    if !is_decimal || !lower.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let d: f64 = lower.parse().ok()?;
    d.is_finite().then_some(sign * d)
}

/// Whether each underscore stands between digits, of which the prefix of a base is one.
fn separates_digits(text: &str) -> bool {
    let (is_hex, digits) = match text.strip_prefix("0x") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let is_digit = |b: u8| b.is_ascii_digit() || (is_hex && b.is_ascii_hexdigit());
    let bytes = digits.as_bytes();
    bytes.iter().enumerate().filter(|(_, b)| **b == b'_').all(|(i, _)| {
        let before = if i == 0 { is_hex } else { is_digit(bytes[i - 1]) };
        before && bytes.get(i + 1).copied().is_some_and(is_digit)
    })
}

/// `1.8p3`: digits, a point, an exponent of two that must be there.
fn parse_hex(text: &str) -> Option<f64> {
    /// Beyond this every number is zero or infinite.
    const MAX_EXPONENT: i64 = 100_000_000;
    let (mantissa, exponent) = text.split_once('p')?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(MAX_EXPONENT).min(MAX_EXPONENT);
    let mut exponent = if exponent.starts_with('-') { -size } else { size };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // What does not fit only matters for rounding.
    let (mut value, mut is_inexact) = (0u64, false);
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(c.to_digit(16)?);
        let is_fraction = i >= whole.len();
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            is_inexact |= digit != 0;
            exponent += if is_fraction { 0 } else { 4 };
        }
    }
    Some(scaled(value, is_inexact, exponent))
}

/// The double next to `value` and a bit more, if it is not exact, times two to the power of `exponent`.
fn scaled(value: u64, is_inexact: bool, exponent: i64) -> f64 {
    const BITS: i64 = 53;
    const MIN_EXPONENT: i64 = -1022;
    if value == 0 {
        return 0.0;
    }
    let shift = i64::from(value.leading_zeros());
    let (value, exponent) = (u128::from(value << shift), exponent - shift);
    let leading = exponent + 63;
    if leading > 1023 {
        return f64::INFINITY;
    }
    // Numbers that are very small have fewer bits.
    let bits = BITS - (MIN_EXPONENT - leading).max(0);
    if bits < 0 {
        return 0.0;
    }
    let dropped = 64 - bits;
    let (kept, rest, half) = (value >> dropped, value & ((1 << dropped) - 1), 1u128 << (dropped - 1));
    let is_up = rest > half || (rest == half && (is_inexact || kept & 1 == 1));
    let (kept, exponent) = ((kept + u128::from(is_up)) as f64, (exponent + dropped) as i32);
    // In two steps, both exact: the power alone may be too small for a double.
    kept * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

pub fn to_duration<'a>(x: &Val<'a>) -> Res<'a> {
    match x.as_str().and_then(|s| Duration::parse(s).ok()) {
        Some(duration) => Ok(Val::Duration(duration.as_nanos())),
        None => failed(x, "google.protobuf.Duration"),
    }
}

pub fn to_int<'a>(x: &Val<'a>) -> Res<'a> {
    let overflow = || EvalError::fixed("integer overflow");
    match x {
        Val::Double(d) => crate::value::double_to_int(*d).map(Val::Int).ok_or_else(overflow),
        Val::Uint(u) => i64::try_from(*u).map(Val::Int).map_err(|_| overflow()),
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        Val::Timestamp(t) => Ok(Val::Int(t.seconds)),
        _ => match x.as_str().and_then(parse_int) {
            Some(i) => Ok(Val::Int(i)),
            None => failed(x, "int"),
        },
    }
}

/// Go's `strconv.ParseInt(text, 10, 64)`.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

pub fn to_uint<'a>(x: &Val<'a>) -> Res<'a> {
    let overflow = || EvalError::fixed("unsigned integer overflow");
    match x {
        Val::Double(d) => crate::value::double_to_uint(*d).map(Val::Uint).ok_or_else(overflow),
        Val::Int(i) => u64::try_from(*i).map(Val::Uint).map_err(|_| overflow()),
        // No sign there.
        _ => match x.as_str().filter(|s| !s.starts_with('+')).and_then(|s| s.parse().ok()) {
            Some(u) => Ok(Val::Uint(u)),
            None => failed(x, "uint"),
        },
    }
}

pub fn to_string<'a>(x: &Val<'a>) -> Res<'a> {
    Ok(match x {
        Val::Str(_) | Val::Text(_) => x.clone(),
        Val::Bool(b) => Val::Str(if *b { "true" } else { "false" }),
        Val::Int(i) => Val::text(itoa::Buffer::new().format(*i)),
        Val::Uint(u) => Val::text(itoa::Buffer::new().format(*u)),
        Val::Double(d) => Val::text(float_v(*d)),
        Val::Duration(nanos) => Val::text(duration_text(*nanos)),
        Val::Timestamp(t) => Val::text(t.rfc3339()),
        Val::Type(name) => Val::Text(name.clone()),
        Val::Bytes(_) | Val::Blob(_) => match std::str::from_utf8(x.as_bytes().unwrap_or_default()) {
            Ok(text) => Val::text(text),
            Err(_) => return Err(EvalError::fixed("invalid UTF-8 in bytes, cannot convert to string")),
        },
        _ => return failed(x, "string"),
    })
}

/// Seconds, as a double prints without an exponent.
pub fn duration_text(nanos: i64) -> String {
    // Go adds seconds and the rest as doubles.
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

pub fn to_timestamp<'a>(x: &Val<'a>) -> Res<'a> {
    let overflow = || EvalError::fixed("timestamp overflow");
    let time = match x {
        Val::Int(i) => Timestamp::utc(*i, 0),
        _ => match x.as_str().and_then(Timestamp::parse) {
            Some(time) => time,
            None => return failed(x, "google.protobuf.Timestamp"),
        },
    };
    if time.in_range() { Ok(Val::Timestamp(time)) } else { Err(overflow()) }
}
