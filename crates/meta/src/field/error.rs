//! What is wrong with one field, in the reference's words.

use super::Path;
use crate::{Str, Value, text};
use std::fmt;

/// What is wrong with a field. The name of a kind is the `reason` of the cause that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
    TypeInvalid,
}

impl ErrorKind {
    /// The machine-readable name, as in `details.causes[].reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooShort => "FieldValueTooShort",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TooFew => "FieldValueTooFew",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The words that open the message.
    const fn title(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooShort => "Too short",
            ErrorKind::TooMany => "Too many",
            ErrorKind::TooFew => "Too few",
            ErrorKind::Internal => "Internal error",
        }
    }

    const fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong | ErrorKind::TooShort | ErrorKind::Internal
        )
    }
}

/// The value that a message shows. Strings are quoted as Go's `%q`, numbers and booleans printed plainly,
/// everything else as JSON; [`BadValue::json`] and [`BadValue::text`] choose otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum BadValue {
    /// Not shown.
    Omitted,
    /// Shown as it is, already rendered.
    Text(String),
    Value(Value),
}

impl BadValue {
    /// Shown as JSON even if it is a string: what the reference prints for values of named string types and
    /// pointers, e.g. a Protocol or a Quantity.
    pub fn json(value: impl Into<Value>) -> BadValue {
        BadValue::Text(text::json(&value.into()))
    }

    pub fn text(text: impl Into<String>) -> BadValue {
        BadValue::Text(text.into())
    }

    fn render(&self) -> Option<String> {
        match self {
            BadValue::Omitted => None,
            BadValue::Text(text) => Some(text.clone()),
            BadValue::Value(Value::String(s)) => Some(text::quote(s)),
            BadValue::Value(Value::Float(f)) => Some(text::float_v(*f)),
            BadValue::Value(v) => Some(text::json(v)),
        }
    }
}

impl<T: Into<Value>> From<T> for BadValue {
    fn from(value: T) -> BadValue {
        BadValue::Value(value.into())
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> BadValue {
        BadValue::Value(value.clone())
    }
}

/// Something wrong with one field. `Display` is `path: what`, [`Error::body`] is `what` alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub kind: ErrorKind,
    /// The rendered path.
    pub field: Str,
    pub bad_value: BadValue,
    pub detail: String,
}

/// Few objects have errors: the way to these is kept out of the way of the rules.
impl Error {
    #[cold]
    fn new(kind: ErrorKind, path: &Path<'_>, bad_value: BadValue, detail: impl Into<String>) -> Error {
        Error { kind, field: path.render().into(), bad_value, detail: detail.into() }
    }

    #[cold]
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Required, path, BadValue::Omitted, detail)
    }

    #[cold]
    pub fn invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, path, value.into(), detail)
    }

    #[cold]
    pub fn type_invalid(path: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::TypeInvalid, path, value.into(), detail)
    }

    /// The value is none of `supported`, which the message lists in the order given.
    #[cold]
    pub fn not_supported<S: AsRef<str>>(
        path: &Path<'_>,
        value: impl Into<BadValue>,
        supported: impl IntoIterator<Item = S>,
    ) -> Error {
        let quoted: Vec<String> = supported.into_iter().map(|s| text::quote(s.as_ref())).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Error::new(ErrorKind::NotSupported, path, value.into(), detail)
    }

    #[cold]
    pub fn duplicate(path: &Path<'_>, value: impl Into<BadValue>) -> Error {
        Error::new(ErrorKind::Duplicate, path, value.into(), "")
    }

    #[cold]
    pub fn not_found(path: &Path<'_>, value: impl Into<BadValue>) -> Error {
        Error::new(ErrorKind::NotFound, path, value.into(), "")
    }

    #[cold]
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Error {
        Error::new(ErrorKind::Forbidden, path, BadValue::Omitted, detail)
    }

    #[cold]
    pub fn internal(path: &Path<'_>, error: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Internal, path, BadValue::Omitted, error.to_string())
    }

    /// More bytes than `max`.
    #[cold]
    pub fn too_long(path: &Path<'_>, max: usize) -> Error {
        let detail = format!("may not be more than {max} {}", plural(max, "byte", "bytes"));
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, detail)
    }

    /// More characters than `max`.
    #[cold]
    pub fn too_long_characters(path: &Path<'_>, max: usize) -> Error {
        let detail = format!("may not be more than {max} {}", plural(max, "character", "characters"));
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, detail)
    }

    /// Too long, for a limit that is not told.
    #[cold]
    pub fn too_long_unspecified(path: &Path<'_>) -> Error {
        Error::new(ErrorKind::TooLong, path, BadValue::Omitted, "value is too long")
    }

    /// Fewer characters than `min`.
    #[cold]
    pub fn too_short(path: &Path<'_>, min: usize) -> Error {
        let detail = format!("must be at least {min} {}", plural(min, "character", "characters"));
        Error::new(ErrorKind::TooShort, path, BadValue::Omitted, detail)
    }

    #[cold]
    pub fn too_many(path: &Path<'_>, actual: usize, max: usize) -> Error {
        let detail = format!("must have at most {max} {}", plural(max, "item", "items"));
        Error::new(ErrorKind::TooMany, path, count(actual), detail)
    }

    /// Too many items, where their number is not known or not told.
    #[cold]
    pub fn too_many_of_unknown(path: &Path<'_>, max: usize) -> Error {
        Error { bad_value: BadValue::Omitted, ..Error::too_many(path, 0, max) }
    }

    #[cold]
    pub fn too_few(path: &Path<'_>, actual: usize, min: usize) -> Error {
        let detail = format!("must have at least {min} {}", plural(min, "item", "items"));
        Error::new(ErrorKind::TooFew, path, count(actual), detail)
    }

    /// The message without the path, as in `details.causes[].message`.
    pub fn body(&self) -> String {
        let mut body = self.kind.title().to_owned();
        if self.kind.shows_value()
            && let Some(value) = self.bad_value.render()
        {
            body.push_str(": ");
            body.push_str(&value);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

fn plural(n: usize, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

fn count(n: usize) -> BadValue {
    BadValue::Value(Value::Int(n as i64))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for Error {}
