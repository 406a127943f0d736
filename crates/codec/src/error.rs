//! Why a body could not be decoded, worded as Go's decoders word it.

use crate::json::SyntaxError;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// Not JSON.
    Syntax(SyntaxError),
    /// JSON of the wrong type for its place.
    Type(Box<TypeError>),
    /// Not YAML, or YAML that JSON cannot express.
    Yaml(String),
    /// A quantity, a time, base64 or another text with rules of its own; or malformed protobuf.
    Malformed(String),
}

/// A JSON value in a place of another type. Displays as Go's `json.UnmarshalTypeError`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// `string`, `array`, `number 3.0`.
    pub found: String,
    /// Go's name of the type that was expected: `int32`, `v1.PodSpec`, `map[string]string`.
    pub expected: String,
    /// The struct whose field was being decoded; empty at the root.
    pub in_struct: String,
    /// Field names from the root, without list indices and map keys.
    pub field: String,
}

impl DecodeError {
    /// A number beyond the range of a double in an untyped place.
    pub(crate) fn number(text: &str) -> DecodeError {
        DecodeError::Type(Box::new(TypeError {
            found: format!("number {text}"),
            expected: "float64".into(),
            in_struct: String::new(),
            field: String::new(),
        }))
    }

    pub fn malformed(message: impl Into<String>) -> DecodeError {
        DecodeError::Malformed(message.into())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Syntax(e) => e.fmt(f),
            DecodeError::Type(e) => e.fmt(f),
            DecodeError::Yaml(message) | DecodeError::Malformed(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TypeError { found, expected, in_struct, field } = self;
        if in_struct.is_empty() && field.is_empty() {
            write!(f, "json: cannot unmarshal {found} into Go value of type {expected}")
        } else {
            write!(f, "json: cannot unmarshal {found} into Go struct field {in_struct}.{field} of type {expected}")
        }
    }
}

impl std::error::Error for DecodeError {}
impl std::error::Error for TypeError {}

impl From<SyntaxError> for DecodeError {
    fn from(e: SyntaxError) -> DecodeError {
        DecodeError::Syntax(e)
    }
}
