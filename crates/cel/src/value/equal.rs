//! Whether two values are equal. Lists of a schema compare as their list type says; what cannot be compared is an error,
//! which plain lists and maps take for equal, as the reference does.

use super::{EvalError, Form, List, ListView, MapView, Val, escape, json};
use crate::declared::{self, ListKind};
use kubelith_meta::{Str, Value};
use std::sync::Arc;

type Equality = Result<bool, EvalError>;

impl<'a> Val<'a> {
    /// `self == other`.
    #[inline]
    pub fn equals(&self, other: &Val<'a>) -> Equality {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Ok(a == b),
            (Val::Str(a), Val::Str(b)) => Ok(a == b),
            (Val::Null, Val::Null) => Ok(true),
            (Val::Null, _) | (_, Val::Null) => Ok(false),
            _ => self.equal(other),
        }
    }

    /// As `equals`, as values compare what is in them.
    pub fn equal(&self, other: &Val<'a>) -> Equality {
        if let Some(same) = self.same_number(other) {
            return Ok(same);
        }
        match self {
            Val::Null => Ok(matches!(other, Val::Null)),
            Val::Bool(a) => Ok(matches!(other, Val::Bool(b) if a == b)),
            Val::Int(_) | Val::Uint(_) | Val::Double(_) => Ok(false),
            Val::Str(_) | Val::Text(_) => Ok(other.as_str().is_some() && self.as_str() == other.as_str()),
            Val::Bytes(_) | Val::Blob(_) => Ok(other.as_bytes().is_some() && self.as_bytes() == other.as_bytes()),
            Val::Duration(a) => Ok(matches!(other, Val::Duration(b) if a == b)),
            Val::Timestamp(a) => Ok(matches!(other, Val::Timestamp(b) if a == b)),
            Val::Type(a) => Ok(matches!(other, Val::Type(b) if a == b)),
            Val::Preserved(value) => Ok(is_native(value, other)),
            Val::Optional(a) => match (a, other) {
                (Some(a), Val::Optional(Some(b))) => a.equal(b),
                (None, Val::Optional(None)) => Ok(true),
                _ => Ok(false),
            },
            Val::Opaque(a) => match other {
                Val::Opaque(b) => a.equal(b),
                _ => Err(EvalError::no_overload()),
            },
            Val::Object(a) => match other {
                Val::Object(b) => Ok(a.type_name == b.type_name && a.same_fields(b)),
                _ => Ok(false),
            },
            Val::Patch(a) => match other {
                Val::Patch(b) => a.equal(b),
                _ => Ok(false),
            },
            _ => self.equal_aggregate(other),
        }
    }

    fn equal_aggregate(&self, other: &Val<'a>) -> Equality {
        if let Some(list) = self.as_list() {
            return match (list.declared(), other.as_list()) {
                (None, None) => Ok(false),
                (Some(_), None) => Err(EvalError::no_overload()),
                (Some(declared), Some(other)) => equal_typed(list, other, declared),
                (None, Some(other)) => equal_lists(list, other),
            };
        }
        let Some(map) = self.as_map() else { return Ok(false) };
        match (map, other.as_map()) {
            (MapView::Map(_) | MapView::Json(_), None) => Ok(false),
            (_, None) => Err(EvalError::no_overload()),
            (MapView::Map(_) | MapView::Json(_), Some(other)) => equal_maps(map, other),
            (_, Some(other)) => equal_objects(map, other),
        }
    }
}

fn equal_lists<'a>(list: ListView<'_, 'a>, other: ListView<'_, 'a>) -> Equality {
    if list.len() != other.len() {
        return Ok(false);
    }
    let mut failed = None;
    for i in 0..list.len() {
        match list.at(i).and_then(|a| a.equals(&other.at(i)?)) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    match (failed, list) {
        (Some(e), ListView::Items(List { form: Form::Concat, .. })) => Err(e),
        _ => Ok(true),
    }
}

fn equal_maps<'a>(map: MapView<'_, 'a>, other: MapView<'_, 'a>) -> Equality {
    if map.len() != other.len() {
        return Ok(false);
    }
    if let (MapView::Json(a), MapView::Json(b)) = (map, other) {
        return Ok(a.shares_with(b) || a.iter().all(|(k, v)| b.get(k).is_some_and(|o| equal_json(v, o))));
    }
    for (key, value) in map.entries() {
        let Some(other) = other.find(&key)? else { return Ok(false) };
        if matches!(value.and_then(|v| v.equals(&other)), Ok(false)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// JSON without a schema.
fn equal_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && (a.shares_with(b) || a.iter().all(|(k, v)| b.get(k).is_some_and(|o| equal_json(v, o))))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_json(a, b)),
        _ => json::json_val(a).equals(&json::json_val(b)).unwrap_or(true),
    }
}

