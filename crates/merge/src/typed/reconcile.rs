//! Ownership that was recorded under another schema.
//!
//! Where a list or map has become atomic, whoever owned something in it owns all of it now. The other way round
//! nothing is done: the owner of the whole goes on as the owner of the container.

use super::Type;
use crate::fieldset::{PathElement, Set};

impl Type<'_> {
    /// `set` in terms of this type; `None` if it is so already.
    pub fn reconcile(self, set: &Set) -> Option<Set> {
        self.has_outdated(set).then(|| self.rewrite(set))
    }

    fn has_outdated(self, set: &Set) -> bool {
        set.nodes().iter().filter(|n| !n.children.is_empty()).any(|node| {
            self.below(&node.element).is_some_and(|ty| ty.owned_as_a_whole() || ty.has_outdated(&node.children))
        })
    }

    fn rewrite(self, set: &Set) -> Set {
        let mut result = Set::new();
        for node in set.nodes() {
            match self.below(&node.element) {
                Some(ty) if !node.children.is_empty() && ty.owned_as_a_whole() => {
                    result.push(node.element.clone(), true, Set::new());
                }
                Some(ty) => result.push(node.element.clone(), node.member, ty.rewrite(&node.children)),
                None => result.push(node.element.clone(), node.member, node.children.clone()),
            }
        }
        result
    }

    /// The type of what `element` leads to; `None` where nothing is to be rewritten.
    fn below(self, element: &PathElement) -> Option<Self> {
        if let Some(map) = self.as_map() {
            if map.is_free_form() {
                return None;
            }
            return match element {
                PathElement::Field(name) => map.member(name),
                _ => map.element,
            };
        }
        self.as_list().map(|list| list.element)
    }

    fn owned_as_a_whole(self) -> bool {
        match self.as_map() {
            Some(map) => map.atomic && !map.is_free_form(),
            None => self.as_list().is_some_and(|list| list.is_atomic()),
        }
    }
}
