//! Merging what is applied into what is there. Nothing is ever removed here.

use super::error::{ValidationErrors, scalar_mismatch};
use super::{ListType, MapType, Scalar, Type, TypeKind};
use crate::fieldset::{PathElement, values};
use kubelith_meta::{Key, Map, Value};
use std::cmp::Ordering;

impl Type<'_> {
    /// `live` with the values of `config`. List elements that only one of the two has keep their place there; those of
    /// both stand in the order of `config`.
    pub fn merge(self, live: &Value, config: &Value) -> Result<Value, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let mut merged = live.clone();
        merge_into(self, &mut merged, config, &mut errors);
        errors.into_result()?;
        Ok(merged)
    }
}

/// Merges `config` into `live` where it stands. Lists are rebuilt if elements come in or change places.
fn merge_into(ty: Type<'_>, live: &mut Value, config: &Value, errors: &mut ValidationErrors) {
    match (ty.common_kind(live, config), &mut *live, config) {
        (Some(TypeKind::Map(map)), Value::Object(live), Value::Object(config)) if !map.atomic && !live.is_empty() => {
            let mut types = map.in_order(config.len());
            for (name, value) in config.entries() {
                if live.get_with(name.head(), name).is_some_and(|member| values::equal(member, value)) {
                    continue;
                }
                let start = errors.len();
                match (types.member(name), live.get_mut_with(name.head(), name)) {
                    (Some(ty), Some(member)) => merge_into(ty, member, value, errors),
                    (Some(_), None) => drop(live.insert_at(name.clone(), value.clone())),
                    (None, _) => errors.push("schema error: invalid atom: inlined"),
                }
                errors.prefix_field(start, name);
            }
        }
        (Some(TypeKind::List(list)), Value::Array(live), Value::Array(config))
            if live.len() == config.len() && live.iter().zip(config).all(|(l, c)| list.same_element(l, c)) =>
        {
            for (element, value) in live.iter_mut().zip(config) {
                if !is_settled(list.element, element, value) {
                    merge_into(list.element, element, value, errors);
                }
            }
        }
        _ => *live = merge(ty, Some(live), Some(config), errors).unwrap_or_default(),
    }
}

/// Whether a config changes nothing in a shared object, which is better not copied then.
fn is_settled(ty: Type<'_>, live: &Value, config: &Value) -> bool {
    live.as_object().is_some_and(Map::is_sealed) && ty.overlay(live, config).is_ok_and(|overlay| overlay.is_empty())
}

/// At least one of the two is there. `None` if nothing comes out.
pub(super) fn merge(
    ty: Type<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    errors: &mut ValidationErrors,
) -> Option<Value> {
    // A value that is only on one side of a valid object is taken as it is.
    match (live, config) {
        (Some(value), None) | (None, Some(value)) => Some(value.clone()),
        _ => match ty.kind(config) {
            TypeKind::Scalar(scalar) => merge_scalars(scalar, live, config, errors),
            TypeKind::List(list) => {
                let (l, c) = (live.and_then(Value::as_array), config.and_then(Value::as_array));
                let (l, c) = (l.unwrap_or_default(), c.unwrap_or_default());
                // Two empty lists are a leaf, so that null and [] stay what they are.
                if list.is_atomic() || (l.is_empty() && c.is_empty()) {
                    return prefer(live, config);
                }
                merge_lists(list, l, c, errors)
            }
            TypeKind::Map(map) => {
                let (l, c) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
                if map.atomic || (l.is_none_or(Map::is_empty) && c.is_none_or(Map::is_empty)) {
                    return prefer(live, config);
                }
                merge_maps(map, l, c, errors)
            }
        },
    }
}

fn prefer(live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    config.or(live).cloned()
}

fn merge_scalars(
    scalar: Scalar,
    live: Option<&Value>,
    config: Option<&Value>,
    errors: &mut ValidationErrors,
) -> Option<Value> {
    let mismatch = |value: Option<&Value>| value.and_then(|v| scalar_mismatch(scalar, v));
    if let (Some(l), Some(c)) = (mismatch(live), mismatch(config)) {
        errors.push(format!("lhs: {l}"));
        errors.push(format!("rhs: {c}"));
        return None;
    }
    prefer(live, config)
}

fn merge_maps(
    map: MapType<'_>,
    live: Option<&Map>,
    config: Option<&Map>,
    errors: &mut ValidationErrors,
) -> Option<Value> {
    let mut entries: Vec<(Key, Value)> = Vec::with_capacity(live.map_or(0, Map::len).max(config.map_or(0, Map::len)));
    zip_maps(live, config, |name, live, config| {
        let start = errors.len();
        match map.member(name) {
            Some(ty) => entries.extend(merge(ty, live, config, errors).map(|v| (name.clone(), v))),
            None => errors.push("schema error: invalid atom: inlined"),
        }
        errors.prefix_field(start, name);
    });
    (!entries.is_empty()).then(|| Value::Object(Map::from_unsorted(entries)))
}

