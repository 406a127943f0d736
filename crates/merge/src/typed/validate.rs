//! Whether a value fits its type.

use super::error::{ValidationErrors, go_wrapped, scalar_mismatch};
use super::{Kind, ListType, MapType, Type};
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
}

fn validate(ty: Type<'_>, value: &Value, duplicates: Duplicates, errors: &mut ValidationErrors) {
    match (ty.kind(Some(value)), value) {
        (Kind::Scalar(scalar), value) => {
            if let Some(mismatch) = scalar_mismatch(scalar, value) {
                errors.push(mismatch);
            }
        }
        (_, Value::Null) => {}
        (Kind::List(list), Value::Array(elements)) => validate_list(list, elements, duplicates, errors),
        (Kind::List(_), other) => errors.push(format!("expected list, got {}", go_wrapped(other))),
        (Kind::Map(map), Value::Object(members)) => validate_map(map, members, duplicates, errors),
        (Kind::Map(_), other) => errors.push(format!("expected map, got {}", go_wrapped(other))),
    }
}

fn validate_list(list: ListType<'_>, elements: &[Value], duplicates: Duplicates, errors: &mut ValidationErrors) {
    let mut seen: Vec<PathElement> = Vec::new();
    for (i, value) in elements.iter().enumerate() {
        let start = errors.len();
        if list.is_atomic() {
            validate(list.element, value, duplicates, errors);
            errors.prefix_from(start, PathElement::Index(i as i64));
            continue;
        }
        let element = match list.path_element(value) {
            Ok(element) => element,
            // Nothing below can be reported without a path.
            Err(why) => return errors.push(format!("element {i}: {why}")),
        };
        let mut start = start;
        if duplicates == Duplicates::Refused {
            match seen.binary_search(&element) {
                Ok(_) => {
                    errors.push(format!("duplicate entries for key {element}"));
                    start += 1;
                }
                Err(at) => seen.insert(at, element.clone()),
            }
        }
        validate(list.element, value, duplicates, errors);
        errors.prefix_from(start, element);
    }
}

fn validate_map(map: MapType<'_>, members: &Map, duplicates: Duplicates, errors: &mut ValidationErrors) {
    for (name, value) in members.iter() {
        let start = errors.len();
        match map.member(name) {
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
