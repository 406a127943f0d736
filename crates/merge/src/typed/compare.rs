//! What changed between two values of a type.

use super::error::{ValidationErrors, scalar_mismatch};
use super::{ListType, MapType, Scalar, Type, TypeKind};
use crate::fieldset::{Filter, PathElement, Set, values};
use kubelith_meta::{Map, Value};

/// The fields that differ. A container that came or went is in its set together with all its members; one that
/// only changed inside is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub removed: Set,
    pub modified: Set,
    pub added: Set,
}

impl Comparison {
    pub fn filter(&mut self, filter: &Filter) {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            filter.apply(set);
        }
    }

    /// What is new or different.
    pub fn changed(mut self) -> Set {
        self.modified.add(self.added);
        self.modified
    }
}

impl Type<'_> {
    pub fn compare(self, old: &Value, new: &Value) -> Result<Comparison, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let delta = compare(self, Some(old), Some(new), &mut errors);
        errors.into_result()?;
        Ok(delta.into())
    }
}

const REMOVED: usize = 0;
const MODIFIED: usize = 1;
const ADDED: usize = 2;

/// Changes at and below one path, by kind.
#[derive(Default)]
pub(super) struct Delta {
    here: [bool; 3],
    below: [Set; 3],
}

impl Delta {
    fn here(kind: usize) -> Delta {
        let mut delta = Delta::default();
        delta.here[kind] = true;
        delta
    }

    /// All of a value that came or went.
    fn whole(kind: usize, ty: Type<'_>, value: &Value) -> Delta {
        let mut delta = Delta::default();
        (delta.here[kind], delta.below[kind]) = ty.everything(value);
        delta
    }

