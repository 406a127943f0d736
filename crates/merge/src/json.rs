//! JSON inside strings: keys and values of `fieldsV1` path elements and the last-applied annotation.
//! Written as Go's encoder writes it, HTML characters escaped. Reading stops at 128 levels.

use crate::go_text::exponent_form;
use kubelith_meta::{Map, Str, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads one JSON document. Integers that do not fit 64 bits become doubles.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Parsed>(text).map(|p| p.0)
}

/// Reads the JSON document at the start of `text` and says how many bytes it took.
pub(crate) fn parse_prefix(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Parsed>();
    match stream.next() {
        Some(value) => Ok((value?.0, stream.byte_offset())),
        // Only white space: the same error as for an empty document.
        None => Err(serde_json::from_str::<Parsed>("").err().expect("an empty text is no document")),
    }
}

struct Parsed(Value);

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Parsed, D::Error> {
        d.deserialize_any(Tree).map(Parsed)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
        Ok(Value::Int(i))
    }

    fn visit_u64<E>(self, u: u64) -> Result<Value, E> {
        Ok(i64::try_from(u).map_or(Value::Float(u as f64), Value::Int))
    }

    fn visit_f64<E>(self, f: f64) -> Result<Value, E> {
        Ok(Value::Float(f))
    }

    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::String(Str::from(s)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Parsed(v)) = seq.next_element()? {
            list.push(v);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(Str, Value)> = Vec::new();
        while let Some((k, Parsed(v))) = map.next_entry::<Key, Parsed>()? {
            entries.push((k.0, v));
        }
        Ok(Value::Object(Map::from_unsorted(entries)))
    }
}

struct Key(Str);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Key, D::Error> {
        struct KeyText;
        impl Visitor<'_> for KeyText {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, s: &str) -> Result<Key, E> {
                Ok(Key(Str::from(s)))
            }
        }
        d.deserialize_str(KeyText)
    }
}

/// Appends `value` as compact JSON.
pub(crate) fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(itoa::Buffer::new().format(*i)),
        Value::Float(f) => write_float(out, *f),
        Value::String(s) => write_string(out, s),
        Value::Array(a) => {
            out.push('[');
            for (i, v) in a.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(out, v);
            }
            out.push(']');
        }
        Value::Object(m) => {
            out.push('{');
            for (i, (k, v)) in m.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(out, k);
                out.push(':');
                write(out, v);
            }
            out.push('}');
        }
    }
}

/// Shortest digits; exponents below 1e-6 and from 1e21 on, without a leading zero (`1e-7`).
fn write_float(out: &mut String, f: f64) {
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = exponent_form(f);
        out.push_str(&text.replace("e-0", "e-"));
    } else {
        use fmt::Write;
        let _ = write!(out, "{f}");
    }
}

pub(crate) fn write_string(out: &mut String, s: &str) {
    out.push('"');
    let mut plain = 0;
    for (i, c) in s.char_indices() {
        let escape: &str = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '<' => "\\u003c",
            '>' => "\\u003e",
            '&' => "\\u0026",
            '\u{2028}' => "\\u2028",
            '\u{2029}' => "\\u2029",
            c if (c as u32) < 0x20 => "",
            _ => continue,
        };
        out.push_str(&s[plain..i]);
        if escape.is_empty() {
            use fmt::Write;
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push_str(escape);
        }
        plain = i + c.len_utf8();
    }
    out.push_str(&s[plain..]);
    out.push('"');
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A value from JSON text, for tables.
    pub(crate) fn v(text: &str) -> Value {
        parse(text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    #[test]
    fn round_trips() {
        let table = [
            r#"{"a":[1,-2,0.5,true,null,"x"],"b":{}}"#,
            r#"{"a":"\u003cb\u003e\u0026\n\u0001\\\""}"#,
            r#"[1e+21,1e-7,100000]"#,
        ];
        for text in table {
            let mut out = String::new();
            write(&mut out, &v(text));
            assert_eq!(out, text);
        }
    }

    #[test]
    fn prefix_stops_at_the_end_of_the_value() {
        assert_eq!(parse_prefix(r#"{"a":1} rest"#).unwrap(), (v(r#"{"a":1}"#), 7));
        assert!(parse_prefix(" ").is_err());
    }
}
