//! HorizontalPodAutoscalers: autoscaling/v1 knows one target, the CPU's utilisation. It keeps all else of v2 in
//! annotations, which only it shows.

use super::annotations::{Order, PLAIN, list_from_json, object_from_json, to_json};
use super::metrics::{SPEC_ORDER, STATUS_ORDER, Side, to_v1 as metric_to_v1, to_v2 as metric_to_v2};
use super::values::{object, put};
use kubelith_codec::json;
use kubelith_meta::{Map, Value};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// What v1 keeps in annotations never shows in v2, and what a client writes there is not kept.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The target of an autoscaler that names none.
const DEFAULT_CPU_UTILIZATION: i64 = 80;

const CONDITION_ORDER: Order =
    Order(&[("type", PLAIN), ("status", PLAIN), ("lastTransitionTime", PLAIN), ("reason", PLAIN), ("message", PLAIN)]);

/// The reference prints its internal structs here: names in Go's case, and every key.
const BEHAVIOR_ORDER: Order = Order(&[("ScaleUp", RULES_ORDER), ("ScaleDown", RULES_ORDER)]);

const RULES_ORDER: Order = Order(&[
    ("StabilizationWindowSeconds", PLAIN),
    ("SelectPolicy", PLAIN),
    ("Policies", Order(&[("Type", PLAIN), ("Value", PLAIN), ("PeriodSeconds", PLAIN)])),
    ("Tolerance", PLAIN),
]);

const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];

const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];

pub fn to_v2(hpa: &mut Value) {
    let annotation = |key: &str| hpa.at(&["metadata", "annotations", key]).and_then(Value::as_str);
    let other_metrics = annotation(METRICS).and_then(|t| list_from_json(t, "io.k8s.api.autoscaling.v1.MetricSpec"));
    let measured =
        annotation(CURRENT_METRICS).and_then(|t| list_from_json(t, "io.k8s.api.autoscaling.v1.MetricStatus"));
    let conditions = annotation(CONDITIONS)
        .and_then(|t| list_from_json(t, "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerCondition"));
    let behavior = annotation(BEHAVIOR).and_then(behavior_to_v2);

    let mut metrics: Vec<Value> =
        other_metrics.unwrap_or_default().iter().map(|m| metric_to_v2(m, Side::Spec)).collect();
    let percentage = hpa.remove_at(&["spec", "targetCPUUtilizationPercentage"]);
    metrics.extend(percentage.map(cpu_target));
    if metrics.is_empty() {
        metrics.push(cpu_target(DEFAULT_CPU_UTILIZATION.into()));
    }
    hpa.set_at(&["spec", "metrics"], Value::Array(metrics));
    if let Some(behavior) = behavior {
        hpa.set_at(&["spec", "behavior"], behavior);
    }

    let percentage = hpa.remove_at(&["status", "currentCPUUtilizationPercentage"]);
    if let Some(measured) = measured {
        let measured = measured.iter().map(|m| metric_to_v2(m, Side::Status)).collect();
        hpa.set_at(&["status", "currentMetrics"], Value::Array(measured));
    } else if let Some(percentage) = percentage {
        hpa.set_at(&["status", "currentMetrics"], Value::Array(vec![cpu_measured(percentage)]));
    }
    if let Some(conditions) = conditions {
        hpa.set_at(&["status", "conditions"], Value::Array(conditions));
    }
    drop_annotations(hpa);
}

