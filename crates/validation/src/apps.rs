//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions.

use crate::common::{
    Fields, SPEC, dns_label, immutable_member, label_selector, member, meta, meta_update, not_negative,
};
use crate::core::pod::{self, Owner, PodName};
use crate::core::volume::check_claim;
use crate::internal;
use crate::{Env, Request, Rules};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_percent, name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_annotations};
use kubelith_meta::selector::{LabelSelector, validate_labels};
use kubelith_meta::{Map, Value};

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "deployments" => Rules {
            create: |request, object| {
                let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
                deployment(request.env, member(object, "spec"), &mut errors);
                errors
            },
            update: |request, new, old| on_update(request, new, old, deployment, DEPLOYMENT_COUNTS),
        },
        "replicasets" => Rules {
            create: |request, object| {
                let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
                replica_set(request.env, member(object, "spec"), &mut errors);
                errors
            },
            update: |request, new, old| on_update(request, new, old, replica_set, REPLICA_SET_COUNTS),
        },
        "statefulsets" => {
            Rules { create: |request, object| stateful_set(request.env, object), update: stateful_set_update }
        }
        "daemonsets" => Rules {
            create: |request, object| {
                let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
                daemon_set(request.env, member(object, "spec"), &mut errors);
                errors
            },
            update: daemon_set_update,
        },
        "controllerrevisions" => Rules {
            create: |_, object| {
                let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
                revision(object, &mut errors);
                errors
            },
            update: |_, new, old| {
                let mut errors = meta_update(new, old);
                errors.extend(meta(new, Namespacing::Required, name_is_dns_subdomain));
                not_negative(new.number("revision"), &Path::new("revision"), &mut errors);
                immutable_member(new, old, "data", &Path::ROOT, &mut errors);
                errors
            },
        },
        _ => return None,
    })
}

type SpecRule = fn(&Env, &Value, &mut ErrorList);

/// Counts in a status that are never negative, and none over the first.
type Counts = &'static [&'static str];
const DEPLOYMENT_COUNTS: Counts =
    &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
const STATEFUL_SET_COUNTS: Counts =
    &["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
pub const REPLICA_SET_COUNTS: Counts = &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

fn on_update(request: Request<'_>, new: &Value, old: &Value, rule: SpecRule, counts: Counts) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        check_counts(member(new, "status"), counts, &mut errors);
        if counts == DEPLOYMENT_COUNTS {
            check_collisions(new, old, &mut errors);
        }
        return errors;
    }
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    rule(request.env, spec, &mut errors);
    let [new, old] = [spec, before].map(|spec| spec.get("selector"));
    internal::immutable("*LabelSelector", new, old, &SPEC.child("selector"), &mut errors);
    errors
}

pub fn check_counts(status: &Value, counts: Counts, errors: &mut ErrorList) {
    let path = Path::new("status");
    for key in counts {
        not_negative(status.number(key), &path.child(key), errors);
    }
    for key in ["observedGeneration", "collisionCount", "terminatingReplicas"] {
        if let Some(number) = status.int(key) {
            not_negative(number, &path.child(key), errors);
        }
    }
    let all = status.number("replicas");
    for key in counts.iter().skip(1).filter(|key| **key != "unavailableReplicas") {
        if status.number(key) > all {
            let detail = "cannot be greater than status.replicas";
            errors.push(Error::invalid(&path.child(key), status.number(key), detail));
        }
    }
    if status.number("availableReplicas") > status.number("readyReplicas") {
        let detail = match counts {
            STATEFUL_SET_COUNTS => "cannot be greater than status.readyReplicas",
            _ => "cannot be greater than readyReplicas",
        };
        let number = status.number("availableReplicas");
        errors.push(Error::invalid(&path.child("availableReplicas"), number, detail));
    }
}

/// Names of revisions that were taken stay counted.
fn check_collisions(new: &Value, old: &Value, errors: &mut ErrorList) {
    let [own, before] = [new, old].map(|object| member(object, "status").int("collisionCount"));
    if before.is_some_and(|before| own.is_none_or(|own| own < before)) {
        let path = Path::of(&["status", "collisionCount"]);
        errors.push(Error::invalid(&path, own.unwrap_or_default(), "cannot be decremented"));
    }
}

