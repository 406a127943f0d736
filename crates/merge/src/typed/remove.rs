//! Taking fields out of a value.

use super::{Type, TypeKind};
use crate::fieldset::{PathElement, Set};
use kubelith_meta::Value;

impl Type<'_> {
    /// Removes every item of `items` from `value`. A container that loses its last member becomes null, for its field
    /// was not removed itself; so does an atomic one that something is to be removed from.
    pub fn remove_items(self, value: &mut Value, items: &Set) {
        if items.is_empty() {
            return;
        }
        let emptied = match (self.kind(Some(value)), &mut *value) {
            (TypeKind::Scalar(_), _) => false,
            (TypeKind::List(list), Value::Array(elements)) if !list.is_atomic() => {
                elements.retain_mut(|element| {
                    let Ok(at) = list.path_element(element) else { return true };
                    match items.node(&at) {
                        Some(node) if node.member => return false,
                        Some(node) => list.element.remove_items(element, &node.children),
                        None => {}
                    }
                    true
                });
                elements.is_empty()
            }
            (TypeKind::Map(map), Value::Object(members)) if !map.atomic => {
                for node in items.nodes() {
                    let PathElement::Field(name) = &node.element else { continue };
                    if node.member {
                        members.remove(name);
                    } else if let (Some(ty), Some(member)) = (map.member(name), members.get_mut(name)) {
                        ty.remove_items(member, &node.children);
                    }
                }
                members.is_empty()
            }
            _ => true,
        };
        if emptied {
            *value = Value::Null;
        }
    }
}
