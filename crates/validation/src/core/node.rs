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
    create: |_, node| {
        let mut errors = meta(node, Namespacing::Forbidden, name_is_dns_subdomain);
        check_taints(member(node, "spec"), &mut errors);
        check_resources(node, &mut errors);
        check_ranges(member(node, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        check_resources(new, &mut errors);
        let addresses = member(new, "status").list("addresses");
        for (i, address) in addresses.iter().enumerate().filter(|(i, a)| addresses[..*i].contains(a)) {
            let shown = internal::shown("NodeAddress", Some(address));
            errors.push(Error::duplicate(&Path::of(&["status", "addresses"]).index(i), shown));
        }
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        check_unchanged(spec, before, &mut errors);
        check_taints(spec, &mut errors);
        errors
    },
};

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
