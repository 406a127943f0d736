//! Fields that hold a number or a string, such as a port or a share of the replicas: `3`, `"25%"`, `"http"`.

use crate::{Str, Value, text};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntOrString {
    Int(i32),
    String(Str),
}

/// Which way a share of a whole is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    Up,
    Down,
}

/// Why a value is no number and no percentage, in the reference's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntOrStringError(String);

impl fmt::Display for IntOrStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IntOrStringError {}

impl IntOrString {
    /// A 32-bit integer if `text` is one, else the text.
    pub fn parse(text: &str) -> IntOrString {
        text.parse().map_or_else(|_| IntOrString::String(text.into()), IntOrString::Int)
    }

    /// A JSON integer of 32 bits or a string.
    pub fn from_value(value: &Value) -> Option<IntOrString> {
        match value {
            Value::Int(i) => i32::try_from(*i).ok().map(IntOrString::Int),
            Value::String(s) => Some(IntOrString::String(s.clone())),
            _ => None,
        }
    }

    /// The number, or the number that the string writes, or 0.
    pub fn int_value(&self) -> i64 {
        match self {
            IntOrString::Int(i) => (*i).into(),
            // Go's Atoi gives the nearest 64-bit number even where it fails for the size.
            IntOrString::String(s) => s.parse().unwrap_or_else(|_| clamp_int(s)),
        }
    }

    /// The number, or the percentage of `total`. Any other string is an error.
    pub fn scaled_value(&self, total: i64, rounding: Rounding) -> Result<i64, IntOrStringError> {
        let invalid = |why: String| IntOrStringError(format!("invalid value for IntOrString: {why}"));
        let text = match self {
            IntOrString::Int(i) => return Ok((*i).into()),
            IntOrString::String(s) => s,
        };
        let Some(digits) = text.strip_suffix('%') else {
            return Err(invalid("invalid type: string is not a percentage".to_owned()));
        };
        let percent = parse_int(digits).map_err(|e| invalid(format!("invalid value {}: {e}", text::quote(text))))?;
        let share = percent as f64 * total as f64 / 100.0;
        Ok(match rounding {
            Rounding::Up => share.ceil() as i64,
            Rounding::Down => share.floor() as i64,
        })
    }

    /// The percentage that it writes, if it is one.
    pub fn percent(&self) -> Option<i64> {
        match self {
            IntOrString::String(s) => s.strip_suffix('%')?.parse().ok(),
            IntOrString::Int(_) => None,
        }
    }
}

/// Go's `strconv.Atoi`, with its errors.
fn parse_int(s: &str) -> Result<i64, String> {
    s.parse().map_err(|_| {
        let why = if is_integer(s) { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {why}", text::quote(s))
    })
}

fn is_integer(s: &str) -> bool {
    let digits = s.strip_prefix(['+', '-']).unwrap_or(s);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn clamp_int(s: &str) -> i64 {
    match (is_integer(s), s.starts_with('-')) {
        (false, _) => 0,
        (true, true) => i64::MIN,
        (true, false) => i64::MAX,
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrString::Int(i) => i.fmt(f),
            IntOrString::String(s) => f.write_str(s),
        }
    }
}

impl From<&IntOrString> for Value {
    fn from(v: &IntOrString) -> Value {
        match v {
            IntOrString::Int(i) => Value::from(*i),
            IntOrString::String(s) => Value::String(s.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_total() {
        for (text, total, up, down) in [
            ("5", 10, Ok(5), Ok(5)),
            ("25%", 10, Ok(3), Ok(2)),
            ("0%", 10, Ok(0), Ok(0)),
            ("150%", 3, Ok(5), Ok(4)),
            ("-10%", 15, Ok(-1), Ok(-2)),
        ] {
            let value = IntOrString::parse(text);
            assert_eq!(value.scaled_value(total, Rounding::Up), up, "{text}");
            assert_eq!(value.scaled_value(total, Rounding::Down), down, "{text}");
        }
        for (text, want) in [
            ("abc", "invalid value for IntOrString: invalid type: string is not a percentage"),
            ("a%", "invalid value for IntOrString: invalid value \"a%\": strconv.Atoi: parsing \"a\": invalid syntax"),
            (
                "99999999999999999999%",
                "invalid value for IntOrString: invalid value \"99999999999999999999%\": strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            let error = IntOrString::String(text.into()).scaled_value(10, Rounding::Up).unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn values_are_read() {
        assert_eq!(IntOrString::parse("2147483648"), IntOrString::String("2147483648".into()));
        assert_eq!(IntOrString::from_value(&Value::Int(7)), Some(IntOrString::Int(7)));
        assert_eq!(IntOrString::from_value(&Value::Int(1 << 40)), None);
        assert_eq!(IntOrString::from_value(&Value::Bool(true)), None);
        for (text, want) in
            [("7", 7), ("x", 0), ("99999999999999999999", i64::MAX), ("-99999999999999999999", i64::MIN)]
        {
            assert_eq!(IntOrString::String(text.into()).int_value(), want);
        }
        assert_eq!(IntOrString::parse("30%").percent(), Some(30));
        assert_eq!(IntOrString::parse("30%").to_string(), "30%");
    }
}
