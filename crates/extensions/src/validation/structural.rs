//! What makes a schema structural: every value has one type, said where it stands; `allOf` and its like only add rules
//! to what is declared outside of them.

use super::walk::{flag, has, has_some, list, members};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::go_regexp;
use std::collections::HashSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What was found so far.
#[derive(Default)]
struct Found<'a> {
    errors: ErrorList,
    /// Patterns that are good. The same ones come again and again.
    patterns: HashSet<&'a str>,
}

impl Found<'_> {
    fn push(&mut self, error: Error) {
        self.errors.push(error);
    }
}

/// Errors sorted by their text, as the reference has them.
pub fn validate(schema: &Value, path: &Path<'_>) -> ErrorList {
    let mut found = Found::default();
    invariants(schema, Level::Root, path, &mut found);
    completeness(schema, Some(schema), path, path, &mut found.errors);
    let mut errors = found.errors;
    errors.sort_by_cached_key(Error::to_string);
    errors
}

fn invariants<'a>(s: &'a Value, level: Level, path: &Path<'_>, errors: &mut Found<'a>) {
    let kind = s.str_at(&["type"]);
    match s.get("items").filter(|i| i.as_object().is_some()) {
        Some(items) => invariants(items, Level::Item, &path.child("items"), errors),
        None if kind == "array" => errors.push(Error::required(&path.child("items"), "must be specified")),
        None => {}
    }
    for (name, property) in members(s, "properties") {
        invariants(property, Level::Field, &path.entry("properties", name), errors);
    }
    let embedded = flag(s, "x-kubernetes-embedded-resource");
    if let Some(additional) = s.get("additionalProperties").filter(|a| !a.is_null()) {
        let at = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(Error::forbidden(&at, "must not be used at the root"));
        }
        if additional.as_object().is_some() {
            invariants(additional, Level::Field, &at, errors);
        }
        if embedded {
            errors.push(Error::forbidden(&at, "must not be used if x-kubernetes-embedded-resource is set"));
        }
    }
    let int_or_string = flag(s, "x-kubernetes-int-or-string");
    let preserve = flag(s, "x-kubernetes-preserve-unknown-fields");
    for (key, set) in [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(Error::invalid(&path.child(key), true, why));
        }
    }
    rules(s, is_int_or_string(s), is_int_or_string_in_all(s), level, path, errors);
    types(s, kind, level, path, &mut errors.errors);
    meta(s, level == Level::Root || embedded, level, path, &mut errors.errors);
    if embedded && !preserve && !has_some(s, "properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(&path.child("properties"), why));
    }
}

fn types(s: &Value, kind: &str, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("type");
    let untyped = flag(s, "x-kubernetes-int-or-string") || flag(s, "x-kubernetes-preserve-unknown-fields");
    if flag(s, "x-kubernetes-embedded-resource") && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() { Error::required(&at, why) } else { Error::invalid(&at, kind, why) });
    } else if kind.is_empty() && !untyped {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(&at, why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(Error::invalid(&at, kind, "must be object at the root"));
    }
}

