//! IPAddresses.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{Messages, NameUse, name_is_path_segment, validate_ip};
use kubelith_meta::object::Namespacing;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::common::{Fields, SPEC, dns_subdomain, member, meta, meta_update, name_full};
use kubelith_rules::{Kind, Rules, internal};

pub const IP_ADDRESS: Kind =
    Kind { group: "networking.k8s.io", plural: "ipaddresses", rules: RULES, cells: CELLS, ..Kind::PLAIN };

pub const RULES: Rules = Rules {
    create: |_, address| {
        let mut errors = meta(address, Namespacing::Forbidden, ip_name);
        check_parent(member(address, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        let (new, old) = (spec.get("parentRef"), before.get("parentRef"));
        internal::immutable("*ParentReference", new, old, &SPEC.child("parentRef"), &mut errors);
        errors
    },
};

/// An address is its own name.
fn ip_name(name: &str, _: NameUse) -> Messages {
    validate_ip(name, &Path::ROOT).into_iter().map(|e| e.detail).collect()
}

fn check_parent(spec: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("parentRef");
    let Some(parent) = spec.some("parentRef") else {
        return errors.push(Error::required(&path, ""));
    };
    if !parent.text("group").is_empty() {
        dns_subdomain(parent.text("group"), &path.child("group"), errors);
    }
    for (key, required) in [("resource", true), ("name", true), ("namespace", false)] {
        let value = parent.text(key);
        if !value.is_empty() {
            name_full(name_is_path_segment, value, &path.child(key), errors);
        } else if required {
            errors.push(Error::required(&path.child(key), ""));
        }
    }
}

pub const CELLS: Cells = &[("ipaddress_parent", ipaddress_parent)];

/// `services/namespace/name`.
fn ipaddress_parent(row: &Row<'_>) -> Option<Value> {
    let Some(parent) = row.at(&["spec", "parentRef"]) else { return Some("<none>".into()) };
    let [group, resource, namespace, name] = ["group", "resource", "namespace", "name"].map(|k| parent.str_at(&[k]));
    let mut text = resource.to_lowercase();
    if !group.is_empty() {
        text = format!("{text}.{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        text = format!("{text}/{namespace}");
    }
    Some(format!("{text}/{name}").into())
}
