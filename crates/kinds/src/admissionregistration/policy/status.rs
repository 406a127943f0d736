//! What the type checker says of a ValidatingAdmissionPolicy.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::validate_conditions;
use kubelith_rules::common::{Fields, member};
use kubelith_schema::jsonpath::JsonPath;

pub fn check(status: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = Path::new("status");
    for (i, warning) in member(status, "typeChecking").list("expressionWarnings").iter().enumerate() {
        let path = root.child("typeChecking");
        let path = path.item("expressionWarnings", i);
        if warning.text("warning").is_empty() {
            errors.push(Error::required(&path.child("warning"), ""));
        }
        check_reference(warning.text("fieldRef").trim(), &path.child("fieldRef"), &mut errors);
    }
    errors.extend(validate_conditions(status.list("conditions"), &root.child("conditions")));
    errors
}

pub fn check_reference(field: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if field.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    if let Err(why) = JsonPath::parse(field) {
        errors.push(Error::invalid(path, field, format!("invalid JSONPath: {why}")));
    }
}