/// A pod template.
pub fn template(env: &Env, template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let metadata = member(template, "metadata");
    if let Some(labels) = metadata.map("labels") {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = metadata.map("annotations") {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    let spec = member(template, "spec");
    pod::annotations::check(env, metadata, spec, &path.child("annotations"), errors);
    pod::spec(env, spec, PodName(""), Owner::Template, &path.child("spec"), errors);
    pod::annotations::check_match(metadata, spec, &path.child("spec"), errors);
    if !spec.list("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(Error::forbidden(&path.children(&["spec", "ephemeralContainers"]), detail));
    }
}

/// The labels of a template must match the selector of its workload.
pub fn check_match(spec: &Value, path: &Path<'_>, when_empty: WhenEmpty, errors: &mut ErrorList) {
    let Ok(selector) = LabelSelector::from_object(spec.some("selector")) else { return };
    if when_empty == WhenEmpty::Anything && selector.is_everything() {
        return;
    }
    let labels = spec.at(&["template", "metadata", "labels"]).and_then(Value::as_object);
    if !selector.matches(labels.unwrap_or(&Map::new())) {
        let shown = labels.map_or(BadValue::text("null"), |l| BadValue::from(&Value::Object(l.clone())));
        let detail = "`selector` does not match template `labels`";
        errors.push(Error::invalid(&path.children(&["template", "metadata", "labels"]), shown, detail));
    }
}

/// What an empty selector selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenEmpty {
    Anything,
    AsIs,
}

fn is_empty_selector(selector: &Value) -> bool {
    selector.map("matchLabels").is_none_or(Map::is_empty) && selector.list("matchExpressions").is_empty()
}

fn check_selector(spec: &Value, what: &str, errors: &mut ErrorList) {
    let path = SPEC.child("selector");
    let Some(selector) = spec.some("selector") else {
        return errors.push(Error::required(&path, ""));
    };
    label_selector(Some(selector), &path, errors);
    if is_empty_selector(selector) {
        let shown = internal::shown("*LabelSelector", Some(selector));
        errors.push(Error::invalid(&path, shown, format!("empty selector is invalid for {what}")));
    }
}

/// The template of what runs forever.
fn check_lasting_template(env: &Env, spec: &Value, what: &str, errors: &mut ErrorList) {
    let path = SPEC.child("template");
    check_match(spec, &SPEC, WhenEmpty::Anything, errors);
    template(env, member(spec, "template"), &path, errors);
    check_always(spec, what, errors);
}

pub fn check_always(spec: &Value, what: &str, errors: &mut ErrorList) {
    let pod = spec.at(&["template", "spec"]).unwrap_or(&Value::Null);
    let policy = pod.text("restartPolicy");
    if policy != "Always" {
        let path = SPEC.children(&["template", "spec", "restartPolicy"]);
        errors.push(Error::not_supported(&path, BadValue::json(policy), ["Always"]));
    }
    if pod.has("activeDeadlineSeconds") {
        let path = SPEC.children(&["template", "spec", "activeDeadlineSeconds"]);
        errors.push(Error::forbidden(&path, format!("activeDeadlineSeconds in {what} is not Supported")));
    }
}

fn invalid_selector(spec: &Value, errors: &mut ErrorList) -> bool {
    let is_invalid = LabelSelector::from_object(spec.some("selector")).is_err();
    if is_invalid {
        let shown = internal::shown("LabelSelector", spec.get("selector"));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, "invalid label selector"));
    }
    is_invalid
}

