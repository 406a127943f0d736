//! `'%s is %d'.format([a, b])`. Doubles are written as in American English, with commas between thousands: the reference
//! asks a library of locales, and these texts are what clients get.

use super::conversion::{duration_text, parse_double, to_string};
use super::{MAX_TEXT, text};
use crate::value::{EvalError, Res, Val};
use kubelith_meta::text::{float_v, quote};

const DEFAULT_PRECISION: usize = 6;
/// Go refuses more digits.
const MAX_PRECISION: u64 = 1_000_000;

pub fn format<'a>(args: &[Val<'a>]) -> Res<'a> {
    let (Some(format), Some(list)) = (args.first(), args.get(1).and_then(Val::as_list)) else {
        return Err(EvalError::no_overload());
    };
    let mut rest = text(format)?;
    let mut out = String::with_capacity(rest.len());
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        if next >= list.len() {
            return Err(EvalError::new(format!("index {next} out of range")));
        }
        if rest.is_empty() {
            return Err(EvalError::fixed("unexpected end of string"));
        }
        let (clause, after) =
            clause(rest).map_err(|why| EvalError::new(format!("could not parse formatting clause: {why}")))?;
        let arg = list.at(next)?;
        let text = clause.apply(&arg).map_err(|why| EvalError::new(format!("error during formatting: {why}")))?;
        out.push_str(&text);
        if out.len() > MAX_TEXT {
            return Err(EvalError::size());
        }
        rest = after;
        next += 1;
    }
    out.push_str(rest);
    Ok(Val::text(out))
}

struct Clause {
    verb: char,
    precision: Option<u64>,
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let mut rest = text;
    let mut precision = None;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits == after.len() {
            return Err("error while parsing precision: could not find end of precision specifier".into());
        }
        let number = &after[..digits];
        let parsed = number.parse::<i64>().map_err(|_| {
            let why = if number.is_empty() { "invalid syntax" } else { "value out of range" };
            let quoted = quote(number);
            format!("error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {quoted}: {why}")
        })?;
        precision = Some(parsed as u64);
        rest = &after[digits..];
    }
    // The reference looks at one byte.
    let byte = rest.as_bytes().first().copied().unwrap_or(0);
    let verb = char::from(byte);
    if !matches!(verb, 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o') {
        return Err(format!("unrecognized formatting clause \"{verb}\""));
    }
    Ok((Clause { verb, precision }, &rest[1..]))
}

impl Clause {
    fn apply(&self, arg: &Val<'_>) -> Result<String, String> {
        let name = arg.type_name();
        match self.verb {
            's' => string(arg),
            'd' => match arg {
                Val::Int(_) | Val::Uint(_) => Ok(arg.to_string()),
                _ => Err(format!("decimal clause can only be used on integers, was given {name}")),
            },
            'f' => match double(arg) {
                Some(d) => fixed(d, self.precision),
                None => Err(format!("fixed-point clause can only be used on doubles, was given {name}")),
            },
            'e' => match double(arg) {
                Some(d) => Ok(scientific(d, self.precision)),
                None => Err(format!("scientific clause can only be used on doubles, was given {name}")),
            },
            'b' => match arg {
                Val::Int(i) => Ok(signed(*i, |u| format!("{u:b}"))),
                Val::Uint(u) => Ok(format!("{u:b}")),
                Val::Bool(b) => Ok(if *b { "1" } else { "0" }.into()),
                _ => Err(format!("only integers and bools can be formatted as binary, was given {name}")),
            },
            'o' => match arg {
                Val::Int(i) => Ok(signed(*i, |u| format!("{u:o}"))),
                Val::Uint(u) => Ok(format!("{u:o}")),
                _ => Err(format!("octal clause can only be used on integers, was given {name}")),
            },
            verb => {
                let hex = hex(arg).ok_or_else(|| {
                    format!("only integers, byte buffers, and strings can be formatted as hex, was given {name}")
                })?;
                Ok(if verb == 'X' { hex.to_ascii_uppercase() } else { hex })
            }
        }
    }
}

fn signed(i: i64, print: impl Fn(u64) -> String) -> String {
    let digits = print(i.unsigned_abs());
    if i < 0 { format!("-{digits}") } else { digits }
}

