//! Values seen through the types that server-side apply merges by: scalars, lists (atomic, sets, keyed) and maps
//! (atomic or granular, with declared fields or without).
//!
//! Types come from a schema, or are deduced from the value where nothing is declared: then maps are granular and
//! lists atomic. Unlike a schema, a type can be several things at once (anything goes, or an integer or a string); the
//! value decides which of them counts.

mod compare;
mod elements;
mod error;
mod merge;
mod reconcile;
mod remove;
#[cfg(test)]
mod tests;
mod to_set;
mod validate;
mod zero;

pub use compare::Comparison;
pub use error::ValidationErrors;
pub use validate::Duplicates;

use kubelith_meta::Value;
use kubelith_schema::{ListKind, Schema, Shape, StructType, TypeId, TypeTable, TypedSchema, Unknown};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Type<'a> {
    Declared {
        table: &'a TypeTable,
        schema: &'a Schema,
        /// An enclosing schema preserves unknown fields, which holds for everything written inside it.
        preserve: bool,
    },
    /// The metadata of an object whose schema does not spell it out.
    Named(&'a TypeTable, TypeId),
    /// A string of an object whose schema does not spell it out.
    Text,
    /// Nothing is declared: maps are granular, lists atomic.
    Deduced,
    /// Nothing is declared and all is one: maps and lists are atomic.
    Opaque,
}

/// What a type is for a given value.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    Map(MapType<'a>),
    Scalar(Scalar),
    List(ListType<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Number,
    Text,
    Boolean,
    Any,
}

#[derive(Clone, Copy)]
pub(crate) struct ListType<'a> {
    pub(crate) kind: &'a ListKind,
    pub(crate) element: Type<'a>,
}

#[derive(Clone, Copy)]
pub(crate) struct MapType<'a> {
    pub(crate) atomic: bool,
    /// The type of members that no field declares; without one there must be none.
    pub(crate) element: Option<Type<'a>>,
    fields: Option<(&'a TypeTable, &'a StructType)>,
    preserve: bool,
}

/// All kinds that a type can be.
#[derive(Default, Clone, Copy)]
struct Kinds<'a> {
    map: Option<MapType<'a>>,
    scalar: Option<Scalar>,
    list: Option<ListType<'a>>,
}

impl<'a> Type<'a> {
    pub fn of(schema: &'a TypedSchema) -> Type<'a> {
        Type::Declared { table: &schema.table, schema: &schema.root, preserve: false }
    }

    /// What this type is for `value`. A value that fits none of its kinds, null or absent, gets the first.
    pub(crate) fn kind(self, value: Option<&Value>) -> Kind<'a> {
        let kinds = self.kinds();
        let fitting = match value {
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) => kinds.scalar.map(Kind::Scalar),
            Some(Value::Array(_)) => kinds.list.map(Kind::List),
            Some(Value::Object(_)) => kinds.map.map(Kind::Map),
            Some(Value::Null) | None => None,
        };
        let first = || kinds.map.map(Kind::Map).or(kinds.scalar.map(Kind::Scalar)).or(kinds.list.map(Kind::List));
        fitting.or_else(first).unwrap_or(Kind::Scalar(Scalar::Any))
    }

    /// The type as a map, whatever else it can be.
    pub(crate) fn as_map(self) -> Option<MapType<'a>> {
        self.kinds().map
    }

    pub(crate) fn as_list(self) -> Option<ListType<'a>> {
        self.kinds().list
    }

    fn kinds(self) -> Kinds<'a> {
        match self {
            Type::Declared { table, schema, preserve } => declared(table, schema, preserve),
            Type::Named(table, id) => {
                let struct_type = table.get(id);
                Kinds {
                    map: Some(MapType::of_struct(table, struct_type, struct_type.atomic, false)),
                    ..Kinds::default()
                }
            }
            Type::Text => Kinds { scalar: Some(Scalar::Text), ..Kinds::default() },
            Type::Deduced => Kinds {
                map: Some(MapType::untyped(Type::Deduced, false)),
                scalar: Some(Scalar::Any),
                list: Some(ATOMIC_LIST),
            },
            Type::Opaque => Kinds {
                map: Some(MapType::untyped(Type::Opaque, true)),
                scalar: Some(Scalar::Any),
                list: Some(ATOMIC_LIST),
            },
        }
    }
}

const ATOMIC_LIST: ListType<'static> = ListType { kind: &ListKind::Atomic, element: Type::Opaque };

