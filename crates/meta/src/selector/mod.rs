//! Selectors: which objects a list, a watch or another object means, by labels or by fields.

mod fields;
mod labels;
mod object;
mod parse;

pub use fields::{FieldOperator, FieldSelector, FieldTerm, Fields, escape_value, unescape_value};
pub use labels::{LabelSelector, Labels, Operator, Requirement};
pub use object::{
    LabelSelectorRules, has_invalid_label_value, validate_field_requirement, validate_label_name,
    validate_label_requirement, validate_label_selector, validate_labels,
};

use std::fmt;

/// Why a selector could not be read, in the reference's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError(String);

impl SelectorError {
    pub fn new(message: impl Into<String>) -> SelectorError {
        SelectorError(message.into())
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectorError {}

#[cfg(test)]
mod tests;
