//! Whether a value fits its type.

use super::error::{ValidationErrors, go_wrapped, scalar_mismatch};
use super::{ListType, MapType, Type, TypeKind};
use crate::fieldset::PathElement;
use kubelith_meta::{Map, Value};

/// Whether sets and keyed lists may have the same element twice. Objects that exist may, what is applied may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    Allowed,
    Refused,
}

impl Type<'_> {
    pub fn validate(self, value: &Value, duplicates: Duplicates) -> Result<(), ValidationErrors> {
        let mut errors = ValidationErrors::default();
        validate(self, value, duplicates, &mut errors);
        errors.into_result()
    }

    /// As `validate` of `new`, given that `old` fits: what is the same there fits, too.
    pub fn validate_change(self, old: &Value, new: &Value) -> Result<(), ValidationErrors> {
        if self.change_fits(old, new) { Ok(()) } else { self.validate(new, Duplicates::Allowed) }
    }

    fn change_fits(self, old: &Value, new: &Value) -> bool {
        match (self.kind(Some(new)), old, new) {
            (TypeKind::Map(map), Value::Object(old), Value::Object(new)) => {
                let mut types = map.in_order(new.len());
                new.entries().iter().all(|(name, value)| match (types.member(name), old.get_with(name.head(), name)) {
                    (Some(_), Some(old)) if old == value => true,
                    (Some(ty), Some(old)) => ty.change_fits(old, value),
                    (Some(ty), None) => ty.validate(value, Duplicates::Allowed).is_ok(),
                    (None, _) => false,
                })
            }
            (TypeKind::List(list), Value::Array(old), Value::Array(new)) => {
                new.iter().enumerate().all(|(i, value)| match old.get(i) {
                    Some(old) if old == value => true,
                    _ if list.refusal(value).is_some() => false,
                    Some(old) => list.element.change_fits(old, value),
                    None => list.element.validate(value, Duplicates::Allowed).is_ok(),
                })
            }
            _ => self.validate(new, Duplicates::Allowed).is_ok(),
        }
    }
}

fn validate(ty: Type<'_>, value: &Value, duplicates: Duplicates, errors: &mut ValidationErrors) {
    match (ty.kind(Some(value)), value) {
        (TypeKind::Scalar(scalar), value) => {
            if let Some(mismatch) = scalar_mismatch(scalar, value) {
                errors.push(mismatch);
            }
        }
        (_, Value::Null) | (TypeKind::Map(_), Value::Raw(_)) => {}
        (TypeKind::List(list), Value::Array(elements)) => validate_list(list, elements, duplicates, errors),
        (TypeKind::List(_), other) => errors.push(format!("expected list, got {}", go_wrapped(other))),
        (TypeKind::Map(map), Value::Object(members)) => validate_map(map, members, duplicates, errors),
        (TypeKind::Map(_), other) => errors.push(format!("expected map, got {}", go_wrapped(other))),
    }
}

fn validate_list(list: ListType<'_>, elements: &[Value], duplicates: Duplicates, errors: &mut ValidationErrors) {
    let mut seen = Seen::default();
    for (i, value) in elements.iter().enumerate() {
        if let Some(why) = list.refusal(value) {
            // Nothing below can be reported without a path.
            return errors.push(format!("element {i}: {why}"));
        }
        if duplicates == Duplicates::Refused && !list.is_atomic() && seen.has(list, &elements[..i], value) {
            let element = list.path_element(value).unwrap_or(PathElement::Index(i as i64));
            errors.push(format!("duplicate entries for key {element}"));
        }
        let start = errors.len();
        validate(list.element, value, duplicates, errors);
        if errors.len() > start {
            let element = list.path_element(value).unwrap_or(PathElement::Index(i as i64));
            errors.prefix_from(start, element);
        }
    }
}

/// Longer lists are looked through with an index.
const SHORT_LIST: usize = 16;

/// The elements of a list so far.
#[derive(Default)]
struct Seen(Vec<PathElement>);

impl Seen {
    /// Whether `value` is among `earlier` elements, which come in order.
    fn has(&mut self, list: ListType<'_>, earlier: &[Value], value: &Value) -> bool {
        if earlier.len() < SHORT_LIST {
            return earlier.iter().any(|e| list.same_element(e, value));
        }
        if self.0.is_empty() {
            self.0.extend(earlier.iter().filter_map(|e| list.path_element(e).ok()));
            self.0.sort();
            self.0.dedup();
        }
        match list.path_element(value).map(|element| (self.0.binary_search(&element), element)) {
            Ok((Err(at), element)) => {
                self.0.insert(at, element);
                false
            }
            other => other.is_ok(),
        }
    }
}

fn validate_map(map: MapType<'_>, members: &Map, duplicates: Duplicates, errors: &mut ValidationErrors) {
    let mut types = map.in_order(members.len());
    for (name, value) in members.entries() {
        let start = errors.len();
        match types.member(name) {
            Some(ty) => validate(ty, value, duplicates, errors),
            None => {
                errors.push("field not declared in schema");
                errors.prefix_field(start, name);
                return;
            }
        }
        errors.prefix_field(start, name);
    }
}
