//! Maps: those that expressions make, and objects of JSON.

use super::{EvalError, MAX_DEPTH, Res, Val, convert, json};
use crate::declared::{Declared, MemberKind, Object};
use std::collections::HashMap;
use std::sync::Arc;

/// Maps with more entries than this have an index.
const SMALL: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Map<'a> {
    /// In the order they were put in.
    entries: Vec<(Val<'a>, Val<'a>)>,
    index: Option<HashMap<Key, u32>>,
    pub depth: u32,
    /// What keys have that are not there: such a map has every key.
    otherwise: Option<Arc<Val<'a>>>,
}

/// What keys are looked up by. Values of different types are different keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double that is no NaN, with one zero.
    Double(u64),
    Text(Arc<str>),
    Duration(i64),
    Timestamp(i64, u32),
    Type(Arc<str>),
    Opaque(Arc<str>),
}

impl Key {
    /// `None`: a key that equals no other, as NaN and lists are.
    pub fn of(val: &Val<'_>) -> Result<Option<Key>, EvalError> {
        Ok(Some(match val {
            Val::Null => Key::Null,
            Val::Bool(b) => Key::Bool(*b),
            Val::Int(i) => Key::Int(*i),
            Val::Uint(u) => Key::Uint(*u),
            Val::Double(d) if d.is_nan() => return Ok(None),
            Val::Double(d) => Key::Double((*d + 0.0).to_bits()),
            Val::Str(s) => Key::Text((*s).into()),
            Val::Text(s) => Key::Text(s.clone()),
            Val::Duration(d) => Key::Duration(*d),
            Val::Timestamp(t) => Key::Timestamp(t.seconds, t.nanos),
            Val::Type(name) => Key::Type(name.clone()),
            Val::Bytes(_) | Val::Blob(_) => return Err(EvalError::unhashable(val.go_type())),
            Val::Opaque(opaque) if !opaque.is_hashable() => return Err(EvalError::unhashable(val.go_type())),
            Val::Opaque(opaque) => return Ok(opaque.key().map(Key::Opaque)),
            _ => return Ok(None),
        }))
    }
}

impl<'a> Map<'a> {
    pub fn with_capacity(n: usize) -> Map<'a> {
        Map { entries: Vec::with_capacity(n), index: None, depth: 1, otherwise: None }
    }

    /// Lets keys that are not there have a value that cannot be nested.
    #[must_use]
    pub fn or_else(mut self, otherwise: Val<'a>) -> Map<'a> {
        self.otherwise = Some(Arc::new(otherwise));
        self
    }

    fn otherwise(&self) -> Option<Val<'a>> {
        self.otherwise.as_deref().cloned()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn entries(&self) -> &[(Val<'a>, Val<'a>)] {
        &self.entries
    }

    /// Sets an entry.
    pub fn insert(&mut self, key: Val<'a>, value: Val<'a>) -> Result<(), EvalError> {
        let depth = key.depth().max(value.depth()) + 1;
        if depth > MAX_DEPTH {
            return Err(EvalError::size());
        }
        self.depth = self.depth.max(depth);
        let id = Key::of(&key)?;
        if let Some(at) = id.as_ref().and_then(|id| self.position(id)) {
            self.entries[at].1 = value;
            return Ok(());
        }
        if let (Some(index), Some(id)) = (&mut self.index, id) {
            index.insert(id, self.entries.len() as u32);
        }
        self.entries.push((key, value));
        if self.index.is_none() && self.entries.len() > SMALL {
            self.make_index();
        }
        Ok(())
    }

    pub fn remove(&mut self, key: &Val<'a>) -> Result<(), EvalError> {
        if let Some(at) = Key::of(key)?.and_then(|id| self.position(&id)) {
            self.entries.remove(at);
            if self.index.is_some() {
                self.make_index();
            }
        }
        Ok(())
    }

    fn make_index(&mut self) {
        let ids = self.entries.iter().enumerate();
        let ids = ids.filter_map(|(i, (key, _))| Some((Key::of(key).ok()??, i as u32)));
        self.index = Some(ids.collect());
    }

    fn position(&self, id: &Key) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(id).map(|i| *i as usize),
            None => self.entries.iter().position(|(key, _)| is_key(key, id)),
        }
    }

    fn get(&self, id: &Key) -> Option<Val<'a>> {
        self.position(id).map(|at| self.entries[at].1.clone())
    }

    /// The value of a key. Numbers find keys of other types that are the same number.
    pub fn find(&self, key: &Val<'_>) -> Result<Option<Val<'a>>, EvalError> {
        Ok(self.look_up(key)?.or_else(|| self.otherwise()))
    }

    fn look_up(&self, key: &Val<'_>) -> Result<Option<Val<'a>>, EvalError> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        if let Some(text) = key.as_str()
            && self.index.is_none()
        {
            let found = self.entries.iter().find(|(k, _)| k.as_str() == Some(text));
            return Ok(found.map(|(_, v)| v.clone()));
        }
        let Some(id) = Key::of(key)? else { return Ok(None) };
        if let Some(value) = self.get(&id) {
            return Ok(Some(value));
        }
        Ok(match key {
            Val::Double(d) => {
                let as_int = convert::double_to_int_exact(*d).and_then(|i| self.get(&Key::Int(i)));
                as_int.or_else(|| convert::double_to_uint_exact(*d).and_then(|u| self.get(&Key::Uint(u))))
            }
            Val::Int(i) => u64::try_from(*i).ok().and_then(|u| self.get(&Key::Uint(u))),
            Val::Uint(u) => i64::try_from(*u).ok().and_then(|i| self.get(&Key::Int(i))),
            _ => None,
        })
    }
}

