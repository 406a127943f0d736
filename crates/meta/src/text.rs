//! Text as Go prints it: error messages of the API quote strings with `%q`, print floats with `%v` and
//! other values as `encoding/json` does. Clients compare these texts, so the rules are kept to the letter.

use crate::Value;
use crate::words::{Marks, Word};
use std::collections::HashSet;
use std::fmt::{self, Write};

/// Go's `%q`: double quotes, Go escapes, printable runes as they are.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    push_quoted(&mut out, s);
    out
}

/// Displays a string as Go's `%q` would, without an intermediate copy.
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0)
    }
}

/// What Go calls the type of a decoded value.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) | Value::Raw(_) => "map[string]interface {}",
    }
}

/// What Go's decoder calls a JSON value.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Raw(_) => "object",
    }
}

/// Go's `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn push_quoted(out: &mut String, s: &str) {
    write_quoted(out, s).expect("writing to a String cannot fail");
}

fn write_quoted(out: &mut impl Write, s: &str) -> fmt::Result {
    out.write_char('"')?;
    let is_plain = |b: u8| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\';
    let mut rest = s;
    loop {
        let (plain, special) = rest.split_at(rest.bytes().position(|b| !is_plain(b)).unwrap_or(rest.len()));
        out.write_str(plain)?;
        let Some(c) = special.chars().next() else { break };
        write_escaped(out, c)?;
        rest = &special[c.len_utf8()..];
    }
    out.write_char('"')
}

fn write_escaped(out: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '"' => out.write_str("\\\""),
        '\\' => out.write_str("\\\\"),
        '\x07' => out.write_str("\\a"),
        '\x08' => out.write_str("\\b"),
        '\x0c' => out.write_str("\\f"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\x0b' => out.write_str("\\v"),
        c if is_printable(c) => out.write_char(c),
        c if (c as u32) < 0x20 || c == '\x7f' => write!(out, "\\x{:02x}", c as u32),
        c if (c as u32) < 0x10000 => write!(out, "\\u{:04x}", c as u32),
        c => write!(out, "\\U{:08x}", c as u32),
    }
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // The standard library keeps its table of printable characters private, but `escape_debug` consults it.
    // Behind another character a combining mark is not escaped for being one, so only the table decides.
    let mut buf = [b'a'; 5];
    let n = c.encode_utf8(&mut buf[1..]).len();
    let s = std::str::from_utf8(&buf[..=n]).expect("'a' and one encoded char");
    s.escape_debug().nth(1) == Some(c)
}

/// Go's `%#U`: `U+0009`, `U+00E9 'é'`.
pub fn rune(c: char) -> String {
    if is_printable(c) { format!("U+{:04X} '{c}'", c as u32) } else { format!("U+{:04X}", c as u32) }
}

/// Go's `%v` of a float64: shortest digits, an exponent below 1e-4 and from 1e6 on.
pub fn float_v(f: f64) -> String {
    float_text(f, -4, 6)
}

/// A float as `encoding/json` writes it: an exponent below 1e-6 and from 1e21 on.
pub fn float_json(f: f64) -> String {
    let text = float_text(f, -6, 21);
    // encoding/json shortens e-09 to e-9 (and only that: exponents here are negative or of two digits).
    match text.find("e-0") {
        Some(i) => format!("{}e-{}", &text[..i], &text[i + 3..]),
        None => text,
    }
}

fn float_text(f: f64, min_exp: i32, max_exp: i32) -> String {
    if f.is_nan() {
        return "NaN".into();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    if f == 0.0 {
        return if f.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{f:e}");
    let (digits, exp) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exp: i32 = exp.parse().expect("the exponent is a number");
    if exp < min_exp || exp >= max_exp {
        let sign = if exp < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exp.abs())
    } else {
        format!("{f}")
    }
}

/// A value as `encoding/json` writes it, with keys sorted and `<`, `>`, `&` escaped.
pub fn json(v: &Value) -> String {
    let mut out = String::new();
    push_json(&mut out, v);
    out
}

pub fn push_json(out: &mut String, v: &Value) {
    match v {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => write!(out, "{i}").expect("writing to a String cannot fail"),
        Value::Float(f) => out.push_str(&float_json(*f)),
        Value::String(s) => push_json_string(out, s),
        Value::Raw(text) => out.push_str(text),
        Value::Array(a) => {
            out.push('[');
            for (i, v) in a.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_json(out, v);
            }
            out.push(']');
        }
        Value::Object(m) => {
            out.push('{');
            for (i, (k, v)) in m.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_json_string(out, k);
                out.push(':');
                push_json(out, v);
            }
            out.push('}');
        }
    }
}

