//! Ingresses, their classes, network policies, and the addresses of services.

use crate::common::{
    Fields, IMMUTABLE, SPEC, dns_subdomain, immutable_text, invalid_all, label_selector, member, meta, meta_update,
    name_full, port,
};
use crate::internal;
use crate::{Env, Rules};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    Cidr, Messages, NameRule, NameUse, is_dns1123_subdomain, is_port_name, is_wildcard_dns1123_subdomain,
    name_is_dns_label, name_is_dns_subdomain, name_is_dns1035_label, name_is_path_segment, parse_ip_sloppy,
    validate_cidr, validate_cidr_of_legacy_field, validate_domain_prefixed_path, validate_ip,
};
use kubelith_meta::object::Namespacing;

const MAX_CONTROLLER: usize = 250;
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "networkpolicies" => Rules {
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
        },
        "ingresses" => {
            Rules { create: |request, ingress| ingress_create(request.env, ingress), update: ingress_update }
        }
        "ingressclasses" => Rules {
            create: |_, class| ingress_class(class),
            update: |_, new, old| {
                let mut errors = meta_update(new, old);
                let (spec, before) = (member(new, "spec"), member(old, "spec"));
                immutable_text(spec, before, "controller", &SPEC, &mut errors);
                errors.extend(ingress_class(new));
                errors
            },
        },
        "ipaddresses" => Rules {
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
        },
        "servicecidrs" => Rules {
            create: |_, object| {
                let mut errors = meta(object, Namespacing::Forbidden, name_is_dns_subdomain);
                check_cidrs(member(object, "spec"), &mut errors);
                errors
            },
            update: |request, new, old| {
                let mut errors = meta_update(new, old);
                if request.subresource.is_empty() {
                    check_cidrs_update(member(new, "spec"), member(old, "spec"), &mut errors);
                }
                errors
            },
        },
        _ => return None,
    })
}

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
        crate::common::supported(protocol, &["TCP", "UDP", "SCTP"], &path.child("protocol"), errors);
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

fn ingress_create(env: &Env, ingress: &Value) -> ErrorList {
    let mut errors = meta(ingress, Namespacing::Required, name_is_dns_subdomain);
    check_ingress(env, member(ingress, "spec"), None, &mut errors);
    let class = member(ingress, "spec").some("ingressClassName").and_then(Value::as_str);
    if let (Some(annotation), Some(class)) = (ingress.meta().annotation(CLASS_ANNOTATION), class)
        && annotation != class
    {
        let path = Path::new("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(Error::invalid(&path.child(CLASS_ANNOTATION), annotation, detail));
    }
    errors
}

fn ingress_update(request: crate::Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        check_balancer(request.env, new, old, &mut errors);
        return errors;
    }
    errors.extend(meta(new, Namespacing::Required, name_is_dns_subdomain));
    check_ingress(request.env, member(new, "spec"), Some(member(old, "spec")), &mut errors);
    errors
}

fn check_balancer(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    let points = |object: &Value| -> Vec<Value> {
        let list = object.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
        list.unwrap_or_default().to_vec()
    };
    let before = points(old);
    let known: Vec<&str> = before.iter().map(|p| p.text("ip")).filter(|ip| !ip.is_empty()).collect();
    let path = Path::of(&["status", "loadBalancer", "ingress"]);
    for (i, point) in points(new).iter().enumerate() {
        let path = path.index(i);
        let (ip, host) = (point.text("ip"), point.text("hostname"));
        if !ip.is_empty() {
            let found =
                kubelith_meta::names::validate_ip_of_legacy_field(ip, env.ip_rules(), &known, &path.child("ip"));
            errors.extend(found);
        }
        if !host.is_empty() {
            dns_subdomain(host, &path.child("hostname"), errors);
            if parse_ip_sloppy(host).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(Error::invalid(&path.child("hostname"), host, detail));
            }
        }
    }
}

