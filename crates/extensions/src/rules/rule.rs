//! One rule as its definition writes it.

use kubelith_meta::field::{BadValue, Error, Path};
use kubelith_meta::{Str, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub text: Str,
    pub message: Str,
    pub message_expression: Str,
    pub reason: Reason,
    pub field_path: Str,
    /// `optionalOldSelf`, where it is given.
    pub optional_old_self: Option<bool>,
}

/// What kind of error a broken rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl Rule {
    pub fn read(rule: &Value) -> Rule {
        let text = |key: &str| Str::from(rule.str_at(&[key]));
        Rule {
            text: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: match rule.str_at(&["reason"]) {
                "FieldValueForbidden" => Reason::Forbidden,
                "FieldValueRequired" => Reason::Required,
                "FieldValueDuplicate" => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }

    /// The rule in an error: its message, or else its text.
    pub fn shown(&self) -> &str {
        if self.message.is_empty() { self.text.trim() } else { self.message.trim() }
    }

    /// What is said of an object that breaks the rule, if no expression says it.
    pub fn failure(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.shown()) } else { self.shown().to_owned() }
    }

    /// The rule is broken by `value`.
    pub fn broken(&self, path: &Path<'_>, value: BadValue, detail: String) -> Error {
        match self.reason {
            Reason::Invalid => Error::invalid(path, value, detail),
            Reason::Forbidden => Error::forbidden(path, detail),
            Reason::Required => Error::required(path, detail),
            Reason::Duplicate => Error::duplicate(path, value),
        }
    }
}
