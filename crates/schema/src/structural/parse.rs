//! From the OpenAPI form (`JSONSchemaProps`) to the tree. What validation of definitions forbids is passed over.

use super::{Additional, List, MapKind, Pattern, Rules, Structural, Type};
use kubelith_meta::{Str, Value};

impl Structural {
    /// Reads a schema. Anything that is no schema reads as one that says nothing.
    pub fn parse(schema: &Value) -> Structural {
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let kind = Type::parse(schema.str_at(&["type"]));
        Structural {
            kind,
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            default: schema.get("default").filter(|d| !d.is_null()).map(|d| Box::new(d.clone())),
            properties: properties(schema),
            additional: schema.get("additionalProperties").and_then(additional).map(Box::new),
            items: schema.get("items").filter(|i| i.as_object().is_some()).map(|i| Box::new(Structural::parse(i))),
            list: list(schema),
            map: match schema.str_at(&["x-kubernetes-map-type"]) {
                "atomic" => Some(MapKind::Atomic),
                "granular" => Some(MapKind::Granular),
                _ => None,
            },
            rules: rules(schema).map(Box::new),
        }
    }
}

fn properties(schema: &Value) -> Vec<(Str, Structural)> {
    let Some(map) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    map.iter().map(|(name, schema)| (name.into(), Structural::parse(schema))).collect()
}

fn additional(value: &Value) -> Option<Additional> {
    match value {
        Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
        Value::Object(_) => Some(Additional::Of(Structural::parse(value))),
        _ => None,
    }
}

fn list(schema: &Value) -> Option<List> {
    Some(match schema.str_at(&["x-kubernetes-list-type"]) {
        "atomic" => List::Atomic,
        "set" => List::Set,
        "map" => List::Map(strings(schema, "x-kubernetes-list-map-keys")),
        _ => return None,
    })
}

fn rules(schema: &Value) -> Option<Rules> {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let integer = |key: &str| schema.get(key).and_then(Value::as_i64);
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    let values = |key: &str| schema.get(key).and_then(Value::as_array).map(<[_]>::to_vec).unwrap_or_default();
    let schemas = |key: &str| -> Vec<Structural> {
        schema.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().map(Structural::parse).collect()
    };
    const KEYS: [&str; 21] = [
        "format",
        "pattern",
        "enum",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "x-kubernetes-validations",
    ];
    if !KEYS.iter().any(|key| schema.get(key).is_some_and(|v| !v.is_null())) {
        return None;
    }
    Some(Rules {
        format: schema.str_at(&["format"]).into(),
        pattern: Some(schema.str_at(&["pattern"])).filter(|p| !p.is_empty()).map(Pattern::new),
        enumeration: values("enum"),
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: integer("minLength"),
        max_length: integer("maxLength"),
        min_items: integer("minItems"),
        max_items: integer("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: integer("minProperties"),
        max_properties: integer("maxProperties"),
        required: strings(schema, "required"),
        all_of: schemas("allOf"),
        any_of: schemas("anyOf"),
        one_of: schemas("oneOf"),
        not: schema.get("not").filter(|n| n.as_object().is_some()).map(|n| Box::new(Structural::parse(n))),
        cel: values("x-kubernetes-validations"),
    })
}

fn strings(schema: &Value, key: &str) -> Vec<Str> {
    let list = schema.get(key).and_then(Value::as_array).unwrap_or(&[]);
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}
