//! Schemas of types as a document publishes them.

mod reach;

pub use reach::reachable;

use super::words::Words;
use super::{Dialect, scalars};
use kubelith_meta::{GroupVersionKind, Map, Str, Value};
use kubelith_schema::{
    Field, ListKind, PatchHint, ProtoSlot, Rules, Schema, Shape, StructType, TypeTable, Union, Unknown,
};
use std::collections::HashMap;

/// The kinds that a type stands for, by its OpenAPI name, sorted.
pub type Kinds = HashMap<Str, Vec<GroupVersionKind>>;

/// Writes the schemas of types, and notes which others they refer to.
pub struct Schemas<'a> {
    pub table: &'a TypeTable,
    pub words: &'a Words,
    pub kinds: &'a Kinds,
    pub dialect: Dialect,
    /// Whether the values that fields can have are listed.
    pub enums: bool,
}

impl Schemas<'_> {
    /// The schema of a type by its name; `None` if there is no such type.
    pub fn named(&self, name: &str) -> Option<Value> {
        let mut schema = match self.table.find(name) {
            Some(id) => {
                let t = self.table.get(id);
                let mut schema = self.structure(t);
                put_text(&mut schema, self.words.of_type(t));
                schema
            }
            None => {
                let mut schema = scalars::schema(name, self.dialect)?;
                put_text(&mut schema, self.words.of_name(name).map(str::to_owned));
                schema
            }
        };
        if let Some(kinds) = self.kinds.get(name) {
            let kinds = kinds.iter().map(gvk).collect();
            schema.insert("x-kubernetes-group-version-kind", Value::Array(kinds));
        }
        Some(Value::Object(schema))
    }

    fn structure(&self, t: &StructType) -> Map {
        let mut schema = Map::new();
        let properties: Map = t.fields.iter().map(|f| (f.name.clone(), self.field(t, f))).collect();
        if !properties.is_empty() {
            schema.insert("properties", Value::Object(properties));
        }
        let required = required(t);
        if !required.is_empty() {
            schema.insert("required", Value::Array(required.into_iter().map(Value::String).collect()));
        }
        schema.insert("type", "object");
        if t.atomic {
            schema.insert("x-kubernetes-map-type", "atomic");
        }
        if t.unknown == Unknown::Preserve {
            schema.insert("x-kubernetes-preserve-unknown-fields", true);
        }
        if !t.unions.is_empty() {
            schema.insert("x-kubernetes-unions", Value::Array(t.unions.iter().map(union).collect()));
        }
        schema
    }

    fn field(&self, t: &StructType, field: &Field) -> Value {
        let mut schema = self.place(&field.schema);
        if self.dialect == Dialect::V3
            && let Some(default) = field.published_default()
        {
            schema.insert("default", default);
        }
        let rules = field.schema.rules.as_ref().filter(|_| self.enums);
        let values = rules.map_or(&[][..], |r| &r.enumeration);
        let text = self.words.of_field(t, &field.name).map(str::to_owned);
        put_text(&mut schema, with_values(text, values));
        self.wrap(schema)
    }

    /// What an element of a list or map shows: as a field without `omitempty` does.
    fn element(&self, element: &Schema) -> Value {
        let mut schema = self.place(element);
        if self.dialect == Dialect::V3
            && let Some(zero) = zero(&element.shape)
        {
            schema.insert("default", zero);
        }
        self.wrap(schema)
    }

    /// A reference may not have anything beside it in version 3: it becomes the only part of an `allOf`.
    fn wrap(&self, mut schema: Map) -> Value {
        if self.dialect == Dialect::V3
            && schema.len() > 1
            && let Some(reference) = schema.remove("$ref")
        {
            schema.insert("allOf", Value::Array(vec![Value::from([("$ref", reference)])]));
        }
        Value::Object(schema)
    }

    /// What is said about a value where it stands: its type or a reference to it, and how it is merged.
    fn place(&self, schema: &Schema) -> Map {
        let mut out = Map::new();
        match &schema.shape {
            Shape::Any => {}
            Shape::Bool => typed(&mut out, "boolean", ""),
            Shape::Int32 => typed(&mut out, "integer", "int32"),
            Shape::Int64 => typed(&mut out, "integer", "int64"),
            Shape::Float => typed(&mut out, "number", "double"),
            Shape::String => typed(&mut out, "string", ""),
            Shape::Bytes => typed(&mut out, "string", "byte"),
            Shape::Named(id) => self.refer(&mut out, self.table.get(*id).name.clone()),
            Shape::Struct(t) => out = self.structure(t),
            Shape::Map(value) => {
                out.insert("additionalProperties", self.element(value));
                out.insert("type", "object");
            }
            Shape::List(element) => {
                out.insert("items", self.element(element));
                out.insert("type", "array");
            }
            scalar => {
                if let Some(name) = scalars::name(scalar, self.table) {
                    self.refer(&mut out, name);
                }
            }
        }
        if schema.nullable && self.dialect == Dialect::V3 {
            out.insert("nullable", true);
        }
        merging(&mut out, schema);
        if let Some(rules) = &schema.rules {
            put_rules(&mut out, rules);
            if !self.enums {
                out.remove("enum");
            }
        }
        out
    }

    fn refer(&self, schema: &mut Map, name: Str) {
        schema.insert("$ref", self.dialect.reference(&name));
    }
}

