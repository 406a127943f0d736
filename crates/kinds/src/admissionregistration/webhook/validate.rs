//! Configurations of admission webhooks.

use crate::admissionregistration::rule::check_rule;
use crate::admissionregistration::shared::{
    Conditions, FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, check_metadata, expressions,
};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1035_label, validate_fully_qualified_name};
use kubelith_meta::selector::{LabelSelectorRules, validate_label_selector};
use kubelith_rules::common::{Fields, invalid_all, member, same_member, supported};
use kubelith_rules::webhook::{validate_service, validate_url};
use kubelith_rules::{Env, Rules};
use std::collections::BTreeSet;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];

pub const RULES: Rules = Rules {
    create: |request, object| check(object, &Strictness::of_new(request.env)),
    update: |request, new, old| check(new, &Strictness::of_change(request.env, new, old)),
};

/// What is asked only of configurations that keep to it already.
struct Strictness<'a> {
    side_effects: &'static [&'static str],
    known_review: bool,
    unique_names: bool,
    selectors: LabelSelectorRules,
    /// Nothing, if they are as they were.
    conditions: Option<Conditions<'a>>,
}

impl<'a> Strictness<'a> {
    fn of_new(env: &'a Env) -> Strictness<'a> {
        Strictness {
            side_effects: &NO_SIDE_EFFECTS,
            known_review: true,
            unique_names: true,
            selectors: LabelSelectorRules::default(),
            conditions: Some(Conditions { expressions: &env.expressions, has_params: false, stored: BTreeSet::new() }),
        }
    }

    fn of_change(env: &'a Env, new: &Value, old: &'a Value) -> Strictness<'a> {
        let (hooks, new_hooks) = (old.list("webhooks"), new.list("webhooks"));
        let is_harmless = |hook: &Value| NO_SIDE_EFFECTS.contains(&hook.text("sideEffects"));
        let has_review = |hook: &Value| {
            let versions = hook.texts("admissionReviewVersions");
            versions.is_empty() || versions.iter().any(|v| REVIEWS.contains(v))
        };
        let mut names = BTreeSet::new();
        let mut same_conditions = hooks.iter().zip(new_hooks).map(|(a, b)| same_member(a, b, "matchConditions"));
        let is_kept = hooks.len() == new_hooks.len() && same_conditions.all(|same| same);
        let stored = hooks.iter().flat_map(|hook| expressions(hook.list("matchConditions"), "expression")).collect();
        Strictness {
            side_effects: if hooks.iter().all(is_harmless) { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS },
            known_review: hooks.iter().all(has_review),
            unique_names: hooks.iter().all(|hook| names.insert(hook.text("name"))),
            selectors: LabelSelectorRules {
                allow_invalid_values: hooks.iter().any(has_wrong_selector),
                ..LabelSelectorRules::default()
            },
            conditions: (!is_kept).then_some(Conditions { expressions: &env.expressions, has_params: false, stored }),
        }
    }
}

fn has_wrong_selector(hook: &Value) -> bool {
    let selectors = SELECTORS.iter().filter_map(|key| hook.some(key));
    selectors.into_iter().any(|s| !validate_label_selector(s, LabelSelectorRules::default(), &Path::ROOT).is_empty())
}

fn check(object: &Value, strictness: &Strictness<'_>) -> ErrorList {
    let mut errors = check_metadata(object);
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

fn check_hook(hook: &Value, strictness: &Strictness<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_fully_qualified_name(hook.text("name"), &path.child("name")));
    for (i, rule) in hook.list("rules").iter().enumerate() {
        check_rule(rule, &path.item("rules", i), errors);
    }
    let choice = |key: &str, known: &[&str], errors: &mut ErrorList| {
        if let Some(policy) = hook.some(key).and_then(Value::as_str) {
            supported(policy, known, &path.child(key), errors);
        }
    };
    choice("failurePolicy", &FAILURE_POLICIES, errors);
    choice("matchPolicy", &MATCH_POLICIES, errors);
    if !hook.has("sideEffects") {
        let detail = format!("must specify one of {}", strictness.side_effects.join(", "));
        errors.push(Error::required(&path.child("sideEffects"), detail));
    }
    choice("sideEffects", strictness.side_effects, errors);
    if let Some(seconds) = hook.int("timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(Error::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for key in SELECTORS {
        if let Some(selector) = hook.some(key) {
            errors.extend(validate_label_selector(selector, strictness.selectors, &path.child(key)));
        }
    }
    choice("reinvocationPolicy", &REINVOCATION_POLICIES, errors);
    let config = member(hook, "clientConfig");
    let at = path.child("clientConfig");
    match (config.some("url").and_then(Value::as_str), config.some("service")) {
        (Some(url), None) => errors.extend(validate_url(url, &at.child("url"))),
        (None, Some(service)) => errors.extend(validate_service(service, &at.child("service"))),
        _ => errors.push(Error::required(&at, "exactly one of url or service is required")),
    }
    if let Some(conditions) = &strictness.conditions {
        conditions.check(hook.list("matchConditions"), &path.child("matchConditions"), errors);
    }
}

fn check_versions(hook: &Value, strictness: &Strictness<'_>, path: &Path<'_>, errors: &mut ErrorList) {
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
