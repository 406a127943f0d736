//! Kinds of one rule each.

use super::{Rules, is_zero, object_mut, text};
use kubelith_meta::{Map, Value};

pub const RULES: Rules =
    &[("io.k8s.api.rbac.v1.Subject", subject), ("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", empty_selector)];

/// Users and groups are of the group of RBAC; service accounts are of the core group.
fn subject(subject: &mut Map) {
    if is_zero(subject, "apiGroup") && matches!(text(subject, "kind"), "User" | "Group") {
        subject.insert("apiGroup", "rbac.authorization.k8s.io");
    }
}

/// A budget of v1beta1 without a selector is one of v1 with this expression alone. Combined with anything else the
/// expression goes (policy/v1/conversion.go).
fn empty_selector(spec: &mut Map) {
    const LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
    let Some(selector) = object_mut(spec, "selector") else { return };
    let has_labels = !is_zero(selector, "matchLabels");
    let Some(Value::Array(expressions)) = selector.get_mut("matchExpressions") else { return };
    let stands_alone = !has_labels
        && matches!(&expressions[..], [e] if e.str_at(&["operator"]) == "Exists" && e.get("values").is_none_or(Value::is_empty));
    if !stands_alone {
        expressions.retain(|e| e.str_at(&["key"]) != LABEL);
        if expressions.is_empty() {
            selector.remove("matchExpressions");
        }
    }
}