pub fn gvk(kind: &GroupVersionKind) -> Value {
    let parts = [("group", &kind.group), ("kind", &kind.kind), ("version", &kind.version)];
    Value::Object(parts.map(|(name, part)| (name, Value::String(part.clone()))).into_iter().collect())
}

/// What Go makes of an element that is not there.
fn zero(shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Named(_) | Shape::Struct(_) => Some(Value::object()),
        Shape::Bool => Some(Value::Bool(false)),
        Shape::Int32 | Shape::Int64 | Shape::Float => Some(Value::Int(0)),
        Shape::String => Some(Value::String(Str::default())),
        _ => None,
    }
}

fn typed(schema: &mut Map, kind: &str, format: &str) {
    schema.insert("type", kind);
    if !format.is_empty() {
        schema.insert("format", format);
    }
}

fn put_text(schema: &mut Map, text: Option<String>) {
    if let Some(text) = text.filter(|t| !t.is_empty()) {
        schema.insert("description", text);
    }
}

/// The description of a field with the values that it can have.
fn with_values(text: Option<String>, values: &[Value]) -> Option<String> {
    if values.is_empty() {
        return text;
    }
    let mut text = text.unwrap_or_default();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("Possible enum values:");
    for value in values.iter().filter_map(Value::as_str) {
        text.push_str(&format!("\n - `{}`", kubelith_meta::text::quote(value)));
    }
    Some(text)
}

/// The required fields of types that do not declare their fields in the order of their protobuf numbers.
const DECLARED_ORDER: [(&str, &[&str]); 4] = [
    ("io.k8s.api.networking.v1.HTTPIngressPath", &["pathType", "backend"]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.APIResource", &["name", "singularName", "namespaced", "kind", "verbs"]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", &["apiVersion", "kind", "name", "uid"]),
    (
        "io.k8s.apimachinery.pkg.version.Info",
        &[
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ],
    ),
];

/// Required fields, in the order in which the type declares them.
fn required(t: &StructType) -> Vec<Str> {
    fn number(slots: &[ProtoSlot], field: usize) -> Option<u32> {
        slots.iter().find_map(|slot| match slot {
            ProtoSlot::Field { number, field: f } if *f as usize == field => Some(*number),
            ProtoSlot::Inline { number: outer, slots } => number(slots, field).map(|_| *outer),
            ProtoSlot::Field { .. } => None,
        })
    }
    let declared = DECLARED_ORDER.iter().find(|(name, _)| t.name == *name).map_or(&[][..], |(_, fields)| *fields);
    let place = |index: usize, name: &str| match declared.iter().position(|f| *f == name) {
        Some(place) => place as u32,
        None => number(&t.proto, index).unwrap_or_default(),
    };
    let fields = t.fields.iter().enumerate().filter(|(_, f)| f.required);
    let mut required: Vec<(u32, &Str)> = fields.map(|(i, f)| (place(i, &f.name), &f.name)).collect();
    required.sort();
    required.into_iter().map(|(_, name)| name.clone()).collect()
}

fn merging(out: &mut Map, schema: &Schema) {
    if schema.list_declared {
        let (kind, keys) = match &schema.list {
            ListKind::Atomic => ("atomic", None),
            ListKind::Set => ("set", None),
            ListKind::Map(keys) => ("map", Some(keys)),
        };
        if let Some(keys) = keys {
            let keys = keys.iter().cloned().map(Value::String).collect();
            out.insert("x-kubernetes-list-map-keys", Value::Array(keys));
        }
        out.insert("x-kubernetes-list-type", kind);
    }
    if schema.atomic || schema.granular {
        out.insert("x-kubernetes-map-type", if schema.atomic { "atomic" } else { "granular" });
    }
    if let Some(PatchHint { merge, retain_keys, merge_key }) = schema.patch.as_deref() {
        if let Some(key) = merge_key {
            out.insert("x-kubernetes-patch-merge-key", key.as_str());
        }
        match (merge, retain_keys) {
            (true, true) => out.insert("x-kubernetes-patch-strategy", "merge,retainKeys"),
            (true, false) => out.insert("x-kubernetes-patch-strategy", "merge"),
            (false, true) => out.insert("x-kubernetes-patch-strategy", "retainKeys"),
            (false, false) => out.insert("x-kubernetes-patch-strategy", "replace"),
        };
    }
}

fn put_rules(out: &mut Map, rules: &Rules) {
    if !rules.enumeration.is_empty() {
        out.insert("enum", Value::Array(rules.enumeration.clone()));
    }
    if let Some(format) = &rules.format {
        out.insert("format", format.as_str());
    }
}

fn union(union: &Union) -> Value {
    let mut out = Map::new();
    if let Some(discriminator) = &union.discriminator {
        out.insert("discriminator", discriminator.as_str());
    }
    let members: Map =
        union.members.iter().map(|(field, value)| (field.clone(), Value::String(value.clone()))).collect();
    out.insert("fields-to-discriminateBy", Value::Object(members));
    Value::Object(out)
}
