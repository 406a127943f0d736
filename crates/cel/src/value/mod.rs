//! Values while an expression runs.
//!
//! JSON is borrowed, never converted: a list or object of an API object stays where it is, with the declaration that tells
//! how its schema means it, and scalars are read when they are asked for. What an expression makes is shared.

mod convert;
mod equal;
mod error;
mod json;
mod list;
mod map;
mod native;
mod opaque;
mod order;
mod print;
mod timestamp;

pub use crate::escape::{escape, unescape};
pub use convert::{double_to_int, double_to_uint};
pub(crate) use equal::add_typed;
pub use error::EvalError;
pub use json::{escaped, escaped_member, json_val, member};
pub use list::{Form, List, ListView};
pub use map::{Key, Map, MapView};
pub use opaque::{
    Authorizer, AuthorizerHandle, AuthzRequest, CidrRange, Decision, DecisionVal, ObjectVal, Opaque, PatchVal,
    ResourceCheck,
};
pub use timestamp::{Civil, MAX_SECONDS, MIN_SECONDS, Timestamp, days_from_civil};

use crate::declared::Declared;
use kubelith_meta::Value;
use std::sync::Arc;

/// What an evaluation, or a part of it, comes to.
pub type Res<'a> = Result<Val<'a>, EvalError>;

/// How deep lists and maps that expressions make may be nested. Literals are limited by the parser; chains of `map` could
/// go on, and everything that walks a value recurses.
pub const MAX_DEPTH: u32 = 500;

