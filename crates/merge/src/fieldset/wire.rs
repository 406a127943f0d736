//! Sets as `fieldsV1`: a tree of objects whose keys are path elements. `.` says that the path so far is in the set
//! itself; a path with nothing below it is in the set anyway and has an empty object.

use super::element::{ElementError, PathElement};
use super::set::{Node, Set};
use kubelith_meta::text::push_json_string;
use kubelith_meta::{Map, Str, Value};

/// Why a `fieldsV1` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(String);

impl Set {
    /// Reads `fieldsV1`.
    pub fn from_fields(fields: &Value) -> Result<Set, FieldsError> {
        read(fields).map(|(children, _)| children)
    }

    /// The set as `fieldsV1`.
    pub fn to_fields(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, with_self: bool) -> Map {
        let mut entries: Vec<(Str, Value)> = Vec::with_capacity(self.nodes().len() + 1);
        if with_self && !self.is_empty() {
            entries.push((Str::const_new("."), Value::object()));
        }
        for node in self.nodes() {
            entries.push((node.element.to_text(), Value::Object(node.children.to_map(node.member))));
        }
        Map::from_unsorted(entries)
    }

    /// The set as the JSON text that the reference writes. Elements stand in the order of path elements there, which
    /// is not always that of their text: ports 80 and 443 are in numerical order.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out, false);
        out
    }

    fn write_json(&self, out: &mut String, with_self: bool) {
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
            push_json_string(out, &node.element.to_text());
            out.push(':');
            node.children.write_json(out, node.member);
        }
        out.push('}');
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
