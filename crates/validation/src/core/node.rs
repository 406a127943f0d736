//! Nodes.

use super::pod::taint_effect;
use super::quota::{resource_name, resource_value};
use crate::Rules;
use crate::common::{Fields, SPEC, invalid_all, member, meta, meta_update};
use crate::internal;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{Cidr, IpRules, is_label_value, name_is_dns_subdomain, validate_cidr_of_legacy_field};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::validate_label_name;

pub const NODE: Rules = Rules {
    create: |_, node| check(node),
    update: |request, new, old| {
        // All is checked twice, but for a status.
        let mut errors = if request.subresource == "status" { ErrorList::new() } else { check(new) };
        errors.extend(meta_update(new, old));
        check_annotations(new, &mut errors);
        check_resources(new, &mut errors);
        let addresses = member(new, "status").list("addresses");
        for (i, address) in addresses.iter().enumerate().filter(|(i, a)| addresses[..*i].contains(a)) {
            let shown = internal::shown("NodeAddress", Some(address));
            errors.push(Error::duplicate(&Path::of(&["status", "addresses"]).index(i), shown));
        }
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        check_unchanged(spec, before, &mut errors);
        check_taints(spec, &mut errors);
        if spec.text("externalID") != before.text("externalID") {
            errors.push(Error::forbidden(&SPEC.child("externalID"), "may not be updated"));
        }
        errors
    },
};

const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

fn check(node: &Value) -> ErrorList {
    let mut errors = meta(node, Namespacing::Forbidden, name_is_dns_subdomain);
    check_annotations(node, &mut errors);
    check_taints(member(node, "spec"), &mut errors);
    check_resources(node, &mut errors);
    check_ranges(member(node, "spec"), &mut errors);
    errors
}

/// Pods that a node would rather not have are told in an annotation: each by its controller.
fn check_annotations(node: &Value, errors: &mut ErrorList) {
    let Some(text) = node.meta().annotation(AVOID_PODS).filter(|text| !text.is_empty()) else { return };
    let path = Path::of(&["metadata", "annotations"]);
    let avoided = match kubelith_codec::json::parse(text.as_bytes()) {
        Ok(avoided) => avoided,
        Err(why) => {
            errors.push(Error::invalid(&path.child("AvoidPods"), AVOID_PODS, why.to_string()));
            return;
        }
    };
    for (i, entry) in avoided.list("preferAvoidPods").iter().enumerate() {
        let path = path.item(AVOID_PODS, i);
        let path = path.child("PodSignature");
        match entry.at(&["podSignature", "podController"]).filter(|controller| !controller.is_null()) {
            None => errors.push(Error::required(&path, "")),
            Some(controller) if !controller.flag("controller") => {
                let detail = "must point to a controller";
                errors.push(Error::invalid(&path.children(&["PodController", "Controller"]), false, detail));
            }
            Some(_) => {}
        }
    }
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
            let quote = kubelith_meta::text::quote;
            let (key, value, effect) = (quote(key), quote(value), quote(effect));
            let shown = format!("{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":null}}");
            let mut error = Error::duplicate(&path, BadValue::text(shown));
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
}

fn check_resources(node: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    for key in ["capacity", "allocatable"] {
        for (name, value) in member(node, "status").entries(key) {
            let path = path.child(key);
            resource_name(name, &path.key(name), errors);
            resource_value(name, value, &path.key(name), errors);
        }
    }
}

fn check_ranges(spec: &Value, errors: &mut ErrorList) {
    let (ranges, path) = (spec.texts("podCIDRs"), SPEC.child("podCIDRs"));
    for (i, range) in ranges.iter().enumerate() {
        errors.extend(validate_cidr_of_legacy_field(range, IpRules::Strict, &[], &path.index(i)));
    }
    let families: Vec<bool> =
        ranges.iter().filter_map(|r| Cidr::parse_sloppy(r)).map(|r| r.address.is_ipv6()).collect();
    let is_dual = families.contains(&true) && families.contains(&false);
    if ranges.len() > 1 && (!is_dual || ranges.len() > 2) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(Error::invalid(&path, member(spec, "podCIDRs"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use crate::tests::value;

    #[test]
    fn nodes_say_whom_they_avoid_and_keep_their_external_id() {
        let node = |avoid: &str, id: &str| {
            let mut node = value(r#"{"metadata":{"name":"n","resourceVersion":"1"},"spec":{}}"#);
            if !avoid.is_empty() {
                node.set_at(&["metadata", "annotations", AVOID_PODS], avoid.into());
            }
            node.set_at(&["spec", "externalID"], id.into());
            node
        };
        let request = Request { group: "", version: "v1", subresource: "" };
        let path = "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature";
        let cases = [
            ("", String::new()),
            (r#"{"preferAvoidPods":[{}]}"#, format!("{path}: Required value")),
            (
                r#"{"preferAvoidPods":[{"podSignature":{"podController":{"controller":false}}}]}"#,
                format!("{path}.PodController.Controller: Invalid value: false: must point to a controller"),
            ),
            (r#"{"preferAvoidPods":[{"podSignature":{"podController":{"controller":true}}}]}"#, String::new()),
        ];
        for (avoid, expected) in cases {
            let found: Vec<String> = (NODE.create)(request, &node(avoid, "")).iter().map(ToString::to_string).collect();
            assert_eq!(found.concat(), expected);
        }
        let found = (NODE.update)(request, &node("", "b"), &node("", "a"));
        assert_eq!(found.to_string(), "spec.externalID: Forbidden: may not be updated");
    }
}
