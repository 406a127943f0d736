//! What a plain scalar means: YAML 1.1 as the reference's library reads it. `yes` and `off` are booleans, a
//! leading zero is octal, base 60 is not known, dates are recognised and then kept as strings.

use super::timestamp::is_timestamp;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    Float(f64),
    /// The text itself, because it looks like a date.
    Timestamp,
    /// The text itself.
    Str,
}

const PREFIX: &str = "tag:yaml.org,2002:";

/// The value of a scalar with a tag (empty: none). An error is the text of the reference's message.
pub(super) fn resolve(tag: &str, text: &str) -> Result<Resolved, String> {
    let short = match tag {
        "" => "",
        tag => match tag.strip_prefix(PREFIX) {
            Some(short @ ("str" | "bool" | "int" | "float" | "null" | "timestamp")) => short,
            // Other tags mean nothing to us.
            _ => return Ok(Resolved::Str),
        },
    };
    if short == "str" {
        return Ok(Resolved::Str);
    }
    let value = plain(text, matches!(short, "" | "timestamp"));
    let found = tag_of(value);
    match (short, value) {
        ("float", Resolved::Int(i)) => Ok(Resolved::Float(i as f64)),
        ("", _) => Ok(value),
        _ if short == found => Ok(value),
        _ => Err(format!("cannot decode !!{found} `{text}` as a !!{short}")),
    }
}

fn tag_of(value: Resolved) -> &'static str {
    match value {
        Resolved::Null => "null",
        Resolved::Bool(_) => "bool",
        Resolved::Int(_) | Resolved::Uint(_) => "int",
        Resolved::Float(_) => "float",
        Resolved::Timestamp => "timestamp",
        Resolved::Str => "str",
    }
}

fn plain(text: &str, dates: bool) -> Resolved {
    if let Some(value) = word(text) {
        return value;
    }
    match text.as_bytes().first() {
        Some(b'.') => float(text).map_or(Resolved::Str, Resolved::Float),
        Some(b'0'..=b'9' | b'+' | b'-') => {
            if dates && is_timestamp(text) {
                return Resolved::Timestamp;
            }
            let stripped;
            let digits = if text.contains('_') {
                stripped = text.replace('_', "");
                &stripped
            } else {
                text
            };
            number(digits)
        }
        _ => Resolved::Str,
    }
}

fn word(text: &str) -> Option<Resolved> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Resolved::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Resolved::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Resolved {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if let Some(i) = integer(magnitude) {
        if negative && i <= 1 << 63 {
            return Resolved::Int((i as i64).wrapping_neg());
        }
        if let (false, Ok(i)) = (negative, i64::try_from(i)) {
            return Resolved::Int(i);
        }
        // Unsigned numbers take no sign.
        if magnitude.len() == text.len() {
            return Resolved::Uint(i);
        }
    }
    if is_decimal(magnitude) { float(text).map_or(Resolved::Str, Resolved::Float) } else { Resolved::Str }
}

/// An unsigned integer with Go's prefixes: 0x, 0o, 0b, and 0 for octal.
fn integer(text: &str) -> Option<u64> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'o' | b'O', ..] => (8, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// `[0-9]+(\.[0-9]*)?` or `\.[0-9]+`, and an exponent.
fn is_decimal(text: &str) -> bool {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let n = digits(fraction);
        if whole == 0 && n == 0 {
            return false;
        }
        rest = &fraction[n..];
    } else if whole == 0 {
        return false;
    }
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
    }
}

/// Numbers that a double cannot hold stay text.
fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|f: &f64| f.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars() {
        use Resolved::*;
        for (text, want) in [
            ("", Null),
            ("~", Null),
            ("NULL", Null),
            ("nUll", Str),
            ("y", Bool(true)),
            ("On", Bool(true)),
            ("off", Bool(false)),
            ("yES", Str),
            ("0", Int(0)),
            ("-5", Int(-5)),
            ("+5", Int(5)),
            ("1_000", Int(1000)),
            ("010", Int(8)),
            ("-010", Int(-8)),
            ("0o17", Int(15)),
            ("0x1F", Int(31)),
            ("0b101", Int(5)),
            ("-0b101", Int(-5)),
            // Not octal, but a float.
            ("08", Float(8.0)),
            ("9223372036854775807", Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("18446744073709551615", Uint(u64::MAX)),
            ("18446744073709551616", Float(18446744073709551616.0)),
            ("1.", Float(1.0)),
            (".5", Float(0.5)),
            ("+.5", Float(0.5)),
            ("1e3", Float(1000.0)),
            ("1e400", Str),
            ("1e", Str),
            (".", Str),
            ("-", Str),
            ("--1", Str),
            ("0x", Str),
            ("0x+1", Str),
            ("1:30", Str),
            (".inf", Float(f64::INFINITY)),
            ("-.INF", Float(f64::NEG_INFINITY)),
            ("2001-01-01", Timestamp),
            ("2001-13-01", Str),
            ("<<", Str),
            ("null value", Str),
        ] {
            assert_eq!(resolve("", text).unwrap(), want, "{text}");
        }
        assert!(matches!(resolve("", ".nan"), Ok(Float(f)) if f.is_nan()));
    }

    #[test]
    fn tags() {
        let tagged = |tag: &str, text| resolve(&format!("{PREFIX}{tag}"), text);
        assert_eq!(tagged("str", "5"), Ok(Resolved::Str));
        assert_eq!(tagged("float", "5"), Ok(Resolved::Float(5.0)));
        assert_eq!(tagged("int", "5"), Ok(Resolved::Int(5)));
        assert_eq!(tagged("int", "x"), Err("cannot decode !!str `x` as a !!int".into()));
        assert_eq!(tagged("bool", "1.5"), Err("cannot decode !!float `1.5` as a !!bool".into()));
        assert_eq!(tagged("timestamp", "x"), Err("cannot decode !!str `x` as a !!timestamp".into()));
        assert_eq!(tagged("set", "5"), Ok(Resolved::Str));
        assert_eq!(resolve("!custom", "5"), Ok(Resolved::Str));
    }
}
