//! PodDisruptionBudgets: an empty selector means no pod in v1beta1 and every pod in v1. A requirement on a label
//! that no pod has says the one in the language of the other.

use kubelith_meta::Value;

const LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
const SELECTOR: [&str; 2] = ["spec", "selector"];

/// v1's way to select nothing, and v1beta1's way to select everything.
const NOTHING: &str = "Exists";
const EVERYTHING: &str = "DoesNotExist";

pub fn to_v1(budget: &mut Value) {
    match budget.at(&SELECTOR) {
        Some(selector) if selector.is_empty() => budget.set_at(&SELECTOR, special(NOTHING)),
        Some(selector) if *selector == special(EVERYTHING) => budget.set_at(&SELECTOR, Value::object()),
        _ => strip(budget),
    }
}

pub fn from_v1(budget: &mut Value) {
    match budget.at(&SELECTOR) {
        Some(selector) if selector.is_empty() => budget.set_at(&SELECTOR, special(EVERYTHING)),
        Some(selector) if *selector == special(NOTHING) => budget.set_at(&SELECTOR, Value::object()),
        _ => {}
    }
}

/// Takes the special requirement out of a v1 selector that has more than it.
pub fn strip_v1(budget: &mut Value) {
    if budget.at(&SELECTOR).is_some_and(|selector| *selector != special(NOTHING)) {
        strip(budget);
    }
}

fn special(operator: &str) -> Value {
    let requirement = Value::from([("key", LABEL), ("operator", operator)]);
    Value::from([("matchExpressions", Value::Array(vec![requirement]))])
}

fn strip(budget: &mut Value) {
    let expressions = budget.at_mut(&["spec", "selector", "matchExpressions"]);
    if let Some(expressions) = expressions.and_then(Value::as_array_mut) {
        expressions.retain(|e| e.str_at(&["key"]) != LABEL);
    }
}
