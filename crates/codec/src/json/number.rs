//! Numbers as Kubernetes reads and Go writes them.

use super::lexer::Number;
use kubelith_meta::Value;
use std::io::Write;

/// A number for an untyped place: an integer if it is written as one and fits in 64 bits, else a double.
/// `None` if not even a double can hold it.
#[inline]
pub(crate) fn untyped(number: Number<'_>) -> Option<Value> {
    if number.integral
        && let Some(i) = integer(number)
    {
        return Some(Value::Int(i));
    }
    double(number).map(Value::Float)
}

/// An integer that is written as one: `3.0` and `1e2` are not.
#[inline]
pub(crate) fn integer(number: Number<'_>) -> Option<i64> {
    if number.integral { number.text.parse().ok() } else { None }
}

pub(crate) fn double(number: Number<'_>) -> Option<f64> {
    number.text.parse().ok().filter(|f: &f64| f.is_finite())
}

/// A double as it reads once it was written: whole ones are written without a point and are integers then. What is
/// compared with something stored must have the same form.
pub fn stored_form(f: f64) -> Value {
    let whole = f.fract() == 0.0 && f.abs() < 9_223_372_036_854_775_808.0 && !(f == 0.0 && f.is_sign_negative());
    if whole { Value::Int(f as i64) } else { Value::Float(f) }
}

/// Writes a double as `encoding/json` does: shortest digits, an exponent below 1e-6 and from 1e21 on.
/// JSON has no infinities; they cannot come from a decoder and are written as null.
pub fn write_float(out: &mut Vec<u8>, f: f64) {
    if !f.is_finite() {
        return out.extend_from_slice(b"null");
    }
    let abs = f.abs();
    if abs != 0.0 && !(1e-6..1e21).contains(&abs) {
        let start = out.len();
        write!(out, "{f:e}").expect("writing to a Vec cannot fail");
        let e = out[start..].iter().position(|&b| b == b'e').map_or(out.len(), |i| start + i + 1);
        if out.get(e).is_some_and(u8::is_ascii_digit) {
            out.insert(e, b'+');
        }
    } else {
        write!(out, "{f}").expect("writing to a Vec cannot fail");
    }
}

/// Whether a fraction is printed as it was written: `1.5` is, `3.0` and `1e40` are not.
pub(crate) fn is_written_as(value: &Value, text: &str) -> bool {
    let Value::Float(f) = value else { return false };
    let mut printed = Vec::new();
    write_float(&mut printed, *f);
    f.fract() != 0.0 && printed == text.as_bytes()
}

pub fn write_int(out: &mut Vec<u8>, i: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(i).as_bytes());
}
