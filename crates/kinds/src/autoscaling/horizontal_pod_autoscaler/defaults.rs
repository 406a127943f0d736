//! Metrics, behaviour, and annotations of other versions.

use kubelith_meta::{Map, Value};
use kubelith_rules::annotations::AUTOSCALER;
use kubelith_rules::defaults::{Defaults, drop_annotations, is_absent, is_zero, set_absent};

pub const RULES: Defaults = &[
    ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", target),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler", |m| drop_annotations(m, &AUTOSCALER)),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", spec),
];

/// An autoscaler without any metric, here or in the annotation that has the others, aims at the default utilization
/// (autoscaling/v1/conversion.go).
fn target(autoscaler: &mut Map) {
    const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
    let annotations = autoscaler.get("metadata").and_then(|m| m.get("annotations"));
    let others = annotations.and_then(|a| a.get(METRICS)).and_then(Value::as_str);
    let others = others.and_then(|text| kubelith_codec::json::parse(text.as_bytes()).ok());
    if others.as_ref().and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return;
    }
    let spec = autoscaler.entry_or_null("spec").make_object();
    set_absent(spec, "targetCPUUtilizationPercentage", 80i64);
}

fn spec(spec: &mut Map) {
    if is_zero(spec, "metrics") {
        spec.insert("metrics", vec![cpu_utilization(80)]);
    }
    let Some(Value::Object(behavior)) = spec.get_mut("behavior") else { return };
    let up = behavior.entry_or_null("scaleUp").make_object();
    set_absent(up, "stabilizationWindowSeconds", 0i64);
    scaling(up, &[("Pods", 4), ("Percent", 100)]);
    let down = behavior.entry_or_null("scaleDown").make_object();
    scaling(down, &[("Percent", 100)]);
}

fn cpu_utilization(percent: i64) -> Value {
    let target = Value::from([("type", Value::from("Utilization")), ("averageUtilization", Value::from(percent))]);
    let resource = Value::from([("name", Value::from("cpu")), ("target", target)]);
    Value::from([("type", Value::from("Resource")), ("resource", resource)])
}

/// Rules that say nothing of their own let the fastest of these policies decide, in each 15 seconds.
fn scaling(rules: &mut Map, policies: &[(&str, i64)]) {
    set_absent(rules, "selectPolicy", "Max");
    if is_absent(rules, "policies") {
        let policy = |(kind, value): &(&str, i64)| {
            Value::from([
                ("type", Value::from(*kind)),
                ("value", Value::from(*value)),
                ("periodSeconds", Value::from(15i64)),
            ])
        };
        rules.insert("policies", policies.iter().map(policy).collect::<Vec<_>>());
    }
}
