//! Taints, ranges, resources and what a kubelet declares.

use crate::core::node::config;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{Cidr, is_label_value, name_is_dns_subdomain, validate_cidr_of_legacy_field};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::validate_label_name;
use kubelith_pods::validate::taint_effect;
use kubelith_rules::common::{Fields, METADATA, POSITIVE, SPEC, invalid_all, member, meta, meta_update};
use kubelith_rules::resources::resource_value;
use kubelith_rules::{Env, Rules, internal};

/// Bytes.
const MAX_FEATURE_NAME: usize = 253;

pub const RULES: Rules = Rules {
    create: |request, node| check(request.env, node),
    update: |request, new, old| {
        // All of a new node's rules hold for a changed one, too, but for its status.
        let mut errors = if request.subresource == "status" { ErrorList::new() } else { check(request.env, new) };
        errors.extend(meta_update(new, old));
        check_annotations(new, &mut errors);
        check_resources(new, &mut errors);
        check_features(new, &mut errors);
        let addresses = member(new, "status").list("addresses");
        for (i, address) in addresses.iter().enumerate().filter(|(i, a)| addresses[..*i].contains(a)) {
            let shown = internal::shown("NodeAddress", Some(address));
            errors.push(Error::duplicate(&Path::of(&["status", "addresses"]).index(i), shown));
        }
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        check_unchanged(spec, before, &mut errors);
        config::check(new, &mut errors);
        check_taints(spec, &mut errors);
        if spec.text("externalID") != before.text("externalID") {
            errors.push(Error::forbidden(&SPEC.child("externalID"), "may not be updated"));
        }
        errors
    },
};

fn check(env: &Env, node: &Value) -> ErrorList {
    let mut errors = meta(node, Namespacing::Forbidden, name_is_dns_subdomain);
    check_annotations(node, &mut errors);
    check_taints(member(node, "spec"), &mut errors);
    check_resources(node, &mut errors);
    let swap = member(member(member(node, "status"), "nodeInfo"), "swap");
    if let Some(capacity) = swap.int("capacity").filter(|c| *c <= 0) {
        // The reference finds it below metadata.
        let path = Path::of(&["metadata", "nodeSwapStatus", "capacity"]);
        errors.push(Error::invalid(&path, capacity, POSITIVE));
    }
    check_features(node, &mut errors);
    check_ranges(env, member(node, "spec"), &mut errors);
    errors
}

/// Which pods to keep away, as it was once told.
fn check_annotations(node: &Value, errors: &mut ErrorList) {
    const KEY: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    let Some(text) = node.meta().annotation(KEY).filter(|text| !text.is_empty()) else {
        return;
    };
    let path = METADATA.child("annotations");
    let avoided = match kubelith_codec::json::parse(text.as_bytes()) {
        Ok(avoided) => avoided,
        Err(why) => return errors.push(Error::invalid(&path.child("AvoidPods"), KEY, why.to_string())),
    };
    for (i, entry) in avoided.list("preferAvoidPods").iter().enumerate() {
        let path = path.item(KEY, i);
        let path = path.child("PodSignature");
        let controller = member(member(entry, "podSignature"), "podController");
        if controller.is_null() {
            errors.push(Error::required(&path, ""));
        } else if !controller.flag("controller") {
            let path = path.children(&["PodController", "Controller"]);
            errors.push(Error::invalid(&path, false, "must point to a controller"));
        }
    }
}

/// What a kubelet says it can do, sorted.
fn check_features(node: &Value, errors: &mut ErrorList) {
    let features = member(node, "status").texts("declaredFeatures");
    let path = Path::of(&["status", "declaredFeatures"]);
    for (i, feature) in features.iter().enumerate() {
        let name = kubelith_meta::text::quote(feature);
        if feature.len() > MAX_FEATURE_NAME {
            let detail = format!("invalid feature name {name}: must be no more than {MAX_FEATURE_NAME} characters");
            errors.push(Error::invalid(&path.index(i), *feature, detail));
        } else if !is_feature(feature) {
            let detail = format!(
                "invalid feature name {name}: must start with an UpperCamelCase segment, with subsequent segments separated \
                 by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            );
            errors.push(Error::invalid(&path.index(i), *feature, detail));
        }
        match features.get(i + 1) {
            Some(next) if next == feature => errors.push(Error::duplicate(&path.index(i + 1), *next)),
            Some(next) if next < feature => {
                errors.push(Error::invalid(&path.index(i + 1), *next, "list must be sorted alphabetically"));
            }
            _ => {}
        }
    }
}

fn is_feature(name: &str) -> bool {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_word)
}

