//! Addresses and ports.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, validate_ip_of_legacy_field};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{
    Fields, dns_label, meta, meta_update, name_full, one_of, port, qualified_name, same_member,
};
use kubelith_rules::values::{PROTOCOLS, endpoint_ip};
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, object| endpoints(request.env, object, None),
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        errors.extend(endpoints(request.env, new, Some(old)));
        errors
    },
};

fn endpoints(env: &Env, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
    // What was stored under older rules stays.
    if !old.is_some_and(|old| same_member(old, object, "subsets")) {
        for (i, subset) in object.list("subsets").iter().enumerate() {
            check_subset(env, subset, &Path::new("subsets").index(i), &mut errors);
        }
    }
    errors
}

fn check_subset(env: &Env, subset: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
        errors.push(Error::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for key in ["addresses", "notReadyAddresses"] {
        for (i, address) in subset.list(key).iter().enumerate() {
            check_address(env, address, &path.item(key, i), errors);
        }
    }
    let ports = subset.list("ports");
    for (i, value) in ports.iter().enumerate() {
        let path = path.item("ports", i);
        let name = value.text("name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(Error::required(&path.child("name"), ""));
        } else if !name.is_empty() {
            dns_label(name, &path.child("name"), errors);
        }
        port(value.number("port"), &path.child("port"), errors);
        one_of(value.text("protocol"), &PROTOCOLS, &path.child("protocol"), errors);
        if let Some(protocol) = value.some("appProtocol").and_then(Value::as_str) {
            qualified_name(protocol, &path.child("appProtocol"), errors);
        }
    }
}

fn check_address(env: &Env, address: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let ip = address.text("ip");
    errors.extend(validate_ip_of_legacy_field(ip, env.ip_rules(), &[], &path.child("ip")));
    if !address.text("hostname").is_empty() {
        dns_label(address.text("hostname"), &path.child("hostname"), errors);
    }
    if let Some(node) = address.some("nodeName").and_then(Value::as_str) {
        name_full(name_is_dns_subdomain, node, &path.child("nodeName"), errors);
    }
    endpoint_ip(ip, &path.child("ip"), errors);
}
