//! Hosts, paths and backends.

use crate::networking::shared::check_reference;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    Messages, NameRule, NameUse, is_dns1123_subdomain, is_port_name, is_wildcard_dns1123_subdomain, name_is_dns_label,
    name_is_dns_subdomain, name_is_dns1035_label, parse_ip_sloppy,
};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, dns_subdomain, invalid_all, member, meta, meta_update, name_full, port};
use kubelith_rules::{Env, Request, Rules};

pub const RULES: Rules =
    Rules { create: |request, ingress| ingress_create(request.env, ingress), update: ingress_update };

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

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

fn ingress_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
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