fn hex(arg: &Val<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect();
    match arg {
        Val::Int(i) => Some(signed(*i, |u| format!("{u:x}"))),
        Val::Uint(u) => Some(format!("{u:x}")),
        _ => arg.as_str().map(str::as_bytes).or(arg.as_bytes()).map(bytes),
    }
}

/// Doubles, and the names of those that no literal has.
fn double(arg: &Val<'_>) -> Option<f64> {
    match arg {
        Val::Double(d) => Some(*d),
        _ => arg.as_str().filter(|s| matches!(*s, "NaN" | "Infinity" | "-Infinity")).and_then(parse_double),
    }
}

fn special(d: f64) -> Option<&'static str> {
    match d {
        d if d.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

fn fixed(d: f64, precision: Option<u64>) -> Result<String, String> {
    if precision.is_some_and(|p| p > MAX_PRECISION) {
        return Ok("%!(NOVERB)".into());
    }
    if let Some(special) = special(d) {
        return Ok(special.into());
    }
    let plain = format!("{:.*}", precision.map_or(DEFAULT_PRECISION, |p| p as usize), d.abs());
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut out = String::with_capacity(plain.len() * 4 / 3 + 1);
    if d.is_sign_negative() {
        out.push('-');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(fraction);
    Ok(out)
}

/// The precision is a width to the reference; digits are always six.
fn scientific(d: f64, precision: Option<u64>) -> String {
    let width = precision.map_or(DEFAULT_PRECISION as u64, |p| p);
    if width > MAX_PRECISION {
        return "%!(NOVERB)".into();
    }
    let text = match special(d) {
        Some(special) => special.to_owned(),
        None => {
            let plain = format!("{d:.6e}");
            let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let digits: String = format!("{:02}", exponent.abs()).chars().map(superscript).collect();
            let sign = if exponent < 0 { "⁻" } else { "" };
            format!("{mantissa}×10{sign}{digits}")
        }
    };
    let missing = (width as usize).saturating_sub(text.chars().count());
    " ".repeat(missing) + &text
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    }
}

fn string(arg: &Val<'_>) -> Result<String, String> {
    match arg {
        Val::Null => Ok("null".into()),
        Val::Bool(_)
        | Val::Int(_)
        | Val::Uint(_)
        | Val::Double(_)
        | Val::Duration(_)
        | Val::Timestamp(_)
        | Val::Type(_) => to_string(arg).map(|s| s.to_string()).map_err(|e| e.to_string()),
        Val::Bytes(_) | Val::Blob(_) | Val::Str(_) | Val::Text(_) => match to_string(arg) {
            Ok(s) => Ok(s.as_str().unwrap_or_default().to_owned()),
            Err(e) => Err(format!("could not convert argument {} to string", quote(e.message()))),
        },
        _ if arg.as_list().is_some() || arg.as_map().is_some() => nested(arg),
        _ => Err(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
            arg.type_name()
        )),
    }
}

/// What stands in a list or map.
fn element(arg: &Val<'_>) -> Result<String, String> {
    match arg {
        Val::Double(d) if d.is_finite() => Ok(format!("{d:.6}")),
        Val::Double(d) => Ok(quote(&float_v(*d))),
        Val::Timestamp(t) => Ok(format!("timestamp({})", quote(&t.rfc3339()))),
        Val::Duration(nanos) => Ok(format!("duration({})", quote(&duration_text(*nanos)))),
        Val::Str(_) | Val::Text(_) => Ok(quote(arg.as_str().unwrap_or_default())),
        Val::Bytes(_) | Val::Blob(_) => Ok(format!("b{}", quote(&string(arg)?))),
        Val::Null | Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Type(_) => string(arg),
        _ if arg.as_list().is_some() || arg.as_map().is_some() => nested(arg),
        _ => Err(format!("no formatting function for {}", arg.type_name())),
    }
}

fn nested(arg: &Val<'_>) -> Result<String, String> {
    if let Some(list) = arg.as_list() {
        let items = list.iter().map(|item| element(&item.map_err(|e| e.to_string())?));
        return Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", ")));
    }
    let Some(map) = arg.as_map() else { return Ok(String::new()) };
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.entries() {
        let key = match &key {
            Val::Str(_) | Val::Text(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_) => element(&key)?,
            other => return Err(format!("no formatting function for map key of type {}", other.type_name())),
        };
        entries.push((key, element(&value.map_err(|e| e.to_string())?)?));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let entries: Vec<String> = entries.into_iter().map(|(k, v)| format!("{k}:{v}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}
