//! One step of a path into an object.

use super::values;
use kubelith_meta::text::{Quoted, float_v, push_json, push_json_escaped, push_json_string};
use kubelith_meta::{Str, Value};
use std::cmp::Ordering;
use std::fmt;

/// How to get from a container to one of its members.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of a struct or an entry of a map.
    Field(Str),
    /// The element of a keyed list whose fields have these values; sorted by field name.
    Key(Box<[(Str, Value)]>),
    /// An element of a set.
    Value(Value),
    /// An element of a list by position.
    Index(i64),
}

/// A path from the root of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(pub Vec<PathElement>);

/// What is wrong with the text of a path element.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ElementError {
    /// Of a kind that a later version may know: to be ignored.
    UnknownKind,
    Malformed(String),
}

impl PathElement {
    pub fn field(name: impl Into<Str>) -> PathElement {
        PathElement::Field(name.into())
    }

    /// An element of a keyed list.
    pub fn key<const N: usize>(fields: [(&str, Value); N]) -> PathElement {
        let mut fields: Vec<(Str, Value)> = fields.into_iter().map(|(k, v)| (Str::from(k), v)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(fields.into())
    }

    /// Reads `f:name`, `k:{"name":"a"}`, `v:"x"` or `i:0`.
    pub(super) fn parse(text: &str) -> Result<PathElement, ElementError> {
        let malformed = |message: String| ElementError::Malformed(message);
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(malformed("key must be 2 characters long:".into()));
        }
        if bytes[1] != b':' {
            return Err(malformed(format!("missing colon: {text}")));
        }
        let content = &text[2..];
        match bytes[0] {
            b'f' => Ok(PathElement::Field(Str::from(content))),
            b'k' => {
                if let Some(fields) = plain_fields(content) {
                    return Ok(PathElement::Key(fields));
                }
                let (key, _) = crate::json::parse_prefix(content).map_err(|e| malformed(e.to_string()))?;
                match key {
                    Value::Object(fields) => Ok(PathElement::Key(fields.into_iter().collect())),
                    Value::Null => Ok(PathElement::Key(Box::default())),
                    _ => Err(malformed(format!("ReadObjectCB: expect {{ or n, but found {content}"))),
                }
            }
            b'v' => match crate::json::parse_prefix(content) {
                Ok((value, _)) => Ok(PathElement::Value(value)),
                Err(e) => Err(malformed(e.to_string())),
            },
            b'i' => content
                .parse()
                .map(PathElement::Index)
                .map_err(|_| malformed(format!("strconv.Atoi: parsing {}: invalid syntax", Quoted(content)))),
            _ => Err(ElementError::UnknownKind),
        }
    }

    /// The text that `parse` reads.
    pub(super) fn to_text(&self) -> Str {
        match self {
            PathElement::Field(name) => {
                let mut text = Str::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(name);
                text
            }
            PathElement::Key(fields) => {
                let mut text = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        text.push(',');
                    }
                    push_json_string(&mut text, name);
                    text.push(':');
                    push_json(&mut text, value);
                }
                text.push('}');
                text.into()
            }
            PathElement::Value(value) => {
                let mut text = String::from("v:");
                push_json(&mut text, value);
                text.into()
            }
            PathElement::Index(i) => format!("i:{i}").into(),
        }
    }

    /// Appends the text as a JSON string.
    pub(super) fn push_json_key(&self, out: &mut String) {
        match self {
            PathElement::Field(name) => {
                out.push_str("\"f:");
                push_json_escaped(out, name);
                out.push('"');
            }
            other => push_json_string(out, &other.to_text()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

/// Reads `{"name":"a","port":80}` if it is that plain: strings without escapes and integers, sorted by name. Nearly
/// all keys are, and a JSON parser takes several times as long.
fn plain_fields(text: &str) -> Option<Box<[(Str, Value)]>> {
    let mut rest = text.strip_prefix('{')?;
    let mut fields: Vec<(Str, Value)> = Vec::with_capacity(1 + rest.matches(',').count());
    loop {
        let (name, after) = plain_string(rest)?;
        if fields.last().is_some_and(|(last, _)| last.as_str() >= name) {
            return None;
        }
        rest = after.strip_prefix(':')?;
        let value = match plain_string(rest) {
            Some((value, after)) => {
                rest = after;
                Value::from(value)
            }
            None => {
                let end = rest.bytes().position(|b| !b.is_ascii_digit())?;
                let digits = rest.get(..end).filter(|d| !d.is_empty() && (*d == "0" || !d.starts_with('0')))?;
                rest = &rest[end..];
                Value::Int(digits.parse().ok()?)
            }
        };
        fields.push((Str::from(name), value));
        match rest.as_bytes() {
            b"}" => return Some(fields.into()),
            [b',', ..] => rest = &rest[1..],
            _ => return None,
        }
    }
}

/// A quoted string at the start of `text` and what follows it.
fn plain_string(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    let end = text.bytes().position(|b| matches!(b, b'"' | b'\\') || b < 0x20)?;
    (text.as_bytes()[end] == b'"').then(|| (&text[..end], &text[end + 1..]))
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                let first = a
                    .iter()
                    .zip(b.iter())
                    .map(|((ka, a), (kb, b))| ka.cmp(kb).then_with(|| values::compare(a, b)))
                    .find(|o| o.is_ne());
                first.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (PathElement::Value(a), PathElement::Value(b)) => values::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &PathElement) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// `.name`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", display(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", display(value)),
            PathElement::Index(i) => write!(f, "[{i}]"),
        }
    }
}

fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => float_v(*f),
        Value::String(s) => Quoted(s).to_string(),
        Value::Array(a) => format!("[{}]", a.iter().map(display).collect::<Vec<_>>().join(",")),
        Value::Object(m) => m.iter().map(|(k, v)| format!("{k}={}", display(v))).collect(),
        Value::Raw(text) => text.to_string(),
    }
}

impl Path {
    /// A path of field names: `Path::fields(&["spec", "replicas"])`.
    pub fn fields(names: &[&str]) -> Path {
        Path(names.iter().map(|n| PathElement::field(*n)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|e| e.fmt(f))
    }
}
