//! The form in which the reference prints a built-in object: what decoding into Go structs and encoding them
//! again makes of it.
//!
//! Unknown fields and nulls go, empty values go where `omitempty` says so, zero values appear where it does not.
//! A struct that is no pointer is always printed, be it `{}`. Scalars are taken to be decoded already: quantities,
//! times and base64 have the text that the decoder gave them. Structs without a name belong to custom resources:
//! nothing is added to them or taken away, but built-in types inside of them (their metadata) are walked.
//!
//! One walk in place. An object that is canonical already costs no allocation, and a sealed one no walk.

use crate::{Field, Omit, Schema, Shape, StructType, TypeTable, Unknown};
use kubelith_meta::{Map, Value};
use std::cell::Cell;

/// How `[]` and `{}` are told from absent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empties {
    /// As Go does in memory: what was given stays, even where it is not printed. Rules and their messages tell them apart.
    Given,
    /// As JSON does: `[]` stays where it is always printed, and an absent list is `null` there.
    Distinct,
    /// As protobuf does: an empty list or map is an absent one. Objects that came from the store look like this.
    Absent,
}

/// How far an object has come on its way to the form in which it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a client sent it, or as it was changed since: what is always printed may be missing, what never is may be there.
    Sent,
    /// Canonical, but for empty lists and maps of which the kinds of [`Empties`] make different things.
    Given,
    /// Canonical, whatever is made of empty lists and maps.
    Canonical,
}

/// Whether a value stays in its field in canonical form. It is canonical itself, and not null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    Yes,
    No,
    /// As the [`Empties`] say: no in what came from the store, yes elsewhere.
    IfDistinct,
    /// It is not printed, but who looks at the object before that sees it.
    IfGiven,
}

/// Brings `value`, of the shape `schema`, to the form in which it is printed, and says how far that depended on `empties`.
pub fn canonicalize(table: &TypeTable, schema: &Schema, value: &mut Value, empties: Empties) -> Form {
    let walk = Walk { table, empties, form: Cell::new(Form::Canonical) };
    walk.value(schema, value);
    walk.form.get()
}

struct Walk<'a> {
    table: &'a TypeTable,
    empties: Empties,
    form: Cell<Form>,
}

impl Walk<'_> {
    fn value(&self, schema: &Schema, value: &mut Value) {
        match (&schema.shape, &mut *value) {
            (_, Value::Object(map)) if map.is_sealed() => {}
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
                        _ => *item = Value::Object(zero_struct(self.table, self.table.get(*id))),
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
        self.form.set(Form::Given);
        *value = match (&schema.shape, self.empties) {
            (Shape::Bytes, Empties::Absent) => "".into(),
            (Shape::List(_), Empties::Absent) => Value::Array(Vec::new()),
            _ => zero(self.table, schema),
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
        let (mut missing, mut gone) = (Vec::new(), Vec::new());
        for (at, (key, value)) in map.entries_mut().enumerate() {
            let Some(index) = fields.find(key.head(), key) else {
                gone.extend((t.unknown == Unknown::Prune).then_some(at));
                continue;
            };
            while let Some((first, rest)) = expected.split_first().filter(|(i, _)| **i < index) {
                missing.push(*first);
                expected = rest;
            }
            if !self.field(&t.fields[index], value) {
                gone.push(at);
            } else if let Some((_, rest)) = expected.split_first().filter(|(i, _)| **i == index) {
                expected = rest;
            }
        }
        if !gone.is_empty() {
            remove(map, &gone);
        }
        for &index in missing.iter().chain(expected) {
            map.insert_at(t.fields.key(index), zero_field(self.table, &t.fields[index]));
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
        match stays(field, value) {
            Stays::Yes => true,
            Stays::No => false,
            Stays::IfDistinct => {
                self.form.set(Form::Given);
                self.empties != Empties::Absent
            }
            Stays::IfGiven if self.empties == Empties::Given => {
                self.form.set(Form::Given);
                true
            }
            Stays::IfGiven => false,
        }
    }
}

/// Whether `field` is printed with this value.
#[inline]
pub fn stays(field: &Field, value: &Value) -> Stays {
    let is_printed = match (&field.schema.shape, field.presence.omit) {
        _ if field.presence.pointer => true,
        (Shape::List(_) | Shape::Map(_), Omit::Never) if value.is_empty() => return Stays::IfDistinct,
        (Shape::List(_) | Shape::Map(_), Omit::Empty) if value.is_empty() => return Stays::IfGiven,
        (_, Omit::Never) => true,
        (Shape::Named(_), Omit::Zero) => !is_zero_struct(value),
        (Shape::Named(_), Omit::Empty) => true,
        (shape, Omit::Empty) if is_scalar_struct(shape) => true,
        (Shape::Struct(_), _) => true,
        _ => !value.is_empty(),
    };
    if is_printed { Stays::Yes } else { Stays::No }
}

/// What Go prints for a field that is absent, if it prints it.
pub fn zero_field(table: &TypeTable, field: &Field) -> Value {
    if field.presence.nilable { Value::Null } else { zero(table, &field.schema) }
}

/// What Go prints for the zero value of this shape.
fn zero(table: &TypeTable, schema: &Schema) -> Value {
    match &schema.shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::Int(0),
        Shape::String => "".into(),
        Shape::Quantity => "0".into(),
        Shape::Duration => "0s".into(),
        Shape::Named(id) => Value::Object(zero_struct(table, table.get(*id))),
        _ => Value::Null,
    }
}

fn zero_struct(table: &TypeTable, t: &StructType) -> Map {
    let mut map = Map::new();
    for &index in t.fields.always_printed() {
        map.insert_at(t.fields.key(index), zero_field(table, &t.fields[index]));
    }
    map
}

/// Removes the members at these positions, which are in order.
#[cold]
fn remove(map: &mut Map, positions: &[usize]) {
    let (mut at, mut gone) = (0, positions.iter().peekable());
    map.retain(|_, _| {
        at += 1;
        gone.next_if(|position| **position == at - 1).is_none()
    });
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
