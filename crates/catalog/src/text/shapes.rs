//! Resolves the types that fields name.

use super::ast::{FieldText, File, ShapeText};
use super::scan::{Place, TextError};
use kubelith_meta::{Str, Value};
use kubelith_schema::{Field, ListKind, Presence, Rules, Schema, Shape, TypeId};
use std::collections::HashMap;

/// All names of all files.
pub struct Names {
    known: HashMap<String, Known>,
}

enum Known {
    Type(TypeId),
    Enum { go: String, values: Vec<Str> },
}

impl Names {
    /// Types are numbered in the order of files and, in them, of statements.
    pub fn collect(files: &[File]) -> Result<Names, TextError> {
        let mut names = Names { known: HashMap::new() };
        let mut next = 0;
        for file in files {
            for e in &file.enums {
                let package = file.models.rsplit('.').next().unwrap_or_default();
                let known = Known::Enum { go: format!("{package}.{}", e.name), values: e.values.clone() };
                names.known.insert(format!("{}.{}", file.stem, e.name), known);
            }
            for t in &file.types {
                if names.known.insert(format!("{}.{}", file.stem, t.name), Known::Type(TypeId(next))).is_some() {
                    return Err(t.place.error(format!("{} stands twice", t.name)));
                }
                next += 1;
            }
        }
        Ok(names)
    }

    /// `name` as written at `place`: of the same file, or `file.Name`.
    pub fn type_id(&self, place: &Place, name: &str) -> Result<TypeId, TextError> {
        match self.get(place, name) {
            Some(Known::Type(id)) => Ok(*id),
            Some(Known::Enum { .. }) => Err(place.error(format!("{name} is an enum"))),
            None => Err(place.error(format!("there is no type {name}"))),
        }
    }

    fn get(&self, place: &Place, name: &str) -> Option<&Known> {
        if name.contains('.') { self.known.get(name) } else { self.known.get(&format!("{}.{name}", place.file)) }
    }

    /// What Go calls a type that the schema does not know by name: that of an enum, and of lists and maps of them.
    pub fn go_type(&self, place: &Place, text: &ShapeText) -> Option<String> {
        match text {
            ShapeText::Pointer(inner) | ShapeText::Boxed(inner) => self.go_type(place, inner),
            ShapeText::List(item) => self.go_type(place, item).map(|item| format!("[]{item}")),
            ShapeText::Map(value) => self.go_type(place, value).map(|value| format!("map[string]{value}")),
            ShapeText::Name(name) => match self.get(place, name)? {
                Known::Enum { go, .. } => Some(go.clone()),
                Known::Type(_) => None,
            },
        }
    }

    pub fn field(&self, text: &FieldText) -> Result<Field, TextError> {
        let (shape, pointer) = match &text.shape {
            ShapeText::Pointer(inner) => (&**inner, true),
            shape => (shape, false),
        };
        let mut schema = self.schema(&text.place, shape)?;
        let nilable = pointer || matches!(schema.shape, Shape::List(_) | Shape::Map(_) | Shape::Bytes);
        schema.default = text.default.clone().map(Box::new);
        schema.default_hidden = text.default_hidden;
        schema.list_declared = text.list.is_some();
        schema.list = text.list.clone().unwrap_or(ListKind::Atomic);
        schema.atomic = text.atomic;
        schema.granular = text.granular;
        schema.patch = text.patch.clone().map(Box::new);
        let presence = Presence { nilable, pointer, omit: text.omit };
        Ok(Field { name: text.name.clone(), schema, required: text.required, presence })
    }

    fn schema(&self, place: &Place, text: &ShapeText) -> Result<Schema, TextError> {
        let inner = |text| self.schema(place, text).map(Box::new);
        let shape = match text {
            // Only fields can say whether a value is a pointer; no list or map of pointers is on the wire.
            ShapeText::Pointer(_) => return Err(place.error("a pointer can only stand first")),
            ShapeText::List(item) => Shape::List(inner(item)?),
            ShapeText::Map(value) => Shape::Map(inner(value)?),
            ShapeText::Boxed(list) => return Ok(Schema { boxed: true, ..self.schema(place, list)? }),
            ShapeText::Name(name) => return self.named(place, name),
        };
        Ok(Schema { shape, ..Schema::default() })
    }

    fn named(&self, place: &Place, name: &str) -> Result<Schema, TextError> {
        let props = || self.type_id(place, "JSONSchemaProps");
        let shape = match name {
            "any" => Shape::Any,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "float64" => Shape::Float,
            "string" => Shape::String,
            "bytes" => Shape::Bytes,
            "Time" => Shape::Time,
            "MicroTime" => Shape::MicroTime,
            "Duration" => Shape::Duration,
            "Quantity" => Shape::Quantity,
            "IntOrString" => Shape::IntOrString,
            "RawExtension" => Shape::RawExtension,
            "FieldsV1" => Shape::FieldsV1,
            "JSON" => Shape::Json,
            "SchemaOrBool" => Shape::JsonSchemaOrBool(props()?),
            "SchemaOrArray" => Shape::JsonSchemaOrArray(props()?),
            "SchemaOrStrings" => Shape::JsonSchemaOrStrings(props()?),
            _ => match self.get(place, name) {
                Some(Known::Enum { values, .. }) => {
                    let enumeration = values.iter().cloned().map(Value::String).collect();
                    let rules = Some(Box::new(Rules { enumeration, ..Rules::default() }));
                    return Ok(Schema { shape: Shape::String, rules, ..Schema::default() });
                }
                _ => Shape::Named(self.type_id(place, name)?),
            },
        };
        Ok(Schema { shape, ..Schema::default() })
    }
}
