//! What kinds that make pods share.

use crate::apps::deployment::validate::DEPLOYMENT_COUNTS;
use crate::apps::stateful_set::validate::STATEFUL_SET_COUNTS;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{Map, Value};
use kubelith_pods::template::template;
use kubelith_rules::common::{Fields, SPEC, label_selector, member, meta_update, not_negative};
use kubelith_rules::defaults::{object_mut, set_absent, text};
use kubelith_rules::{Env, Request, internal};

type SpecRule = fn(&Env, &Value, &mut ErrorList);

/// Counts in a status that are never negative, and none over the first.
pub type Counts = &'static [&'static str];

pub const REPLICA_SET_COUNTS: Counts = &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

pub fn on_update(request: Request<'_>, new: &Value, old: &Value, rule: SpecRule, counts: Counts) -> ErrorList {
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
pub fn check_collisions(new: &Value, old: &Value, errors: &mut ErrorList) {
    let [own, before] = [new, old].map(|object| member(object, "status").int("collisionCount"));
    if before.is_some_and(|before| own.is_none_or(|own| own < before)) {
        let path = Path::of(&["status", "collisionCount"]);
        errors.push(Error::invalid(&path, own.unwrap_or_default(), "cannot be decremented"));
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

pub fn is_empty_selector(selector: &Value) -> bool {
    selector.map("matchLabels").is_none_or(Map::is_empty) && selector.list("matchExpressions").is_empty()
}

pub fn check_selector(spec: &Value, what: &str, errors: &mut ErrorList) {
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
pub fn check_lasting_template(env: &Env, spec: &Value, what: &str, errors: &mut ErrorList) {
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

pub fn invalid_selector(spec: &Value, errors: &mut ErrorList) -> bool {
    let is_invalid = LabelSelector::from_object(spec.some("selector")).is_err();
    if is_invalid {
        let shown = internal::shown("LabelSelector", spec.get("selector"));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, "invalid label selector"));
    }
    is_invalid
}

/// The number of replicas is optional in what clients send, and never absent in what the reference works with.
pub fn no_replicas(object: &mut Value) {
    object.set_at(&["spec", "replicas"], Value::Int(0));
}

/// How far a rolling update may go beside the wanted number.
pub fn rolling_update(strategy: &mut Map, max_unavailable: Value, max_surge: Value) {
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    let rolling = strategy.entry_or_null("rollingUpdate").make_object();
    set_absent(rolling, "maxUnavailable", max_unavailable);
    set_absent(rolling, "maxSurge", max_surge);
}

/// An object without labels has those of its template. The two are one then: [`follows_template`] tells.
pub fn labels_from_template(object: &mut Map) {
    if object.get("metadata").and_then(|m| m.get("labels")).is_some_and(|labels| !labels.is_empty()) {
        return;
    }
    let template = object_mut(object, "spec").and_then(|spec| spec.get_mut("template"));
    let labels = template.and_then(|template| template.at_mut(&LABELS)).and_then(Value::as_object_mut);
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        labels.seal();
        let labels = labels.clone();
        object.entry_or_null("metadata").make_object().insert("labels", labels);
    }
}

/// Whether the labels of an object are those of its template because it had none of its own, and nobody changed either.
pub fn follows_template(object: &Value) -> bool {
    let template = object.at(&["spec", "template"]).and_then(|template| template.at(&LABELS));
    match (object.at(&LABELS), template) {
        (Some(Value::Object(own)), Some(Value::Object(template))) => own.shares_with(template),
        _ => false,
    }
}

const LABELS: [&str; 2] = ["metadata", "labels"];

pub fn template_labels(spec: &Map) -> Option<&Value> {
    spec.get("template")?.at(&LABELS).filter(|labels| !labels.is_empty())
}
