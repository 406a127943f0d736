//! A few members of a large object: the rest is read over without a look at what it says.

use super::DecodeError;
use super::SyntaxError;
use super::parse::parse_stored;
use super::skip::value_len;
use kubelith_meta::{Map, Value};

/// Which parts of a value are read.
#[derive(Debug)]
pub enum Select {
    All,
    /// These members of an object.
    Members(&'static [(&'static str, Select)]),
    /// The same parts of each element of a list.
    Each(&'static Select),
}

/// Reads the selected parts of an object as this server wrote it: what is read over is not checked.
pub fn parse_selected(json: &[u8], select: &Select) -> Result<Value, DecodeError> {
    let (value, len) = read(json, select)?;
    match len == json.len() {
        true => Ok(value),
        false => Err(ends_early(json)),
    }
}

fn ends_early(json: &[u8]) -> DecodeError {
    SyntaxError::end(json.len()).into()
}

/// The selected parts of the value that `json` begins with, and how long that is. Recursion is as deep as the selection.
fn read(json: &[u8], select: &Select) -> Result<(Value, usize), DecodeError> {
    match (select, json.first()) {
        (Select::Members(wanted), Some(b'{')) => read_members(json, wanted),
        (Select::Each(select), Some(b'[')) => read_elements(json, select),
        _ => {
            let len = value_len(json).ok_or_else(|| ends_early(json))?;
            Ok((parse_stored(&json[..len])?, len))
        }
    }
}

fn read_members(json: &[u8], wanted: &[(&str, Select)]) -> Result<(Value, usize), DecodeError> {
    let mut found = Map::new();
    let mut at = 1;
    if json.get(at) == Some(&b'}') {
        return Ok((Value::Object(found), at + 1));
    }
    loop {
        let rest = &json[at..];
        let key_len = value_len(rest).filter(|_| rest.first() == Some(&b'"')).ok_or_else(|| ends_early(json))?;
        let value = rest[key_len..].strip_prefix(b":").ok_or_else(|| ends_early(json))?;
        let key = &rest[1..key_len - 1];
        at += key_len + 1;
        at += match wanted.iter().find(|(name, _)| name.as_bytes() == key) {
            Some((name, select)) => {
                let (value, len) = read(value, select)?;
                found.insert(*name, value);
                len
            }
            None => value_len(value).ok_or_else(|| ends_early(json))?,
        };
        match json.get(at) {
            Some(b',') => at += 1,
            Some(b'}') => return Ok((Value::Object(found), at + 1)),
            _ => return Err(ends_early(json)),
        }
    }
}

fn read_elements(json: &[u8], select: &Select) -> Result<(Value, usize), DecodeError> {
    let mut found = Vec::new();
    let mut at = 1;
    if json.get(at) == Some(&b']') {
        return Ok((Value::Array(found), at + 1));
    }
    loop {
        let (value, len) = read(&json[at..], select)?;
        found.push(value);
        at += len;
        match json.get(at) {
            Some(b',') => at += 1,
            Some(b']') => return Ok((Value::Array(found), at + 1)),
            _ => return Err(ends_early(json)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::to_string;

    static SELECT: Select = Select::Members(&[
        ("a", Select::All),
        ("list", Select::Each(&Select::Members(&[("x", Select::All)]))),
        ("deep", Select::Members(&[("er", Select::Members(&[("y", Select::All)]))])),
    ]);

    #[test]
    fn parts_are_those_of_the_whole() {
        for (json, want) in [
            ("{}", "{}"),
            (r#"{"b":1}"#, "{}"),
            (r#"{"a":{"list":[1,"}"]},"b":"a\":1"}"#, r#"{"a":{"list":[1,"}"]}}"#),
            (r#"{"a":null,"list":[],"deep":{}}"#, r#"{"a":null,"deep":{},"list":[]}"#),
            (r#"{"list":[{"x":1,"z":[2]},{"z":3},{},null]}"#, r#"{"list":[{"x":1},{},{},null]}"#),
            (r#"{"deep":{"er":{"y":[1],"z":{}},"x":2},"list":null}"#, r#"{"deep":{"er":{"y":[1]}},"list":null}"#),
            // Another type than the selection is for is read as it is.
            (r#"{"deep":"x","list":{"x":1}}"#, r#"{"deep":"x","list":{"x":1}}"#),
        ] {
            let read = parse_selected(json.as_bytes(), &SELECT).unwrap();
            assert_eq!(to_string(&read), want, "{json}");
        }
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        let json = r#"{"b":[1,{"c":"d"}],"a":1,"list":[{"x":"y"}],"deep":{"er":{}}}"#;
        for end in 0..json.len() {
            assert!(parse_selected(&json.as_bytes()[..end], &SELECT).is_err(), "to {end}");
        }
        for json in ["{}}", "{a:1}", r#"{"a"1}"#, r#"{"a":1 "b":2}"#, r#"{"list":[1;2]}"#, r#"{"a":}"#, r#"{"a":01}"#] {
            assert!(parse_selected(json.as_bytes(), &SELECT).is_err(), "{json}");
        }
    }
}