pub fn from_v2(hpa: &mut Value) {
    drop_annotations(hpa);
    let spec = object(hpa, "spec");
    let (metrics, behavior) = spec.map(|s| (s.remove("metrics"), s.remove("behavior"))).unwrap_or_default();
    let (mut percentage, mut others) = (None, Vec::new());
    for metric in metrics.iter().filter_map(Value::as_array).flatten() {
        match metric.at(&["resource", "target", "averageUtilization"]) {
            Some(utilization) if is_cpu(metric) => percentage = percentage.or(Some(utilization.clone())),
            _ => others.push(metric_to_v1(metric, Side::Spec)),
        }
    }
    if let Some(percentage) = percentage {
        hpa.set_at(&["spec", "targetCPUUtilizationPercentage"], percentage);
    }
    if !others.is_empty() {
        annotate(hpa, METRICS, to_json(&Value::Array(others), &SPEC_ORDER));
    }
    if let Some(behavior) = behavior.filter(|b| !b.is_null()) {
        annotate(hpa, BEHAVIOR, to_json(&behavior_from_v2(&behavior), &BEHAVIOR_ORDER));
    }

    let status = object(hpa, "status");
    let (measured, conditions) =
        status.map(|s| (s.remove("currentMetrics"), s.remove("conditions"))).unwrap_or_default();
    let measured: Vec<Value> = measured.iter().filter_map(Value::as_array).flatten().cloned().collect();
    for metric in measured.iter().filter(|m| is_cpu(m)) {
        if let Some(utilization) = metric.at(&["resource", "current", "averageUtilization"]) {
            hpa.set_at(&["status", "currentCPUUtilizationPercentage"], utilization.clone());
        }
    }
    if !measured.is_empty() {
        let measured = measured.iter().map(|m| metric_to_v1(m, Side::Status)).collect();
        annotate(hpa, CURRENT_METRICS, to_json(&Value::Array(measured), &STATUS_ORDER));
    }
    if let Some(conditions) = conditions.filter(|c| !c.is_empty()) {
        annotate(hpa, CONDITIONS, to_json(&conditions, &CONDITION_ORDER));
    }
}

fn drop_annotations(hpa: &mut Value) {
    if let Some(annotations) = hpa.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !ANNOTATIONS.contains(&key));
    }
}

fn annotate(hpa: &mut Value, key: &str, text: String) {
    hpa.set_at(&["metadata", "annotations", key], text.into());
}

fn is_cpu(metric: &Value) -> bool {
    metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu"
}

fn cpu_target(percentage: Value) -> Value {
    let mut metric = cpu_metric();
    metric.set_at(&["resource", "target", "type"], "Utilization".into());
    metric.set_at(&["resource", "target", "averageUtilization"], percentage);
    metric
}

fn cpu_measured(percentage: Value) -> Value {
    let mut metric = cpu_metric();
    metric.set_at(&["resource", "current", "averageUtilization"], percentage);
    metric
}

fn cpu_metric() -> Value {
    let mut metric = Value::from([("type", "Resource")]);
    metric.set_at(&["resource", "name"], "cpu".into());
    metric
}

fn behavior_from_v2(behavior: &Value) -> Value {
    let policy = |policy: &Value| rename_all(policy, &POLICY, |_, v| v.clone());
    let rules = |rules: &Value| {
        rename_all(rules, &RULES, |key, value| match (key, value) {
            ("Policies", Value::Array(policies)) => Value::Array(policies.iter().map(policy).collect()),
            _ => value.clone(),
        })
    };
    rename_all(behavior, &[("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")], |_, v| {
        if v.is_null() { Value::Null } else { rules(v) }
    })
}

/// An object with the names of the internal structs, all of them.
fn rename_all(from: &Value, names: &[(&str, &str)], inner: impl Fn(&str, &Value) -> Value) -> Value {
    let mut out = Map::new();
    for (internal, name) in names {
        out.insert(*internal, inner(internal, from.get(name).unwrap_or(&Value::Null)));
    }
    Value::Object(out)
}

/// `None` for text that is no behaviour, or an empty one.
fn behavior_to_v2(text: &str) -> Option<Value> {
    let rules = |value: &Value| {
        let mut rules = take_names(value, &RULES)?;
        if let Some(Value::Array(policies)) = rules.get_mut("policies") {
            for policy in policies {
                *policy = Value::Object(take_names(policy, &POLICY)?);
            }
        }
        Some(Value::Object(rules))
    };
    let parsed = json::parse(text.as_bytes()).ok()?;
    let parsed = take_names(&parsed, &[("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")])?;
    let mut behavior = Map::new();
    for key in ["scaleUp", "scaleDown"] {
        if let Some(value) = parsed.get(key).filter(|v| !v.is_null()) {
            put(&mut behavior, key, Some(rules(value)?));
        }
    }
    let text = json::to_string(&Value::Object(behavior));
    object_from_json(&text, "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior").filter(|b| !b.is_empty())
}

/// The members under their names in v2. Go's decoder does not look at the case of keys; null means empty.
fn take_names(value: &Value, names: &[(&str, &str)]) -> Option<Map> {
    let mut out = Map::new();
    if value.is_null() {
        return Some(out);
    }
    for (key, value) in value.as_object()?.iter() {
        if let Some((_, name)) = names.iter().find(|(internal, _)| internal.eq_ignore_ascii_case(key)) {
            out.insert(*name, value.clone());
        }
    }
    Some(out)
}
