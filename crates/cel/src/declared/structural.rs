//! Declared types of structural schemas. What a schema does not describe (any type, unknown fields) rules cannot see.

use super::{Declared, Field, Kind, ListKind, MAX_REQUEST, Object};
use crate::types::Type;
use kubelith_meta::{Str, Value};
use kubelith_schema::structural::{List, Structural, Type as Schema};
use std::sync::Arc;

/// The smallest and largest JSON texts of times, with their quotes.
const MAX_DURATION: u64 = 32;
const MAX_DATE_TIME: u64 = 32;
const MIN_DURATION: u64 = 3;
const DATE: u64 = 12;
const MIN_DATE_TIME: u64 = 21;
const MIN_STRING: u64 = 2;
const MIN_BOOL: u64 = 4;
const MIN_NUMBER: u64 = 1;

/// Whether kind, apiVersion, name and generateName can be seen even if the schema does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A whole custom resource, or an embedded one.
    Resource,
    Value,
}

impl Root {
    pub fn of(schema: &Structural) -> Root {
        if schema.embedded { Root::Resource } else { Root::Value }
    }
}

impl Declared {
    /// The declared type of a schema; `None` if rules cannot see such values. `name` becomes the name of its type, if it
    /// is an object.
    pub fn of_schema(schema: &Structural, root: Root, name: &str) -> Option<Declared> {
        let mut declared = declare(schema, root, name)?;
        declared.nullable = schema.nullable;
        Some(declared)
    }
}

fn scalar(cel: Type, kind: Kind, min_size: u64, max_elements: u64) -> Declared {
    Declared { cel, kind, nullable: false, min_size, max_elements }
}

fn declare(schema: &Structural, root: Root, name: &str) -> Option<Declared> {
    let rules = schema.rules.as_deref();
    let bounded = |limit: Option<i64>| limit.map(|n| u64::try_from(n).unwrap_or(0));
    if schema.int_or_string {
        let max = rules.and_then(|r| bounded(r.max_length)).map_or(MAX_REQUEST - 2, |n| n.saturating_mul(4));
        return Some(scalar(Type::Dyn, Kind::IntOrString, MIN_NUMBER, max));
    }
    match schema.kind? {
        Schema::Array => {
            let items = schema.items.as_deref()?;
            let element = Declared::of_schema(items, Root::of(items), &format!("{name}.@idx"))?;
            let max = rules.and_then(|r| bounded(r.max_items));
            let max = max.unwrap_or((MAX_REQUEST - 2) / (element.min_size + 1));
            let kind = match &schema.list {
                Some(List::Set) => ListKind::Set,
                Some(List::Map(keys)) => ListKind::Map(keys.clone()),
                _ => ListKind::Atomic,
            };
            Some(Declared::list(element, kind, max))
        }
        Schema::Object => match schema.additional_schema() {
            Some(values) => {
                let value = Declared::of_schema(values, Root::of(values), &format!("{name}.@elem"))?;
                let max = rules.and_then(|r| bounded(r.max_properties));
                let max = max.unwrap_or((MAX_REQUEST - 2) / (value.min_size + 6));
                Some(Declared::map(value, max))
            }
            None => Some(object(schema, root, name)),
        },
        Schema::String => Some(string(schema)),
        Schema::Boolean => Some(scalar(Type::Bool, Kind::Bool, MIN_BOOL, 0)),
        Schema::Number => Some(scalar(Type::Double, Kind::Double, MIN_NUMBER, 0)),
        Schema::Integer => Some(scalar(Type::Int, Kind::Int, MIN_NUMBER, 0)),
    }
}

fn string(schema: &Structural) -> Declared {
    let rules = schema.rules.as_deref();
    let max_length = rules.and_then(|r| r.max_length).map(|n| u64::try_from(n).unwrap_or(0));
    match rules.map_or("", |r| r.format.as_str()) {
        "byte" => scalar(Type::Bytes, Kind::Bytes, MIN_STRING, max_length.unwrap_or(MAX_REQUEST - 2)),
        "duration" => scalar(Type::Duration, Kind::Duration, MIN_DURATION, MAX_DURATION),
        "date" => scalar(Type::Timestamp, Kind::Date, DATE, DATE),
        "date-time" => scalar(Type::Timestamp, Kind::DateTime, MIN_DATE_TIME, MAX_DATE_TIME),
        _ => {
            // The limit is in characters, which have up to four bytes.
            let limit = max_length.map(|n| n.saturating_mul(4));
            let longest = || {
                let allowed = &rules?.enumeration;
                let strings = allowed.iter().filter_map(Value::as_str).map(|s| s.len() as u64);
                if allowed.is_empty() { None } else { Some(strings.max().unwrap_or(0)) }
            };
            let max = limit.or_else(longest).unwrap_or(MAX_REQUEST - 2);
            scalar(Type::String, Kind::String, MIN_STRING, max)
        }
    }
}

fn object(schema: &Structural, root: Root, name: &str) -> Declared {
    let required = schema.rules.as_deref().map_or(&[][..], |r| &r.required);
    let mut fields = Vec::with_capacity(schema.properties.len());
    // `{}`, and each required member with its quotes, colon and comma.
    let mut min_size = 2;
    let mut add = |property: &str, schema: &Structural| {
        let Some(escaped) = crate::escape::escape(property) else { return };
        let Some(declared) = Declared::of_schema(schema, Root::of(schema), &format!("{name}.{escaped}")) else {
            return;
        };
        let is_required = required.iter().any(|r| r == property);
        // Defaults are filled in by the server.
        if is_required && schema.default.is_none() {
            min_size += property.len() as u64 + declared.min_size + 4;
        }
        fields.push(Field { name: escaped.into(), property: property.into(), declared, required: is_required });
    };
    let added = root == Root::Resource && !has_object_meta(schema);
    for (property, schema) in &schema.properties {
        if !(added && matches!(property.as_str(), "kind" | "apiVersion" | "metadata")) {
            add(property, schema);
        }
    }
    if added {
        let text = Structural { kind: Some(Schema::String), ..Structural::default() };
        let properties = ["generateName", "name"].map(|name| (Str::from(name), text.clone()));
        let metadata =
            Structural { kind: Some(Schema::Object), properties: properties.into(), ..Structural::default() };
        add("kind", &text);
        add("apiVersion", &text);
        add("metadata", &metadata);
    }
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let preserve_unknown = schema.preserve_unknown;
    Declared::object(Arc::new(Object { name: name.into(), fields, open: false, preserve_unknown }), min_size)
}

/// Whether a schema has what every resource has.
fn has_object_meta(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, kind| schema.property(name).is_some_and(|p| p.kind == Some(kind));
    is(schema, "kind", Schema::String)
        && is(schema, "apiVersion", Schema::String)
        && is(schema, "metadata", Schema::Object)
        && schema
            .property("metadata")
            .is_some_and(|meta| is(meta, "name", Schema::String) && is(meta, "generateName", Schema::String))
}