    /// Takes over the changes of a member.
    pub(super) fn attach(&mut self, element: &mut dyn FnMut() -> PathElement, child: Delta) {
        for ((below, here), deeper) in self.below.iter_mut().zip(child.here).zip(child.below) {
            if here || !deeper.is_empty() {
                below.push(element(), here, deeper);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.here == [false; 3] && self.below.iter().all(Set::is_empty)
    }

    fn or(mut self, other: Delta) -> Delta {
        for i in 0..3 {
            self.here[i] |= other.here[i];
            self.below[i] = self.below[i].union(&other.below[i]);
        }
        self
    }
}

impl From<Delta> for Comparison {
    fn from(delta: Delta) -> Comparison {
        let [removed, modified, added] = delta.below;
        Comparison { removed, modified, added }
    }
}

/// The changes from `old` to `new`. What came or went as a whole counts with everything in it; of a container that was
/// there before only what changed inside.
pub(super) fn compare(ty: Type<'_>, old: Option<&Value>, new: Option<&Value>, errors: &mut ValidationErrors) -> Delta {
    match (old, new) {
        (Some(value), None) => Delta::whole(REMOVED, ty, value),
        (None, Some(value)) => Delta::whole(ADDED, ty, value),
        (None, None) => Delta::default(),
        // Most of an object is as it was, and seeing that needs no types.
        (Some(o), Some(n)) if values::equal(o, n) => Delta::default(),
        (Some(_), Some(_)) => {
            let (was, is) = (ty.kind(old), ty.kind(new));
            if std::mem::discriminant(&was) == std::mem::discriminant(&is) {
                as_kind(is, old, new, errors)
            } else {
                // A type that can be both: members of the old kind are gone, the new one is different.
                as_kind(was, old, new, errors).or(as_kind(is, old, new, errors))
            }
        }
    }
}

/// Both are there.
fn as_kind(kind: TypeKind<'_>, old: Option<&Value>, new: Option<&Value>, errors: &mut ValidationErrors) -> Delta {
    match kind {
        TypeKind::Scalar(scalar) => compare_scalars(scalar, old, new, errors),
        TypeKind::List(list) => {
            let (o, n) = (elements(old), elements(new));
            if list.is_atomic() || (o.is_empty() && n.is_empty()) {
                return leaf(old, new);
            }
            compare_lists(list, o, n, errors)
        }
        TypeKind::Map(map) => {
            let (o, n) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            if map.atomic || (o.is_none_or(Map::is_empty) && n.is_none_or(Map::is_empty)) {
                return leaf(old, new);
            }
            compare_maps(map, o, n, errors)
        }
    }
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

pub(super) fn leaf(old: Option<&Value>, new: Option<&Value>) -> Delta {
    match (old, new) {
        (None, _) => Delta::here(ADDED),
        (_, None) => Delta::here(REMOVED),
        (Some(old), Some(new)) if !values::equal(old, new) => Delta::here(MODIFIED),
        _ => Delta::default(),
    }
}

fn compare_scalars(scalar: Scalar, old: Option<&Value>, new: Option<&Value>, errors: &mut ValidationErrors) -> Delta {
    let mismatch = |value: Option<&Value>| value.and_then(|v| scalar_mismatch(scalar, v));
    if let (Some(o), Some(n)) = (mismatch(old), mismatch(new)) {
        errors.push(format!("lhs: {o}"));
        errors.push(format!("rhs: {n}"));
        return Delta::default();
    }
    leaf(old, new)
}

fn compare_maps(map: MapType<'_>, old: Option<&Map>, new: Option<&Map>, errors: &mut ValidationErrors) -> Delta {
    let mut delta = Delta::default();
    let mut types = map.in_order(old.map_or(0, Map::len).max(new.map_or(0, Map::len)));
    super::merge::zip_maps(old, new, |name, old, new| {
        if let (Some(old), Some(new)) = (old, new)
            && values::equal(old, new)
        {
            return;
        }
        let start = errors.len();
        match types.member(name) {
            Some(ty) => {
                let child = compare(ty, old, new, errors);
                delta.attach(&mut || PathElement::field(name.as_str()), child);
            }
            None => errors.push("schema error: invalid atom: inlined"),
        }
        errors.prefix_field(start, name);
    });
    delta
}

fn compare_lists(list: ListType<'_>, old: &[Value], new: &[Value], errors: &mut ValidationErrors) -> Delta {
    let old = list.index(old, |i, why| errors.push(format!("element {i}: {why}")));
    let new = list.index(new, |i, why| errors.push(format!("element {i}: {why}")));
    let mut delta = Delta::default();
    let mut olds = old.chunk_by(|a, b| a.0 == b.0).peekable();
    let mut news = new.chunk_by(|a, b| a.0 == b.0).peekable();
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return delta,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(o), Some(n)) => o[0].0.cmp(&n[0].0),
        };
        let o = if order.is_le() { olds.next().unwrap_or_default() } else { &[] };
        let n = if order.is_ge() { news.next().unwrap_or_default() } else { &[] };
        let element = &o.first().or(n.first()).expect("one side has it").0;
        let start = errors.len();
        let child = compare_elements(list.element, o, n, errors);
        errors.prefix_from(start, element);
        delta.attach(&mut || element.clone(), child);
    }
}

/// Compares the elements with one path element: normally one on each side. Where there are several they are one thing,
/// owned as a whole.
pub(super) fn compare_elements(
    ty: Type<'_>,
    old: &[(PathElement, &Value)],
    new: &[(PathElement, &Value)],
    errors: &mut ValidationErrors,
) -> Delta {
    match (old, new) {
        ([] | [_], [] | [_]) => compare(ty, old.first().map(|o| o.1), new.first().map(|n| n.1), errors),
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(o, n)| values::equal(o.1, n.1));
            if equal { Delta::default() } else { Delta::here(MODIFIED) }
        }
        ([_, _, ..], _) => {
            let single = new.first().map_or_else(Delta::default, |n| compare(ty, None, Some(n.1), errors));
            single.or(Delta::here(REMOVED))
        }
        (_, [_, _, ..]) => {
            let single = old.first().map_or_else(Delta::default, |o| compare(ty, Some(o.1), None, errors));
            single.or(Delta::here(ADDED))
        }
    }
}