/// Objects of a schema. Members that the schema does not have are compared as they are.
fn equal_objects<'a>(map: MapView<'_, 'a>, other: MapView<'_, 'a>) -> Equality {
    if map.len() != other.len() {
        return Ok(false);
    }
    let Some(members) = map.as_json() else { return Ok(false) };
    for (name, value) in members.iter() {
        let declared = match map {
            MapView::Object(_, object) => object.member(name).map(|f| &f.declared),
            MapView::Members(_, declared) => Some(declared),
            _ => None,
        };
        let Some(declared) = declared else {
            let Some(others) = other.as_json().filter(|_| !matches!(other, MapView::Json(_))) else {
                return Err(EvalError::no_overload());
            };
            if others.get(name).is_some_and(|o| o != value) {
                return Ok(false);
            }
            continue;
        };
        // Null is absence in objects, not in maps.
        let own = match map {
            MapView::Object(..) => json::member(Some(value), declared)?,
            _ => Some(json::typed(value, declared)?),
        };
        let theirs = match other {
            MapView::Object(others, _) => json::member(others.get(name), declared)?,
            _ => other.find_str(name)?,
        };
        match (own, theirs) {
            (Some(own), Some(theirs)) => {
                if !own.equal(&theirs)? {
                    return Ok(false);
                }
            }
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Lists of a schema, by their list type.
fn equal_typed<'a>(list: ListView<'_, 'a>, other: ListView<'_, 'a>, declared: &'a declared::List) -> Equality {
    if list.len() != other.len() {
        return Ok(false);
    }
    match &declared.kind {
        ListKind::Atomic => {
            for i in 0..list.len() {
                if !list.at(i)?.equal(&other.at(i)?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Set => {
            let own = natives(list)?;
            for item in other.iter() {
                let item = item?;
                if !own.iter().any(|native| native.is(&item)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Map(keys) => {
            let keys = escaped(keys);
            let own = natives(list)?;
            for item in other.iter() {
                let item = item?;
                // Of several with one key the last counts.
                let Some(at) = own.iter().rposition(|native| same_key(native, &item, &keys)) else {
                    return Ok(false);
                };
                if !list.at(at)?.equal(&item)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// `list + other` of a schema's list.
pub(crate) fn add_typed<'a>(
    list: ListView<'_, 'a>,
    other: ListView<'_, 'a>,
    declared: &'a declared::List,
) -> Result<Val<'a>, EvalError> {
    let mut items = list.iter().collect::<Result<Vec<_>, _>>()?;
    let mut own = natives(list)?;
    let keys = match &declared.kind {
        ListKind::Map(keys) => escaped(keys),
        _ => Vec::new(),
    };
    for item in other.iter() {
        let item = item?;
        let at = match declared.kind {
            ListKind::Atomic => None,
            ListKind::Set if own.iter().any(|native| native.is(&item)) => continue,
            ListKind::Set => None,
            ListKind::Map(_) => own.iter().take(list.len()).rposition(|native| same_key(native, &item, &keys)),
        };
        match at {
            Some(at) => items[at] = item,
            None => {
                if declared.kind != ListKind::Atomic {
                    own.push(Native::Val(item.clone()));
                }
                items.push(item);
            }
        }
    }
    let list = List::new(items)?;
    Ok(Val::List(Arc::new(List { form: Form::Typed(declared), ..list })))
}

/// An element as the reference puts it into a set: JSON as it was decoded.
enum Native<'a> {
    Json(&'a Value),
    Val(Val<'a>),
}

impl<'a> Native<'a> {
    fn is(&self, item: &Val<'a>) -> bool {
        match self {
            Native::Json(value) => is_native(value, item),
            Native::Val(val) => {
                std::mem::discriminant(val) == std::mem::discriminant(item) && matches!(val.equal(item), Ok(true))
            }
        }
    }

    fn member(&self, name: &str) -> Option<Option<&'a Value>> {
        match self {
            Native::Json(Value::Object(map)) => Some(map.get(name)),
            Native::Val(Val::Json(Value::Object(map), _)) => Some(map.get(name)),
            _ => None,
        }
    }
}

fn natives<'a>(list: ListView<'_, 'a>) -> Result<Vec<Native<'a>>, EvalError> {
    Ok(match list {
        ListView::Json(items, _) => items.iter().map(Native::Json).collect(),
        ListView::Items(list) => list.items.iter().cloned().map(Native::Val).collect(),
    })
}

fn escaped(keys: &[Str]) -> Vec<Str> {
    keys.iter().map(|key| escape(key).map_or_else(|| key.clone(), Str::from)).collect()
}

fn same_key<'a>(native: &Native<'a>, item: &Val<'a>, keys: &[Str]) -> bool {
    let Val::Json(Value::Object(theirs), _) = item else { return false };
    keys.iter().all(|key| match native.member(key) {
        Some(own) => own.unwrap_or(&Value::Null) == theirs.get(key).unwrap_or(&Value::Null),
        None => false,
    })
}

/// Whether a value is what this JSON was decoded to, type by type.
fn is_native(value: &Value, other: &Val<'_>) -> bool {
    match (value, other) {
        (a, Val::Json(b, _)) => a == *b,
        (a, Val::Preserved(b)) => a == *b,
        (Value::Bool(a), Val::Bool(b)) => a == b,
        (Value::Int(a), Val::Int(b)) => a == b,
        (Value::Float(a), Val::Double(b)) => a == b,
        (Value::String(a), _) => other.as_str() == Some(a),
        _ => false,
    }
}
