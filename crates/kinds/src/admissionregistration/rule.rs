//! Which requests something is about: rules of webhooks and policies.

use crate::admissionregistration::shared::MATCH_POLICIES;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_path_segment};
use kubelith_rules::common::{Fields, invalid_all, label_selector, member, supported};
use std::collections::BTreeSet;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Nothing is left to change of what is deleted.
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// `matchConstraints` of a policy, `matchResources` of a binding.
pub fn check_match(resources: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("matchPolicy");
    match resources.some("matchPolicy") {
        None => errors.push(Error::required(&at, "")),
        Some(policy) => supported(policy.or_empty(), &MATCH_POLICIES, &at, errors),
    }
    for key in ["namespaceSelector", "objectSelector"] {
        match resources.some(key) {
            None => errors.push(Error::required(&path.child(key), "")),
            selector => label_selector(selector, &path.child(key), errors),
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (i, rule) in resources.list(key).iter().enumerate() {
            let path = path.item(key, i);
            check_names(rule, &path, errors);
            check_rule(rule, &path, errors);
        }
    }
}

/// What is to be changed cannot be about to go. The path names no rule, as in the reference.
pub fn check_mutating(resources: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.children(&["resourceRules", "operations"]);
    for operation in resources.list("resourceRules").iter().flat_map(|rule| rule.texts("operations")) {
        supported(operation, &MUTATING_OPERATIONS, &path, errors);
    }
}

fn check_names(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (i, name) in rule.texts("resourceNames").into_iter().enumerate() {
        let path = path.item("resourceNames", i);
        invalid_all(name_is_path_segment(name, NameUse::Full), &path, name, errors);
        if !seen.insert(name) {
            errors.push(Error::duplicate(&path, name));
        }
    }
}

pub fn check_rule(rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
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
