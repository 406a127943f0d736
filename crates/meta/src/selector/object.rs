//! LabelSelector objects (`matchLabels`, `matchExpressions`) as they stand in specs: reading and validating.

use super::{LabelSelector, Operator, Requirement, SelectorError};
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::{Map, Str, Value, names, text};

impl LabelSelector {
    /// The selector that a LabelSelector object means: absent selects nothing, empty selects everything.
    pub fn from_object(object: Option<&Value>) -> Result<LabelSelector, SelectorError> {
        let Some(object) = object.filter(|o| !o.is_null()) else {
            return Ok(LabelSelector::Nothing);
        };
        let wrong = |e: ErrorList| SelectorError::new(e.to_string());
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let values = vec![Str::from(value.as_str().unwrap_or(""))];
            requirements.push(Requirement::new(key.into(), Operator::Equals, values, &Path::ROOT).map_err(wrong)?);
        }
        for expression in expressions(object) {
            let name = expression.str_at(&["operator"]);
            let Some(operator) = object_operator(name) else {
                let message = format!("{} is not a valid label selector operator", text::quote(name));
                return Err(SelectorError::new(message));
            };
            let values = values(expression).map(Str::from).collect();
            let key = expression.str_at(&["key"]).into();
            requirements.push(Requirement::new(key, operator, values, &Path::ROOT).map_err(wrong)?);
        }
        Ok(LabelSelector::new(requirements))
    }

    /// The LabelSelector object that means this selector. Selectors with `>` or `<` have none.
    pub fn to_object(&self) -> Result<Value, SelectorError> {
        let (mut labels, mut expressions) = (Map::new(), Vec::new());
        for requirement in self.requirements() {
            let operator = match requirement.operator() {
                Operator::Equals | Operator::DoubleEquals => {
                    labels.insert(requirement.key(), requirement.values()[0].as_str());
                    continue;
                }
                Operator::In => "In",
                Operator::NotIn | Operator::NotEquals => "NotIn",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                Operator::GreaterThan | Operator::LessThan => {
                    let operator = text::quote(requirement.operator().symbol());
                    return Err(SelectorError::new(format!("{operator} isn't supported in label selectors")));
                }
            };
            let mut values: Vec<Str> = requirement.values().to_vec();
            values.sort_unstable();
            let mut expression = Map::new();
            expression.insert("key", requirement.key());
            expression.insert("operator", operator);
            if !values.is_empty() {
                expression.insert("values", values);
            }
            expressions.push(Value::Object(expression));
        }
        let mut object = Map::new();
        if !expressions.is_empty() {
            object.insert("matchExpressions", Value::Array(expressions));
        }
        if !labels.is_empty() {
            object.insert("matchLabels", labels);
        }
        Ok(Value::Object(object))
    }
}

fn object_operator(name: &str) -> Option<Operator> {
    match name {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        _ => None,
    }
}

fn expressions(object: &Value) -> &[Value] {
    object.get("matchExpressions").and_then(Value::as_array).unwrap_or(&[])
}

fn values(expression: &Value) -> impl Iterator<Item = &str> {
    let values = expression.get("values").and_then(Value::as_array).unwrap_or(&[]);
    values.iter().map(|v| v.as_str().unwrap_or(""))
}

/// Exceptions from the rules for LabelSelector objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelSelectorRules {
    /// Values that are no label values pass: for objects that were stored with such.
    pub allow_invalid_values: bool,
    /// Operators of tomorrow pass: for access reviews, which can answer about a broader selection.
    pub allow_unknown_operators: bool,
}

/// What is wrong with a LabelSelector object at `path`.
pub fn validate_label_selector(selector: &Value, rules: LabelSelectorRules, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        errors.extend(validate_labels(labels, &path.child("matchLabels")));
    }
    for (i, expression) in expressions(selector).iter().enumerate() {
        errors.extend(validate_label_requirement(expression, rules, &path.item("matchExpressions", i)));
    }
    errors
}

/// What is wrong with one of the `matchExpressions`.
pub fn validate_label_requirement(expression: &Value, rules: LabelSelectorRules, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let operator = expression.str_at(&["operator"]);
    check_operator(operator, values(expression).next().is_some(), rules, path, &mut errors);
    errors.extend(validate_label_name(expression.str_at(&["key"]), &path.child("key")));
    if !rules.allow_invalid_values {
        for (i, value) in values(expression).enumerate() {
            for message in names::is_label_value(value) {
                errors.push(Error::invalid(&path.item("values", i), value, message));
            }
        }
    }
    errors
}

/// What is wrong with a requirement of a FieldSelector object, as access reviews carry them.
pub fn validate_field_requirement(expression: &Value, rules: LabelSelectorRules, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if expression.str_at(&["key"]).is_empty() {
        errors.push(Error::required(&path.child("key"), "must be specified"));
    }
    let operator = expression.str_at(&["operator"]);
    check_operator(operator, values(expression).next().is_some(), rules, path, &mut errors);
    errors
}

fn check_operator(
    operator: &str,
    has_values: bool,
    rules: LabelSelectorRules,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    match operator {
        "In" | "NotIn" if !has_values => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(Error::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if has_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(&path.child("values"), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ if rules.allow_unknown_operators => {}
        _ => {
            let value = BadValue::json(operator);
            errors.push(Error::invalid(&path.child("operator"), value, "not a valid selector operator"));
        }
    }
}

/// Whether an expression holds a value that is no label value.
pub fn has_invalid_label_value(selector: &Value) -> bool {
    expressions(selector).iter().flat_map(values).any(|v| !names::is_label_value(v).is_empty())
}

/// What is wrong with a label key at `path`.
pub fn validate_label_name(name: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.push_messages(names::is_qualified_name(name), path, name);
    errors
}

/// What is wrong with a map of labels at `path`. All errors name the map, not its entries.
pub fn validate_labels(labels: &Map, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels.iter() {
        errors.push_messages(names::is_qualified_name(key), path, key);
        let value = value.as_str().unwrap_or("");
        errors.push_messages(names::is_label_value(value), path, value);
    }
    errors
}
