//! Bringing the bootstrap roles and bindings up to date without undoing what people changed.
//!
//! Rules and subjects that are missing are added; extra ones stay. An object with the annotation
//! `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

use super::covers::uncovered;
use super::rule::PolicyRule;
use kubelith_meta::{Map, Value};

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

#[derive(Debug, Clone, PartialEq)]
pub enum Reconciliation {
    UpToDate,
    /// It would change, but its owner asked to be left alone.
    Protected,
    Create(Value),
    Update(Value),
    /// A binding's role cannot be changed: delete the existing one, then create this.
    Recreate(Value),
}

/// What to do with a role or cluster role.
pub fn reconcile_role(existing: Option<&Value>, wanted: &Value) -> Reconciliation {
    let Some(existing) = existing else { return Reconciliation::Create(wanted.clone()) };
    let mut result = existing.clone();
    let mut changed = merge_metadata(&mut result, wanted);

    let missing = uncovered(&PolicyRule::list_from(existing), &PolicyRule::list_from(wanted));
    if !missing.is_empty() {
        append(&mut result, &["rules"], missing.iter().map(PolicyRule::to_value));
        changed = true;
    }

    let aggregation = |role: &Value| role.get("aggregationRule").filter(|r| !r.is_null()).cloned();
    let (have, want) = (aggregation(existing), aggregation(wanted));
    let selectors = |rule: &Option<Value>| -> Vec<Value> {
        let list = rule.as_ref().and_then(|r| r.get("clusterRoleSelectors")).and_then(Value::as_array);
        list.unwrap_or_default().to_vec()
    };
    if want.is_none() && have.is_some() {
        result.remove_at(&["aggregationRule"]);
        changed = true;
    } else {
        let own = selectors(&have);
        let missing: Vec<Value> = selectors(&want).into_iter().filter(|s| !own.contains(s)).collect();
        if !missing.is_empty() {
            append(&mut result, &["aggregationRule", "clusterRoleSelectors"], missing);
            changed = true;
        }
    }
    outcome(existing, changed.then_some(Reconciliation::Update(result)))
}

/// What to do with a role binding or cluster role binding.
pub fn reconcile_binding(existing: Option<&Value>, wanted: &Value) -> Reconciliation {
    let Some(existing) = existing else { return Reconciliation::Create(wanted.clone()) };
    let same = |key: &str| existing.str_at(&["roleRef", key]) == wanted.str_at(&["roleRef", key]);
    if !["apiGroup", "kind", "name"].into_iter().all(same) {
        return outcome(existing, Some(Reconciliation::Recreate(wanted.clone())));
    }
    let mut result = existing.clone();
    let mut changed = merge_metadata(&mut result, wanted);
    let subjects = |v: &Value| v.get("subjects").and_then(Value::as_array).unwrap_or_default().to_vec();
    let own = subjects(existing);
    let mut missing: Vec<Value> = Vec::new();
    for subject in subjects(wanted) {
        let known = own.iter().chain(&missing).any(|s| same_subject(s, &subject));
        if !known {
            missing.push(subject);
        }
    }
    if !missing.is_empty() {
        append(&mut result, &["subjects"], missing);
        changed = true;
    }
    outcome(existing, changed.then_some(Reconciliation::Update(result)))
}

fn outcome(existing: &Value, change: Option<Reconciliation>) -> Reconciliation {
    match change {
        None => Reconciliation::UpToDate,
        Some(_) if existing.str_at(&["metadata", "annotations", AUTOUPDATE]) == "false" => Reconciliation::Protected,
        Some(change) => change,
    }
}

fn same_subject(a: &Value, b: &Value) -> bool {
    ["kind", "apiGroup", "name", "namespace"].into_iter().all(|key| a.str_at(&[key]) == b.str_at(&[key]))
}

/// Adds missing labels and annotations; those that are there keep their values.
fn merge_metadata(result: &mut Value, wanted: &Value) -> bool {
    let mut changed = false;
    for field in ["annotations", "labels"] {
        let none = Map::new();
        let wanted = wanted.at(&["metadata", field]).and_then(Value::as_object).unwrap_or(&none);
        for (key, value) in wanted.iter() {
            if result.at(&["metadata", field, key]).is_none() {
                result.set_at(&["metadata", field, key], value.clone());
                changed = true;
            }
        }
    }
    changed
}

fn append(object: &mut Value, path: &[&str], more: impl IntoIterator<Item = Value>) {
    let mut list = object.at(path).and_then(Value::as_array).unwrap_or_default().to_vec();
    list.extend(more);
    object.set_at(path, Value::Array(list));
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
