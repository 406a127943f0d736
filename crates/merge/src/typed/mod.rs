//! Values seen through the types that server-side apply merges by: scalars, lists (atomic, sets, keyed) and maps
//! (atomic or granular, with declared fields or without).
//!
//! Types come from a schema, or are deduced from the value where nothing is declared: then maps are granular and
//! lists atomic. Unlike a schema, a type can be several things at once (anything goes, or an integer or a string); the
//! value decides which of them counts.

mod atomics;
mod compare;
mod elements;
mod error;
mod form;
mod merge;
mod of_new;
mod overlay;
mod reconcile;
mod remove;
#[cfg(test)]
mod tests;
mod to_set;
mod to_text;
mod validate;
mod zero;

pub use compare::Comparison;
pub use error::ValidationErrors;
pub(crate) use form::Form;
pub(crate) use of_new::fields_of_new;
pub use overlay::Overlay;
pub use validate::Duplicates;

use crate::fieldset::Name;
use kubelith_meta::{Key, Value};
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
pub(crate) enum TypeKind<'a> {
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

/// The kinds that an untyped value can be, beside any scalar.
pub(crate) struct Kinds<'a> {
    map: MapType<'a>,
    list: ListType<'a>,
}

impl<'a> Type<'a> {
    pub fn of(schema: &'a TypedSchema) -> Type<'a> {
        Type::Declared { table: &schema.table, schema: &schema.root, preserve: false }
    }

    /// What this type is, as far as that does not depend on a value.
    pub(crate) fn declared(self) -> Declared<'a> {
        match self {
            Type::Declared { table, schema, preserve } => declared(table, schema, preserve),
            Type::Named(table, id) => {
                let struct_type = table.get(id);
                let map = MapType::of_struct(table, struct_type, struct_type.atomic, false);
                Declared::One(TypeKind::Map(map))
            }
            Type::Text => Declared::One(TypeKind::Scalar(Scalar::Text)),
            Type::Deduced => Declared::Several(Kinds::untyped(Type::Deduced, false, &ListKind::Atomic)),
            Type::Opaque => Declared::Several(Kinds::untyped(Type::Opaque, true, &ListKind::Atomic)),
        }
    }

    /// What this type is whatever the value; `None` if the value decides.
    pub(crate) fn fixed_kind(self) -> Option<TypeKind<'a>> {
        match self.declared() {
            Declared::One(kind) => Some(kind),
            Declared::Several(_) => None,
        }
    }

    /// The kind of both values, if it is the same.
    pub(crate) fn common_kind(self, a: &Value, b: &Value) -> Option<TypeKind<'a>> {
        if let Some(kind) = self.fixed_kind() {
            return Some(kind);
        }
        let (first, second) = (self.kind(Some(a)), self.kind(Some(b)));
        (std::mem::discriminant(&first) == std::mem::discriminant(&second)).then_some(second)
    }

    /// What this type is for `value`. A value that fits none of its kinds, null or absent, gets the first.
    pub(crate) fn kind(self, value: Option<&Value>) -> TypeKind<'a> {
        let kinds = match self.declared() {
            Declared::One(kind) => return kind,
            Declared::Several(kinds) => kinds,
        };
        match value {
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) => TypeKind::Scalar(Scalar::Any),
            Some(Value::Array(_)) => TypeKind::List(kinds.list),
            Some(Value::Object(_) | Value::Raw(_) | Value::Null) | None => TypeKind::Map(kinds.map),
        }
    }

    /// The scalar that this type is whatever the value, if it is one.
    #[inline]
    pub(crate) fn declared_scalar(self) -> Option<Scalar> {
        match self {
            Type::Declared { schema, .. } => scalar(schema),
            Type::Text => Some(Scalar::Text),
            Type::Named(..) | Type::Deduced | Type::Opaque => None,
        }
    }

    /// The struct that this type is, if all its members are declared, and owned one by one.
    #[inline]
    pub(crate) fn plain_struct(self) -> Option<(&'a TypeTable, &'a StructType)> {
        let Type::Declared { table, schema, .. } = self else { return None };
        let Shape::Named(id) = schema.shape else { return None };
        let struct_type = table.get(id);
        let is_open = struct_type.unknown == Unknown::Preserve || struct_type.fields.is_empty() || struct_type.embedded;
        (!is_open && !schema.is_atomic(table)).then_some((table, struct_type))
    }

    /// The type as a map, whatever else it can be.
    pub(crate) fn as_map(self) -> Option<MapType<'a>> {
        match self.declared() {
            Declared::One(TypeKind::Map(map)) | Declared::Several(Kinds { map, .. }) => Some(map),
            Declared::One(_) => None,
        }
    }

    pub(crate) fn as_list(self) -> Option<ListType<'a>> {
        match self.declared() {
            Declared::One(TypeKind::List(list)) | Declared::Several(Kinds { list, .. }) => Some(list),
            Declared::One(_) => None,
        }
    }
}

