//! Taking fields out of a value.

use super::{Kind, Type};
use crate::fieldset::{PathElement, Set};
use kubelith_meta::Value;

impl Type<'_> {
    /// Removes every item of `items` from `value`. A container that loses its last member becomes null, for its field
    /// was not removed itself; so does an atomic one that something is to be removed from.
    pub fn remove_items(self, value: &mut Value, items: &Set) {
        let emptied = match (self.kind(Some(value)), &mut *value) {
            (Kind::Scalar(_), _) => false,
            (Kind::List(list), Value::Array(elements)) if !list.is_atomic() => {
                elements.retain_mut(|element| {
                    let Ok(at) = list.path_element(element) else { return true };
                    if items.contains_element(&at) {
                        return false;
                    }
                    if let Some(below) = items.below(&at) {
                        list.element.remove_items(element, below);
                    }
                    true
                });
                elements.is_empty()
            }
            (Kind::Map(map), Value::Object(members)) if !map.atomic => {
                members.retain(|name, member| {
                    let at = PathElement::field(name);
                    if items.contains_element(&at) {
                        return false;
                    }
                    if let (Some(below), Some(ty)) = (items.below(&at), map.member(name)) {
                        ty.remove_items(member, below);
                    }
                    true
                });
                members.is_empty()
            }
            _ => true,
        };
        if emptied {
            *value = Value::Null;
        }
    }
}
