//! Rules for entries that a request carries, and for names of managers.

use super::names::FIELD_MANAGER_MAX_LENGTH;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::text::{is_printable, rune};

/// In bytes.
pub const MAX_SUBRESOURCE_NAME_LENGTH: usize = 256;

/// The rules for `metadata.managedFields`, which stands at `path`.
pub fn validate_managed_fields(list: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    for (i, entry) in list.as_array().unwrap_or_default().iter().enumerate() {
        let path = path.index(i);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            errors.0.push(Error::invalid(&path.child("operation"), text("operation"), "must be `Apply` or `Update`"));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            errors.0.push(Error::invalid(&path.child("fieldsType"), text("fieldsType"), "must be `FieldsV1`"));
        }
        errors.0.extend(validate_field_manager(text("manager"), &path.child("manager")).0);
        if text("subresource").len() > MAX_SUBRESOURCE_NAME_LENGTH {
            errors.0.push(Error::too_long(&path.child("subresource"), MAX_SUBRESOURCE_NAME_LENGTH));
        }
    }
    errors
}

/// The rules for the name of a manager, in an entry or in a request's options.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    if manager.len() > FIELD_MANAGER_MAX_LENGTH {
        errors.0.push(Error::too_long(path, FIELD_MANAGER_MAX_LENGTH));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character {} (at position {i})", rune(c));
        errors.0.push(Error::invalid(path, manager, detail));
    }
    errors
}
