//! Conditions in a status: lists of objects by type.

use kubelith_meta::{Time, Value};

/// Adds a condition to a pod, or replaces the one of its type. The time of the last transition stays if the status does.
pub fn set_pod_condition(pod: &mut Value, mut condition: Value, now: Time) {
    let mut conditions = take(pod);
    condition.set_at(&["lastProbeTime"], Value::Null);
    condition.set_at(&["lastTransitionTime"], now.rfc3339().into());
    let kind = condition.str_at(&["type"]);
    match conditions.iter_mut().find(|c| c.str_at(&["type"]) == kind) {
        Some(old) => {
            if old.str_at(&["status"]) == condition.str_at(&["status"]) {
                let since = old.get("lastTransitionTime").cloned().unwrap_or(Value::Null);
                condition.set_at(&["lastTransitionTime"], since);
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
    pod.set_at(&["status", "conditions"], Value::Array(conditions));
}

/// Adds a condition of meta/v1, or brings the one of its type up to date.
pub fn set_condition(object: &mut Value, mut condition: Value, now: Time) {
    let mut conditions = take(object);
    let kind = condition.str_at(&["type"]);
    match conditions.iter_mut().find(|c| c.str_at(&["type"]) == kind) {
        Some(old) => {
            if old.str_at(&["status"]) != condition.str_at(&["status"]) {
                old.set_at(&["lastTransitionTime"], now.rfc3339().into());
            }
            for key in ["status", "reason", "message", "observedGeneration"] {
                if let Some(value) = condition.get(key) {
                    old.set_at(&[key], value.clone());
                }
            }
        }
        None => {
            condition.set_at(&["lastTransitionTime"], now.rfc3339().into());
            conditions.push(condition);
        }
    }
    object.set_at(&["status", "conditions"], Value::Array(conditions));
}

/// The condition of a type.
pub fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array)?;
    conditions.iter().find(|c| c.str_at(&["type"]) == kind)
}

fn take(object: &mut Value) -> Vec<Value> {
    match object.remove_at(&["status", "conditions"]) {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    }
}
