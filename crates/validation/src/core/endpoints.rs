//! Endpoints: addresses and ports of a service.

use crate::common::{
    Fields, dns_label, invalid_all, meta, meta_update, name_full, one_of, port, qualified_name, same_member,
};
use crate::{Env, Rules};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, parse_ip_sloppy, validate_ip_of_legacy_field};
use kubelith_meta::object::Namespacing;
use std::net::IpAddr;

pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub const ENDPOINTS: Rules = Rules {
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

/// An address that endpoints may have: not one that means something else on every machine.
pub fn endpoint_ip(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(ip) = parse_ip_sloppy(text) else {
        return invalid_all(vec!["must be a valid IP address".into()], path, text, errors);
    };
    // An IPv4 address that is written as IPv6 leads to the same place.
    let ip = ip.to_canonical();
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        errors.push(Error::invalid(path, text, format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        errors.push(Error::invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(Error::invalid(path, text, detail));
    }
    if link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(Error::invalid(path, text, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_endpoints_are_judged_by_where_they_lead() {
        for (text, want) in [
            ("10.0.0.1", vec![]),
            ("::ffff:10.0.0.1", vec![]),
            ("127.0.0.1", vec!["may not be in the loopback range (127.0.0.0/8, ::1/128)"]),
            ("::ffff:127.0.0.1", vec!["may not be in the loopback range (127.0.0.0/8, ::1/128)"]),
            ("::ffff:a9fe:a9fe", vec!["may not be in the link-local range (169.254.0.0/16, fe80::/10)"]),
            ("::ffff:0.0.0.0", vec!["may not be unspecified (::ffff:0.0.0.0)"]),
            ("::ffff:224.0.0.1", vec!["may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"]),
        ] {
            let mut errors = ErrorList::default();
            endpoint_ip(text, &Path::new("ip"), &mut errors);
            let details: Vec<String> = errors.iter().map(|e| e.detail.to_string()).collect();
            assert_eq!(details, want, "{text}");
        }
    }
}
