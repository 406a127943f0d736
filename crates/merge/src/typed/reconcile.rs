//! Ownership that was recorded under another schema.
//!
//! Where a list or map has become atomic, whoever owned something in it owns all of it now. The other way round
//! nothing is done: the owner of the whole goes on as the owner of the container.

use super::{Declared, Kinds, Type, TypeKind};
use crate::fieldset::{Level, Owned, PathElement, Set};

impl Type<'_> {
    /// `set` in terms of this type; `None` if it is so already.
    pub fn reconcile(self, set: &Set) -> Option<Set> {
        self.has_outdated(set).then(|| self.rewrite(set))
    }

    /// As `reconcile`, for a set that may not be read yet. A set that was found to be in line with a type `stays` so, if the type
    /// is there for as long as the outline may be remembered.
    pub(crate) fn reconcile_owned(self, fields: &Owned, stays: bool) -> Option<Set> {
        let Some(outline) = fields.outline() else { return self.reconcile(fields.set()) };
        let address = self.address().filter(|_| stays);
        if address.is_some_and(|ty| outline.is_in_line_with(ty)) {
            debug_assert!(!self.has_outdated_in(outline.root()), "a type has changed");
            return None;
        }
        if self.has_outdated_in(outline.root()) {
            return Some(self.rewrite(fields.set()));
        }
        if let Some(ty) = address {
            outline.note_in_line_with(ty);
        }
        None
    }

    /// Tells a type from all others that are there.
    fn address(self) -> Option<usize> {
        match self {
            Type::Declared { schema, preserve: false, .. } => Some(std::ptr::from_ref(schema).addr()),
            _ => None,
        }
    }

    fn has_outdated(self, set: &Set) -> bool {
        set.nodes().iter().filter(|n| !n.children.is_empty()).any(|node| {
            self.below(field_of(&node.element))
                .is_some_and(|ty| ty.owned_as_a_whole() || ty.has_outdated(&node.children))
        })
    }

    fn has_outdated_in(self, level: Level<'_>) -> bool {
        self.declared().has_outdated_in(level)
    }

    fn rewrite(self, set: &Set) -> Set {
        let mut result = Set::new();
        for node in set.nodes() {
            match self.below(field_of(&node.element)) {
                Some(ty) if !node.children.is_empty() && ty.owned_as_a_whole() => {
                    result.push(node.element.clone(), true, Set::new());
                }
                Some(ty) => result.push(node.element.clone(), node.member, ty.rewrite(&node.children)),
                None => result.push(node.element.clone(), node.member, node.children.clone()),
            }
        }
        result
    }

    /// The type of what `field`, or an element that is none, leads to; `None` where nothing is to be rewritten.
    fn below(self, field: Option<&str>) -> Option<Self> {
        if let Some(map) = self.as_map() {
            if map.is_free_form() {
                return None;
            }
            return match field {
                Some(name) => map.member(name),
                None => map.element,
            };
        }
        self.as_list().map(|list| list.element)
    }

    fn owned_as_a_whole(self) -> bool {
        self.declared().owned_as_a_whole()
    }
}

impl Declared<'_> {
    /// As a map, if it can be one.
    fn owned_as_a_whole(&self) -> bool {
        match self {
            Declared::One(TypeKind::Map(map)) | Declared::Several(Kinds { map, .. }) => {
                map.atomic && !map.is_free_form()
            }
            Declared::One(TypeKind::List(list)) => list.is_atomic(),
            Declared::One(TypeKind::Scalar(_)) => false,
        }
    }

    fn has_outdated_in(&self, level: Level<'_>) -> bool {
        let is_outdated = |ty: Type<'_>, below| {
            let declared = ty.declared();
            declared.owned_as_a_whole() || declared.has_outdated_in(below)
        };
        let mut entries = level.iter().filter(|(_, below)| !below.is_empty());
        match self {
            Declared::One(TypeKind::Map(map)) | Declared::Several(Kinds { map, .. }) => {
                !map.is_free_form()
                    && entries.any(|(field, below)| {
                        let ty = field.map_or(map.element, |name| map.member(name));
                        ty.is_some_and(|ty| is_outdated(ty, below))
                    })
            }
            Declared::One(TypeKind::List(list)) => {
                let element = list.element.declared();
                let is_whole = element.owned_as_a_whole();
                entries.any(|(_, below)| is_whole || element.has_outdated_in(below))
            }
            Declared::One(TypeKind::Scalar(_)) => false,
        }
    }
}

fn field_of(element: &PathElement) -> Option<&str> {
    match element {
        PathElement::Field(name) => Some(name),
        _ => None,
    }
}
