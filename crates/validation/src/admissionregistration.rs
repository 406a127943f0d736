//! Configurations of admission webhooks.

use crate::Rules;
use crate::common::{Fields, invalid_all, label_selector, member, supported};
use crate::webhook::{validate_service, validate_url};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1035_label, is_qualified_name, name_is_dns_subdomain, validate_fully_qualified_name};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use std::collections::BTreeSet;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const MAX_CONDITIONS: usize = 64;

pub fn rules(plural: &str) -> Option<Rules> {
    match plural {
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => Some(Rules {
            create: |_, object| check(object, Strictness::OF_NEW),
            update: |_, new, old| check(new, Strictness::of(old)),
        }),
        _ => None,
    }
}

/// What is asked only of configurations that keep to it already.
#[derive(Clone, Copy)]
struct Strictness {
    side_effects: &'static [&'static str],
    known_review: bool,
    unique_names: bool,
}

impl Strictness {
    const OF_NEW: Strictness = Strictness { side_effects: &NO_SIDE_EFFECTS, known_review: true, unique_names: true };

    fn of(old: &Value) -> Strictness {
        let hooks = old.list("webhooks");
        let is_harmless = |hook: &Value| NO_SIDE_EFFECTS.contains(&hook.text("sideEffects"));
        let has_review = |hook: &Value| hook.texts("admissionReviewVersions").iter().any(|v| REVIEWS.contains(v));
        let mut names = BTreeSet::new();
        Strictness {
            side_effects: if hooks.iter().all(is_harmless) { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS },
            known_review: hooks.iter().all(has_review),
            unique_names: hooks.iter().all(|hook| names.insert(hook.text("name"))),
        }
    }
}

fn check(object: &Value, strictness: Strictness) -> ErrorList {
    let metadata = Path::new("metadata");
    let mut errors = validate_object_meta(object.meta(), Namespacing::Forbidden, name_is_dns_subdomain, &metadata);
    let mut names = BTreeSet::new();
    for (i, hook) in object.list("webhooks").iter().enumerate() {
        let path = Path::new("webhooks");
        let path = path.index(i);
        check_hook(hook, strictness, &path, &mut errors);
        check_versions(hook, strictness, &path.child("admissionReviewVersions"), &mut errors);
        let name = hook.text("name");
        if strictness.unique_names && !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
    }
    errors
}

fn check_hook(hook: &Value, strictness: Strictness, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_fully_qualified_name(hook.text("name"), &path.child("name")));
    for (i, rule) in hook.list("rules").iter().enumerate() {
        check_rule(rule, &path.item("rules", i), errors);
    }
    for (key, known) in [("failurePolicy", ["Fail", "Ignore"]), ("matchPolicy", ["Equivalent", "Exact"])] {
        if let Some(policy) = hook.some(key).and_then(Value::as_str) {
            supported(policy, &known, &path.child(key), errors);
        }
    }
    let effects = path.child("sideEffects");
    match hook.some("sideEffects").and_then(Value::as_str) {
        None => {
            let detail = format!("must specify one of {}", strictness.side_effects.join(", "));
            errors.push(Error::required(&effects, detail));
        }
        Some(class) => supported(class, strictness.side_effects, &effects, errors),
    }
    if let Some(seconds) = hook.int("timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(Error::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        label_selector(hook.get(key), &path.child(key), errors);
    }
    if let Some(policy) = hook.some("reinvocationPolicy").and_then(Value::as_str) {
        supported(policy, &["IfNeeded", "Never"], &path.child("reinvocationPolicy"), errors);
    }
    let config = member(hook, "clientConfig");
    let at = path.child("clientConfig");
    match (config.some("url").and_then(Value::as_str), config.some("service")) {
        (Some(url), None) => errors.extend(validate_url(url, &at.child("url"))),
        (None, Some(service)) => errors.extend(validate_service(service, &at.child("service"))),
        _ => errors.push(Error::required(&at, "exactly one of url or service is required")),
    }
    check_conditions(hook.list("matchConditions"), &path.child("matchConditions"), errors);
}

fn check_rule(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let operations = rule.texts("operations");
    let at = path.child("operations");
    if operations.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    if operations.len() > 1 && operations.contains(&"*") {
        let detail = "if '*' is present, must not specify other operations";
        errors.push(Error::invalid(&at, member(rule, "operations"), detail));
    }
    for (i, operation) in operations.into_iter().enumerate().filter(|(_, o)| !OPERATIONS.contains(o)) {
        errors.push(Error::not_supported(&at.index(i), BadValue::json(operation), OPERATIONS));
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = rule.texts(key);
        let at = path.child(key);
        if values.is_empty() {
            errors.push(Error::required(&at, ""));
        }
        if values.len() > 1 && values.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.push(Error::invalid(&at, member(rule, key), detail));
        }
        if key == "apiVersions" {
            for (i, _) in values.iter().enumerate().filter(|(_, v)| v.is_empty()) {
                errors.push(Error::required(&at.index(i), ""));
            }
        }
    }
    check_resources(rule, &path.child("resources"), errors);
    if let Some(scope) = rule.some("scope").and_then(Value::as_str) {
        supported(scope, &["*", "Cluster", "Namespaced"], &path.child("scope"), errors);
    }
}

fn check_resources(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let resources = rule.texts("resources");
    if resources.is_empty() {
        errors.push(Error::required(path, ""));
    }
    let (mut with_any_part, mut parts_of_any) = (BTreeSet::new(), BTreeSet::new());
    // As in the reference, the last resource without a part decides.
    let mut has_plain = false;
    for (i, text) in resources.iter().enumerate() {
        if text.is_empty() {
            errors.push(Error::required(&path.index(i), ""));
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            has_plain = *text != "*";
            continue;
        };
        if with_any_part.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(Error::invalid(&path.index(i), *text, detail));
        }
        if parts_of_any.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            errors.push(Error::invalid(&path.index(i), *text, detail));
        }
        if part == "*" {
            with_any_part.insert(resource);
        }
        if resource == "*" {
            parts_of_any.insert(part);
        }
    }
    let shown = member(rule, "resources");
    if resources.len() > 1 && resources.contains(&"*/*") {
        errors.push(Error::invalid(path, shown, "if '*/*' is present, must not specify other resources"));
    }
    if resources.contains(&"*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(Error::invalid(path, shown, detail));
    }
}

fn check_versions(hook: &Value, strictness: Strictness, path: &Path<'_>, errors: &mut ErrorList) {
    let versions = hook.texts("admissionReviewVersions");
    if versions.is_empty() {
        return errors.push(Error::required(path, format!("must specify one of {}", REVIEWS.join(", "))));
    }
    let mut seen = BTreeSet::new();
    for (i, version) in versions.iter().enumerate() {
        if !seen.insert(*version) {
            errors.push(Error::invalid(&path.index(i), *version, "duplicate version"));
            continue;
        }
        invalid_all(is_dns1035_label(version), &path.index(i), version, errors);
    }
    if strictness.known_review && !versions.iter().any(|v| REVIEWS.contains(v)) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(Error::invalid(path, member(hook, "admissionReviewVersions"), detail));
    }
}

/// Conditions have names; what they say is not understood yet.
fn check_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(Error::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let name = condition.text("name");
        if condition.text("expression").trim().is_empty() {
            errors.push(Error::required(&path.child("expression"), ""));
        }
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        } else {
            invalid_all(is_qualified_name(name), &path.child("name"), name, errors);
            if !names.insert(name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
        }
    }
}
