//! Bindings: where a policy holds, and with which parameters.

use crate::admissionregistration::rule::{self, check_match};
use crate::admissionregistration::shared::check_metadata;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_subdomain, name_is_path_segment};
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, SPEC, invalid_all, label_selector, member, name_full, supported};
use std::collections::BTreeSet;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

pub const VALIDATING: Rules =
    Rules { create: |_, binding| check_validating(binding), update: |_, new, _| check_validating(new) };

pub const MUTATING: Rules =
    Rules { create: |_, binding| check_mutating(binding), update: |_, new, _| check_mutating(new) };

fn check_validating(binding: &Value) -> ErrorList {
    let mut errors = check_metadata(binding);
    let spec = member(binding, "spec");
    check_common(spec, &mut errors);
    check_actions(spec, &SPEC.child("validationActions"), &mut errors);
    errors
}

fn check_mutating(binding: &Value) -> ErrorList {
    let mut errors = check_metadata(binding);
    let spec = member(binding, "spec");
    check_common(spec, &mut errors);
    rule::check_mutating(member(spec, "matchResources"), &SPEC.child("matchResources"), &mut errors);
    errors
}

fn check_common(spec: &Value, errors: &mut ErrorList) {
    let at = SPEC.child("policyName");
    match spec.text("policyName") {
        "" => errors.push(Error::required(&at, "")),
        name => name_full(name_is_dns_subdomain, name, &at, errors),
    }
    if let Some(reference) = spec.some("paramRef") {
        check_reference(reference, &SPEC.child("paramRef"), errors);
    }
    if let Some(resources) = spec.some("matchResources") {
        check_match(resources, &SPEC.child("matchResources"), errors);
    }
}

fn check_reference(reference: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const ONE_ONLY: &str = "name and selector are mutually exclusive";
    let (name, selector) = (reference.text("name"), reference.some("selector"));
    if !name.is_empty() {
        invalid_all(name_is_path_segment(name, NameUse::Full), &path.child("name"), name, errors);
        if selector.is_some() {
            errors.push(Error::forbidden(&path.child("name"), ONE_ONLY));
        }
    }
    label_selector(selector, &path.child("selector"), errors);
    match (name, selector) {
        ("", None) => errors.push(Error::required(path, "one of name or selector must be specified")),
        ("", Some(_)) | (_, None) => {}
        (_, Some(_)) => errors.push(Error::forbidden(&path.child("selector"), ONE_ONLY)),
    }
    let at = path.child("parameterNotFoundAction");
    match reference.text("parameterNotFoundAction") {
        "" => errors.push(Error::required(&at, "")),
        action => supported(action, &["Deny", "Allow"], &at, errors),
    }
}

fn check_actions(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let actions = spec.texts("validationActions");
    let mut seen = BTreeSet::new();
    for (i, action) in actions.iter().enumerate() {
        supported(action, &ACTIONS, &path.index(i), errors);
        if !seen.insert(*action) {
            errors.push(Error::duplicate(&path.index(i), BadValue::json(*action)));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(Error::invalid(path, member(spec, "validationActions"), detail));
    }
    if actions.is_empty() {
        errors.push(Error::required(path, "at least one validation action is required"));
    }
}
