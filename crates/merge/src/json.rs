//! Reading JSON inside strings: keys and values of `fieldsV1` path elements and the last-applied annotation.
//! Nesting beyond 128 levels is an error.

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
        let mut entries = Vec::new();
        while let Some((k, Parsed(v))) = map.next_entry::<Key, Parsed>()? {
            entries.push((kubelith_meta::Key::new(k.0), v));
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A value from JSON text, for tables.
    pub(crate) fn v(text: &str) -> Value {
        parse(text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    #[test]
    fn prefix_stops_at_the_end_of_the_value() {
        assert_eq!(parse_prefix(r#"{"a":1} rest"#).unwrap(), (v(r#"{"a":1}"#), 7));
        assert!(parse_prefix(" ").is_err());
    }
}
