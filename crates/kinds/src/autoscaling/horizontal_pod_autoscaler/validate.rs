//! Metrics, targets and behaviour.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, name_is_path_segment};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{
    Fields, SPEC, bad_quantity, dns_label, member, meta, meta_update, name_full, not_negative, quantity,
    quantity_not_negative, supported,
};
use kubelith_rules::resources::container_resource_name;
use kubelith_rules::values::kind_and_name;
use kubelith_rules::{Env, Request, Rules};

pub const RULES: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        let target = member(member(object, "spec"), "scaleTargetRef");
        check(member(object, "spec"), least_replicas(request.env), group_of(target), &mut errors);
        errors
    },
    update: on_update,
};

const MAX_PERIOD: i64 = 1800;

const MAX_WINDOW: i64 = 3600;

const SOURCES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

fn on_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        let (status, path) = (member(new, "status"), Path::new("status"));
        for key in ["currentReplicas", "desiredReplicas"] {
            not_negative(status.number(key), &path.child(key), &mut errors);
        }
    } else {
        // What stands there already may stay.
        let target = |object: &Value| member(member(object, "spec"), "scaleTargetRef").clone();
        let (own, before) = (target(new), target(old));
        let is_same = ["apiVersion", "kind"].iter().all(|key| own.text(key) == before.text(key));
        let group = if is_same { Group::Any } else { group_of(&own) };
        let spec = member(new, "spec");
        let least = match member(member(old, "spec"), "minReplicas").as_i64() {
            Some(0) => 0,
            _ => least_replicas(request.env),
        };
        check(spec, least, group, &mut errors);
    }
    errors
}

/// Of the lower limit.
fn least_replicas(env: &Env) -> i64 {
    if env.features.scales_to_zero { 0 } else { 1 }
}

fn check(spec: &Value, least: i64, group: Group, errors: &mut ErrorList) {
    let (min, max) = (spec.int("minReplicas"), spec.number("maxReplicas"));
    if let Some(min) = min.filter(|min| *min < least) {
        errors.push(Error::invalid(
            &SPEC.child("minReplicas"),
            min,
            format!("must be greater than or equal to {least}"),
        ));
    }
    let path = SPEC.child("maxReplicas");
    if max == 0 {
        errors.push(Error::required(&path, "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(Error::invalid(&path, max, "must be greater than or equal to 1"));
    }
    if min.is_some_and(|min| max < min) {
        errors.push(Error::invalid(&path, max, "must be greater than or equal to `minReplicas`"));
    }
    check_reference(member(spec, "scaleTargetRef"), group, &SPEC.child("scaleTargetRef"), errors);
    let metrics = spec.list("metrics");
    for (i, metric) in metrics.iter().enumerate() {
        check_metric(metric, &SPEC.item("metrics", i), errors);
    }
    if min == Some(0) && !metrics.iter().any(|m| ["Object", "External"].contains(&m.text("type"))) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(Error::forbidden(&SPEC.child("metrics"), detail));
    }
    if let Some(behavior) = spec.some("behavior") {
        let path = SPEC.child("behavior");
        for key in ["scaleUp", "scaleDown"] {
            if let Some(rules) = behavior.some(key) {
                check_scaling(rules, &path.child(key), errors);
            }
        }
    }
}

/// Replication controllers are the only ones without a group that can be scaled.
fn group_of(target: &Value) -> Group {
    if target.text("kind") == "ReplicationController" { Group::Optional } else { Group::Required }
}

/// Whether a reference may leave out the group, as if it were to the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Required,
    Optional,
    /// Whatever it says.
    Any,
}

fn check_reference(reference: &Value, group: Group, path: &Path<'_>, errors: &mut ErrorList) {
    kind_and_name(reference, path, errors);
    let version = reference.text("apiVersion");
    let problem = match version.matches('/').count() {
        0 if group == Group::Required => Some("apiVersion must specify API group".to_owned()),
        0 | 1 => None,
        _ if group == Group::Any => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    };
    if let Some(problem) = problem {
        errors.push(Error::invalid(&path.child("apiVersion"), version, problem));
    }
}

fn check_metric(metric: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = metric.text("type");
    if kind.is_empty() {
        errors.push(Error::required(&path.child("type"), "must specify a metric source type"));
    }
    let is_known = SOURCES.contains(&kind);
    let unsupported = || Error::not_supported(&path.child("type"), BadValue::json(kind), SOURCES);
    if !is_known {
        errors.push(unsupported());
    }
    let mut present: Vec<&str> = Vec::new();
    for key in ["object", "external", "pods", "resource", "containerResource"] {
        let Some(source) = metric.some(key) else { continue };
        present.push(key);
        if present.len() == 1 {
            check_source(key, source, &path.child(key), errors);
        }
    }
    let mut expected = kind.to_owned();
    if let Some(first) = expected.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    if !is_known {
        errors.push(unsupported());
    } else if !metric.has(&expected) {
        let detail = "must populate information for the given metric source";
        errors.push(Error::required(&path.child(&expected), detail));
    }
    if present.len() != 1 {
        for key in present.into_iter().filter(|key| *key != expected) {
            errors.push(Error::forbidden(&path.child(key), "must populate the given metric source only"));
        }
    }
}

