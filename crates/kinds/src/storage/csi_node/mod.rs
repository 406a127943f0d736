//! CSINodes.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta, not_negative, qualified_name};
use kubelith_rules::values::driver_name;
use kubelith_rules::{Kind, Rules, internal};
use std::collections::BTreeSet;

pub const CSI_NODE: Kind =
    Kind { group: "storage.k8s.io", plural: "csinodes", rules: RULES, ..Kind::PLAIN }.guarded().returned();

pub const RULES: Rules = Rules { create: |_, node| csi_node(node), update: |_, new, old| csi_node_update(new, old) };

const MAX_NODE_ID: usize = 256;

fn csi_node(node: &Value) -> ErrorList {
    let mut errors = meta(node, Namespacing::Forbidden, name_is_dns_subdomain);
    let mut names = BTreeSet::new();
    for (i, driver) in member(node, "spec").list("drivers").iter().enumerate() {
        let path = SPEC.item("drivers", i);
        let name = driver.text("name");
        driver_name(name, &path.child("name"), &mut errors);
        let id = driver.text("nodeID");
        if id.is_empty() {
            errors.push(Error::required(&path.child("nodeID"), ""));
        }
        if id.len() > MAX_NODE_ID {
            errors.push(Error::invalid(&path.child("nodeID"), id, format!("must be {MAX_NODE_ID} characters or less")));
        }
        if let Some(count) = member(driver, "allocatable").int("count") {
            not_negative(count, &path.child("allocatable").child("count"), &mut errors);
        }
        if !names.insert(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in driver.texts("topologyKeys") {
            if key.is_empty() {
                errors.push(Error::required(&path, ""));
            }
            if !keys.insert(key) {
                errors.push(Error::duplicate(&path, key));
            }
            qualified_name(key, &path, &mut errors);
        }
    }
    errors
}

fn csi_node_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = csi_node(new);
    let without_count = |driver: &Value| {
        let mut driver = driver.clone();
        driver.make_object().remove("allocatable");
        driver
    };
    for old in member(old, "spec").list("drivers") {
        for new in member(new, "spec").list("drivers").iter().filter(|new| new.text("name") == old.text("name")) {
            let (new, old) = (without_count(new), without_count(old));
            internal::immutable("CSINodeDriver", Some(&new), Some(&old), &SPEC.child("drivers"), &mut errors);
        }
    }
    errors
}
