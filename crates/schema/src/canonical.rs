//! The form in which the reference prints a built-in object: what decoding into Go structs and encoding them
//! again makes of it.
//!
//! Unknown fields and nulls go, empty values go where `omitempty` says so, zero values appear where it does not.
//! A struct that is no pointer is always printed, be it `{}`. Scalars are taken to be decoded already: quantities,
//! times and base64 have the text that the decoder gave them. Structs without a name belong to custom resources:
//! nothing is added to them or taken away, but built-in types inside of them (their metadata) are walked.
//!
//! One walk in place. An object that is canonical already costs no allocation, and one that is known to be, for it is
//! shared with what is stored, no walk.

use crate::{Field, Omit, Schema, Shape, StructType, TypeTable, Unknown};
use kubelith_meta::{Map, Value};
use std::cell::Cell;

/// How `[]` and `{}` are told from absent ones in fields that are always printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empties {
    /// As JSON does: `[]` stays, an absent list is `null`.
    Distinct,
    /// As protobuf does: an empty list or map is an absent one. Objects that came from the store look like this.
    Absent,
}

/// Whether something was met of which the two kinds of [`Empties`] make different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambiguous {
    No,
    Yes,
}

/// Brings `value`, of the shape `schema`, to the form in which it is printed.
pub fn canonicalize(table: &TypeTable, schema: &Schema, value: &mut Value, empties: Empties) -> Ambiguous {
    let walk = Walk { table, empties, ambiguous: Cell::new(Ambiguous::No) };
    walk.value(schema, value);
    walk.ambiguous.get()
}

struct Walk<'a> {
    table: &'a TypeTable,
    empties: Empties,
    ambiguous: Cell<Ambiguous>,
}