/// What a schema says about apiVersion, kind and metadata of a resource.
fn meta(s: &Value, checked: bool, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["kind", "apiVersion"].iter().filter(|_| checked) {
        let Some(property) = s.at(&["properties", key]) else { continue };
        let kind = property.str_at(&["type"]);
        if kind != "string" {
            errors.push(Error::invalid(&path.entry("properties", key).child("type"), kind, "must be string"));
        }
    }
    let Some(metadata) = s.at(&["properties", "metadata"]) else { return };
    let at = path.entry("properties", "metadata");
    let kind = metadata.str_at(&["type"]);
    if checked && kind != "object" {
        errors.push(Error::invalid(&at.child("type"), kind, "must be object"));
    }
    if level == Level::Root {
        let known = members(metadata, "properties").all(|(name, _)| matches!(name, "name" | "generateName"));
        let others = metadata.as_object().into_iter().flat_map(|m| m.iter());
        let mut others =
            others.filter(|(key, value)| !matches!(*key, "type" | "default" | "properties") && !value.is_empty());
        if !known || others.next().is_some() {
            let why =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(Error::forbidden(&at, why));
        }
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, which is allowed beside x-kubernetes-int-or-string.
fn is_int_or_string(s: &Value) -> bool {
    let kinds = ["integer", "string"].map(|kind| Value::from([("type", kind)]));
    list(s, "anyOf") == kinds.as_slice()
}

fn is_int_or_string_in_all(s: &Value) -> bool {
    list(s, "allOf").first().is_some_and(is_int_or_string)
}

fn rules<'a>(
    s: &'a Value,
    skip_any: bool,
    skip_any_in_first: bool,
    level: Level,
    path: &Path<'_>,
    errors: &mut Found<'a>,
) {
    if !skip_any {
        for (i, part) in list(s, "anyOf").iter().enumerate() {
            nested(part, false, level, &path.item("anyOf", i), errors);
        }
    }
    for (i, part) in list(s, "allOf").iter().enumerate() {
        nested(part, skip_any_in_first && i == 0, level, &path.item("allOf", i), errors);
    }
    for (i, part) in list(s, "oneOf").iter().enumerate() {
        nested(part, false, level, &path.item("oneOf", i), errors);
    }
    if let Some(not) = s.get("not").filter(|n| n.as_object().is_some()) {
        nested(not, false, level, &path.child("not"), errors);
    }
    let pattern = s.str_at(&["pattern"]);
    if pattern.is_empty() || errors.patterns.contains(pattern) {
        return;
    }
    match go_regexp::check(pattern) {
        Ok(()) => drop(errors.patterns.insert(pattern)),
        Err(why) => {
            let why = format!("must be a valid regular expression, but isn't: {why}");
            errors.push(Error::invalid(&path.child("pattern"), pattern, why));
        }
    }
}

/// A part of `allOf` and its like: rules only.
fn nested<'a>(s: &'a Value, skip_any: bool, level: Level, path: &Path<'_>, errors: &mut Found<'a>) {
    rules(s, skip_any, false, level, path, errors);
    if let Some(items) = s.get("items").filter(|i| i.as_object().is_some()) {
        nested(items, false, level, &path.child("items"), errors);
    }
    for (name, property) in members(s, "properties") {
        nested(property, false, Level::Field, &path.entry("properties", name), errors);
    }
    let mut forbid = |key: &str, set: bool, how: &str| {
        if set {
            errors.push(Error::forbidden(&path.child(key), format!("must be {how} to be structural")));
        }
    };
    let additional = s.get("additionalProperties").is_some_and(|a| !matches!(a, Value::Null | Value::Bool(false)));
    forbid("type", !s.str_at(&["type"]).is_empty(), "empty");
    forbid("additionalProperties", additional, "undefined");
    forbid("default", has(s, "default"), "undefined");
    forbid("title", has_some(s, "title"), "empty");
    forbid("description", has_some(s, "description"), "empty");
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(key, flag(s, key), "false");
    }
    forbid("x-kubernetes-list-map-keys", has_some(s, "x-kubernetes-list-map-keys"), "empty");
    forbid("x-kubernetes-list-type", has(s, "x-kubernetes-list-type"), "undefined");
    forbid("x-kubernetes-map-type", has(s, "x-kubernetes-map-type"), "undefined");
    forbid("x-kubernetes-validations", has_some(s, "x-kubernetes-validations"), "empty");
    if s.at(&["properties", "metadata"]).is_some() {
        let at = path.entry("properties", "metadata");
        errors.push(Error::forbidden(&at, "must not be specified in a nested context"));
    }
}

/// What rules speak of must be declared outside of them. `declared` is the schema at `at` that `v`, at `path`, speaks of.
fn completeness(v: &Value, declared: Option<&Value>, at: &Path<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(not) = v.get("not").filter(|n| n.as_object().is_some()) {
        nested_completeness(not, declared, at, &path.child("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (i, part) in list(v, key).iter().enumerate() {
            nested_completeness(part, declared, at, &path.item(key, i), errors);
        }
    }
}

fn nested_completeness(v: &Value, declared: Option<&Value>, at: &Path<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(s) = declared else {
        errors.push(Error::required(at, format!("because it is defined in {path}")));
        return;
    };
    completeness(v, declared, at, path, errors);
    if let Some(items) = v.get("items").filter(|i| i.as_object().is_some()) {
        let declared = s.get("items").filter(|i| i.as_object().is_some());
        nested_completeness(items, declared, &at.child("items"), &path.child("items"), errors);
    }
    for (name, property) in members(v, "properties") {
        let declared = s.at(&["properties", name]);
        nested_completeness(property, declared, &at.entry("properties", name), &path.entry("properties", name), errors);
    }
}