/// How the names of services in backends are checked: as labels, or more strictly as old labels, unless a stored one would
/// not pass then.
fn service_rule(env: &Env, before: Option<&Value>) -> NameRule {
    let backends = |spec: &'_ Value| -> Vec<String> {
        let paths = spec.list("rules").iter().flat_map(|rule| member(rule, "http").list("paths"));
        let all = paths.map(|path| member(path, "backend")).chain(spec.some("defaultBackend"));
        all.filter_map(|backend| backend.some("service")).map(|service| service.text("name").to_owned()).collect()
    };
    let is_relaxed = |name: &String| {
        name_is_dns_label(name, NameUse::Full).is_empty() && !name_is_dns1035_label(name, NameUse::Full).is_empty()
    };
    let had_relaxed = || before.is_some_and(|before| backends(before).iter().any(is_relaxed));
    if env.features.relaxed_service_names || had_relaxed() { name_is_dns_label } else { name_is_dns1035_label }
}

fn check_ingress(env: &Env, spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    let of_services = service_rule(env, before);
    let rules = spec.list("rules");
    if rules.is_empty() && !spec.has("defaultBackend") {
        let shown = spec.some("rules").map_or(BadValue::text("null"), BadValue::from);
        errors.push(Error::invalid(&SPEC, shown, "either `defaultBackend` or `rules` must be specified"));
    }
    if let Some(backend) = spec.some("defaultBackend") {
        check_backend(of_services, backend, &SPEC.child("defaultBackend"), errors);
    }
    for (i, rule) in rules.iter().enumerate() {
        check_rule(of_services, rule, &SPEC.item("rules", i), errors);
    }
    let had_bad_secret = before.is_some_and(|before| {
        before.list("tls").iter().any(|tls| {
            let name = tls.text("secretName");
            !name.is_empty() && !name_is_dns_subdomain(name, NameUse::Full).is_empty()
        })
    });
    for (i, tls) in spec.list("tls").iter().enumerate() {
        let path = SPEC.item("tls", i);
        for (j, host) in tls.texts("hosts").into_iter().enumerate() {
            invalid_all(host_problems(host), &path.item("hosts", j), host, errors);
        }
        let secret = tls.text("secretName");
        if !secret.is_empty() && !had_bad_secret {
            name_full(name_is_dns_subdomain, secret, &path.child("secretName"), errors);
        }
    }
    if let Some(class) = spec.some("ingressClassName").and_then(Value::as_str) {
        name_full(name_is_dns_subdomain, class, &SPEC.child("ingressClassName"), errors);
    }
}

fn host_problems(host: &str) -> Messages {
    if host.contains('*') { is_wildcard_dns1123_subdomain(host) } else { is_dns1123_subdomain(host) }
}

fn check_rule(of_services: NameRule, rule: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let host = rule.text("host");
    if !host.is_empty() {
        if parse_ip_sloppy(host).is_some() {
            errors.push(Error::invalid(&path.child("host"), host, "must be a DNS name, not an IP address"));
        }
        invalid_all(host_problems(host), &path.child("host"), host, errors);
    }
    let Some(http) = rule.some("http") else { return };
    let path = path.child("http");
    if http.list("paths").is_empty() {
        errors.push(Error::required(&path.child("paths"), ""));
    }
    for (i, item) in http.list("paths").iter().enumerate() {
        check_path(of_services, item, &path.item("paths", i), errors);
    }
}

