//! PodDisruptionBudgets.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::validate_conditions;
use kubelith_meta::selector::{LabelSelectorRules, has_invalid_label_value, validate_label_selector};
use kubelith_meta::{Map, Value};
use kubelith_rules::common::{Fields, SPEC, member, not_negative, supported};
use kubelith_rules::defaults::{Defaults, is_zero, object_mut};
use kubelith_rules::values::{not_over_100_percent, positive_int_or_percent};
use kubelith_rules::{Kind, Rules, internal};
use kubelith_schema::lifecycle::Generation;

pub const POD_DISRUPTION_BUDGET: Kind =
    Kind { group: "policy", plural: "poddisruptionbudgets", defaults: DEFAULTS, rules: RULES, ..Kind::PLAIN }
        .generation(Generation::Spec)
        .guarded();

pub const DEFAULTS: Defaults = &[("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", empty_selector)];

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

pub const RULES: Rules = Rules {
    create: |_, budget| check(member(budget, "spec"), None),
    update: |request, new, old| match request.subresource {
        "status" => status(member(new, "status")),
        _ => check(member(new, "spec"), Some(member(old, "spec"))),
    },
};

fn check(spec: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = internal::shown("PodDisruptionBudgetSpec", Some(spec));
        errors.push(Error::invalid(&SPEC, shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = spec.some(key) {
            positive_int_or_percent(value, &SPEC.child(key), &mut errors);
            not_over_100_percent(value, &SPEC.child(key), &mut errors);
        }
    }
    if let Some(selector) = spec.some("selector") {
        let rules = LabelSelectorRules {
            allow_invalid_values: old.and_then(|o| o.some("selector")).is_some_and(has_invalid_label_value),
            ..LabelSelectorRules::default()
        };
        errors.extend(validate_label_selector(selector, rules, &SPEC.child("selector")));
    }
    if spec.has("unhealthyPodEvictionPolicy") {
        let known = ["AlwaysAllow", "IfHealthyBudget"];
        let path = SPEC.child("unhealthyPodEvictionPolicy");
        supported(spec.text("unhealthyPodEvictionPolicy"), &known, &path, &mut errors);
    }
    errors
}

fn status(status: &Value) -> ErrorList {
    let path = Path::new("status");
    let mut errors = validate_conditions(status.list("conditions"), &path.child("conditions"));
    for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        not_negative(status.number(key), &path.child(key), &mut errors);
    }
    errors
}
