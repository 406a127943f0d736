//! Peers, blocks and ports.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{Cidr, is_port_name, name_is_dns_subdomain, validate_cidr_of_legacy_field};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, invalid_all, label_selector, member, meta, meta_update, port, supported};
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, policy| {
        let mut errors = meta(policy, Namespacing::Required, name_is_dns_subdomain);
        check_policy(request.env, member(policy, "spec"), &[], &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        check_policy(request.env, member(new, "spec"), &blocks(member(old, "spec")), &mut errors);
        errors
    },
};

/// All address blocks of a policy.
fn blocks(spec: &Value) -> Vec<&str> {
    let mut all = Vec::new();
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for peer in spec.list(rules).iter().flat_map(|rule| rule.list(peers)) {
            let Some(block) = peer.some("ipBlock") else { continue };
            all.push(block.text("cidr"));
            all.extend(block.texts("except"));
        }
    }
    all
}

fn check_policy(env: &Env, spec: &Value, known: &[&str], errors: &mut ErrorList) {
    label_selector(spec.get("podSelector"), &SPEC.child("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in spec.list(rules).iter().enumerate() {
            let path = SPEC.item(rules, i);
            for (j, value) in rule.list("ports").iter().enumerate() {
                check_policy_port(value, &path.item("ports", j), errors);
            }
            for (j, peer) in rule.list(peers).iter().enumerate() {
                check_peer(env, peer, known, &path.item(peers, j), errors);
            }
        }
    }
    let types = spec.texts("policyTypes");
    let path = SPEC.child("policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        return errors.push(Error::invalid(&path, member(spec, "policyTypes"), detail));
    }
    for (i, kind) in types.into_iter().enumerate().filter(|(_, kind)| !["Ingress", "Egress"].contains(kind)) {
        errors.push(Error::not_supported(&path.index(i), BadValue::json(kind), ["Ingress", "Egress"]));
    }
}

fn check_policy_port(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(protocol) = value.some("protocol").and_then(Value::as_str) {
        supported(protocol, &["TCP", "UDP", "SCTP"], &path.child("protocol"), errors);
    }
    let (end, end_path) = (value.int("endPort"), path.child("endPort"));
    match value.some("port") {
        Some(Value::Int(start)) => {
            port(*start, &path.child("port"), errors);
            if let Some(end) = end {
                if end < *start {
                    errors.push(Error::invalid(&end_path, *start, "must be greater than or equal to `port`"));
                }
                port(end, &end_path, errors);
            }
        }
        Some(name) => {
            if let Some(end) = end {
                errors.push(Error::invalid(&end_path, end, "may not be specified when `port` is non-numeric"));
            }
            let name = name.as_str().unwrap_or_default();
            invalid_all(is_port_name(name), &path.child("port"), name, errors);
        }
        None => {
            if let Some(end) = end {
                errors.push(Error::invalid(&end_path, end, "may not be specified when `port` is not specified"));
            }
        }
    }
}

fn check_peer(env: &Env, peer: &Value, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["podSelector", "namespaceSelector"] {
        label_selector(peer.get(key), &path.child(key), errors);
    }
    if let Some(block) = peer.some("ipBlock") {
        check_block(env, block, known, &path.child("ipBlock"), errors);
    }
    let count = ["podSelector", "namespaceSelector", "ipBlock"].iter().filter(|key| peer.has(key)).count();
    if count == 0 {
        errors.push(Error::required(path, "must specify a peer"));
    } else if count > 1 && peer.has("ipBlock") {
        errors.push(Error::forbidden(path, "may not specify both ipBlock and another peer"));
    }
}

fn check_block(env: &Env, block: &Value, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let cidr = block.text("cidr");
    if cidr.is_empty() {
        return errors.push(Error::required(&path.child("cidr"), ""));
    }
    errors.extend(validate_cidr_of_legacy_field(cidr, env.ip_rules(), known, &path.child("cidr")));
    let Some(whole) = Cidr::parse_sloppy(cidr) else { return };
    for (i, except) in block.texts("except").into_iter().enumerate() {
        let path = path.item("except", i);
        errors.extend(validate_cidr_of_legacy_field(except, env.ip_rules(), known, &path));
        let Some(part) = Cidr::parse_sloppy(except) else { continue };
        let network = part.network();
        if !whole.contains(network.address) || whole.prefix >= part.prefix {
            errors.push(Error::invalid(&path, except, "must be a strict subset of `cidr`"));
        }
    }
}
