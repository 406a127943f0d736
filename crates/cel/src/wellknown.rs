//! The messages of protobuf that every environment knows by name.

use crate::types::{Scalar, Type};

/// The type of a message, which is not an object for most of them.
pub fn message(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "Any" => Type::Any,
        "BoolValue" => Type::Wrapper(Scalar::Bool),
        "BytesValue" => Type::Wrapper(Scalar::Bytes),
        "DoubleValue" | "FloatValue" => Type::Wrapper(Scalar::Double),
        "Duration" => Type::Duration,
        "Empty" => Type::Named("google.protobuf.Empty"),
        "Int32Value" | "Int64Value" => Type::Wrapper(Scalar::Int),
        "ListValue" => Type::list(Type::Dyn),
        "NullValue" => Type::Null,
        "StringValue" => Type::Wrapper(Scalar::String),
        "Struct" => Type::map(Type::String, Type::Dyn),
        "Timestamp" => Type::Timestamp,
        "UInt32Value" | "UInt64Value" => Type::Wrapper(Scalar::Uint),
        "Value" => Type::Dyn,
        _ => return None,
    })
}

/// Whether a type without a declaration is known here.
pub fn has(name: &str) -> bool {
    name == "google.protobuf.Empty"
}

/// The value of an enumeration.
pub fn constant(name: &str) -> Option<i64> {
    (name == "google.protobuf.NullValue.NULL_VALUE").then_some(0)
}

/// The type of a field that a literal of a message sets.
pub fn field(of: &Type, _name: &str, field: &str) -> Option<Type> {
    Some(match (of, field) {
        (Type::Wrapper(scalar), "value") => scalar.unwrapped(),
        (Type::Any, "type_url") => Type::String,
        (Type::Any, "value") => Type::Bytes,
        (Type::Duration | Type::Timestamp, "seconds" | "nanos") => Type::Int,
        (Type::List(_), "values") => Type::list(Type::Dyn),
        (Type::Map(_), "fields") => Type::map(Type::String, Type::Dyn),
        (Type::Dyn, "null_value") => Type::Null,
        (Type::Dyn, "number_value") => Type::Double,
        (Type::Dyn, "string_value") => Type::String,
        (Type::Dyn, "bool_value") => Type::Bool,
        (Type::Dyn, "struct_value") => Type::map(Type::String, Type::Dyn),
        (Type::Dyn, "list_value") => Type::list(Type::Dyn),
        _ => return None,
    })
}