/// Visits the members of two objects side by side, in key order.
pub(super) fn zip_maps<'v>(
    left: Option<&'v Map>,
    right: Option<&'v Map>,
    mut visit: impl FnMut(&'v Key, Option<&'v Value>, Option<&'v Value>),
) {
    let mut lefts = left.into_iter().flat_map(Map::entries).peekable();
    let mut rights = right.into_iter().flat_map(Map::entries).peekable();
    loop {
        let order = match (lefts.peek(), rights.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((l, _)), Some((r, _))) => l.cmp(r),
        };
        let left = if order.is_le() { lefts.next() } else { None };
        let right = if order.is_ge() { rights.next() } else { None };
        if let Some((name, _)) = left.or(right) {
            visit(name, left.map(|l| &l.1), right.map(|r| &r.1));
        }
    }
}

/// The elements of one list by path element.
struct Indexed<'v> {
    /// In list order.
    elements: Vec<PathElement>,
    /// Positions in `elements`, sorted by path element.
    sorted: Vec<usize>,
    values: Vec<&'v Value>,
}

impl<'v> Indexed<'v> {
    fn new(list: ListType<'_>, values: &'v [Value], errors: &mut ValidationErrors) -> Indexed<'v> {
        let mut indexed =
            Indexed { elements: Vec::with_capacity(values.len()), sorted: Vec::new(), values: Vec::new() };
        for (i, value) in values.iter().enumerate() {
            match list.path_element(value) {
                Ok(element) => {
                    indexed.elements.push(element);
                    indexed.values.push(value);
                }
                Err(why) => errors.push(format!("element {i}: {why}")),
            }
        }
        indexed.sorted = (0..indexed.elements.len()).collect();
        indexed.sorted.sort_by(|a, b| indexed.elements[*a].cmp(&indexed.elements[*b]));
        indexed
    }

    /// All positions of `element`.
    fn positions(&self, element: &PathElement) -> &[usize] {
        let start = self.sorted.partition_point(|&i| self.elements[i] < *element);
        let end = start + self.sorted[start..].partition_point(|&i| self.elements[i] == *element);
        &self.sorted[start..end]
    }

    /// The value to merge for `element`: null stands for one that is there several times, which is not merged.
    fn single(&self, element: &PathElement) -> Option<&'v Value> {
        match self.positions(element) {
            [] => None,
            [i] => Some(self.values[*i]),
            _ => Some(&Value::Null),
        }
    }
}

fn merge_lists(list: ListType<'_>, live: &[Value], config: &[Value], errors: &mut ValidationErrors) -> Option<Value> {
    let start = errors.len();
    let config = Indexed::new(list, config, errors);
    for pair in config.sorted.windows(2) {
        if config.elements[pair[0]] == config.elements[pair[1]] {
            errors.push(format!("duplicate entries for key {}", config.elements[pair[0]]));
        }
    }
    let live = Indexed::new(list, live, errors);
    if errors.len() > start {
        return None;
    }
    let merged = interleave(&live, &config);
    let mut out = Vec::with_capacity(merged.len());
    for pick in merged {
        // Both lists are valid, so nothing can go wrong in their elements.
        let start = errors.len();
        out.extend(match pick {
            Pick::Live(i) => Some(live.values[i].clone()),
            Pick::Config(i) => merge(list.element, live.single(&config.elements[i]), Some(config.values[i]), errors),
        });
        errors.truncate(start);
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

/// Which element comes next in a merged list.
#[derive(Debug, PartialEq, Eq)]
enum Pick {
    /// An element that only the live list has, by position.
    Live(usize),
    /// An element of the config, merged with its counterpart.
    Config(usize),
}

/// The order of a merged list. Elements of both lists stand in the config's order; those of one list follow the
/// element that they follow there. Live `[a b c]` and config `[c x a]` give `[b c x a]`: `a` must wait for `c`, `b` need
/// not.
fn interleave(live: &Indexed<'_>, config: &Indexed<'_>) -> Vec<Pick> {
    let shared = |element: &PathElement| !live.positions(element).is_empty();
    let mut waiting = config.elements.iter().filter(|e| shared(e));
    let mut next_shared = waiting.next();
    let mut merged = vec![false; config.elements.len()];
    let mut picks = Vec::with_capacity(live.elements.len() + config.elements.len());
    let (mut l, mut c) = (0, 0);
    while l < live.elements.len() || c < config.elements.len() {
        let in_config = live.elements.get(l).map(|e| config.positions(e).first().copied());
        if let (Some(found), Some(wanted)) = (in_config, config.elements.get(c)) {
            let element = &live.elements[l];
            if element == wanted {
                merged[c] = true;
                picks.push(Pick::Config(c));
                (l, c) = (l + 1, c + 1);
                next_shared = waiting.next();
                continue;
            }
            if found.is_some() && next_shared.is_some_and(|next| next != element) {
                // Shared, but another one is due first; it comes with the config.
                l += 1;
                continue;
            }
        }
        match in_config {
            Some(None) => {
                picks.push(Pick::Live(l));
                l += 1;
                continue;
            }
            Some(Some(at)) if merged[at] => l += 1,
            _ => {}
        }
        if let Some(element) = config.elements.get(c) {
            merged[c] = true;
            picks.push(Pick::Config(c));
            c += 1;
            if next_shared == Some(element) {
                next_shared = waiting.next();
            }
        }
    }
    picks
}
