//! Rules for schemas: what OpenAPI has and definitions may not use, and what extensions ask for.

use super::defaults::{self, Unknown};
use super::leniency::Leniency;
use super::rules::{self, Context, Total};
use super::structural;
use super::walk::{any, flag, has, has_some, list, members, schemas, unsupported};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{Str, Value};
use kubelith_schema::structural::{Structural, Type, formats};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What the root may say if there is a status subresource, by the reference's names.
const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// `spec.validation`, or `schema` of a version.
pub fn validate(validation: Option<&Value>, status: bool, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let Some(schema) = validation.and_then(|v| v.get("openAPIV3Schema")).filter(|s| !s.is_null()) else {
        return errors;
    };
    let at = path.child("openAPIV3Schema");
    if status {
        errors.extend(root_with_status(schema, path));
    }
    if flag(schema, "nullable") {
        errors.push(Error::forbidden(&path.child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"));
    }
    let mut no_form = None;
    let mut parsed = None;
    if !leniency.non_structural {
        match unsupported(schema) {
            Some(why) => no_form = Some(Error::invalid(&at, "", why)),
            None => {
                let found = structural::validate(schema, &at);
                let unknown = if leniency.unpruned_defaults { Unknown::AsBefore } else { Unknown::Refused };
                let found = if found.is_empty() { defaults::validate(schema, unknown, &at) } else { found };
                // Rules are looked at only where the schema is one that they can be compiled for.
                parsed = found.is_empty().then(|| Structural::parse(schema));
                errors.extend(found);
            }
        }
    }
    let mut walk = Walk { leniency, rules: ErrorList::default(), total: Total::default() };
    walk.schema(schema, Place::ROOT, parsed.as_ref().map(Context::root), &at, &mut errors);
    errors.extend(walk.rules);
    if errors.is_empty() {
        errors.extend(no_form);
    }
    errors.extend(walk.total.errors(&at));
    errors
}

fn root_with_status(schema: &Value, path: &Path<'_>) -> Option<Error> {
    let kind = schema.str_at(&["type"]);
    if !kind.is_empty() && kind != "object" {
        let why =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Error::invalid(&path.child("openAPIV3Schema.type"), kind, why));
    }
    let allowed = |key: &str| AT_ROOT.iter().any(|(_, json)| *json == key);
    let others = schema.as_object()?.iter().find(|(key, value)| !allowed(key) && !value.is_empty());
    others.map(|_| {
        let names: Vec<&str> = AT_ROOT.iter().map(|(name, _)| *name).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        Error::invalid(&path.child("openAPIV3Schema"), super::internal::schema(schema), why)
    })
}

pub fn has_bad_type(schema: &Value) -> bool {
    let kind = schema.str_at(&["type"]);
    !kind.is_empty() && !TYPES.contains(&kind)
}

/// What is said about a schema by where it stands.
#[derive(Clone)]
struct Place {
    root: bool,
    /// In apiVersion, kind or metadata of a resource.
    inside_meta: bool,
    /// Why there may be no defaults.
    no_defaults: Option<Str>,
    /// The outermost list or map around it whose elements cannot be found again in the old object.
    uncorrelatable: Option<Str>,
}

impl Place {
    const ROOT: Place = Place { root: true, inside_meta: false, no_defaults: None, uncorrelatable: None };
}

struct Walk<'a> {
    leniency: &'a Leniency,
    /// What is wrong with rules in CEL, which comes after everything else.
    rules: ErrorList,
    total: Total,
}

