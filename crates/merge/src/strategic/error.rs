//! What is wrong with a strategic merge patch, in the reference's words.

use crate::PatchError;
use crate::go_text::{go_list, go_value};
use kubelith_meta::text::go_type;
use kubelith_meta::text::quote;
use kubelith_meta::{Map, Str, Value};
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum StrategicError {
    BadPrimitiveList,
    BadRetainKeys,
    BadSetElementOrder,
    ListOfLists,
    /// A `$patch` with a value that is not a directive there.
    UnknownDirective(Value, Map),
    /// `$patch: merge` in a list element.
    MergeInList,
    MissingMergeKey(Map, Str),
    /// The field's type merges its elements but has no merge key for them.
    NoMergeKey(&'static str),
    MixedTypes(Vec<Value>, Vec<Value>),
    NoElements,
    /// The patch list is not in the order that `$setElementOrder` gives.
    OrderMismatch(Vec<Value>, Vec<Value>),
    WrongType {
        wanted: &'static str,
        found: &'static str,
    },
    NullElement,
    /// An element of `$setElementOrder`, by position, that has no merge key because it is no object.
    ScalarInOrder(usize),
    UnknownField {
        struct_name: Str,
        field: Str,
    },
    /// The patch has objects in an object that is not a struct.
    NotAStruct(&'static str),
    NotAList(&'static str),
    SliceOfSlice,
}

impl StrategicError {
    pub(super) fn not_a_list(found: &Value) -> StrategicError {
        StrategicError::WrongType { wanted: "[]interface {}", found: go_type_text(found) }
    }

    pub(super) fn not_a_map(found: &Value) -> StrategicError {
        StrategicError::WrongType { wanted: "map[string]interface {}", found: go_type_text(found) }
    }
}

/// `%s` of a type, which null has none of.
fn go_type_text(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { go_type(value) }
}

/// `%s` of a value that is expected to be a string: whatever is none complains about itself, at any depth. (Null does
/// so only at the top.)
fn go_string(value: &Value) -> String {
    if value.is_null() { "%!s(<nil>)".into() } else { go_member(value) }
}

fn go_member(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => format!("%!s({}={})", go_type(value), go_value(value)),
        Value::String(s) => s.to_string(),
        Value::Raw(text) => go_member(&crate::json::parse(text).unwrap_or_default()),
        Value::Array(a) => format!("[{}]", a.iter().map(go_member).collect::<Vec<_>>().join(" ")),
        Value::Object(m) => {
            let entries: Vec<String> = m.iter().map(|(k, v)| format!("{k}:{}", go_member(v))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

impl fmt::Display for StrategicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrategicError::BadPrimitiveList => f.write_str("invalid patch format of primitive list"),
            StrategicError::BadRetainKeys => f.write_str("invalid patch format of retainKeys"),
            StrategicError::BadSetElementOrder => f.write_str("invalid patch format of setElementOrder list"),
            StrategicError::ListOfLists => f.write_str("lists of lists are not supported"),
            StrategicError::UnknownDirective(directive, map) => {
                let map = go_value(&Value::Object(map.clone()));
                write!(f, "unknown patch type: {} in map: {map}", go_string(directive))
            }
            StrategicError::MergeInList => f.write_str("merging lists cannot yet be specified in the patch"),
            StrategicError::MissingMergeKey(map, key) => {
                let map = go_value(&Value::Object(map.clone()));
                write!(f, "map: {map} does not contain declared merge key: {key}")
            }
            StrategicError::NoMergeKey(kind) => write!(f, "cannot merge lists without merge key for {kind}"),
            StrategicError::MixedTypes(a, b) => {
                write!(f, "list element types are not identical: [{} {}]", go_list(a), go_list(b))
            }
            StrategicError::NoElements => f.write_str("no elements in any of the given slices"),
            StrategicError::OrderMismatch(patch, order) => write!(
                f,
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_list(patch),
                go_list(order)
            ),
            StrategicError::WrongType { wanted, found } => write!(f, "expected a {wanted}, but received a {found}"),
            // The reference panics here and answers 500 as well.
            StrategicError::NullElement => f.write_str("a list to merge starts with null"),
            StrategicError::ScalarInOrder(i) => write!(f, "value for key {i} is not a map"),
            StrategicError::UnknownField { struct_name, field } => {
                write!(f, "unable to find api field in struct {struct_name} for the json field {}", quote(field))
            }
            StrategicError::NotAStruct(kind) => {
                write!(f, "merging an object in json but data type is not struct, instead is: {kind}")
            }
            StrategicError::NotAList(kind) => write!(f, "expected slice or array type, but got: {kind}"),
            StrategicError::SliceOfSlice => f.write_str("unexpected slice of slice"),
        }
    }
}

impl std::error::Error for StrategicError {}

impl From<StrategicError> for PatchError {
    fn from(e: StrategicError) -> PatchError {
        match e {
            StrategicError::BadPrimitiveList | StrategicError::BadRetainKeys | StrategicError::BadSetElementOrder => {
                PatchError::BadRequest(e.to_string())
            }
            StrategicError::ListOfLists => PatchError::Unprocessable(e.to_string()),
            _ => PatchError::Internal(e.to_string()),
        }
    }
}