fn is_key(key: &Val<'_>, id: &Key) -> bool {
    match (key, id) {
        (Val::Str(a), Key::Text(b)) => **a == **b,
        (Val::Text(a), Key::Text(b)) => a == b,
        (Val::Int(a), Key::Int(b)) => a == b,
        _ => matches!(Key::of(key), Ok(Some(own)) if own == *id),
    }
}

/// A map, wherever it is.
#[derive(Debug, Clone, Copy)]
pub enum MapView<'v, 'a> {
    Map(&'v Map<'a>),
    Json(&'a kubelith_meta::Map),
    /// An object with declared fields.
    Object(&'a kubelith_meta::Map, &'a Object),
    /// An object whose members all have one declaration.
    Members(&'a kubelith_meta::Map, &'a Declared),
}

impl<'v, 'a> MapView<'v, 'a> {
    pub(super) fn json(map: &'a kubelith_meta::Map, declared: Option<&'a Declared>) -> MapView<'v, 'a> {
        match declared.map(|d| &d.kind) {
            Some(MemberKind::Object(object)) => MapView::Object(map, object),
            Some(MemberKind::Map(of)) => MapView::Members(map, &of.value),
            _ => MapView::Json(map),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            MapView::Map(map) => map.len(),
            MapView::Json(map) | MapView::Object(map, _) | MapView::Members(map, _) => map.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn find(&self, key: &Val<'_>) -> Result<Option<Val<'a>>, EvalError> {
        match self {
            MapView::Map(map) => map.find(key),
            _ => match key.as_str() {
                Some(name) => self.find_str(name),
                None if matches!(self, MapView::Json(_)) => Ok(None),
                None => Err(EvalError::no_overload()),
            },
        }
    }

    /// Whether the key is there itself.
    pub fn has(&self, key: &Val<'_>) -> Result<bool, EvalError> {
        match self {
            MapView::Map(map) => Ok(map.look_up(key)?.is_some()),
            _ => Ok(self.find(key)?.is_some()),
        }
    }

    pub fn find_str(&self, name: &str) -> Result<Option<Val<'a>>, EvalError> {
        match self {
            MapView::Map(map) => {
                if map.index.is_none() {
                    let found = map.entries.iter().find(|(k, _)| k.as_str() == Some(name));
                    return Ok(found.map(|(_, v)| v.clone()).or_else(|| map.otherwise()));
                }
                Ok(map.get(&Key::Text(name.into())).or_else(|| map.otherwise()))
            }
            MapView::Json(map) => Ok(map.get(name).map(json::json_val)),
            MapView::Members(map, declared) => map.get(name).map(|v| json::typed(v, declared)).transpose(),
            MapView::Object(map, object) => {
                let Some(field) = object.field_named(name) else { return Ok(None) };
                json::member(map.get(&field.property), &field.declared)
            }
        }
    }

    /// The keys, as expressions see them.
    pub fn keys(self) -> Vec<Val<'a>> {
        match self {
            MapView::Map(map) => map.entries.iter().map(|(k, _)| k.clone()).collect(),
            MapView::Json(map) | MapView::Members(map, _) => map.keys().map(Val::Str).collect(),
            MapView::Object(map, object) => {
                map.keys().filter_map(|name| object.member(name)).map(|f| Val::Str(&f.name)).collect()
            }
        }
    }

    /// Keys and values.
    pub fn entries(self) -> Vec<(Val<'a>, Res<'a>)> {
        match self {
            MapView::Map(map) => map.entries.iter().map(|(k, v)| (k.clone(), Ok(v.clone()))).collect(),
            MapView::Json(map) => map.iter().map(|(k, v)| (Val::Str(k), Ok(json::json_val(v)))).collect(),
            MapView::Members(map, declared) => {
                map.iter().map(|(k, v)| (Val::Str(k), json::typed(v, declared))).collect()
            }
            MapView::Object(map, object) => {
                let fields = map.iter().filter_map(|(name, v)| Some((object.member(name)?, v)));
                fields.map(|(f, v)| (Val::Str(&f.name), json::typed(v, &f.declared))).collect()
            }
        }
    }

    pub fn as_json(&self) -> Option<&'a kubelith_meta::Map> {
        match self {
            MapView::Map(_) => None,
            MapView::Json(map) | MapView::Object(map, _) | MapView::Members(map, _) => Some(map),
        }
    }
}