fn deployment(env: &Env, spec: &Value, errors: &mut ErrorList) {
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    check_selector(spec, "deployment", errors);
    if !invalid_selector(spec, errors) {
        check_lasting_template(env, spec, "ReplicaSet", errors);
    }
    check_deployment_strategy(member(spec, "strategy"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    if let Some(limit) = spec.int("revisionHistoryLimit") {
        not_negative(limit, &SPEC.child("revisionHistoryLimit"), errors);
    }
    if let Some(seconds) = spec.int("progressDeadlineSeconds") {
        let path = SPEC.child("progressDeadlineSeconds");
        not_negative(seconds, &path, errors);
        if seconds <= spec.number("minReadySeconds") {
            errors.push(Error::invalid(&path, seconds, "must be greater than minReadySeconds"));
        }
    }
}

fn check_deployment_strategy(strategy: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("strategy");
    let rolling = strategy.some("rollingUpdate");
    match strategy.text("type") {
        "Recreate" if rolling.is_some() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(Error::forbidden(&path.child("rollingUpdate"), detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let Some(rolling) = rolling else {
                return errors.push(Error::required(&path, "this should be defaulted and never be nil"));
            };
            let (unavailable, surge) = (member(rolling, "maxUnavailable"), member(rolling, "maxSurge"));
            positive_int_or_percent(unavailable, &path.child("maxUnavailable"), errors);
            positive_int_or_percent(surge, &path.child("maxSurge"), errors);
            if int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(Error::invalid(&path.child("maxUnavailable"), int_or_string(unavailable), detail));
            }
            not_over_100_percent(unavailable, &path.child("maxUnavailable"), errors);
        }
        _ => {
            let shown = strategy_form(strategy);
            errors.push(Error::not_supported(&path, shown, ["Recreate", "RollingUpdate"]));
        }
    }
}

/// How the reference prints a strategy: by the names of its fields in Go.
fn strategy_form(strategy: &Value) -> BadValue {
    let kind = kubelith_meta::text::quote(strategy.text("type"));
    let rolling = match strategy.some("rollingUpdate") {
        None => "null".to_owned(),
        Some(rolling) => {
            let value = |key: &str| kubelith_meta::text::json(rolling.some(key).unwrap_or(&Value::Int(0)));
            format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", value("maxUnavailable"), value("maxSurge"))
        }
    };
    BadValue::text(format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"))
}

fn int_or_string(value: &Value) -> BadValue {
    match value {
        Value::Null => BadValue::from(0),
        other => BadValue::text(kubelith_meta::text::json(other)),
    }
}

fn replica_set(env: &Env, spec: &Value, errors: &mut ErrorList) {
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    check_selector(spec, "deployment", errors);
    if !invalid_selector(spec, errors) {
        check_lasting_template(env, spec, "ReplicaSet", errors);
    }
}

fn daemon_set(env: &Env, spec: &Value, errors: &mut ErrorList) {
    label_selector(spec.get("selector"), &SPEC.child("selector"), errors);
    check_match(spec, &SPEC, WhenEmpty::AsIs, errors);
    if let Some(selector) = spec.some("selector").filter(|s| is_empty_selector(s)) {
        let shown = internal::shown("*LabelSelector", Some(selector));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, "empty selector is invalid for daemonset"));
    }
    template(env, member(spec, "template"), &SPEC.child("template"), errors);
    check_always(spec, "DaemonSet", errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    let strategy = member(spec, "updateStrategy");
    let path = SPEC.child("updateStrategy");
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => check_daemon_rolling(strategy, &path.child("rollingUpdate"), errors),
        _ => {
            errors.push(Error::not_supported(&path, strategy_form(strategy), ["RollingUpdate", "OnDelete"]));
        }
    }
    if let Some(limit) = spec.int("revisionHistoryLimit") {
        not_negative(limit, &SPEC.child("revisionHistoryLimit"), errors);
    }
}

fn check_daemon_rolling(strategy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(rolling) = strategy.some("rollingUpdate") else {
        return errors.push(Error::required(path, ""));
    };
    let (unavailable, surge) = (member(rolling, "maxUnavailable"), member(rolling, "maxSurge"));
    for (value, key) in [(unavailable, "maxUnavailable"), (surge, "maxSurge")] {
        positive_int_or_percent(value, &path.child(key), errors);
    }
    for (value, key) in [(unavailable, "maxUnavailable"), (surge, "maxSurge")] {
        not_over_100_percent(value, &path.child(key), errors);
    }
    match (int_or_percent(unavailable) != 0, int_or_percent(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(Error::invalid(&path.child("maxSurge"), int_or_string(surge), detail));
        }
        (false, false) => {
            errors.push(Error::required(&path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

fn daemon_set_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        const COUNTS: [&str; 7] = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let (path, status) = (Path::new("status"), member(new, "status"));
        for key in COUNTS.iter().chain(&["numberUnavailable", "collisionCount"]) {
            not_negative(status.number(key), &path.child(key), &mut errors);
        }
        check_collisions(new, old, &mut errors);
        return errors;
    }
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    let selectors = (spec.get("selector"), before.get("selector"));
    internal::immutable("*LabelSelector", selectors.0, selectors.1, &SPEC.child("selector"), &mut errors);
    daemon_set(request.env, spec, &mut errors);
    errors
}

fn stateful_set(env: &Env, object: &Value) -> ErrorList {
    // Pods get the name, and a number: it must fit a label.
    let mut errors = meta(object, Namespacing::Required, name_is_dns_label);
    check_stateful_set(env, member(object, "spec"), None, &mut errors);
    errors
}

fn stateful_set_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        check_counts(member(new, "status"), STATEFUL_SET_COUNTS, &mut errors);
        check_collisions(new, old, &mut errors);
        return errors;
    }
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    check_stateful_set(request.env, spec, Some(before), &mut errors);
    if !internal::same("FixedStatefulSetSpec", Some(spec), Some(before)) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
             are forbidden";
        errors.push(Error::forbidden(&SPEC, detail));
    }
    errors
}

fn check_stateful_set(env: &Env, spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    let policy = spec.text("podManagementPolicy");
    let path = SPEC.child("podManagementPolicy");
    match policy {
        "" => errors.push(Error::required(&path, "")),
        "OrderedReady" | "Parallel" => {}
        _ => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(Error::invalid(&path, BadValue::json(policy), detail));
        }
    }
    check_stateful_strategy(member(spec, "updateStrategy"), errors);
    if let Some(policy) = spec.some("persistentVolumeClaimRetentionPolicy") {
        let path = SPEC.child("persistentVolumeClaimRetentionPolicy");
        for key in ["whenDeleted", "whenScaled"] {
            let value = policy.text(key);
            if !["Retain", "Delete"].contains(&value) {
                errors.push(Error::not_supported(&path.child(key), BadValue::json(value), ["Retain", "Delete"]));
            }
        }
    }
    if before.is_none() {
        for (i, claim) in spec.list("volumeClaimTemplates").iter().enumerate() {
            let path = SPEC.item("volumeClaimTemplates", i);
            check_claim(member(claim, "spec"), &path.child("spec"), errors);
        }
    }
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    if let Some(ordinals) = spec.some("ordinals") {
        not_negative(ordinals.number("start"), &SPEC.child("ordinals.start"), errors);
    }
    if before.is_none() && !spec.text("serviceName").is_empty() {
        dns_label(spec.text("serviceName"), &SPEC.child("serviceName"), errors);
    }
    check_selector(spec, "statefulset", errors);
    if LabelSelector::from_object(spec.some("selector")).is_err() {
        let shown = internal::shown("LabelSelector", spec.get("selector"));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, ""));
    } else {
        check_match(spec, &SPEC, WhenEmpty::Anything, errors);
        let was_wrong = before.is_some_and(|before| {
            let mut found = ErrorList::new();
            template(env, &with_claims(before), &SPEC.child("template"), &mut found);
            !found.is_empty()
        });
        let own = with_claims(spec);
        let path = SPEC.child("template");
        if !was_wrong {
            template(env, &own, &path, errors);
        }
        // The reference looks at these once more.
        let metadata = member(&own, "metadata");
        if let Some(labels) = metadata.map("labels") {
            errors.extend(validate_labels(labels, &path.child("labels")));
        }
        if let Some(annotations) = metadata.map("annotations") {
            errors.extend(validate_annotations(annotations, &path.child("annotations")));
        }
    }
    check_always(spec, "StatefulSet", errors);
}