/// What is given to a node once is its own.
fn check_unchanged(spec: &Value, before: &Value, errors: &mut ErrorList) {
    let (new, old) = (spec.texts("podCIDRs"), before.texts("podCIDRs"));
    if !old.is_empty() {
        let changes = if new.len() == old.len() { old.iter().zip(&new).filter(|(a, b)| a != b).count() } else { 1 };
        for _ in 0..changes {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(Error::forbidden(&SPEC.child("podCIDRs"), detail));
        }
    }
    let old = before.text("providerID");
    if !old.is_empty() && spec.text("providerID") != old {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(Error::forbidden(&SPEC.child("providerID"), detail));
    }
}

/// The reference finds taints below metadata.
fn check_taints(spec: &Value, errors: &mut ErrorList) {
    let list = Path::of(&["metadata", "taints"]);
    let taints = spec.list("taints");
    for (i, taint) in taints.iter().enumerate() {
        let path = list.index(i);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        errors.extend(validate_label_name(key, &path.child("key")));
        let messages = is_label_value(value);
        if !messages.is_empty() {
            invalid_all(vec![messages.join(";")], &path.child("value"), value, errors);
        }
        if effect.is_empty() {
            errors.push(Error::required(&path.child("effect"), ""));
        } else {
            taint_effect(effect, &path.child("effect"), errors);
        }
        let same = |other: &Value| other.text("key") == key && other.text("effect") == effect;
        if taints[..i].iter().any(same) {
            let shown = internal::shown("Taint", Some(taint));
            let mut error = Error::duplicate(&path, shown);
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
}

fn check_resources(node: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    for key in ["capacity", "allocatable"] {
        let path = path.child(key);
        for (name, value) in member(node, "status").entries(key) {
            resource_value(name, value, &path.child(name), errors);
        }
    }
}

fn check_ranges(env: &Env, spec: &Value, errors: &mut ErrorList) {
    let (ranges, path) = (spec.texts("podCIDRs"), SPEC.child("podCIDRs"));
    for (i, range) in ranges.iter().enumerate() {
        errors.extend(validate_cidr_of_legacy_field(range, env.ip_rules(), &[], &path.index(i)));
    }
    let families: Vec<bool> =
        ranges.iter().filter_map(|r| Cidr::parse_sloppy(r)).map(|r| r.address.is_ipv6()).collect();
    let is_dual = families.contains(&true) && families.contains(&false);
    let wrong = ranges.iter().position(|range| Cidr::parse_sloppy(range).is_none());
    if let Some(wrong) = wrong.filter(|_| ranges.len() > 1) {
        let why = format!("invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {})", ranges[wrong]);
        let detail = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
        errors.push(Error::internal(&path, detail));
    }
    let is_dual = is_dual && wrong.is_none();
    if ranges.len() > 1 && (!is_dual || ranges.len() > 2) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(Error::invalid(&path, member(spec, "podCIDRs"), detail));
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{check_create, check_update};

    fn node(more: &str) -> String {
        format!(r#"{{"metadata":{{"name":"n","resourceVersion":"1"}},{more}}}"#)
    }

    #[test]
    fn new_ones() {
        let cases = [
            (
                r#""status":{"capacity":{"k":"-1"},"declaredFeatures":["B","A","x"]}"#,
                vec![
                    "status.capacity.k: Invalid value: \"-1\": must be greater than or equal to 0",
                    "status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically",
                    "status.declaredFeatures[2]: Invalid value: \"x\": invalid feature name \"x\": must start with an \
                     UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
                     MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                ],
            ),
            (
                r#""spec":{"podCIDRs":["10.0.0.0/24","10.0.1.0/24"],"taints":[{"key":"a","effect":"NoSchedule"},
                    {"key":"a","effect":"NoSchedule"}]}"#,
                vec![
                    "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\
                     \"TimeAdded\":null}: taints must be unique by key and effect pair",
                    "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more than one CIDR for \
                     each IP family",
                ],
            ),
        ];
        for (more, expected) in cases {
            assert_eq!(check_create("", "nodes", &node(more)), expected, "{more}");
        }
    }

    #[test]
    fn changes() {
        let old = node(r#""spec":{"externalID":"a"}"#);
        let new = node(r#""spec":{"configSource":{"configMap":{"uid":"u","name":"n","kubeletConfigKey":"k"}}}"#);
        let expected = [
            "spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
            "spec.configSource.configMap.namespace: Required value",
            "spec.externalID: Forbidden: may not be updated",
        ];
        assert_eq!(check_update("", "nodes", "", &new, &old), expected);
    }

    #[test]
    fn pods_to_avoid() {
        let annotated = |text: &str| {
            let text = serde_json::Value::from(text);
            format!(
                r#"{{"metadata":{{"name":"n","annotations":{{"scheduler.alpha.kubernetes.io/preferAvoidPods":{text}}}}}}}"#
            )
        };
        let errors = check_create("", "nodes", &annotated(r#"{"preferAvoidPods":[{}]}"#));
        let path = "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0]";
        assert_eq!(errors, [format!("{path}.PodSignature: Required value")]);
    }
}