fn declared<'a>(table: &'a TypeTable, schema: &'a Schema, preserve: bool) -> Kinds<'a> {
    let scalar = |scalar| Kinds { scalar: Some(scalar), ..Kinds::default() };
    let inner = |schema| Type::Declared { table, schema, preserve };
    match &schema.shape {
        Shape::Any
        | Shape::IntOrString
        | Shape::Json
        | Shape::JsonSchemaOrBool(_)
        | Shape::JsonSchemaOrArray(_)
        | Shape::JsonSchemaOrStrings(_) => Kinds {
            map: Some(MapType::untyped(Type::Deduced, schema.atomic)),
            scalar: Some(Scalar::Any),
            list: Some(ListType { kind: &schema.list, element: Type::Opaque }),
        },
        Shape::RawExtension => Type::Opaque.kinds(),
        Shape::FieldsV1 => Kinds { map: Some(MapType::untyped(Type::Deduced, schema.atomic)), ..Kinds::default() },
        Shape::Bool => scalar(Scalar::Boolean),
        Shape::Int32 | Shape::Int64 | Shape::Float => scalar(Scalar::Number),
        Shape::String => {
            // Any format but base64 makes the scalar untyped.
            let format = schema.rules.as_ref().and_then(|r| r.format.as_deref()).unwrap_or_default();
            scalar(if matches!(format, "" | "byte") { Scalar::Text } else { Scalar::Any })
        }
        Shape::Bytes | Shape::Duration => scalar(Scalar::Text),
        Shape::Time | Shape::MicroTime | Shape::Quantity => scalar(Scalar::Any),
        Shape::Named(id) => {
            let map = MapType::of_struct(table, table.get(*id), schema.is_atomic(table), false);
            Kinds { map: Some(map), ..Kinds::default() }
        }
        Shape::Struct(struct_type) => {
            let map = MapType::of_struct(table, struct_type, schema.is_atomic(table), preserve);
            Kinds { map: Some(map), ..Kinds::default() }
        }
        Shape::Map(element) => {
            let map = MapType { atomic: schema.atomic, element: Some(inner(element)), fields: None, preserve };
            Kinds { map: Some(map), ..Kinds::default() }
        }
        Shape::List(element) => {
            Kinds { list: Some(ListType { kind: &schema.list, element: inner(element) }), ..Kinds::default() }
        }
    }
}

impl<'a> MapType<'a> {
    fn untyped(element: Type<'a>, atomic: bool) -> MapType<'a> {
        MapType { atomic, element: Some(element), fields: None, preserve: false }
    }

    fn of_struct(table: &'a TypeTable, struct_type: &'a StructType, atomic: bool, preserve: bool) -> MapType<'a> {
        let preserve = preserve || struct_type.unknown == Unknown::Preserve;
        // An object without declared fields is free-form.
        let open = preserve || struct_type.fields.is_empty();
        MapType { atomic, element: open.then_some(Type::Deduced), fields: Some((table, struct_type)), preserve }
    }

    /// The type of a declared field.
    pub(crate) fn field(&self, name: &str) -> Option<Type<'a>> {
        let (table, struct_type) = self.fields?;
        if let Some(field) = struct_type.field(name) {
            return Some(Type::Declared { table, schema: &field.schema, preserve: self.preserve });
        }
        match name {
            "apiVersion" | "kind" if struct_type.embedded => Some(Type::Text),
            "metadata" if struct_type.embedded => {
                Some(table.find(OBJECT_META).map_or(Type::Deduced, |id| Type::Named(table, id)))
            }
            _ => None,
        }
    }

    /// The type of a member, declared or not.
    pub(crate) fn member(&self, name: &str) -> Option<Type<'a>> {
        self.field(name).or(self.element)
    }

    /// The default of a declared field, which completes the keys of list elements.
    fn default_of(&self, name: &str) -> Option<Value> {
        self.fields?.1.field(name)?.published_default()
    }

    /// A free-form object: ownership in it is never rewritten when a schema changes.
    fn is_free_form(&self) -> bool {
        let no_fields = self.fields.is_none_or(|(_, s)| s.fields.is_empty());
        let untyped = match self.element {
            Some(Type::Deduced) => true,
            Some(Type::Declared { schema, .. }) => matches!(schema.shape, Shape::Any | Shape::IntOrString),
            _ => false,
        };
        no_fields && untyped
    }
}
