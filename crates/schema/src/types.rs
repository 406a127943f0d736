//! Shapes of values.
//!
//! A built-in type is a named struct in a `TypeTable` and refers to others by `TypeId` (types can be
//! recursive). A custom resource's schema is a tree of unnamed structs. Both walk the same way:
//! `table.resolve(&schema)` gives the struct behind a `Named` or a `Struct` shape.

use crate::Fields;
use kubelith_meta::{Head, Str, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Index of a struct in its `TypeTable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// All structs of a set of APIs.
#[derive(Debug, Default)]
pub struct TypeTable {
    types: Vec<StructType>,
    by_name: HashMap<Str, TypeId>,
}

/// A schema together with the table its names refer to: what every schema-driven walk takes.
#[derive(Debug, Clone)]
pub struct TypedSchema {
    pub table: Arc<TypeTable>,
    pub root: Arc<Schema>,
}

/// The shape of one value and what is said about it where it stands (in a field, as an element). There are thousands:
/// what few of them have is boxed.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub shape: Shape,
    /// `null` is a value of its own here (custom resources); elsewhere null means absent.
    pub nullable: bool,
    pub default: Option<Box<Value>>,
    /// The server fills `default` in, but OpenAPI does not publish it.
    pub default_hidden: bool,
    /// How lists are merged and owned. Only for `Shape::List`.
    pub list: ListKind,
    /// The list kind was declared, so OpenAPI publishes it. A list that declares nothing is atomic, too.
    pub list_declared: bool,
    /// In protobuf this list is a message of its own, with the elements as field 1 (`ExtraValue`, `Verbs`).
    pub boxed: bool,
    /// The map or struct is owned and replaced as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// `x-kubernetes-map-type: granular` is said here; it overrides the struct's own `atomic`.
    pub granular: bool,
    /// Strategic merge patch: strategy and merge key, built-in types only.
    pub patch: Option<Box<PatchHint>>,
    /// Format and values; `None` for most.
    pub rules: Option<Box<Rules>>,
}

#[derive(Debug, Clone, Default)]
pub enum Shape {
    /// Anything, kept as it is.
    #[default]
    Any,
    Bool,
    Int32,
    Int64,
    Float,
    String,
    /// Base64 in JSON, bytes in protobuf.
    Bytes,
    /// RFC 3339 to the second.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    /// metav1.Duration: Go's duration text in JSON, nanoseconds in protobuf.
    Duration,
    Quantity,
    IntOrString,
    /// A whole object of any kind (runtime.RawExtension).
    RawExtension,
    /// managedFields[].fieldsV1: kept as it is, raw JSON in protobuf.
    FieldsV1,
    /// apiextensions.v1 JSON and the three sum types of JSONSchemaProps; they differ in protobuf only.
    Json,
    JsonSchemaOrBool(TypeId),
    JsonSchemaOrArray(TypeId),
    JsonSchemaOrStrings(TypeId),
    Named(TypeId),
    Struct(Box<StructType>),
    Map(Box<Schema>),
    List(Box<Schema>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListKind {
    #[default]
    Atomic,
    Set,
    /// Elements are objects identified by these fields.
    Map(Box<[Str]>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchHint {
    /// `patchStrategy=merge`; otherwise replace.
    pub merge: bool,
    /// `patchStrategy=retainKeys`.
    pub retain_keys: bool,
    /// `patchMergeKey`; lists of scalars merge without one.
    pub merge_key: Option<Str>,
}

/// A struct type: a Go struct for built-in types, `properties` for custom ones.
#[derive(Debug, Clone, Default)]
pub struct StructType {
    /// OpenAPI name (`io.k8s.api.core.v1.PodSpec`); empty for unnamed ones.
    pub name: Str,
    pub fields: Fields,
    /// The protobuf message: in ascending number order. Empty if the type has no protobuf form.
    pub proto: Vec<ProtoSlot>,
    /// Owned and replaced as a whole wherever it stands.
    pub atomic: bool,
    /// What happens to fields that are not declared.
    pub unknown: Unknown,
    /// Has apiVersion, kind and metadata of its own (`x-kubernetes-embedded-resource`, or a top-level object).
    pub embedded: bool,
    pub unions: Vec<Union>,
    /// Go's names, of fields whose schema does not tell them.
    pub go: Vec<GoField>,
}

/// What Go calls a field of a built-in type. Only messages about values of a wrong type show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoField {
    /// JSON name of the field.
    pub name: Str,
    /// Name of its type; empty if it follows from the schema.
    pub type_name: Str,
    /// The structs between the type and the field, which JSON inlines; with dots.
    pub embedded: Str,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    #[default]
    Prune,
    /// `x-kubernetes-preserve-unknown-fields`.
    Preserve,
}

#[derive(Debug, Clone)]
pub struct Field {
    /// JSON name.
    pub name: Str,
    pub schema: Schema,
    pub required: bool,
    pub presence: Presence,
}

/// How an absent or zero value looks, from the Go field behind it. It decides the canonical JSON form
/// of built-in objects and what protobuf writes. Custom resources have `Presence::default()` throughout:
/// what is there stays, what is not there stays away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Go pointer, slice or map: absent differs from zero. A protobuf scalar is then written only if present;
    /// other scalars and structs are always written.
    pub nilable: bool,
    /// Go pointer (rather than slice or map): an empty value that is present stays in JSON.
    pub pointer: bool,
    pub omit: Omit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omit {
    /// No omitempty: always in JSON, as its zero value, or as null if it is nilable (or a Time).
    Never,
    /// `omitempty`: left out if false, 0, "", nil, or a list or map without elements. Structs are never empty.
    Empty,
    /// `omitzero`: as `Empty`, and structs whose fields are all zero are left out, too.
    Zero,
}

/// One entry of a protobuf message.
#[derive(Debug, Clone)]
pub enum ProtoSlot {
    /// `fields[field]` under this number.
    Field { number: u32, field: u16 },
    /// JSON inlines these fields, protobuf nests them in a message of their own.
    Inline { number: u32, slots: Vec<ProtoSlot> },
}

/// A set of fields of which one may be given, with an optional field that names it.
#[derive(Debug, Clone, Default)]
pub struct Union {
    pub discriminator: Option<Str>,
    /// JSON field name and the discriminator's value for it.
    pub members: Vec<(Str, Str)>,
}

/// What is said of a value beyond its shape. The rules that values of custom resources must fulfil are elsewhere, in
/// `crate::structural::Rules`.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub format: Option<Str>,
    /// The values that there are; empty: any.
    pub enumeration: Vec<Value>,
}

impl TypeTable {
    pub fn new(types: Vec<StructType>) -> TypeTable {
        let by_name = types.iter().enumerate().map(|(i, t)| (t.name.clone(), TypeId(i as u32))).collect();
        TypeTable { types, by_name }
    }

    #[inline]
    pub fn get(&self, id: TypeId) -> &StructType {
        &self.types[id.0 as usize]
    }

    /// Looks a type up by its OpenAPI name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &StructType> {
        self.types.iter()
    }

    /// The struct behind a schema, if it is one.
    #[inline]
    pub fn resolve<'a>(&'a self, schema: &'a Schema) -> Option<&'a StructType> {
        match &schema.shape {
            Shape::Named(id) => Some(self.get(*id)),
            Shape::Struct(s) => Some(s),
            _ => None,
        }
    }
}

impl TypedSchema {
    pub fn named(table: Arc<TypeTable>, id: TypeId) -> TypedSchema {
        TypedSchema { table, root: Arc::new(Schema { shape: Shape::Named(id), ..Schema::default() }) }
    }

    /// The struct of the root; `None` for schemas that are not objects.
    pub fn root_struct(&self) -> Option<&StructType> {
        self.table.resolve(&self.root)
    }
}

impl Schema {
    /// Whether the map or struct here is owned and replaced as a whole, by what is said here or by its type.
    #[inline]
    pub fn is_atomic(&self, table: &TypeTable) -> bool {
        !self.granular && (self.atomic || table.resolve(self).is_some_and(|t| t.atomic))
    }
}

impl Field {
    /// The default that OpenAPI publishes: the declared one, else the zero value that a Go field without
    /// `omitempty` has (structs show theirs in any case). Pointers, lists, maps and the scalar structs
    /// (Time, Quantity and so on) publish none.
    pub fn published_default(&self) -> Option<Value> {
        match &self.schema.default {
            Some(value) if !self.schema.default_hidden => return Some((**value).clone()),
            _ if self.presence.nilable => return None,
            _ => {}
        }
        match self.schema.shape {
            Shape::Named(_) | Shape::Struct(_) => Some(Value::object()),
            _ if self.presence.omit != Omit::Never => None,
            Shape::Bool => Some(Value::Bool(false)),
            Shape::Int32 | Shape::Int64 | Shape::Float => Some(Value::Int(0)),
            Shape::String => Some(Value::String(Str::default())),
            _ => None,
        }
    }
}

impl StructType {
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.position(Head::of(name), name).map(|i| &self.fields[i])
    }
}

impl Default for Presence {
    /// Present stays, absent stays away: pointers, and every field of a custom resource.
    fn default() -> Presence {
        Presence { nilable: true, pointer: true, omit: Omit::Empty }
    }
}