impl Walk<'_> {
    fn schema(
        &mut self,
        s: &Value,
        place: Place,
        context: Option<Context<'_>>,
        path: &Path<'_>,
        errors: &mut ErrorList,
    ) {
        if s.as_object().is_none() {
            return;
        }
        let before = errors.len();
        self.standard(s, &place, path, errors);
        let inner = Place { root: false, ..place.clone() };
        if flag(s, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.push(Error::forbidden(&path.child("uniqueItems"), why));
        }
        if let Some(additional) = s.get("additionalProperties").filter(|a| !a.is_null()) {
            let at = path.child("additionalProperties");
            if has_some(s, "properties") && *additional != Value::Bool(true) {
                errors.push(Error::forbidden(&at, "additionalProperties and properties are mutual exclusive"));
            }
            let mut below = inner.clone();
            if place.inside_meta {
                below.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            self.schema(additional, below, context.as_ref().and_then(|c| c.additional(s)), &at, errors);
        }
        for (name, property) in members(s, "properties") {
            let mut below = inner.clone();
            let resource = place.root || flag(s, "x-kubernetes-embedded-resource");
            if resource && matches!(name, "metadata" | "kind" | "apiVersion") {
                below.inside_meta = true;
                if place.root {
                    below.no_defaults = Some(format!("in top-level {name}").into());
                }
            }
            let context = context.as_ref().and_then(|c| c.property(s, name));
            self.schema(property, below, context, &path.entry("properties", name), errors);
        }
        if let Some(not) = s.get("not") {
            self.schema(not, inner.clone(), None, &path.child("not"), errors);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (i, part) in list(s, key).iter().enumerate() {
                self.schema(part, inner.clone(), None, &path.item(key, i), errors);
            }
        }
        for (name, part) in members(s, "definitions") {
            self.schema(part, inner.clone(), None, &path.entry("definitions", name), errors);
        }
        if let Some(items) = s.get("items") {
            let mut below = inner.clone();
            if s.str_at(&["x-kubernetes-list-type"]) != "map" && below.uncorrelatable.is_none() {
                below.uncorrelatable = Some(path.to_string().into());
            }
            let context = context.as_ref().and_then(|c| c.items(s));
            self.schema(items, below.clone(), context, &path.child("items"), errors);
            for (i, part) in items.as_array().unwrap_or(&[]).iter().enumerate() {
                self.schema(part, below.clone(), None, &path.item("items", i), errors);
            }
        }
        for (name, part) in members(s, "dependencies") {
            self.schema(part, inner.clone(), None, &path.entry("dependencies", name), errors);
        }
        self.extensions(s, path, errors);
        rules::form(s, path, errors);
        if let Some(context) = context.filter(|_| errors.len() == before && has_some(s, rules::KEY)) {
            let within = place.uncorrelatable.as_deref();
            let found = rules::validate(s, &context, within, self.leniency, path, &mut self.total);
            self.rules.extend(found);
        }
    }

    /// What OpenAPI has and definitions may not use.
    fn standard(&self, s: &Value, place: &Place, path: &Path<'_>, errors: &mut ErrorList) {
        let kind = s.str_at(&["type"]);
        if !self.leniency.bad_types && has_bad_type(s) {
            errors.push(Error::not_supported(&path.child("type"), kind, TYPES));
        }
        if has(s, "default")
            && let Some(why) = &place.no_defaults
        {
            errors.push(Error::forbidden(&path.child("default"), format!("must not be set {why}")));
        }
        let mut forbid = |key: &str, set: bool| {
            if set {
                errors.push(Error::forbidden(&path.child(key), format!("{key} is not supported")));
            }
        };
        forbid("id", has_some(s, "id"));
        forbid("additionalItems", has(s, "additionalItems"));
        forbid("patternProperties", has_some(s, "patternProperties"));
        forbid("definitions", has_some(s, "definitions"));
        forbid("dependencies", has(s, "dependencies"));
        forbid("$ref", has(s, "$ref"));
        if kind == "null" {
            let why = "type cannot be set to null, use nullable as an alternative";
            errors.push(Error::forbidden(&path.child("type"), why));
        }
        if !list(s, "items").is_empty() {
            errors.push(Error::forbidden(&path.child("items"), "items must be a schema object and not an array"));
        }
        if place.inside_meta && flag(s, "x-kubernetes-embedded-resource") {
            let at = path.child("x-kubernetes-embedded-resource");
            errors.push(Error::forbidden(&at, "must not be used inside of resource meta"));
        }
    }

    fn extensions(&self, s: &Value, path: &Path<'_>, errors: &mut ErrorList) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        if s.get(PRESERVE) == Some(&Value::Bool(false)) {
            errors.push(Error::invalid(&path.child(PRESERVE), false, "must be true or undefined"));
        }
        let kind = s.str_at(&["type"]);
        let must_be = |wanted: &str, extension: &str| {
            let why = format!("must be {wanted} if {extension} is specified");
            let at = path.child("type");
            if kind.is_empty() { Error::required(&at, why) } else { Error::invalid(&at, kind, why) }
        };
        if let Some(map) = s.get("x-kubernetes-map-type").and_then(Value::as_str) {
            if kind != "object" {
                errors.push(must_be("object", "x-kubernetes-map-type"));
            }
            if !matches!(map, "atomic" | "granular") {
                let at = path.child("x-kubernetes-map-type");
                errors.push(Error::not_supported(&at, map, ["atomic", "granular"]));
            }
        }
        let list_type = s.get("x-kubernetes-list-type").and_then(Value::as_str);
        if list_type.is_some() && kind != "array" {
            errors.push(must_be("array", "x-kubernetes-list-type"));
        } else if !self.leniency.non_atomic_sets && is_non_atomic_set(s) {
            let items = s.get("items").map_or("", |i| i.str_at(&["type"]));
            let key = if items == "array" { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
            let shown = s.at(&["items", "x-kubernetes-list-type"]).cloned().unwrap_or_default();
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(Error::invalid(&path.children(&["items", key]), shown, why));
        }
        if let Some(given) = list_type.filter(|l| !matches!(*l, "atomic" | "set" | "map")) {
            let at = path.child("x-kubernetes-list-type");
            errors.push(Error::not_supported(&at, given, ["atomic", "set", "map"]));
        }
        map_list(s, list_type, path, errors);
        if !self.leniency.bad_list_keys {
            errors.extend(list_keys(s, path));
        }
    }
}

