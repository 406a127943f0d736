//! Endpoints, ports and hints.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    is_label_value, name_is_dns_subdomain, parse_ip_sloppy, validate_fully_qualified_domain_name, validate_ip,
    validate_ip_of_legacy_field,
};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::validate_labels;
use kubelith_rules::common::{Fields, dns_label, immutable_text, meta, name_full, qualified_name, same_member};
use kubelith_rules::values::endpoint_ip;
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, slice| self::slice(request.env, slice, None),
    update: |request, new, old| {
        let mut errors = self::slice(request.env, new, Some(old));
        immutable_text(new, old, "addressType", &Path::ROOT, &mut errors);
        errors
    },
};

const MAX_ENDPOINTS: usize = 1000;

const MAX_ADDRESSES: usize = 100;

const MAX_PORTS: usize = 20_000;

const MAX_TOPOLOGY_LABELS: usize = 16;

const MAX_HINTS: usize = 8;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

fn slice(env: &Env, slice: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = meta(slice, Namespacing::Required, name_is_dns_subdomain);
    let address_type = slice.text("addressType");
    if address_type.is_empty() {
        errors.push(Error::required(&Path::new("addressType"), ""));
    } else if !ADDRESS_TYPES.contains(&address_type) {
        let path = Path::new("addressType");
        errors.push(Error::not_supported(&path, BadValue::json(address_type), ADDRESS_TYPES));
    }
    check_ports(slice.list("ports"), &mut errors);
    if !old.is_some_and(|old| same_member(old, slice, "endpoints")) {
        check_endpoints(env, slice.list("endpoints"), address_type, &mut errors);
    }
    errors
}

fn check_ports(ports: &[Value], errors: &mut ErrorList) {
    let path = Path::new("ports");
    if ports.len() > MAX_PORTS {
        errors.push(Error::too_many(&path, ports.len(), MAX_PORTS));
        return;
    }
    let mut names = Vec::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            dns_label(name, &path.child("name"), errors);
        }
        if names.contains(&name) {
            errors.push(Error::duplicate(&path.child("name"), BadValue::json(name)));
        } else {
            names.push(name);
        }
        match port.some("protocol").and_then(Value::as_str) {
            None => errors.push(Error::required(&path.child("protocol"), "")),
            Some(p) if PROTOCOLS.contains(&p) => {}
            Some(p) => errors.push(Error::not_supported(&path.child("protocol"), BadValue::json(p), PROTOCOLS)),
        }
        if let Some(protocol) = port.some("appProtocol").and_then(Value::as_str) {
            qualified_name(protocol, &path.child("appProtocol"), errors);
        }
    }
}

fn check_endpoints(env: &Env, endpoints: &[Value], address_type: &str, errors: &mut ErrorList) {
    let path = Path::new("endpoints");
    if endpoints.len() > MAX_ENDPOINTS {
        errors.push(Error::too_many(&path, endpoints.len(), MAX_ENDPOINTS));
        return;
    }
    for (i, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(i);
        let addresses = endpoint.texts("addresses");
        let addresses_path = path.child("addresses");
        if addresses.is_empty() {
            errors.push(Error::required(&addresses_path, "must contain at least 1 address"));
        } else if addresses.len() > MAX_ADDRESSES {
            errors.push(Error::too_many(&addresses_path, addresses.len(), MAX_ADDRESSES));
        }
        for (i, address) in addresses.into_iter().enumerate() {
            check_address(env, address, address_type, &addresses_path, i, errors);
        }
        if let Some(node) = endpoint.some("nodeName").and_then(Value::as_str) {
            name_full(name_is_dns_subdomain, node, &path.child("nodeName"), errors);
        }
        if let Some(labels) = endpoint.map("deprecatedTopology") {
            let path = path.child("deprecatedTopology");
            if labels.len() > MAX_TOPOLOGY_LABELS {
                errors.push(Error::too_many(&path, labels.len(), MAX_TOPOLOGY_LABELS));
            }
            errors.extend(validate_labels(labels, &path));
        }
        if let Some(hostname) = endpoint.some("hostname").and_then(Value::as_str) {
            dns_label(hostname, &path.child("hostname"), errors);
        }
        if let Some(hints) = endpoint.some("hints") {
            check_hints(hints, &path.child("hints"), errors);
        }
    }
}

fn check_address(env: &Env, address: &str, address_type: &str, path: &Path<'_>, i: usize, errors: &mut ErrorList) {
    let at = path.index(i);
    let (found, is_right, family) = match address_type {
        "IPv4" => {
            let found = validate_ip_of_legacy_field(address, env.ip_rules(), &[], &at);
            (found, parse_ip_sloppy(address).is_some_and(|ip| ip.to_canonical().is_ipv4()), "IPv4")
        }
        "IPv6" => {
            let is_right = parse_ip_sloppy(address).is_some_and(|ip| ip.to_canonical().is_ipv6());
            (validate_ip(address, &at), is_right, "IPv6")
        }
        "FQDN" => return errors.extend(validate_fully_qualified_domain_name(address, &at)),
        _ => return,
    };
    if !found.is_empty() {
        return errors.extend(found);
    }
    if !is_right {
        errors.push(Error::invalid(path, address, format!("must be an {family} address")));
    }
    endpoint_ip(address, &at, errors);
}

fn check_hints(hints: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["forZones", "forNodes"] {
        let path = path.child(key);
        let list = hints.list(key);
        if list.len() > MAX_HINTS {
            errors.push(Error::too_many(&path, list.len(), MAX_HINTS));
            return;
        }
        let mut names = Vec::new();
        for (i, hint) in list.iter().enumerate() {
            let (name, item) = (hint.text("name"), path.index(i));
            let path = item.child("name");
            if names.contains(&name) {
                errors.push(Error::duplicate(&path, name));
            } else {
                names.push(name);
            }
            if key == "forZones" {
                errors.extend(is_label_value(name).into_iter().map(|m| Error::invalid(&path, name, m)));
            } else {
                name_full(name_is_dns_subdomain, name, &path, errors);
            }
        }
    }
}
