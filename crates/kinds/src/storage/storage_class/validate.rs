//! Provisioner, parameters and topologies.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::validate_label_name;
use kubelith_meta::{Map, Value};
use kubelith_rules::common::{Fields, meta, meta_update, qualified_name};
use kubelith_rules::{Rules, internal};
use std::collections::{BTreeMap, BTreeSet};

pub const RULES: Rules =
    Rules { create: |_, class| storage_class(class), update: |_, new, old| class_update(new, old) };

const MAX_PARAMETERS: usize = 512;

const MAX_PARAMETER_BYTES: usize = 256 << 10;

fn storage_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    provisioner(class, "provisioner", &mut errors);
    parameters(class.map("parameters"), &mut errors);
    let policy = class.text("reclaimPolicy");
    if !policy.is_empty() && !["Delete", "Retain"].contains(&policy) {
        let path = Path::new("reclaimPolicy");
        errors.push(Error::not_supported(&path, BadValue::json(policy), ["Delete", "Retain"]));
    }
    let path = Path::new("volumeBindingMode");
    match class.some("volumeBindingMode").and_then(Value::as_str) {
        None => errors.push(Error::required(&path, "")),
        Some("Immediate" | "WaitForFirstConsumer") => {}
        Some(mode) => {
            errors.push(Error::not_supported(&path, BadValue::json(mode), ["Immediate", "WaitForFirstConsumer"]));
        }
    }
    check_topologies(class.list("allowedTopologies"), &Path::new("allowedTopologies"), &mut errors);
    errors
}

fn class_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = storage_class(new);
    errors.extend(meta_update(new, old));
    let fixed = [
        ("parameters", "map[string]"),
        ("provisioner", "string"),
        ("reclaimPolicy", "*string"),
        ("volumeBindingMode", "*string"),
    ];
    for (key, form) in fixed {
        internal::immutable(form, new.get(key), old.get(key), &Path::new(key), &mut errors);
    }
    errors
}

pub fn provisioner(class: &Value, key: &str, errors: &mut ErrorList) {
    let name = class.text(key);
    if name.is_empty() {
        errors.push(Error::required(&Path::new(key), ""));
    } else {
        qualified_name(&name.to_lowercase(), &Path::new(key), errors);
    }
}

pub fn parameters(parameters: Option<&Map>, errors: &mut ErrorList) {
    let Some(parameters) = parameters else { return };
    let path = Path::new("parameters");
    if parameters.len() > MAX_PARAMETERS {
        errors.push(Error::too_long(&path, MAX_PARAMETERS));
        return;
    }
    if parameters.contains_key("") {
        errors.push(Error::invalid(&path, "", "field can not be empty."));
    }
    if bytes_of(parameters) > MAX_PARAMETER_BYTES {
        errors.push(Error::too_long(&path, MAX_PARAMETER_BYTES));
    }
}

pub fn bytes_of(map: &Map) -> usize {
    map.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum()
}

fn check_topologies(terms: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (i, term) in terms.iter().enumerate() {
        let path = path.index(i);
        let mut by_key = BTreeMap::new();
        for (j, requirement) in term.list("matchLabelExpressions").iter().enumerate() {
            let path = path.item("matchLabelExpressions", j);
            let values = requirement.texts("values");
            if values.is_empty() {
                errors.push(Error::required(&path.child("values"), ""));
            }
            let mut distinct = BTreeSet::new();
            for (k, value) in values.into_iter().enumerate() {
                if !distinct.insert(value) {
                    errors.push(Error::duplicate(&path.item("values", k), value));
                }
            }
            let key = requirement.text("key");
            errors.extend(validate_label_name(key, &path.child("key")));
            if by_key.insert(key, distinct).is_some() {
                errors.push(Error::duplicate(&path.child("key"), key));
            }
        }
        // The reference begins with as many empty terms as there are terms, and compares with each.
        let blanks = if by_key.is_empty() { terms.len() } else { 0 };
        for _ in 0..blanks + seen.iter().filter(|other| **other == by_key).count() {
            errors.push(Error::duplicate(&path.child("matchLabelExpressions"), ""));
        }
        seen.push(by_key);
    }
}