fn check_source(key: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let target = member(source, "target");
    let target_path = path.child("target");
    let has = |key: &str| target.has(key);
    match key {
        "object" => {
            check_reference(member(source, "describedObject"), Group::Optional, &path.child("describedObject"), errors)
        }
        "resource" if source.text("name").is_empty() => {
            errors.push(Error::required(&path.child("name"), "must specify a resource name"));
        }
        "containerResource" => {
            if source.text("name").is_empty() {
                errors.push(Error::required(&path.child("name"), "must specify a resource name"));
            } else {
                container_resource_name(source.text("name"), &path.child("name"), errors);
            }
            if source.text("container").is_empty() {
                errors.push(Error::required(&path.child("container"), "must specify a container"));
            } else {
                dns_label(source.text("container"), &path.child("container"), errors);
            }
        }
        _ => {}
    }
    if matches!(key, "object" | "external" | "pods") {
        let path = path.child("metric");
        let name = member(source, "metric").text("name");
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), "must specify a metric name"));
        } else {
            name_full(name_is_path_segment, name, &path.child("name"), errors);
        }
    }
    check_target(target, &target_path, errors);
    let average = target_path.child("averageValue");
    match key {
        "object" if !has("value") && !has("averageValue") => {
            errors.push(Error::required(&average, "must set either a target value or averageValue"));
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(Error::required(&average, detail));
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(Error::forbidden(&target_path.child("value"), detail));
        }
        "pods" if !has("averageValue") => {
            errors.push(Error::required(&average, "must specify a positive target averageValue"));
        }
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => {
                let detail = "must set either a target raw value or a target utilization";
                errors.push(Error::required(&target_path.child("averageUtilization"), detail));
            }
            (true, true) => {
                let detail = "may not set both a target raw value and a target utilization";
                errors.push(Error::forbidden(&average, detail));
            }
            _ => {}
        },
        _ => {}
    }
}

fn check_target(target: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let kind = target.text("type");
    if kind.is_empty() {
        errors.push(Error::required(&path.child("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(Error::invalid(&path.child("type"), BadValue::json(kind), detail));
    }
    for key in ["value", "averageValue"] {
        if let Some(value) = target.some(key).filter(|v| quantity(v).is_some_and(|q| q.signum() <= 0)) {
            errors.push(Error::invalid(&path.child(key), bad_quantity(value), "must be positive"));
        }
    }
    if let Some(percent) = target.int("averageUtilization").filter(|p| *p < 1) {
        errors.push(Error::invalid(&path.child("averageUtilization"), percent, "must be greater than 0"));
    }
}

fn check_scaling(rules: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let window_path = path.child("stabilizationWindowSeconds");
    if let Some(window) = rules.int("stabilizationWindowSeconds") {
        if window < 0 {
            errors.push(Error::invalid(&window_path, window, "must be greater than or equal to zero"));
        }
        if window > MAX_WINDOW {
            errors.push(Error::invalid(&window_path, window, format!("must be less than or equal to {MAX_WINDOW}")));
        }
    }
    if let Some(policy) = rules.some("selectPolicy").and_then(Value::as_str) {
        supported(policy, &["Disabled", "Max", "Min"], &path.child("selectPolicy"), errors);
    }
    if rules.list("policies").is_empty() {
        errors.push(Error::required(&path.child("policies"), "must specify at least one Policy"));
    }
    for (i, policy) in rules.list("policies").iter().enumerate() {
        let path = path.item("policies", i);
        supported(policy.text("type"), &["Percent", "Pods"], &path.child("type"), errors);
        for key in ["value", "periodSeconds"] {
            let number = policy.number(key);
            if number <= 0 {
                errors.push(Error::invalid(&path.child(key), number, "must be greater than zero"));
            }
        }
        let period = policy.number("periodSeconds");
        if period > MAX_PERIOD {
            let detail = format!("must be less than or equal to {MAX_PERIOD}");
            errors.push(Error::invalid(&path.child("periodSeconds"), period, detail));
        }
    }
    if let Some(tolerance) = rules.some("tolerance") {
        quantity_not_negative(tolerance, &path.child("tolerance"), errors);
    }
}
