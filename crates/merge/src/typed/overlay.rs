//! What applying a config changes: `compare(live, merge(live, config))` without the merge.
//!
//! Most applies change nothing or little, and a config is smaller than the object. So only what the config mentions is
//! looked at, and nothing is built.

use super::compare::{Delta, compare, compare_elements, leaf};
use super::error::ValidationErrors;
use super::merge::merge;
use super::{Comparison, ListType, MapType, Type, TypeKind};
use crate::fieldset::{PathElement, values};
use kubelith_meta::{Map, Value};

/// Longer lists are merged first and compared then.
const SHORT_LIST: usize = 16;

/// What a config changes in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    pub changes: Comparison,
    /// Lists may end up in another order, or without duplicates.
    pub reorders: bool,
}

impl Overlay {
    /// Whether the merged object is the live one for sure.
    pub fn is_empty(&self) -> bool {
        !self.reorders && self.changes == Comparison::default()
    }
}

impl Type<'_> {
    /// The changes from `live` to `self.merge(live, config)`; both must be valid.
    pub fn overlay(self, live: &Value, config: &Value) -> Result<Overlay, ValidationErrors> {
        let mut walk = Walk::default();
        let delta = walk.overlay(self, live, config);
        walk.errors.into_result()?;
        Ok(Overlay { changes: delta.into(), reorders: walk.reorders })
    }
}

#[derive(Default)]
struct Walk {
    reorders: bool,
    errors: ValidationErrors,
}

impl Walk {
    fn overlay(&mut self, ty: Type<'_>, live: &Value, config: &Value) -> Delta {
        let Some(kind) = ty.common_kind(live, config) else { return self.merged(ty, live, config) };
        match kind {
            TypeKind::Scalar(_) => leaf(Some(live), Some(config)),
            TypeKind::List(list) => {
                let (l, c) = (live.as_array().unwrap_or_default(), config.as_array().unwrap_or_default());
                match (l.len(), c.len()) {
                    _ if list.is_atomic() => leaf(Some(live), Some(config)),
                    (0, 0) => leaf(Some(live), Some(config)),
                    // A list without elements says nothing.
                    (_, 0) => Delta::default(),
                    (1..=SHORT_LIST, 1..=SHORT_LIST) => self.elements(list, l, c),
                    _ => self.merged(ty, live, config),
                }
            }
            TypeKind::Map(map) => {
                let empty = Map::new();
                let (l, c) = (live.as_object().unwrap_or(&empty), config.as_object().unwrap_or(&empty));
                if map.atomic || (l.is_empty() && c.is_empty()) {
                    return leaf(Some(live), Some(config));
                }
                self.members(map, l, c)
            }
        }
    }

    /// The straight way.
    fn merged(&mut self, ty: Type<'_>, live: &Value, config: &Value) -> Delta {
        self.reorders = true;
        let merged = merge(ty, Some(live), Some(config), &mut self.errors);
        compare(ty, Some(live), merged.as_ref(), &mut self.errors)
    }

    fn members(&mut self, map: MapType<'_>, live: &Map, config: &Map) -> Delta {
        let mut delta = Delta::default();
        let mut types = map.in_order(config.len());
        for (name, value) in config.entries() {
            let live = live.get_with(name.head(), name);
            // What is so already needs no types.
            if live.is_some_and(|live| values::equal(live, value)) {
                continue;
            }
            let start = self.errors.len();
            match (types.member(name), live) {
                (Some(ty), Some(live)) => {
                    let child = self.overlay(ty, live, value);
                    delta.attach(&mut || PathElement::field(name.as_str()), child);
                }
                (Some(ty), None) => {
                    let child = compare(ty, None, Some(value), &mut self.errors);
                    delta.attach(&mut || PathElement::field(name.as_str()), child);
                }
                (None, _) => self.errors.push("schema error: invalid atom: inlined"),
            }
            self.errors.prefix_field(start, name);
        }
        delta
    }

    fn elements(&mut self, list: ListType<'_>, live: &[Value], config: &[Value]) -> Delta {
        let mut changed: Vec<(PathElement, Delta)> = Vec::new();
        let mut note = |value: &Value, child: Delta| {
            if !child.is_empty() {
                changed.extend(list.path_element(value).ok().map(|element| (element, child)));
            }
        };
        if live.len() == config.len() && live.iter().zip(config).all(|(l, c)| list.same_element(l, c)) {
            // The usual case: the same elements in the same order.
            for (live, value) in live.iter().zip(config) {
                note(value, self.overlay(list.element, live, value));
            }
            return attach_sorted(changed);
        }
        let mut last = None;
        for value in config {
            let found = |(_, l): &(usize, &Value)| list.same_element(l, value);
            let mut matches = live.iter().enumerate().filter(found);
            let child = match (matches.next(), matches.next()) {
                (None, _) => compare(list.element, None, Some(value), &mut self.errors),
                (Some((at, single)), None) => {
                    self.reorders |= last.is_some_and(|last| at < last);
                    last = Some(at);
                    self.overlay(list.element, single, value)
                }
                (Some(first), Some(second)) => {
                    self.reorders = true;
                    let path = |v| (PathElement::Index(0), v);
                    let all: Vec<_> = [first, second].into_iter().chain(matches).map(|(_, l)| path(l)).collect();
                    compare_elements(list.element, &all, &[path(value)], &mut self.errors)
                }
            };
            note(value, child);
        }
        attach_sorted(changed)
    }
}

fn attach_sorted(mut changed: Vec<(PathElement, Delta)>) -> Delta {
    changed.sort_by(|a, b| a.0.cmp(&b.0));
    let mut delta = Delta::default();
    for (element, child) in changed {
        delta.attach(&mut || element.clone(), child);
    }
    delta
}
