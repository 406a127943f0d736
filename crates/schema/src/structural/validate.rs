//! Whether a value is what its schema says, in the words of the reference (kube-openapi's validator).
//!
//! Updates ratchet: what is wrong with a part that the update does not change is passed over. Parts are found in the
//! old object by property, by key, and by the keys of lists that are maps; elements of other lists count as new.

use super::check::{self, Failure, Found, Site};
use super::{Additional, List, Structural, Type};
use kubelith_meta::field::{ErrorList, Path};
use kubelith_meta::{Map, Str, Value, text};

/// What is wrong with a new value. `path` is where it stands.
pub fn validate(schema: &Structural, value: &Value, path: Option<&Path<'_>>) -> ErrorList {
    let found = node(schema, value, None, &Site::ROOT);
    check::to_errors(found.failures, path)
}

/// What is wrong with a value that replaces `old`.
pub fn validate_update(schema: &Structural, value: &Value, old: Option<&Value>, path: Option<&Path<'_>>) -> ErrorList {
    let found = ratcheted(schema, value, old.unwrap_or(&Value::Null), &Site::ROOT);
    check::to_errors(found.failures, path)
}

/// A value that has an old one: if it did not change, nothing is wrong with it.
fn ratcheted(schema: &Structural, value: &Value, old: &Value, site: &Site<'_>) -> Found {
    let mut found = node(schema, value, Some(Old { value: old, schema }), site);
    if !found.failures.is_empty() && unchanged(schema, value, old) {
        found.failures.clear();
    }
    found
}

/// The old state of the value that is looked at, with the schema that finds its parts. Nested rules look at the same
/// value with another schema.
#[derive(Clone, Copy)]
pub struct Old<'a> {
    value: &'a Value,
    schema: &'a Structural,
}

impl<'a> Old<'a> {
    pub fn new(schema: &'a Structural, value: &'a Value) -> Old<'a> {
        Old { value, schema }
    }

    /// Whether `value` is what there was.
    pub fn is_unchanged(self, value: &Value) -> bool {
        unchanged(self.schema, value, self.value)
    }

    pub fn key(self, key: &str) -> Option<Old<'a>> {
        let value = self.value.as_object()?.get(key)?;
        Some(Old { value, schema: self.schema.member(key)? })
    }

    pub fn index(self, item: &Value) -> Option<Old<'a>> {
        let (Some(List::Map(keys)), Value::Array(items)) = (&self.schema.list, self.value) else { return None };
        let value = keyed(keys, items, item)?;
        Some(Old { value, schema: self.schema.items.as_deref()? })
    }
}

/// The element with the same keys.
fn keyed<'a>(keys: &[Str], items: &'a [Value], item: &Value) -> Option<&'a Value> {
    item.as_object()?;
    items.iter().find(|old| old.as_object().is_some() && keys.iter().all(|key| old.get(key) == item.get(key)))
}

/// Equality as the reference has it: elements of keyed lists may move, members without a schema count as changed.
fn unchanged(schema: &Structural, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(key, value)| match (old.get(key), schema.member(key)) {
                    (Some(old), Some(schema)) => unchanged(schema, value, old),
                    _ => false,
                })
        }
        (Value::Array(new), Value::Array(old)) => match (&schema.list, schema.items.as_deref()) {
            (Some(List::Map(keys)), Some(items)) => {
                let same = |v: &Value| keyed(keys, old, v).is_some_and(|o| unchanged(items, v, o));
                new.len() == old.len() && new.iter().all(same)
            }
            _ => new == old,
        },
        _ => value == old,
    }
}

fn node(schema: &Structural, value: &Value, old: Option<Old<'_>>, site: &Site<'_>) -> Found {
    let mut found = Found::default();
    if value.is_null() {
        found.take(check::kind(schema, value, site));
        found.take(check::enumeration(schema, value, site));
        return found;
    }
    if schema.kind.is_some() || schema.int_or_string || !check::format(schema).is_empty() {
        found.take(check::kind(schema, value, site));
        found.count();
    }
    found.take(junctors(schema, value, old, site));
    found.count();
    match value {
        Value::String(text) => {
            found.take(check::string(schema, text, site));
            found.count();
            if schema_checks_format(schema) {
                found.take(check::string_format(schema, text, site));
                found.count();
            }
        }
        Value::Int(_) | Value::Float(_) => {
            found.take(check::number(schema, value, site));
            found.count();
        }
        Value::Array(items) => {
            found.take(list(schema, items, old, site));
            found.count();
        }
        _ => {}
    }
    found.take(check::enumeration(schema, value, site));
    found.count();
    if let Value::Object(map) = value {
        found.take(object(schema, map, old, site));
        found.count();
    }
    found.count();
    found
}