impl Walk<'_> {
    fn value(&self, schema: &Schema, value: &mut Value) {
        match (&schema.shape, &mut *value) {
            (_, Value::Object(map)) if map.is_shared() => {}
            (Shape::Named(id), Value::Object(map)) => self.go_struct(self.table.get(*id), map),
            (Shape::Struct(t), Value::Object(map)) => self.custom_struct(t, map),
            (Shape::List(item), Value::Array(items)) => {
                for v in items {
                    self.element(item, v);
                }
            }
            (Shape::Map(item), Value::Object(map)) => {
                for (_, v) in map.iter_mut() {
                    self.element(item, v);
                }
            }
            (Shape::Quantity, Value::Int(number)) => *value = Value::from(number.to_string()),
            (Shape::Time | Shape::MicroTime, Value::String(text)) if is_zero_time(text) => *value = Value::Null,
            (
                Shape::JsonSchemaOrBool(id) | Shape::JsonSchemaOrArray(id) | Shape::JsonSchemaOrStrings(id),
                Value::Object(map),
            ) => self.go_struct(self.table.get(*id), map),
            (Shape::JsonSchemaOrArray(id), Value::Array(items)) => {
                for item in items.iter_mut() {
                    match item {
                        Value::Object(map) => self.go_struct(self.table.get(*id), map),
                        _ => *item = Value::Object(self.zero_struct(self.table.get(*id))),
                    }
                }
                // An empty list of schemas is no schema at all, and prints as that.
                if items.is_empty() {
                    *value = Value::Null;
                }
            }
            (Shape::JsonSchemaOrStrings(_), Value::Array(items)) if !items.is_empty() => {}
            (Shape::JsonSchemaOrArray(_) | Shape::JsonSchemaOrStrings(_), _) => *value = Value::Null,
            _ => {}
        }
    }

    /// Lists and maps of Go hold zero values where JSON has null; protobuf cannot leave a map's value away.
    fn element(&self, schema: &Schema, value: &mut Value) {
        if !value.is_null() || schema.nullable {
            return self.value(schema, value);
        }
        self.ambiguous.set(Ambiguous::Yes);
        *value = match (&schema.shape, self.empties) {
            (Shape::Bytes, Empties::Absent) => "".into(),
            (Shape::List(_), Empties::Absent) => Value::Array(Vec::new()),
            _ => self.zero(schema),
        };
    }

    fn custom_struct(&self, t: &StructType, map: &mut Map) {
        for f in &t.fields {
            if let Some(v) = map.get_mut(&f.name) {
                self.value(&f.schema, v);
            }
        }
    }

    /// Keys and fields are both sorted, so one pass finds what is there, what is unknown and what is missing.
    fn go_struct(&self, t: &StructType, map: &mut Map) {
        let mut fields = t.fields.in_order(map.len());
        let mut expected = t.fields.always_printed();
        let mut missing: Vec<usize> = Vec::new();
        map.retain_keys(|key, value| {
            let Some(index) = fields.find(key.head(), key) else { return t.unknown == Unknown::Preserve };
            while let Some((first, rest)) = expected.split_first().filter(|(i, _)| **i < index) {
                missing.push(*first);
                expected = rest;
            }
            let keep = self.field(&t.fields[index], value);
            if keep && let Some((_, rest)) = expected.split_first().filter(|(i, _)| **i == index) {
                expected = rest;
            }
            keep
        });
        for &index in missing.iter().chain(expected) {
            map.insert_at(t.fields.key(index), self.zero_field(&t.fields[index]));
        }
    }

    /// Whether the field is printed as it is then.
    fn field(&self, field: &Field, value: &mut Value) -> bool {
        match (&field.schema.shape, &*value) {
            (_, Value::Null) => return false,
            // Most fields are such.
            (Shape::String, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => {}
            (Shape::Int32 | Shape::Int64, Value::Int(_)) => {}
            _ => self.value(&field.schema, value),
        }
        let presence = field.presence;
        if presence.pointer {
            return true;
        }
        match (&field.schema.shape, presence.omit) {
            (Shape::List(_) | Shape::Map(_), Omit::Never) if value.is_empty() => {
                self.ambiguous.set(Ambiguous::Yes);
                self.empties == Empties::Distinct
            }
            (_, Omit::Never) => true,
            (Shape::Named(_), Omit::Zero) => !is_zero_struct(value),
            (Shape::Named(_), Omit::Empty) => true,
            (shape, Omit::Empty) if is_scalar_struct(shape) => true,
            (Shape::Struct(_), _) => true,
            _ => !value.is_empty(),
        }
    }

    fn zero_field(&self, field: &Field) -> Value {
        if field.presence.nilable { Value::Null } else { self.zero(&field.schema) }
    }

    /// What Go prints for the zero value of this shape.
    fn zero(&self, schema: &Schema) -> Value {
        match &schema.shape {
            Shape::Bool => Value::Bool(false),
            Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::Int(0),
            Shape::String => "".into(),
            Shape::Quantity => "0".into(),
            Shape::Duration => "0s".into(),
            Shape::Named(id) => Value::Object(self.zero_struct(self.table.get(*id))),
            _ => Value::Null,
        }
    }

    fn zero_struct(&self, t: &StructType) -> Map {
        let mut map = Map::new();
        for &index in t.fields.always_printed() {
            map.insert_at(t.fields.key(index), self.zero_field(&t.fields[index]));
        }
        map
    }
}

/// Whether the field is printed even if nothing is known of it.
pub(crate) fn is_always_printed(field: &Field) -> bool {
    let is_struct = matches!(field.schema.shape, Shape::Named(_)) || is_scalar_struct(&field.schema.shape);
    match field.presence.omit {
        Omit::Never => true,
        Omit::Empty => is_struct && !field.presence.nilable,
        Omit::Zero => false,
    }
}

/// Structs in Go, scalars in JSON: for `omitempty` they are never empty.
fn is_scalar_struct(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
    )
}

fn is_zero_time(text: &str) -> bool {
    matches!(text, "0001-01-01T00:00:00Z" | "0001-01-01T00:00:00.000000Z")
}

fn is_zero_struct(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_zero_struct),
        other => other.is_empty(),
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
pub(crate) mod tests;