/// A declared type: one thing, or whatever the value is.
pub(crate) enum Declared<'a> {
    One(TypeKind<'a>),
    Several(Kinds<'a>),
}

/// The scalar that is declared, if it is one.
#[inline]
fn scalar(schema: &Schema) -> Option<Scalar> {
    match &schema.shape {
        Shape::Bool => Some(Scalar::Boolean),
        Shape::Int32 | Shape::Int64 | Shape::Float => Some(Scalar::Number),
        Shape::String => {
            // Any format but base64 makes the scalar untyped.
            let format = schema.rules.as_ref().and_then(|r| r.format.as_deref()).unwrap_or_default();
            Some(if matches!(format, "" | "byte") { Scalar::Text } else { Scalar::Any })
        }
        Shape::Bytes | Shape::Duration => Some(Scalar::Text),
        Shape::Time | Shape::MicroTime | Shape::Quantity => Some(Scalar::Any),
        _ => None,
    }
}

fn declared<'a>(table: &'a TypeTable, schema: &'a Schema, preserve: bool) -> Declared<'a> {
    match scalar(schema) {
        Some(scalar) => Declared::One(TypeKind::Scalar(scalar)),
        None => declared_container(table, schema, preserve),
    }
}

/// What is declared, if that is no scalar.
fn declared_container<'a>(table: &'a TypeTable, schema: &'a Schema, preserve: bool) -> Declared<'a> {
    let inner = |schema| Type::Declared { table, schema, preserve };
    let of_struct = |struct_type, preserve| {
        Declared::One(TypeKind::Map(MapType::of_struct(table, struct_type, schema.is_atomic(table), preserve)))
    };
    match &schema.shape {
        Shape::RawExtension => Declared::Several(Kinds::untyped(Type::Opaque, true, &ListKind::Atomic)),
        Shape::FieldsV1 => Declared::One(TypeKind::Map(MapType::untyped(Type::Deduced, schema.atomic))),
        Shape::Named(id) => of_struct(table.get(*id), false),
        Shape::Struct(struct_type) => of_struct(struct_type, preserve),
        Shape::Map(element) => {
            let atomic = schema.atomic && !schema.granular;
            Declared::One(TypeKind::Map(MapType { atomic, element: Some(inner(element)), fields: None, preserve }))
        }
        Shape::List(element) => Declared::One(TypeKind::List(ListType { kind: &schema.list, element: inner(element) })),
        // Anything goes.
        Shape::Any
        | Shape::IntOrString
        | Shape::Json
        | Shape::JsonSchemaOrBool(_)
        | Shape::JsonSchemaOrArray(_)
        | Shape::JsonSchemaOrStrings(_) => {
            Declared::Several(Kinds::untyped(Type::Deduced, schema.atomic, &schema.list))
        }
        Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Float
        | Shape::String
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity => unreachable!("a scalar"),
    }
}

impl<'a> Kinds<'a> {
    /// Any scalar, list or map.
    fn untyped(member: Type<'a>, atomic: bool, list: &'a ListKind) -> Kinds<'a> {
        Kinds { map: MapType::untyped(member, atomic), list: ListType { kind: list, element: Type::Opaque } }
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
        match struct_type.field(name) {
            Some(field) => Some(Type::Declared { table, schema: &field.schema, preserve: self.preserve }),
            None => self.implied(name),
        }
    }

    /// The fields that every object has, if its schema does not spell them out.
    fn implied(&self, name: &str) -> Option<Type<'a>> {
        let (table, struct_type) = self.fields?;
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

    /// Looks up the types of `members` names that come in order.
    #[inline]
    pub(crate) fn in_order(&self, members: usize) -> InOrder<'_, 'a> {
        InOrder { map: self, fields: self.fields.map(|(_, s)| s.fields.in_order(members)) }
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

/// Looks up the types of members by names in ascending order.
pub(crate) struct InOrder<'m, 'a> {
    map: &'m MapType<'a>,
    fields: Option<kubelith_schema::fields::InOrder<'a>>,
}

impl<'a> InOrder<'_, 'a> {
    /// The declared type of the next name.
    #[inline]
    pub(crate) fn field(&mut self, name: &Key) -> Option<Type<'a>> {
        let (table, struct_type) = self.map.fields?;
        match self.fields.as_mut().and_then(|fields| fields.find(name.head(), name)) {
            Some(index) => {
                let schema = &struct_type.fields[index].schema;
                Some(Type::Declared { table, schema, preserve: self.map.preserve })
            }
            None => self.map.implied(name),
        }
    }

    /// The type of the next name, declared or not.
    #[inline]
    pub(crate) fn member(&mut self, name: &Key) -> Option<Type<'a>> {
        self.field(name).or(self.map.element)
    }

    /// The next name as it is written, and its declared type.
    #[inline]
    pub(crate) fn named_field<'n>(&mut self, name: &'n Key) -> (Name<'n>, Option<Type<'a>>) {
        match self.field(name) {
            Some(ty) if self.map.fields.is_some_and(|(_, t)| t.fields.are_plain()) => (Name::Plain(name), Some(ty)),
            ty => (Name::Any(name), ty),
        }
    }

    /// The next name as it is written, and its type, declared or not.
    #[inline]
    pub(crate) fn named_member<'n>(&mut self, name: &'n Key) -> Option<(Name<'n>, Type<'a>)> {
        let (name, ty) = self.named_field(name);
        Some((name, ty.or(self.map.element)?))
    }
}