fn schema_checks_format(schema: &Structural) -> bool {
    let format = check::format(schema);
    !format.is_empty() && !matches!(schema.kind, Some(Type::Integer | Type::Number))
}

fn list(schema: &Structural, items: &[Value], old: Option<Old<'_>>, site: &Site<'_>) -> Found {
    let mut found = Found::default();
    if let Some(item_schema) = schema.items.as_deref() {
        for (i, item) in items.iter().enumerate() {
            let site = site.index(i);
            found.take(match old.and_then(|old| old.index(item)) {
                Some(old) => part(item_schema, item, old, &site),
                None => node(item_schema, item, None, &site),
            });
        }
    }
    found.take(check::items(schema, items, site));
    found.count();
    found
}

/// A part with an old state. The reference compares by the schema that found the old part.
fn part(schema: &Structural, value: &Value, old: Old<'_>, site: &Site<'_>) -> Found {
    let mut found = node(schema, value, Some(old), site);
    if !found.failures.is_empty() && unchanged(old.schema, value, old.value) {
        found.failures.clear();
    }
    found
}

fn object(schema: &Structural, map: &Map, old: Option<Old<'_>>, site: &Site<'_>) -> Found {
    let mut found = Found::default();
    found.take(check::size(schema, map.len(), site));
    let mut member = |schema: &Structural, key: &str, value: &Value, at: &Site<'_>| {
        // The type of the object itself never counts as unchanged.
        let meta = site.is_root() && matches!(key, "kind" | "apiVersion");
        found.take(match old.and_then(|old| old.key(key)).filter(|_| !meta) {
            Some(old) => part(schema, value, old, at),
            None => node(schema, value, None, at),
        });
    };
    if let Some(Additional::Of(additional)) = schema.additional.as_deref() {
        for (key, value) in map.iter().filter(|(key, _)| schema.property(key).is_none()) {
            member(additional, key, value, &site.additional(key));
        }
    }
    for (key, value) in map.iter() {
        if let Some(property) = schema.property(key) {
            member(property, key, value, &site.property(key));
        }
    }
    if let Some(Additional::Allowed(false)) = schema.additional.as_deref() {
        for key in map.keys().filter(|key| schema.property(key).is_none()) {
            found.fail(Failure::forbidden_property(site, key));
        }
    }
    for key in schema.rules.iter().flat_map(|r| &r.required).filter(|key| !map.contains_key(key)) {
        found.fail(Failure::required(site, key));
    }
    found
}

fn junctors(schema: &Structural, value: &Value, old: Option<Old<'_>>, site: &Site<'_>) -> Found {
    let mut found = Found::default();
    let Some(rules) = &schema.rules else {
        found.count();
        return found;
    };
    let try_one = |schema: &Structural| node(schema, value, old, site);
    let quoted = || text::quote(&site.to_string());
    if !rules.any_of.is_empty() {
        let (valid, best) = alternatives(rules.any_of.iter().map(try_one), Stop::AtFirst);
        if valid == 0 {
            found.fail(Failure::composite(format!("{} must validate at least one schema (anyOf)", quoted())));
        }
        found.take(best);
    }
    if !rules.one_of.is_empty() {
        let (valid, best) = alternatives(rules.one_of.iter().map(try_one), Stop::Never);
        if valid != 1 {
            let how = if valid == 0 { "Found none valid".into() } else { format!("Found {valid} valid alternatives") };
            found
                .fail(Failure::composite(format!("{} must validate one and only one schema (oneOf). {how}", quoted())));
        }
        if valid <= 1 {
            found.take(best);
        }
    }
    if !rules.all_of.is_empty() {
        let mut valid = 0;
        for schema in &rules.all_of {
            let tried = try_one(schema);
            valid += usize::from(tried.failures.is_empty());
            found.take(tried);
        }
        if valid != rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.fail(Failure::composite(format!("{} must validate all the schemas (allOf){none}", quoted())));
        }
    }
    if let Some(not) = &rules.not
        && try_one(not).failures.is_empty()
    {
        found.fail(Failure::composite(format!("{} must not validate the schema (not)", quoted())));
    }
    found.count();
    found
}

/// Whether trying goes on after a success.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    AtFirst,
    Never,
}

/// How many succeeded, and the first success, or else the failure with the most that fits.
fn alternatives(tried: impl Iterator<Item = Found>, stop: Stop) -> (usize, Found) {
    let (mut valid, mut best): (usize, Option<Found>) = (0, None);
    for found in tried {
        if found.failures.is_empty() {
            valid += 1;
            if valid == 1 {
                best = Some(found);
            }
            if stop == Stop::AtFirst {
                break;
            }
        } else if valid == 0 && best.as_ref().is_none_or(|b| found.matches > b.matches) {
            best = Some(found);
        }
    }
    (valid, best.unwrap_or_default())
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
