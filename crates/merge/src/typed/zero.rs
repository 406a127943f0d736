//! The empty object of a type, as Go prints one that was just made: fields without omitempty are there.

use super::{Type, TypeKind};
use kubelith_meta::{Map, Value};
use kubelith_schema::{Omit, Schema, Shape, StructType, TypeTable};

impl Type<'_> {
    /// What a new object is compared with. It matters for ownership: a list that is there as null is only changed by
    /// an update, not added, and the one who fills it does not own the list itself.
    pub fn zero(self) -> Value {
        match (self, self.kind(None)) {
            (Type::Declared { table, schema, .. }, TypeKind::Map(_)) => match table.resolve(schema) {
                Some(struct_type) => Value::Object(zero_struct(table, struct_type)),
                None => Value::object(),
            },
            (_, TypeKind::Map(_)) => Value::object(),
            _ => Value::Null,
        }
    }
}

fn zero_struct(table: &TypeTable, struct_type: &StructType) -> Map {
    let mut map = Map::new();
    for &index in struct_type.fields.always_printed() {
        let field = &struct_type.fields[index];
        let nested = table.resolve(&field.schema).filter(|_| !field.presence.nilable);
        let zero = match (nested, field.presence.omit) {
            // Structs are never empty, so omitempty does not leave them out.
            (Some(nested), _) => Value::Object(zero_struct(table, nested)),
            // Nor does it leave out times, which are structs as well.
            (None, Omit::Empty) if matches!(field.schema.shape, Shape::Time | Shape::MicroTime) => Value::Null,
            (None, Omit::Never) => zero_value(&field.schema, field.presence.nilable),
            _ => continue,
        };
        map.insert_at(struct_type.fields.key(index), zero);
    }
    map
}

fn zero_value(schema: &Schema, nilable: bool) -> Value {
    if nilable {
        return Value::Null;
    }
    match &schema.shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::IntOrString => Value::Int(0),
        Shape::Float => Value::Float(0.0),
        Shape::String => Value::from(""),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        _ => Value::Null,
    }
}
