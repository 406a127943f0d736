//! Values as Go's `fmt` prints them: error messages of the reference hold whole maps in this form.

use kubelith_meta::Value;
use std::fmt::Write;

/// `fmt.Sprintf("%v", value)` of an unstructured value: `map[a:1 b:[x y]]`, `<nil>`.
pub fn go_value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// `%v` of a list.
pub(crate) fn go_list(list: &[Value]) -> String {
    let mut out = String::new();
    write_list(&mut out, list);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(itoa::Buffer::new().format(*i)),
        Value::Float(f) => out.push_str(&float(*f)),
        Value::String(s) => out.push_str(s),
        Value::Array(a) => write_list(out, a),
        Value::Object(m) => {
            out.push_str("map[");
            for (i, (k, v)) in m.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(k);
                out.push(':');
                write_value(out, v);
            }
            out.push(']');
        }
    }
}

fn write_list(out: &mut String, list: &[Value]) {
    out.push('[');
    for (i, v) in list.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        write_value(out, v);
    }
    out.push(']');
}

/// `%v` of a float64: shortest digits, with an exponent below 1e-4 and from 1e6 on.
fn float(f: f64) -> String {
    let magnitude = f.abs();
    if !f.is_finite() {
        return if f.is_nan() { "NaN".into() } else { if f > 0.0 { "+Inf" } else { "-Inf" }.into() };
    }
    if magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        return exponent_form(f);
    }
    format!("{f}")
}

/// Rust's `1e-7` with Go's sign and at least two exponent digits: `1e-07`.
pub(crate) fn exponent_form(f: f64) -> String {
    let text = format!("{f:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// `strconv.Quote`.
pub(crate) fn go_quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if is_unprintable(c) => {
                let _ = if (c as u32) < 0x10000 {
                    write!(out, "\\u{:04x}", c as u32)
                } else {
                    write!(out, "\\U{:08x}", c as u32)
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The characters outside ASCII that Go escapes and that show up in practice: controls, separators and
/// format characters.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || (c != ' ' && c.is_whitespace())
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::v;

    #[test]
    fn values_print_as_go_prints_them() {
        let table = [
            (r#"{"b":[1,"x y",null],"a":{"c":true}}"#, "map[a:map[c:true] b:[1 x y <nil>]]"),
            (r#"{}"#, "map[]"),
            (r#"[0.5,1e30,1e-7,-0.25,1234567.5]"#, "[0.5 1e+30 1e-07 -0.25 1.2345675e+06]"),
        ];
        for (json, want) in table {
            assert_eq!(go_value(&v(json)), want);
        }
    }

    #[test]
    fn quotes_as_go_quotes() {
        let table = [("a\"b\\\n", r#""a\"b\\\n""#), ("\u{1}é", r#""\x01é""#), ("\u{200b}", r#""\u200b""#)];
        for (s, want) in table {
            assert_eq!(go_quote(s), want);
        }
    }
}