/// The template as its pods will be: with a volume for each claim, and names of the controller's choice.
fn with_claims(spec: &Value) -> Value {
    let mut own = member(spec, "template").clone();
    for key in ["subdomain", "hostname"] {
        own.remove_at(&["spec", key]);
    }
    let claims = spec.list("volumeClaimTemplates");
    if claims.is_empty() {
        return own;
    }
    let mut names: Vec<&str> = Vec::with_capacity(claims.len());
    for name in claims.iter().map(|claim| claim.meta().name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| {
            let claim = Value::from([("claimName", Value::from(*name))]);
            Value::from([("name", Value::from(*name)), ("persistentVolumeClaim", claim)])
        })
        .collect();
    let kept = own.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
    volumes.extend(kept.iter().filter(|v| !names.contains(&v.text("name"))).cloned());
    own.set_at(&["spec", "volumes"], Value::Array(volumes));
    own
}

fn check_stateful_strategy(strategy: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("updateStrategy");
    let rolling = strategy.some("rollingUpdate");
    let form = |rolling: &Value| {
        let unavailable = rolling.some("maxUnavailable").map_or("null".into(), kubelith_meta::text::json);
        format!("{{\"Partition\":{},\"MaxUnavailable\":{unavailable}}}", rolling.number("partition"))
    };
    match strategy.text("type") {
        "" => errors.push(Error::required(&path, "")),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(Error::invalid(&path.child("rollingUpdate"), BadValue::text(form(rolling)), detail));
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            let path = path.child("rollingUpdate");
            not_negative(rolling.number("partition"), &path.child("partition"), errors);
        }
        other => {
            let rolling = rolling.map_or("null".to_owned(), form);
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", kubelith_meta::text::quote(other));
            errors.push(Error::invalid(&path, BadValue::text(shown), "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

fn revision(object: &Value, errors: &mut ErrorList) {
    not_negative(object.number("revision"), &Path::new("revision"), errors);
    if !object.has("data") {
        errors.push(Error::required(&Path::new("data"), "data is mandatory"));
    } else if object.get("data").is_some_and(|d| d.as_object().is_none()) {
        errors.push(Error::required(&Path::new("data"), "data must be a valid JSON object"));
    }
}

pub fn positive_int_or_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Null => {}
        Value::Int(number) => not_negative(*number, path, errors),
        _ => {
            let text = value.as_str().unwrap_or_default();
            errors.extend(is_percent(text).into_iter().map(|m| Error::invalid(path, BadValue::json(text), m)));
        }
    }
}

/// The number before the `%`.
pub fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|t| is_percent(t).is_empty())?;
    text.trim_end_matches('%').parse().ok()
}

fn int_or_percent(value: &Value) -> i64 {
    percent(value).or(value.as_i64()).unwrap_or_default()
}

pub fn not_over_100_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if percent(value).is_some_and(|p| p > 100) {
        let text = BadValue::json(value.as_str().unwrap_or_default());
        errors.push(Error::invalid(path, text, "must not be greater than 100%"));
    }
}