/// A value. `'a` is how long the program and the objects it is run on live.
#[derive(Debug, Clone)]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(&'a str),
    Text(Arc<str>),
    Bytes(&'a [u8]),
    Blob(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    /// A type, by its name at run time.
    Type(Arc<str>),
    /// A list or object of JSON, and what its schema says of it.
    Json(&'a Value, Option<&'a Declared>),
    /// What `x-kubernetes-preserve-unknown-fields` keeps: nothing but equality is known of it.
    Preserved(&'a Value),
    List(Arc<List<'a>>),
    /// A list of the program's constants.
    ListRef(&'a List<'a>),
    Map(Arc<Map<'a>>),
    MapRef(&'a Map<'a>),
    Optional(Option<Arc<Val<'a>>>),
    Opaque(Arc<Opaque>),
    /// `Object{…}` of a mutation.
    Object(Arc<ObjectVal<'a>>),
    /// `JSONPatch{…}`.
    Patch(Arc<PatchVal<'a>>),
}

impl<'a> Val<'a> {
    pub fn text(text: impl Into<Arc<str>>) -> Val<'a> {
        Val::Text(text.into())
    }

    pub fn list(items: Vec<Val<'a>>) -> Res<'a> {
        Ok(Val::List(Arc::new(List::new(items)?)))
    }

    /// A list of what cannot be nested.
    pub fn flat(items: impl IntoIterator<Item = Val<'a>>) -> Val<'a> {
        Val::List(Arc::new(List::flat(items.into_iter().collect())))
    }

    pub fn some(value: Val<'a>) -> Val<'a> {
        Val::Optional(Some(Arc::new(value)))
    }

    pub fn opaque(opaque: Opaque) -> Val<'a> {
        Val::Opaque(Arc::new(opaque))
    }

    /// JSON as it comes.
    pub fn json(value: &'a Value) -> Val<'a> {
        json_val(value)
    }

    /// JSON as its schema means it.
    pub fn typed(value: &'a Value, declared: &'a Declared) -> Res<'a> {
        json::typed(value, declared)
    }

    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Val::Str(s) => Some(s),
            Val::Text(s) => Some(s),
            _ => None,
        }
    }

    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Val::Bytes(b) => Some(b),
            Val::Blob(b) => Some(b),
            _ => None,
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        if let Val::Int(i) = self { Some(*i) } else { None }
    }

    pub fn as_opaque(&self) -> Option<&Opaque> {
        if let Val::Opaque(o) = self { Some(o) } else { None }
    }

    #[inline]
    pub fn as_list<'v>(&'v self) -> Option<ListView<'v, 'a>> {
        match self {
            Val::List(list) => Some(ListView::Items(list)),
            Val::ListRef(list) => Some(ListView::Items(list)),
            Val::Json(Value::Array(items), declared) => Some(ListView::Json(items, declared.and_then(json::list_of))),
            _ => None,
        }
    }

    #[inline]
    pub fn as_map<'v>(&'v self) -> Option<MapView<'v, 'a>> {
        match self {
            Val::Map(map) => Some(MapView::Map(map)),
            Val::MapRef(map) => Some(MapView::Map(map)),
            Val::Json(Value::Object(map), declared) => Some(MapView::json(map, *declared)),
            _ => None,
        }
    }

    /// How deep lists and maps are nested in it.
    pub fn depth(&self) -> u32 {
        match self {
            Val::List(list) => list.depth,
            Val::ListRef(list) => list.depth,
            Val::Map(map) => map.depth,
            Val::MapRef(map) => map.depth,
            Val::Optional(Some(of)) => of.depth() + 1,
            Val::Object(object) => object.depth,
            Val::Patch(patch) => patch.value.as_ref().map_or(1, |v| v.depth() + 1),
            _ => 0,
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Str(_) | Val::Text(_) => "string",
            Val::Bytes(_) | Val::Blob(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Type(_) => "type",
            Val::Json(Value::Array(_), _) | Val::List(_) | Val::ListRef(_) => "list",
            Val::Json(..) | Val::Map(_) | Val::MapRef(_) => "map",
            Val::Preserved(_) => "unknown",
            Val::Optional(_) => "optional_type",
            Val::Opaque(opaque) => opaque.type_name(),
            Val::Object(object) => &object.type_name,
            Val::Patch(_) => "JSONPatch",
        }
    }

    /// What `type(x)` gives.
    pub fn type_value(&self) -> Res<'static> {
        Ok(match self {
            Val::Preserved(_) => {
                return Err(EvalError::fixed(
                    "type conversion to 'type' not supported for values preserved by x-kubernetes-preserve-unknown-fields",
                ));
            }
            // The reference gives the type of their type.
            Val::Object(_) | Val::Patch(_) => Val::Type("type".into()),
            other => Val::Type(other.type_name().into()),
        })
    }

    /// The size that `size(x)` gives: characters, bytes, elements, entries.
    pub fn size(&self) -> Option<u64> {
        Some(match self {
            Val::Str(s) => count_chars(s),
            Val::Text(s) => count_chars(s),
            Val::Bytes(b) => b.len() as u64,
            Val::Blob(b) => b.len() as u64,
            Val::List(list) => list.items.len() as u64,
            Val::ListRef(list) => list.items.len() as u64,
            Val::Map(map) => map.len() as u64,
            Val::MapRef(map) => map.len() as u64,
            Val::Json(Value::Array(items), _) => items.len() as u64,
            Val::Json(Value::Object(map), _) => map.len() as u64,
            Val::Json(..) => 1,
            _ => return None,
        })
    }

    /// The size that costs are counted with.
    pub fn cost_size(&self) -> u64 {
        match self {
            Val::Opaque(opaque) => opaque.cost_size(),
            other => other.size().unwrap_or(1),
        }
    }

    /// Whether it is what its type is without a value; `None`: its type has no such value.
    pub fn is_zero(&self) -> bool {
        match self {
            Val::Null => true,
            Val::Bool(b) => !b,
            Val::Int(i) => *i == 0,
            Val::Uint(u) => *u == 0,
            Val::Double(d) => *d == 0.0,
            Val::Str(s) => s.is_empty(),
            Val::Text(s) => s.is_empty(),
            Val::Bytes(b) => b.is_empty(),
            Val::Blob(b) => b.is_empty(),
            Val::Duration(d) => *d == 0,
            Val::Timestamp(t) => t.is_zero(),
            Val::List(list) => list.items.is_empty(),
            Val::ListRef(list) => list.items.is_empty(),
            Val::Map(map) => map.is_empty(),
            Val::MapRef(map) => map.is_empty(),
            // Lists and objects of a schema do not say so in the reference.
            Val::Json(Value::Array(items), None) => items.is_empty(),
            Val::Json(Value::Object(map), None) => map.is_empty(),
            Val::Object(object) => object.fields.is_empty(),
            _ => false,
        }
    }

    /// What is left of it when the reference takes the plain value out of an optional: no schema.
    pub fn plain(self) -> Val<'a> {
        match self {
            Val::Json(value, _) => Val::Json(value, None),
            Val::Preserved(value) => json_val(value),
            Val::Optional(Some(of)) => Arc::unwrap_or_clone(of).plain(),
            other => other,
        }
    }

    /// What Go calls its type, in messages.
    pub fn go_type(&self) -> &'static str {
        match self {
            Val::Null => "types.Null",
            Val::Bool(_) => "types.Bool",
            Val::Int(_) => "types.Int",
            Val::Uint(_) => "types.Uint",
            Val::Double(_) => "types.Double",
            Val::Str(_) | Val::Text(_) => "types.String",
            Val::Bytes(_) | Val::Blob(_) => "types.Bytes",
            Val::Duration(_) => "types.Duration",
            Val::Timestamp(_) => "types.Timestamp",
            Val::Type(_) => "*types.Type",
            Val::Json(Value::Array(_), None) => "*types.baseList",
            Val::Json(_, None) | Val::Map(_) | Val::MapRef(_) => "*types.baseMap",
            Val::Json(Value::Array(_), Some(declared)) => match json::list_of(declared) {
                Some(list) => list.kind.go_type(),
                None => "*common.unstructuredList",
            },
            Val::Json(..) => "*common.unstructuredMap",
            Val::Preserved(_) => "*common.unknownPreserved",
            Val::List(list) => list.go_type(),
            Val::ListRef(list) => list.go_type(),
            Val::Optional(_) => "*types.Optional",
            Val::Opaque(opaque) => opaque.go_type(),
            Val::Object(_) => "*dynamic.ObjectVal",
            Val::Patch(_) => "*mutation.JSONPatchVal",
        }
    }
}

fn count_chars(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}

impl<'a> From<bool> for Val<'a> {
    fn from(b: bool) -> Val<'a> {
        Val::Bool(b)
    }
}

#[cfg(test)]
mod tests;
