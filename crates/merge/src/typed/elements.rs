//! List elements as path elements.

use super::{ListType, MapType, Type};
use crate::fieldset::PathElement;
use kubelith_meta::{Str, Value};
use kubelith_schema::ListKind;

impl<'a> ListType<'a> {
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.kind, ListKind::Atomic)
    }

    /// How `element` is found in this list, which is not atomic.
    pub(crate) fn path_element(&self, element: &Value) -> Result<PathElement, String> {
        match self.kind {
            ListKind::Map(keys) => keyed_element(keys, self.element, element),
            ListKind::Set => set_element(element),
            ListKind::Atomic => Err("invalid indexing of non-associative list".into()),
        }
    }

    /// The elements of `list` by path element, sorted; equal ones keep their order. Elements that cannot be found by
    /// one are handed to `refuse` with their position.
    pub(super) fn index<'v>(
        &self,
        list: &'v [Value],
        mut refuse: impl FnMut(usize, String),
    ) -> Vec<(PathElement, &'v Value)> {
        let mut elements = Vec::with_capacity(list.len());
        for (i, value) in list.iter().enumerate() {
            match self.path_element(value) {
                Ok(element) => elements.push((element, value)),
                Err(why) => refuse(i, why),
            }
        }
        elements.sort_by(|a, b| a.0.cmp(&b.0));
        elements
    }
}

fn keyed_element(keys: &[Str], element_type: Type<'_>, element: &Value) -> Result<PathElement, String> {
    let map = match element {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut fields: Vec<(Str, Value)> = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = map.get(key) {
            fields.push((key.clone(), value.clone()));
        } else {
            let default = key_default(element_type.as_map(), key)?;
            // An element without the key is another one than any with it.
            fields.extend(default.map(|d| (key.clone(), d)));
        }
    }
    if fields.is_empty() && !keys.is_empty() {
        let keys: Vec<String> = keys.iter().map(|k| kubelith_meta::text::quote(k)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(fields.into()))
}

fn key_default(element: Option<MapType<'_>>, key: &str) -> Result<Option<Value>, String> {
    match element {
        Some(map) => Ok(map.default_of(key)),
        None => Err(format!("couldn't find default value for {key}: associative list may not have non-map types")),
    }
}

fn set_element(element: &Value) -> Result<PathElement, String> {
    match element {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(PathElement::Value(scalar.clone())),
    }
}
