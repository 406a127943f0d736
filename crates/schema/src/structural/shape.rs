//! The schema of a descriptor, by which server-side apply merges, from a structural one.

use super::{Additional, List, MapKind, Structural, Type};
use crate::{Field, ListKind, Presence, Rules, Schema, Shape, StructType, TypeTable, TypedSchema, Unknown};
use kubelith_meta::Value;
use std::sync::Arc;

/// The schema of whole objects. `table` has the type of their metadata.
pub fn object_schema(table: Arc<TypeTable>, structural: &Structural) -> TypedSchema {
    let mut root = schema(structural);
    if let Shape::Struct(object) = &mut root.shape {
        object.embedded = true;
        // What the schema says about these does not count: they are what they are for every object.
        let mut fields = Vec::from(std::mem::take(&mut object.fields));
        fields.retain(|f| !matches!(f.name.as_str(), "apiVersion" | "kind" | "metadata"));
        object.fields = fields.into();
    } else {
        let unknown = if structural.preserve_unknown { Unknown::Preserve } else { Unknown::Prune };
        root.shape = Shape::Struct(Box::new(StructType { embedded: true, unknown, ..StructType::default() }));
    }
    TypedSchema { table, root: Arc::new(root) }
}

/// An element of a list or map: null in it is the client's, to be judged by validation.
fn element(s: &Structural) -> Schema {
    Schema { nullable: true, ..schema(s) }
}

fn schema(s: &Structural) -> Schema {
    let format = s.rules.as_ref().map(|r| r.format.clone()).filter(|f| !f.is_empty());
    Schema {
        shape: shape(s),
        nullable: s.nullable,
        // Keys of lists have defaults, which are part of the key. Others are not looked at here.
        default: s
            .default
            .as_deref()
            .filter(|d| !matches!(d, Value::Array(_) | Value::Object(_)))
            .cloned()
            .map(Box::new),
        list: match &s.list {
            Some(List::Set) => ListKind::Set,
            Some(List::Map(keys)) => ListKind::Map(keys.as_slice().into()),
            Some(List::Atomic) | None => ListKind::Atomic,
        },
        list_declared: s.list.is_some(),
        atomic: s.map == Some(MapKind::Atomic),
        granular: s.map == Some(MapKind::Granular),
        rules: format.map(|format| Box::new(Rules { format: Some(format), ..Rules::default() })),
        ..Schema::default()
    }
}

fn shape(s: &Structural) -> Shape {
    if s.int_or_string {
        return Shape::IntOrString;
    }
    match s.kind {
        Some(Type::Object) => object(s),
        None if !s.properties.is_empty() || s.embedded => object(s),
        None => Shape::Any,
        Some(Type::Array) => {
            let item = s.items.as_deref().map(element).unwrap_or_default();
            Shape::List(Box::new(item))
        }
        Some(Type::String) => Shape::String,
        Some(Type::Integer) => Shape::Int64,
        Some(Type::Number) => Shape::Float,
        Some(Type::Boolean) => Shape::Bool,
    }
}

fn object(s: &Structural) -> Shape {
    match s.additional.as_deref() {
        Some(Additional::Of(value)) => return Shape::Map(Box::new(element(value))),
        Some(Additional::Allowed(true)) => return Shape::Map(Box::default()),
        _ => {}
    }
    let fields = s.properties.iter().map(|(name, property)| Field {
        name: name.clone(),
        schema: schema(property),
        required: s.rules.as_ref().is_some_and(|r| r.required.contains(name)),
        presence: Presence::default(),
    });
    Shape::Struct(Box::new(StructType {
        fields: fields.collect(),
        unknown: if s.preserve_unknown { Unknown::Preserve } else { Unknown::Prune },
        embedded: s.embedded,
        ..StructType::default()
    }))
}