/// A string as `encoding/json` writes it: HTML characters and line separators are escaped, too.
pub fn push_json_string(out: &mut String, s: &str) {
    out.push('"');
    push_json_escaped(out, s);
    out.push('"');
}

/// What stands between the quotes.
pub fn push_json_escaped(out: &mut String, s: &str) {
    let is_plain = |b: u8| b >= 0x20 && !matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
    // Most strings are plain from end to end.
    let plain = s.bytes().position(|b| !is_plain(b)).unwrap_or(s.len());
    out.push_str(&s[..plain]);
    for c in s[plain..].chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{:04x}", c as u32).expect("writing to a String cannot fail");
            }
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32).expect("writing to a String cannot fail"),
            c => out.push(c),
        }
    }
}

/// Whether a byte stays as it is in JSON, and in JSON within JSON: ASCII that is printed, and that neither JSON nor HTML
/// escapes. Spaces are not among them.
#[inline]
pub fn is_never_escaped(byte: u8) -> bool {
    NEVER_ESCAPED[usize::from(byte)]
}

/// Those of eight bytes that do not.
#[inline(always)]
pub fn escaped_somewhere(word: Word) -> Marks {
    let unprinted = word.below(b'!') | word.equal(0x7f);
    let escaped = word.equal(b'"') | word.equal(b'\\') | word.with(2).equal(b'>') | word.equal(b'&');
    word.ascii_and_beyond(unprinted | escaped)
}

static NEVER_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < table.len() {
        table[b] = (b as u8).is_ascii_graphic() && !matches!(b as u8, b'"' | b'\\' | b'<' | b'>' | b'&');
        b += 1;
    }
    table
};

/// Several errors as one message: each message once, in brackets unless only one is left.
pub fn aggregate(messages: impl IntoIterator<Item = String>) -> String {
    let mut seen = HashSet::new();
    let mut out = String::new();
    for message in messages {
        if seen.contains(&message) {
            continue;
        }
        if !seen.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&message);
        seen.insert(message);
    }
    if seen.len() > 1 { format!("[{out}]") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_escaped() {
        for byte in 0..=u8::MAX {
            let want = byte.is_ascii_graphic() && !b"\"\\<>&".contains(&byte);
            let in_word = escaped_somewhere(Word::of(&[byte; 8])).first().is_none();
            assert_eq!([is_never_escaped(byte), in_word], [want; 2], "{byte}");
        }
    }

    #[test]
    fn quotes_like_go() {
        for (input, want) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\"b\\", r#""a\"b\\""#),
            ("\n\t\r\x07\x08\x0b\x0c", r#""\n\t\r\a\b\v\f""#),
            ("\x01\x7f", r#""\x01\x7f""#),
            ("é世", "\"é世\""),
            ("\u{a0}\u{200b}", r#""\u00a0\u200b""#),
            ("😀\u{10ffff}", "\"😀\\U0010ffff\""),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("'", r#""'""#),
        ] {
            assert_eq!(quote(input), want);
        }
    }

    #[test]
    fn floats_like_go() {
        for (f, v, json) in [
            (0.0, "0", "0"),
            (1.5, "1.5", "1.5"),
            (-2.0, "-2", "-2"),
            (1e6, "1e+06", "1000000"),
            (123456789.0, "1.23456789e+08", "123456789"),
            (100000.0, "100000", "100000"),
            (1e21, "1e+21", "1e+21"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (1e-9, "1e-09", "1e-9"),
            (1.5e-10, "1.5e-10", "1.5e-10"),
        ] {
            assert_eq!(float_json(f), json, "{f}");
            assert_eq!(float_v(f), v, "{f}");
        }
    }

    #[test]
    fn json_escapes_html() {
        let v = Value::from([("b", Value::from("<a&b>\u{2028}\x01")), ("a", Value::from(vec![1i64, 2]))]);
        assert_eq!(json(&v), r#"{"a":[1,2],"b":"\u003ca\u0026b\u003e\u2028\u0001"}"#);
    }
}
