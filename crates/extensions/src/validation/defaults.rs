//! Defaults must be what their schema asks for.

use crate::serving::embedded;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::structural::{self, Structural};

/// Whether defaults may have fields that the schema does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    AsBefore,
}

pub fn validate(schema: &Value, unknown: Unknown, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    walk(&Structural::parse(schema), unknown, path, &mut errors);
    errors
}

pub fn has_unpruned(schema: &Value) -> bool {
    let parsed = Structural::parse(schema);
    parsed.any(&|s| s.default.as_deref().is_some_and(|default| pruned(s, default) != *default))
}

fn pruned(schema: &Structural, default: &Value) -> Value {
    let mut copy = schema.clone();
    copy.default = Some(Box::new(default.clone()));
    copy.prune_defaults();
    copy.default.map(|d| *d).unwrap_or_default()
}

fn walk(schema: &Structural, unknown: Unknown, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(default) = schema.default.as_deref() {
        let at = path.child("default");
        if unknown == Unknown::Refused && pruned(schema, default) != *default {
            errors.push(Error::invalid(&at, default, "must not have unknown fields"));
        }
        let found = embedded::validate_at(schema, default, &at);
        match found.is_empty() {
            false => errors.extend(found),
            true => errors.extend(structural::validate(schema, default, Some(&at))),
        }
    }
    if let Some(items) = &schema.items {
        walk(items, unknown, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        walk(property, unknown, &path.entry("properties", name), errors);
    }
}
