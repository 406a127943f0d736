//! The types of expressions, printed as clients see them in messages.

use crate::declared::Object;
use std::fmt;
use std::sync::Arc;

/// The type of an expression. Copies are cheap: what is nested is shared.
#[derive(Debug, Clone)]
pub enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// `google.protobuf.Any`.
    Any,
    List(Arc<Type>),
    /// Key and value.
    Map(Arc<(Type, Type)>),
    Optional(Arc<Type>),
    /// The type of a type: `type(int)`. Without an argument it is the type of such types.
    Type(Option<Arc<Type>>),
    /// A scalar or null: `wrapper(int)`.
    Wrapper(Scalar),
    /// An object whose fields are known: of a schema, of a request, of a mutation.
    Object(Arc<Object>),
    /// A type of a library that has a name and no fields: `net.IP`.
    Named(&'static str),
    /// A parameter of a function's declaration: `T`.
    Param(&'static str),
    /// A type that is not known yet, only while an expression is checked (and in what is left of it: `[]` is
    /// `list(_var0)` in messages, `list(dyn)` in the end).
    Var(u32),
    /// The type of what could not be checked. Everything fits it, so that one mistake is told once.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
}

impl Type {
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    pub fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    /// `type(T)`.
    pub fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    pub fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn)
    }

    /// Dyn, any, or an error: what is checked when it runs.
    pub fn is_dynamic(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    /// Values of the type have no fields, not even by name.
    pub fn is_opaque(&self) -> bool {
        matches!(self, Type::Named("net.IP" | "net.CIDR") | Type::Optional(_))
    }

    /// The name of the type without what is inside of brackets, but `wrapper(int)`.
    pub fn declared_name(&self) -> String {
        match self {
            Type::Wrapper(_) => self.to_string(),
            other => other.runtime_name().to_owned(),
        }
    }

    /// The name that `type(x)` has when it runs: without what is inside of brackets.
    pub fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn | Type::Var(_) => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Any => "google.protobuf.Any",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Optional(_) => "optional_type",
            Type::Type(_) => "type",
            Type::Wrapper(scalar) => scalar.name(),
            Type::Object(object) => &object.name,
            Type::Named(name) | Type::Param(name) => name,
            Type::Error => "*error*",
        }
    }
}

impl Scalar {
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::Int => "int",
            Scalar::Uint => "uint",
            Scalar::Double => "double",
            Scalar::String => "string",
            Scalar::Bytes => "bytes",
        }
    }

    pub fn unwrapped(self) -> Type {
        match self {
            Scalar::Bool => Type::Bool,
            Scalar::Int => Type::Int,
            Scalar::Uint => Type::Uint,
            Scalar::Double => Type::Double,
            Scalar::String => Type::String,
            Scalar::Bytes => Type::Bytes,
        }
    }
}

/// The same type, letter by letter. (Whether one can stand where another is wanted is the checker's question.)
impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => a == b,
            (Type::Map(a), Type::Map(b)) => a == b,
            (Type::Type(a), Type::Type(b)) => a == b,
            (Type::Wrapper(a), Type::Wrapper(b)) => a == b,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b) || a.name == b.name,
            (Type::Named(a), Type::Named(b)) | (Type::Param(a), Type::Param(b)) => a == b,
            (Type::Var(a), Type::Var(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for Type {}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(of) => write!(f, "map({}, {})", of.0, of.1),
            Type::Optional(of) => write!(f, "optional_type({of})"),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Wrapper(scalar) => write!(f, "wrapper({})", scalar.name()),
            Type::Var(n) => write!(f, "<_var{n}>"),
            Type::Param(name) => write!(f, "<{name}>"),
            other => f.write_str(other.runtime_name()),
        }
    }
}
