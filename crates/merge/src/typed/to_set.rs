//! The fields that a value mentions.

use super::{Type, TypeKind};
use crate::fieldset::{PathElement, Set};
use kubelith_meta::Value;

impl Type<'_> {
    /// The set of all leaves and elements in `value`, which must be valid.
    pub fn field_set(self, value: &Value) -> Set {
        Containers::Leave.collect(self, value).1
    }

    /// The set of everything in `value`, containers too: what came or went with it.
    pub(super) fn everything(self, value: &Value) -> (bool, Set) {
        (true, Containers::Take.collect(self, value).1)
    }

    /// `set` with every declared field that something below it is in the set for. Sets hold leaves; where containers
    /// matter, as in removing them, they are added so.
    pub fn with_named_fields(self, set: &Set) -> Set {
        let (map, list) = (self.as_map(), self.as_list());
        let mut result = Set::with_capacity(set.nodes().len());
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

/// Whether granular containers are in the set themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Containers {
    Leave,
    Take,
}

impl Containers {
    /// Whether the value itself is in the set, and the set below it.
    fn collect(self, ty: Type<'_>, value: &Value) -> (bool, Set) {
        match (ty.kind(Some(value)), value) {
            (TypeKind::Scalar(_), _) => (true, Set::new()),
            (TypeKind::List(list), _) if list.is_atomic() => (true, Set::new()),
            (TypeKind::Map(map), _) if map.atomic => (true, Set::new()),
            (TypeKind::List(list), Value::Array(elements)) => {
                let mut set = Set::with_capacity(elements.len());
                let mut index = list.index(elements, |_, _| ());
                // Elements that are there twice are owned as a whole.
                let mut i = 0;
                while i < index.len() {
                    let twins = index[i + 1..].iter().take_while(|other| other.0 == index[i].0).count();
                    let below = if twins == 0 { self.collect(list.element, index[i].1).1 } else { Set::new() };
                    set.push(std::mem::replace(&mut index[i].0, PathElement::Index(0)), true, below);
                    i += twins + 1;
                }
                (false, set)
            }
            (TypeKind::Map(map), Value::Object(members)) => {
                let mut set = Set::with_capacity(members.len());
                let mut types = map.in_order(members.len());
                for (name, value) in members.entries() {
                    let declared = types.field(name);
                    let Some(ty) = declared.or(map.element) else { continue };
                    let (member, below) = self.collect(ty, value);
                    let is_empty = value.is_null() || value.as_object().is_some_and(|m| m.is_empty());
                    let member = member || is_empty || declared.is_none() || self == Containers::Take;
                    set.push(PathElement::field(name.as_str()), member, below);
                }
                (false, set)
            }
            _ => (false, Set::new()),
        }
    }
}
