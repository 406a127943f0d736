//! PodDisruptionBudgets.

use crate::Rules;
use crate::apps::{not_over_100_percent, positive_int_or_percent};
use crate::common::{Fields, SPEC, member, not_negative, supported};
use crate::internal;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::validate_conditions;
use kubelith_meta::selector::{LabelSelectorRules, has_invalid_label_value, validate_label_selector};

pub fn rules(plural: &str) -> Option<Rules> {
    (plural == "poddisruptionbudgets").then_some(BUDGET)
}

const BUDGET: Rules = Rules {
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