/// A list that is a set, of elements that are not one.
pub fn is_non_atomic_set(s: &Value) -> bool {
    let Some(items) = s.get("items").filter(|_| s.str_at(&["x-kubernetes-list-type"]) == "set") else { return false };
    match items.str_at(&["type"]) {
        "array" => items.get("x-kubernetes-list-type").and_then(Value::as_str).is_some_and(|l| l != "atomic"),
        "object" => items.str_at(&["x-kubernetes-map-type"]) != "atomic",
        _ => false,
    }
}

fn map_list(s: &Value, list_type: Option<&str>, path: &Path<'_>, errors: &mut ErrorList) {
    let keys = list(s, "x-kubernetes-list-map-keys");
    let at = path.child("x-kubernetes-list-type");
    if !keys.is_empty() && list_type != Some("map") {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => Error::required(&at, why),
            Some(given) => Error::invalid(&at, given, why),
        });
    }
    if list_type != Some("map") {
        return;
    }
    let keys_at = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(Error::required(&keys_at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = s.get("items").filter(|i| !i.is_null()) else {
        errors.push(Error::required(&path.child("items"), "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    if items.as_object().is_none() {
        let why = "must only have a single schema if x-kubernetes-list-type is map";
        errors.push(Error::invalid(&path.child("items"), items, why));
        return;
    }
    let kind = items.str_at(&["type"]);
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(Error::invalid(&path.children(&["items", "type"]), kind, why));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for key in keys.iter().filter_map(Value::as_str) {
        let shown = || Value::Array(keys.to_vec());
        match items.at(&["properties", key]) {
            Some(property) if matches!(property.str_at(&["type"]), "array" | "object") => {
                let at = path.child("items");
                let at = at.entry("properties", key);
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(&at.child("type"), kind, why));
            }
            Some(_) => {}
            None => errors.push(Error::invalid(&keys_at, shown(), "entries must all be names of item properties")),
        }
        if seen.contains(&key) {
            errors.push(Error::invalid(&keys_at, shown(), "must not contain duplicate entries"));
        }
        seen.push(key);
    }
}

/// Elements of sets and maps, and their keys, cannot be null or absent.
pub fn list_keys(s: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let list_type = s.str_at(&["x-kubernetes-list-type"]);
    let Some(items) = s.get("items").filter(|i| i.as_object().is_some() && matches!(list_type, "set" | "map")) else {
        return errors;
    };
    let at = path.child("items");
    if flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(&at.child("nullable"), why));
    }
    if list_type != "map" {
        return errors;
    }
    let required = |key: &str| list(items, "required").iter().any(|r| r.as_str() == Some(key));
    for key in list(s, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str) {
        let Some(property) = items.at(&["properties", key]) else { continue };
        let at = at.entry("properties", key);
        if !required(key) && !has(property, "default") {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(Error::required(&at.child("default"), why));
        }
        if flag(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(&at.child("nullable"), why));
        }
    }
    errors
}

/// Formats that nobody checks in a definition at v1, in the order of their schemas.
pub fn unrecognized_formats(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut schemas: Vec<&Value> = schemas(object).collect();
    // What all versions have in common is one schema.
    if schemas.len() == list(object.get("spec").unwrap_or(&Value::Null), "versions").len()
        && schemas.windows(2).all(|pair| pair[0] == pair[1])
    {
        schemas.truncate(1);
    }
    for schema in schemas {
        any(schema, &mut |s| {
            let format = s.str_at(&["format"]);
            let kind = s.str_at(&["type"]);
            let known = match Type::parse(kind) {
                None if !kind.is_empty() => false,
                kind => formats::is_known(kind, format),
            };
            if !format.is_empty() && !known {
                found.push(format.to_owned());
            }
            false
        });
    }
    found
}
