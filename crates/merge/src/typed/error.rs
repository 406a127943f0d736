//! What does not fit its type, with the path to it.

use super::Scalar;
use crate::fieldset::PathElement;
use crate::go_text::{go_syntax, go_value};
use kubelith_meta::Value;
use kubelith_meta::text::go_type;
use std::fmt;

/// One or more mismatches between a value and its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ValidationError {
    path: String,
    message: String,
}

impl ValidationErrors {
    pub(super) fn push(&mut self, message: impl Into<String>) {
        self.0.push(ValidationError { path: String::new(), message: message.into() });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts `element` before the paths of the errors from `start` on: called while unwinding, so that walking a valid
    /// value renders no paths.
    pub(super) fn prefix_from(&mut self, start: usize, element: impl fmt::Display) {
        if start < self.0.len() {
            let prefix = element.to_string();
            for error in &mut self.0[start..] {
                error.path.insert_str(0, &prefix);
            }
        }
    }

    pub(super) fn prefix_field(&mut self, start: usize, name: &str) {
        if start < self.0.len() {
            self.prefix_from(start, PathElement::field(name));
        }
    }

    pub(super) fn into_result(self) -> Result<(), ValidationErrors> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, e: &ValidationError| match e.path.as_str() {
            "" => f.write_str(&e.message),
            path => write!(f, "{path}: {}", e.message),
        };
        if let [error] = self.0.as_slice() {
            return one(f, error);
        }
        f.write_str("errors:")?;
        for error in &self.0 {
            f.write_str("\n  ")?;
            one(f, error)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValidationErrors {}

/// Whether a value is such a scalar; null always is.
#[inline]
pub(super) fn is_scalar(scalar: Scalar, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(_) => matches!(scalar, Scalar::Text | Scalar::Any),
        Value::Int(_) | Value::Float(_) => matches!(scalar, Scalar::Number | Scalar::Any),
        Value::Bool(_) => matches!(scalar, Scalar::Boolean | Scalar::Any),
        Value::Array(_) | Value::Object(_) | Value::Raw(_) => false,
    }
}

/// Why a value is not such a scalar.
pub(super) fn scalar_mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    if is_scalar(scalar, value) {
        return None;
    }
    let text = match (scalar, value) {
        (Scalar::Number, other) => format!("expected numeric (int or float), got {}", go_type(other)),
        (Scalar::Text, other) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))
        }
        (Scalar::Boolean, other) => format!("expected boolean, got {}", go_wrapped(other)),
        (Scalar::Any, other) => format!("expected any scalar, got {}", go_wrapped(other)),
    };
    Some(text)
}

/// `%v` of a pointer to the wrapper that the reference keeps values in.
pub(super) fn go_wrapped(value: &Value) -> String {
    format!("&{{{}}}", go_value(value))
}
