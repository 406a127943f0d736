//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions.

use crate::Rules;
use crate::common::not_negative;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_percent;

pub fn rules(_: &str) -> Option<Rules> {
    None
}

pub fn positive_int_or_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Int(number) => not_negative(*number, path, errors),
        _ => {
            let text = value.as_str().unwrap_or_default();
            errors.extend(is_percent(text).into_iter().map(|m| Error::invalid(path, BadValue::json(text), m)));
        }
    }
}

/// The number before the `%`.
pub fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|t| is_percent(t).is_empty())?;
    text.trim_end_matches('%').parse().ok()
}

pub fn not_over_100_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if percent(value).is_some_and(|p| p > 100) {
        let text = BadValue::json(value.as_str().unwrap_or_default());
        errors.push(Error::invalid(path, text, "must not be greater than 100%"));
    }
}
