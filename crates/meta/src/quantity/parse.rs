//! Reading quantities. What is accepted is a little more than the pattern in the error message says: `.`, `+`
//! and `-` alone are zero, and the text of a plain number is kept even with leading zeros or a sign.

use super::decimal::Decimal;
use super::{Amount, Format, NANO, Quantity};
use crate::{Str, Value, text};
use std::fmt;

/// Decimal digits that surely fit into 64 bits.
const SAFE_DIGITS: i32 = 18;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantityError {
    Format,
    Numeric,
    Suffix,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuantityError::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            QuantityError::Numeric => "unable to parse numeric part of quantity",
            QuantityError::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for QuantityError {}

/// A text taken apart.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point without leading zeros, at least one.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    /// Whether there was any digit at all.
    has_digits: bool,
    suffix: &'a str,
}

/// The digits that a text begins with, and what is behind them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Nearly all amounts: digits, and a suffix.
fn split_plain(text: &str) -> Option<(Parts<'_>, Unit)> {
    let (whole, suffix) = digits(text);
    if matches!(whole.as_bytes(), [] | [b'0', ..]) {
        return None;
    }
    let parts = Parts { negative: false, whole, fraction: "", has_digits: true, suffix };
    Some((parts, unit(suffix).ok()?))
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let (all_whole, mut rest) = digits(unsigned);
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = digits(after);
    }
    // Zeros with nothing behind them end the text early in the reference, so even a lone sign is a zero.
    let has_digits = !all_whole.is_empty() || !fraction.is_empty() || unsigned.is_empty();
    let whole = &all_whole[all_whole.bytes().take_while(|b| *b == b'0').count()..];
    let whole = if whole.is_empty() { "0" } else { whole };
    let suffix = rest;
    let is_letter = |b: &u8| b"eEinumkKMGTP".contains(b);
    let exponent = &rest[rest.bytes().take_while(is_letter).count()..];
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts { negative, whole, fraction, has_digits, suffix })
}

enum Unit {
    Decimal(i32, Format),
    /// A power of two.
    Binary(u32),
}

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The suffix for a power of ten; none beyond the table.
pub(super) fn decimal_suffix(exponent: i64) -> &'static str {
    DECIMAL_SUFFIXES.iter().find(|(_, e)| i64::from(*e) == exponent).map_or("", |(s, _)| s)
}

fn unit(suffix: &str) -> Result<Unit, QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Ok(Unit::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Ok(Unit::Binary(*power));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
    // The reference keeps the low 32 bits.
    Ok(Unit::Decimal(exponent as i32, Format::DecimalExponent))
}

impl Quantity {
    /// Reads a quantity. Surrounding space is refused here; JSON strings are trimmed by [`Quantity::from_value`].
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        if text == "0" {
            return Ok(Quantity { text: "0".into(), ..Quantity::default() });
        }
        let (parts, unit) = match split_plain(text) {
            Some(found) => found,
            None => {
                let parts = split(text)?;
                let unit = unit(parts.suffix)?;
                (parts, unit)
            }
        };
        match parse_int(&parts, &unit) {
            Some((quantity, plain)) => {
                Ok(Quantity { text: if plain { text.into() } else { Str::default() }, ..quantity })
            }
            None => parse_decimal(&parts, &unit),
        }
    }

    /// Reads a quantity from JSON: a string, or a number as it prints.
    pub fn from_value(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::Null => Ok(Quantity::default()),
            Value::String(s) => Quantity::parse(s.trim()),
            Value::Int(i) => Quantity::parse(&i.to_string()),
            Value::Float(f) => Quantity::parse(&text::float_json(*f)),
            _ => Err(QuantityError::Format),
        }
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse(text)
    }
}

/// The fast way, for numbers that surely fit, and whether their text is plain enough to be kept.
fn parse_int(parts: &Parts<'_>, unit: &Unit) -> Option<(Quantity, bool)> {
    let (whole, fraction) = (parts.whole.len() as i32, i32::try_from(parts.fraction.len()).ok()?);
    let (factor, exponent, room, format) = match *unit {
        Unit::Decimal(exponent, format) => (1, exponent, SAFE_DIGITS - whole - fraction, format),
        // Roughly the digits that a power of two takes, with one to spare.
        Unit::Binary(power) if fraction == 0 => {
            (1i64 << power, 0, 15 - whole - (power * 3 / 10) as i32 - 1, Format::BinarySi)
        }
        Unit::Binary(_) => return None,
    };
    let scale = exponent.wrapping_sub(fraction);
    if room < 0 || scale < NANO {
        return None;
    }
    let append = |n: i64, digit: u8| n * 10 + i64::from(digit - b'0');
    let unsigned = parts.fraction.bytes().fold(parts.whole.bytes().fold(0, append), append);
    let value = unsigned.checked_mul(factor)?;
    let plain = match format {
        Format::BinarySi => unsigned & 7 != 0,
        _ => {
            // With as many digits.
            let ends_in_thousands = unsigned % 1000 == 0 && whole + fraction >= 3;
            scale % 3 == 0 && !ends_in_thousands && !parts.whole.starts_with('0')
        }
    };
    let value = if parts.negative { -value } else { value };
    Some((Quantity::scaled(value, scale, format), plain))
}

/// The slow way: any number, rounded up to a multiple of a nano, and capped if binary.
fn parse_decimal(parts: &Parts<'_>, unit: &Unit) -> Result<Quantity, QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::Numeric);
    }
    let digits = parts.whole.bytes().chain(parts.fraction.bytes()).map(|b| b - b'0').collect();
    let mut amount = Decimal::new(false, digits, -(parts.fraction.len() as i64));
    let mut format = match *unit {
        Unit::Decimal(exponent, format) => {
            amount.shift(exponent);
            format
        }
        Unit::Binary(power) => {
            amount.multiply_magnitude(1 << power);
            Format::BinarySi
        }
    };
    amount.round_away(NANO);
    if format == Format::BinarySi {
        let (one, max) = (Decimal::from_int(1, 0), Decimal::from_int(i64::MAX, 0));
        if amount.cmp(&max).is_gt() {
            amount = max;
        }
        if amount.cmp(&one).is_lt() && amount.signum() != 0 {
            format = Format::DecimalSi;
        }
    }
    if parts.negative {
        amount = -amount;
    }
    Ok(Quantity { amount: Amount::Decimal(Box::new(amount)), format, text: Str::default() })
}
