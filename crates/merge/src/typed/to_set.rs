//! The fields that a value mentions.

use super::{Kind, Type};
use crate::fieldset::{PathElement, Set};
use kubelith_meta::Value;

impl Type<'_> {
    /// The set of all leaves and elements in `value`, which must be valid.
    pub fn field_set(self, value: &Value) -> Set {
        field_set(self, value).1
    }

    /// `set` with every declared field that something below it is in the set for. Sets hold leaves; where containers
    /// matter, as in removing them, they are added so.
    pub fn with_named_fields(self, set: &Set) -> Set {
        let (map, list) = (self.as_map(), self.as_list());
        let mut result = Set::new();
        for node in set.nodes() {
            let mut member = node.member;
            let below = match (&node.element, map, list) {
                _ if node.children.is_empty() => None,
                (PathElement::Field(name), Some(map), _) => {
                    let declared = map.field(name);
                    member |= declared.is_some();
                    declared.or(map.element)
                }
                (PathElement::Key(_), _, Some(list)) => Some(list.element),
                _ => None,
            };
            let children = below.map_or_else(|| node.children.clone(), |ty| ty.with_named_fields(&node.children));
            result.push(node.element.clone(), member, children);
        }
        result
    }
}

/// Whether the value itself is in the set, and the set below it.
fn field_set(ty: Type<'_>, value: &Value) -> (bool, Set) {
    match (ty.kind(Some(value)), value) {
        (Kind::Scalar(_), _) => (true, Set::new()),
        (Kind::List(list), _) if list.is_atomic() => (true, Set::new()),
        (Kind::Map(map), _) if map.atomic => (true, Set::new()),
        (Kind::List(list), Value::Array(elements)) => {
            let mut set = Set::new();
            let index = list.index(elements, |_, _| {});
            for group in index.chunk_by(|a, b| a.0 == b.0) {
                // Elements that are there twice are owned as a whole.
                let below = match group {
                    [(_, element)] => field_set(list.element, element).1,
                    _ => Set::new(),
                };
                set.push(group[0].0.clone(), true, below);
            }
            (false, set)
        }
        (Kind::Map(map), Value::Object(members)) => {
            let mut set = Set::new();
            for (name, value) in members.iter() {
                let declared = map.field(name);
                let Some(ty) = declared.or(map.element) else { continue };
                let (member, below) = field_set(ty, value);
                let is_empty = value.is_null() || value.as_object().is_some_and(|m| m.is_empty());
                set.push(PathElement::field(name), member || is_empty || declared.is_none(), below);
            }
            (false, set)
        }
        _ => (false, Set::new()),
    }
}
