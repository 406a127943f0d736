//! Numbers and booleans as Go's strconv reads them, with its errors.

use kubelith_meta::text::Quoted;

fn error(function: &str, text: &str, why: &str) -> String {
    format!("strconv.{function}: parsing {}: {why}", Quoted(text))
}

const SYNTAX: &str = "invalid syntax";
const RANGE: &str = "value out of range";

pub fn parse_bool(text: &str) -> Result<bool, String> {
    kubelith_meta::text::parse_bool(text).ok_or_else(|| error("ParseBool", text, SYNTAX))
}

/// Base from the prefix: `0x`, `0o` or `0`, `0b`; underscores between digits.
pub fn parse_int(text: &str, bits: u32) -> Result<i64, String> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = magnitude(digits).map_err(|why| error("ParseInt", text, why))?;
    let limit = 1u64 << (bits - 1);
    match (negative, magnitude) {
        (true, m) if m <= limit => Ok((m as i64).wrapping_neg()),
        (false, m) if m < limit => Ok(m as i64),
        _ => Err(error("ParseInt", text, RANGE)),
    }
}

pub fn parse_uint32(text: &str) -> Result<u32, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(error("ParseUint", text, SYNTAX));
    }
    text.parse().map_err(|_| error("ParseUint", text, RANGE))
}

/// Decimal only.
pub fn parse_atoi(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(error("Atoi", text, SYNTAX));
    }
    text.parse().map_err(|_| error("Atoi", text, RANGE))
}

pub fn parse_float(text: &str, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| error("ParseFloat", text, SYNTAX))?;
    if number.is_finite() && number.abs() > max { Err(error("ParseFloat", text, RANGE)) } else { Ok(number) }
}

fn magnitude(digits: &str) -> Result<u64, &'static str> {
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        (8, octal)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    let misplaced = body.starts_with('_') && radix == 10 || body.ends_with('_') || body.contains("__");
    let plain = body.replace('_', "");
    if plain.is_empty() || misplaced || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(SYNTAX);
    }
    u64::from_str_radix(&plain, radix).map_err(|_| RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, want) in [("12", 12), ("-0x1F", -31), ("017", 15), ("0b11", 3), ("1_000", 1000), ("+5", 5)] {
            assert_eq!(parse_int(text, 64), Ok(want), "{text}");
        }
        for (text, why) in
            [("", SYNTAX), ("x", SYNTAX), ("1.5", SYNTAX), ("09", SYNTAX), ("9223372036854775808", RANGE)]
        {
            assert_eq!(parse_int(text, 64), Err(format!("strconv.ParseInt: parsing \"{text}\": {why}")));
        }
        assert_eq!(
            parse_int("2147483648", 32),
            Err("strconv.ParseInt: parsing \"2147483648\": value out of range".into())
        );
    }
}
