//! Subresources, columns, selectable fields and warnings of versions.

use super::walk::list;
use crate::rules::field_path::{self, Brackets};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_schema::jsonpath::validate_simple_path;
use kubelith_schema::structural::{Structural, Type};

pub const MAX_SELECTABLE: usize = 8;
/// Longest deprecation warning, in bytes.
const MAX_WARNING: usize = 256;

pub fn subresources(subresources: Option<&Value>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let Some(scale) = subresources.and_then(|s| s.get("scale")).filter(|s| !s.is_null()) else { return errors };
    let mut check = |key: &'static str, below: &[&str], what: &str, required: bool| {
        let name = format!("scale.{key}");
        let at = path.child(&name);
        let text = scale.str_at(&[key]);
        if text.is_empty() {
            if required {
                errors.push(Error::required(&at, ""));
            }
            return;
        }
        let problems = validate_simple_path(text, &at);
        if !problems.is_empty() {
            errors.extend(problems);
        } else if !below.iter().any(|b| text.starts_with(b)) {
            errors.push(Error::invalid(&at, text, format!("should be a json path under {what}")));
        }
    };
    check("specReplicasPath", &[".spec."], ".spec", true);
    check("statusReplicasPath", &[".status."], ".status", true);
    check("labelSelectorPath", &[".spec.", ".status."], "either .spec or .status", false);
    errors
}

pub fn columns(of: &Value, path: &Path<'_>) -> ErrorList {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = ErrorList::default();
    for (i, column) in list(of, "additionalPrinterColumns").iter().enumerate() {
        let at = path.item("additionalPrinterColumns", i);
        if column.str_at(&["name"]).is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        }
        let one_of = |values: &[&str]| format!("must be one of {}", values.join(","));
        match column.str_at(&["type"]) {
            "" => errors.push(Error::required(&at.child("type"), one_of(&TYPES))),
            kind if !TYPES.contains(&kind) => errors.push(Error::invalid(&at.child("type"), kind, one_of(&TYPES))),
            _ => {}
        }
        let format = column.str_at(&["format"]);
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(Error::invalid(&at.child("format"), format, one_of(&FORMATS)));
        }
        match column.str_at(&["JSONPath"]) {
            "" => errors.push(Error::required(&at.child("JSONPath"), "")),
            text => errors.extend(validate_simple_path(text, &at.child("JSONPath"))),
        }
    }
    errors
}

/// Whether more fields are taken than is allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    Refused,
    AsBefore,
}

pub fn selectable(of: &Value, schema: &Structural, too_many: TooMany, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen: Vec<&str> = Vec::new();
    for (i, field) in list(of, "selectableFields").iter().enumerate() {
        let at = path.item("selectableFields", i);
        let at = at.child("jsonPath");
        let text = field.str_at(&["jsonPath"]);
        if text.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let found = match field_path::resolve(text, schema, Brackets::Refused) {
            Ok((_, found)) => found,
            Err(why) => {
                errors.push(Error::invalid(&at, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if text.trim_start_matches('.').split('.').next() == Some("metadata") {
            errors.push(Error::invalid(&at, text, "must not point to fields in metadata"));
        }
        if !matches!(found.kind, Some(Type::String | Type::Boolean | Type::Integer)) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.push(Error::invalid(&at, text, why));
        }
        match seen.contains(&text) {
            true => errors.push(Error::duplicate(&at, text)),
            false => seen.push(text),
        }
    }
    if seen.len() > MAX_SELECTABLE && too_many == TooMany::Refused {
        errors.push(Error::too_many(&path.child("selectableFields"), seen.len(), MAX_SELECTABLE));
    }
    errors
}

pub fn deprecation(version: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return errors };
    let at = path.child("deprecationWarning");
    let mut wrong = |why: String| errors.push(Error::invalid(&at, warning, why));
    if !super::walk::flag(version, "deprecated") {
        wrong("can only be set for deprecated versions".into());
        return errors;
    }
    if warning.len() > MAX_WARNING {
        wrong(format!("must be <= {MAX_WARNING} characters long"));
    }
    if warning.is_empty() {
        wrong("must not be an empty string".into());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| !kubelith_meta::text::is_printable(*c)) {
        wrong(format!("must only contain printable UTF-8 characters; non-printable character found at index {i}"));
    }
    errors
}