fn check_path(of_services: NameRule, item: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(kind) = item.some("pathType").and_then(Value::as_str) else {
        return errors.push(Error::required(&path.child("pathType"), "pathType must be specified"));
    };
    let (text, at) = (item.text("path"), path.child("path"));
    let is_absolute = text.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.push(Error::invalid(&at, text, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| text.contains(part)) {
                errors.push(Error::invalid(&at, text, format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].into_iter().filter(|end| text.ends_with(end)) {
                errors.push(Error::invalid(&at, text, format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !is_absolute {
                errors.push(Error::invalid(&at, text, "must be an absolute path"));
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(Error::not_supported(&path.child("pathType"), BadValue::json(other), known));
        }
    }
    check_backend(of_services, member(item, "backend"), &path.child("backend"), errors);
}

fn check_backend(of_services: NameRule, backend: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match (backend.some("resource"), backend.some("service")) {
        (Some(_), Some(_)) => {
            errors.push(Error::invalid(path, "", "cannot set both resource and service backends"));
        }
        (Some(resource), None) => check_reference(resource, &path.child("resource"), errors),
        (None, Some(service)) => check_service(of_services, service, path, errors),
        (None, None) => errors.push(Error::invalid(path, "", "resource or service backend is required")),
    }
}

fn check_service(of_services: NameRule, service: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let name = service.text("name");
    let name_path = path.children(&["service", "name"]);
    if name.is_empty() {
        errors.push(Error::required(&name_path, ""));
    } else {
        name_full(of_services, name, &name_path, errors);
    }
    let own = member(service, "port");
    match (own.text("name"), own.number("number")) {
        ("", 0) => errors.push(Error::required(path, "port name or number is required")),
        ("", number) => port(number, &path.children(&["service", "port", "number"]), errors),
        (name, 0) => invalid_all(is_port_name(name), &path.children(&["service", "port", "name"]), name, errors),
        _ => errors.push(Error::invalid(path, "", "cannot set both port name & port number")),
    }
}

/// A group, a kind and a name.
fn check_reference(reference: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(group) = reference.some("apiGroup").and_then(Value::as_str) {
        dns_subdomain(group, &path.child("apiGroup"), errors);
    }
    for key in ["kind", "name"] {
        let value = reference.text(key);
        if value.is_empty() {
            errors.push(Error::required(&path.child(key), ""));
        } else {
            name_full(name_is_path_segment, value, &path.child(key), errors);
        }
    }
}

fn ingress_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    let spec = member(class, "spec");
    let controller = spec.text("controller");
    if controller.len() > MAX_CONTROLLER {
        errors.push(Error::too_long(&SPEC.child("controller"), MAX_CONTROLLER));
    }
    errors.extend(validate_domain_prefixed_path(controller, &SPEC.child("controller")));
    let Some(parameters) = spec.some("parameters") else { return errors };
    let path = SPEC.child("parameters");
    check_reference(parameters, &path, &mut errors);
    let namespace = parameters.some("namespace").and_then(Value::as_str);
    let namespace_path = path.child("namespace");
    match parameters.some("scope").and_then(Value::as_str) {
        None => errors.push(Error::required(&path.child("scope"), "")),
        Some("Namespace") => match namespace {
            None => errors.push(Error::required(&namespace_path, "`parameters.scope` is set to 'Namespace'")),
            Some(namespace) => name_full(name_is_dns_label, namespace, &namespace_path, &mut errors),
        },
        Some("Cluster") => {
            if namespace.is_some() {
                errors.push(Error::forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'"));
            }
        }
        Some(other) => {
            errors.push(Error::not_supported(&path.child("scope"), other, ["Cluster", "Namespace"]));
        }
    }
    errors
}

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

/// How the reference prints a parent: by the names of its fields in Go.
fn check_cidrs(spec: &Value, errors: &mut ErrorList) {
    let (cidrs, path) = (spec.texts("cidrs"), SPEC.child("cidrs"));
    if cidrs.is_empty() {
        return errors.push(Error::required(&path, "at least one CIDR required"));
    }
    if cidrs.len() > 2 {
        let shown = format!("{{\"CIDRs\":{}}}", kubelith_meta::text::json(member(spec, "cidrs")));
        return errors.push(Error::invalid(&path, BadValue::text(shown), "may only hold up to 2 values"));
    }
    for (i, cidr) in cidrs.iter().enumerate() {
        errors.extend(validate_cidr(cidr, &path.index(i)));
    }
    let families: Vec<bool> = cidrs.iter().filter_map(|c| Cidr::parse_sloppy(c)).map(|c| c.address.is_ipv6()).collect();
    if families.len() == 2 && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(Error::invalid(&path, member(spec, "cidrs"), detail));
    }
}

fn check_cidrs_update(spec: &Value, before: &Value, errors: &mut ErrorList) {
    let (new, old, path) = (spec.texts("cidrs"), before.texts("cidrs"), SPEC.child("cidrs"));
    match (old.len(), new.len()) {
        (a, b) if a == b => {
            for (i, (_, cidr)) in old.iter().zip(&new).enumerate().filter(|(_, (a, b))| a != b) {
                errors.push(Error::invalid(&path.index(i), *cidr, IMMUTABLE));
            }
        }
        (1, 2) => {
            if new[0] != old[0] {
                errors.push(Error::invalid(&path.index(0), new[0], IMMUTABLE));
            }
            check_cidrs(spec, errors);
        }
        _ => {
            let shown = spec.some("cidrs").map_or(BadValue::text("null"), BadValue::from);
            errors.push(Error::invalid(&path, shown, IMMUTABLE));
        }
    }
}
