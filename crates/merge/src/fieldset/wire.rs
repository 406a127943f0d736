//! Sets as `fieldsV1`: a tree of objects whose keys are path elements. `.` says that the path so far is in the set
//! itself; a path with nothing below it is in the set anyway and has an empty object.

use super::element::{ElementError, PathElement};
use super::set::{Node, Set};
use kubelith_meta::Value;
use std::borrow::Cow;

/// Why a `fieldsV1` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(String);

impl Set {
    /// Reads `fieldsV1`.
    pub fn from_fields(fields: &Value) -> Result<Set, FieldsError> {
        if let Value::Raw(text) = fields {
            // Text that is not as sets are written takes the long way, which words the errors.
            return match (Text { text, at: 0 }).whole() {
                Some(set) => Ok(set),
                None => Set::from_fields(&crate::json::parse(text).map_err(|e| FieldsError(e.to_string()))?),
            };
        }
        read(fields).map(|(children, _)| children)
    }

    /// The set as `fieldsV1`.
    pub fn to_fields(&self) -> Value {
        Value::Raw(self.to_json().into())
    }

    /// The set as the JSON text that the reference writes. Elements stand in the order of path elements there, which
    /// is not always that of their text: ports 80 and 443 are in numerical order.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(2048);
        self.write_json(&mut out, false);
        out
    }

    /// `with_self`: the path to this set is in it.
    pub(super) fn write_json(&self, out: &mut String, with_self: bool) {
        out.push('{');
        let mut first = true;
        if with_self && !self.is_empty() {
            out.push_str("\".\":{}");
            first = false;
        }
        for node in self.nodes() {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            node.element.push_json_key(out);
            out.push(':');
            node.children.write_json(out, node.member);
        }
        out.push('}');
    }
}

/// Sets are rarely deeper than objects; text that is takes the long way, too.
const MAX_DEPTH: usize = 64;

/// `fieldsV1` as [`Set::to_json`] writes it, and where reading has come.
struct Text<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Text<'t> {
    fn whole(mut self) -> Option<Set> {
        let (set, _) = self.object(0)?;
        (self.at == self.text.len()).then_some(set)
    }

    fn next(&mut self) -> Option<u8> {
        let next = self.text.as_bytes().get(self.at).copied();
        self.at += 1;
        next
    }

    fn eat(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    /// As [`read`].
    fn object(&mut self, depth: usize) -> Option<(Set, bool)> {
        self.eat(b'{')?;
        if self.text.as_bytes().get(self.at) == Some(&b'}') {
            self.at += 1;
            return Some((Set::new(), true));
        }
        if depth == MAX_DEPTH {
            return None;
        }
        let mut member = false;
        let mut nodes = Vec::with_capacity(4);
        loop {
            let key = self.key()?;
            self.eat(b':')?;
            let (children, is_member) = self.object(depth + 1)?;
            match &*key {
                "." => member = true,
                key => nodes.push(Node { element: PathElement::parse(key).ok()?, member: is_member, children }),
            }
            match self.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        member |= nodes.is_empty();
        Some((Set::from_unsorted(nodes), member))
    }

    fn key(&mut self) -> Option<Cow<'t, str>> {
        self.eat(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    if !matches!(self.next()?, b'"' | b'\\') {
                        return None;
                    }
                }
                _ => {}
            }
        }
        let key = &self.text[start..self.at - 1];
        if !escaped {
            return Some(Cow::Borrowed(key));
        }
        let mut unescaped = String::with_capacity(key.len());
        let mut chars = key.chars();
        while let Some(c) = chars.next() {
            unescaped.push(if c == '\\' { chars.next()? } else { c });
        }
        Some(Cow::Owned(unescaped))
    }
}

/// The children, and whether the path itself is in the set.
fn read(fields: &Value) -> Result<(Set, bool), FieldsError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((Set::new(), true)),
        other => {
            let found = kubelith_meta::text::json(other);
            let found = found.chars().next().unwrap_or_default();
            return Err(FieldsError(format!("ReadMapCB: expect {{ or n, but found {found}")));
        }
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(map.len());
    for (key, below) in map.iter() {
        if key == "." {
            member = true;
            continue;
        }
        let element = match PathElement::parse(key) {
            Ok(element) => element,
            Err(ElementError::UnknownKind) => continue,
            Err(ElementError::Malformed(message)) => {
                return Err(FieldsError(format!("parsing key as path element: {message}")));
            }
        };
        let (children, member) = read(below)?;
        nodes.push(Node { element, member, children });
    }
    member |= nodes.is_empty();
    Ok((Set::from_unsorted(nodes), member))
}
