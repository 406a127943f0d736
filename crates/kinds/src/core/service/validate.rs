//! Rules of services.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    name_is_dns_label, name_is_dns1035_label, parse_ip_sloppy, validate_cidr_of_legacy_field,
    validate_ip_of_legacy_field,
};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::validate_labels;
use kubelith_rules::common::{
    Fields, SPEC, dns_label, dns_subdomain, member, meta, meta_update, one_of, port, port_or_name, qualified_name,
    supported,
};
use kubelith_rules::values::{PROTOCOLS, endpoint_ip};
use kubelith_rules::{Env, Rules};
use std::collections::BTreeSet;

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

const UNCHANGED: &str = "may not change once set";

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

const MAX_AFFINITY_SECONDS: i64 = 86_400;

pub const RULES: Rules = Rules {
    create: |request, service| {
        let env = request.env;
        let rule = if env.features.relaxed_service_names { name_is_dns_label } else { name_is_dns1035_label };
        let mut errors = meta(service, Namespacing::Required, rule);
        check(env, service, None, &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        if request.subresource == "status" {
            check_status(request.env, new, old, &mut errors);
            return errors;
        }
        let (spec, before) = (member(new, "spec"), member(old, "spec"));
        check_addresses_update(spec, before, &mut errors);
        check_families_update(spec, before, &mut errors);
        check_class(spec, Some(before), &mut errors);
        if needs_health_check(spec)
            && needs_health_check(before)
            && spec.number("healthCheckNodePort") != before.number("healthCheckNodePort")
        {
            errors.push(Error::forbidden(&SPEC.child("healthCheckNodePort"), "field is immutable"));
        }
        check(request.env, new, Some(old), &mut errors);
        errors
    },
};

fn is_headless(spec: &Value) -> bool {
    matches!(spec.texts("clusterIPs")[..], ["None"])
}

fn is_balanced(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer"
}

fn needs_health_check(spec: &Value) -> bool {
    is_balanced(spec) && spec.text("externalTrafficPolicy") == "Local"
}

fn is_reachable_from_outside(spec: &Value) -> bool {
    matches!(spec.text("type"), "LoadBalancer" | "NodePort")
        || (spec.text("type") == "ClusterIP" && !spec.list("externalIPs").is_empty())
}

fn check(env: &Env, service: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = member(service, "spec");
    let before = old.map(|o| member(o, "spec"));
    let annotation = |key| service.meta().annotation(key);
    if let (Some(mode), Some(hints)) = (annotation(TOPOLOGY_MODE), annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(Error::invalid(&Path::of(&["metadata", "annotations"]).key(TOPOLOGY_MODE), mode, detail));
    }
    check_type(spec, errors);
    check_ports(spec, errors);
    if let Some(labels) = spec.map("selector") {
        errors.extend(validate_labels(labels, &SPEC.child("selector")));
    }
    check_affinity(spec, errors);
    check_cluster_ips(env, spec, before, errors);
    let known: Vec<&str> = before.map_or_else(Vec::new, |b| b.texts("externalIPs"));
    for (i, ip) in spec.texts("externalIPs").into_iter().enumerate() {
        let path = SPEC.item("externalIPs", i);
        let found = validate_ip_of_legacy_field(ip, env.ip_rules(), &known, &path);
        if found.is_empty() {
            endpoint_ip(ip, &path, errors);
        } else {
            errors.extend(found);
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(spec.text("type"), &types, &SPEC.child("type"), errors);
    check_node_ports(spec, errors);
    check_source_ranges(env, service, spec, old, errors);
    if spec.has("allocateLoadBalancerNodePorts") && !is_balanced(spec) {
        errors.push(Error::forbidden(&SPEC.child("allocateLoadBalancerNodePorts"), ONLY_BALANCED));
    }
    if is_balanced(spec) && !spec.has("allocateLoadBalancerNodePorts") {
        errors.push(Error::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
    }
    check_class(spec, None, errors);
    check_external_policy(spec, errors);
    check_internal_policy(spec, errors);
    if let Some(distribution) = spec.some("trafficDistribution").and_then(Value::as_str) {
        let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        supported(distribution, &known, &SPEC.child("trafficDistribution"), errors);
    }
}

fn check_type(spec: &Value, errors: &mut ErrorList) {
    let kind = spec.text("type");
    if spec.list("ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.push(Error::required(&SPEC.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&SPEC.item("clusterIPs", 0), "None", detail));
        }
        "ExternalName" => {
            for (key, is_set) in [
                ("clusterIPs", !spec.list("clusterIPs").is_empty()),
                ("ipFamilies", !spec.list("ipFamilies").is_empty()),
                ("ipFamilyPolicy", spec.has("ipFamilyPolicy")),
            ] {
                if is_set {
                    errors.push(Error::forbidden(&SPEC.child(key), "may not be set for ExternalName services"));
                }
            }
            let name = spec.text("externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(Error::required(&SPEC.child("externalName"), ""));
            } else {
                dns_subdomain(name, &SPEC.child("externalName"), errors);
            }
        }
        _ => {}
    }
}

fn check_ports(spec: &Value, errors: &mut ErrorList) {
    let ports = spec.list("ports");
    let mut names = BTreeSet::new();
    for (i, value) in ports.iter().enumerate() {
        let path = SPEC.item("ports", i);
        let name = value.text("name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(Error::required(&path.child("name"), ""));
            }
        } else {
            dns_label(name, &path.child("name"), errors);
            if !names.insert(name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
        }
        port(value.number("port"), &path.child("port"), errors);
        one_of(value.text("protocol"), &PROTOCOLS, &path.child("protocol"), errors);
        port_or_name(value.get("targetPort"), &path.child("targetPort"), errors);
        if let Some(protocol) = value.some("appProtocol").and_then(Value::as_str) {
            qualified_name(protocol, &path.child("appProtocol"), errors);
        }
    }
}

fn check_affinity(spec: &Value, errors: &mut ErrorList) {
    let affinity = spec.text("sessionAffinity");
    one_of(affinity, &["ClientIP", "None"], &SPEC.child("sessionAffinity"), errors);
    let path = SPEC.child("sessionAffinityConfig");
    let config = spec.some("sessionAffinityConfig");
    match affinity {
        "ClientIP" => {
            let at = path.child("clientIP");
            let Some(config) = config else {
                let detail = "when session affinity type is ClientIP";
                return errors.push(Error::required(&path, detail));
            };
            let Some(client) = config.some("clientIP") else {
                return errors.push(Error::required(&at, "when session affinity type is ClientIP"));
            };
            let seconds_path = at.child("timeoutSeconds");
            match client.int("timeoutSeconds") {
                None => {
                    let detail = "when session affinity type is ClientIP";
                    errors.push(Error::required(&seconds_path, detail));
                }
                Some(seconds) if !(1..=MAX_AFFINITY_SECONDS).contains(&seconds) => {
                    let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
                    errors.push(Error::invalid(&seconds_path, seconds, detail));
                }
                Some(_) => {}
            }
        }
        "None" if config.is_some() => {
            errors.push(Error::forbidden(&path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn is_ipv6(text: &str) -> bool {
    parse_ip_sloppy(text).is_some_and(|ip| ip.to_canonical().is_ipv6())
}

fn check_cluster_ips(env: &Env, spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let path = SPEC.child("clusterIPs");
    let (first, all, shown) = (spec.text("clusterIP"), spec.texts("clusterIPs"), member(spec, "clusterIPs"));
    match (first.is_empty(), all.first()) {
        (false, None) => errors.push(Error::required(&path, "")),
        (false, Some(ip)) if *ip != first => {
            errors.push(Error::invalid(&path, shown, "first value must match `clusterIP`"));
        }
        (true, Some(_)) => {
            errors.push(Error::invalid(&path, shown, "must be empty when `clusterIP` is not specified"));
        }
        _ => {}
    }
    let families = spec.texts("ipFamilies");
    for (i, family) in families.iter().enumerate() {
        let path = SPEC.item("ipFamilies", i);
        supported(family, &["IPv4", "IPv6"], &path, errors);
        if families[..i].contains(family) {
            errors.push(Error::duplicate(&path, BadValue::json(*family)));
        }
    }
    if let Some(policy) = spec.some("ipFamilyPolicy").and_then(Value::as_str) {
        let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        supported(policy, &known, &SPEC.child("ipFamilyPolicy"), errors);
    }
    let known: Vec<&str> = before.map_or_else(Vec::new, |b| b.texts("clusterIPs"));
    let mut has_invalid = false;
    for (i, ip) in all.iter().enumerate() {
        if i == 0 && *ip == "None" {
            if all.len() > 1 {
                has_invalid = true;
                errors.push(Error::invalid(&path, shown, "'None' must be the first and only value"));
            }
            continue;
        }
        let found = validate_ip_of_legacy_field(ip, env.ip_rules(), &known, &path.index(i));
        has_invalid |= !found.is_empty();
        errors.extend(found);
    }
    if all.len() > 2 {
        errors.push(Error::invalid(&path, shown, "may only hold up to 2 values"));
    }
    if has_invalid {
        return;
    }
    if all.len() > 1 && !(all.iter().any(|ip| is_ipv6(ip)) && all.iter().any(|ip| !is_ipv6(ip))) {
        errors.push(Error::invalid(&path, shown, "may specify no more than one IP for each IP family"));
    }
    if !is_headless(spec) {
        for (i, (ip, family)) in all.iter().zip(&families).enumerate() {
            if (*family == "IPv4" && is_ipv6(ip)) || (*family == "IPv6" && !is_ipv6(ip)) {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
                errors.push(Error::invalid(&path.index(i), *ip, detail));
            }
        }
    }
}

fn check_node_ports(spec: &Value, errors: &mut ErrorList) {
    let ports = spec.list("ports");
    if spec.text("type") == "ClusterIP" {
        for (i, _) in ports.iter().enumerate().filter(|(_, p)| p.number("nodePort") != 0) {
            let path = SPEC.item("ports", i);
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(Error::forbidden(&path.child("nodePort"), detail));
        }
    }
    let mut taken = BTreeSet::new();
    for (i, value) in ports.iter().enumerate().filter(|(_, p)| p.number("nodePort") != 0) {
        if !taken.insert((value.text("protocol"), value.number("nodePort"))) {
            let path = SPEC.item("ports", i);
            errors.push(Error::duplicate(&path.child("nodePort"), value.number("nodePort")));
        }
    }
    let mut taken = BTreeSet::new();
    for (i, value) in ports.iter().enumerate() {
        let (protocol, number) = (value.text("protocol"), value.number("port"));
        if !taken.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\
                 \"NodePort\":0}}"
            );
            errors.push(Error::duplicate(&SPEC.item("ports", i), BadValue::text(shown)));
        }
    }
}

fn check_source_ranges(env: &Env, service: &Value, spec: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let ranges = spec.texts("loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let path = SPEC.child("LoadBalancerSourceRanges");
        if !is_balanced(spec) {
            errors.push(Error::forbidden(&path, ONLY_BALANCED));
        }
        let known: Vec<&str> = old
            .map(|o| member(o, "spec").texts("loadBalancerSourceRanges").into_iter().map(str::trim).collect())
            .unwrap_or_default();
        for (i, range) in ranges.into_iter().map(str::trim).enumerate() {
            errors.extend(validate_cidr_of_legacy_field(range, env.ip_rules(), &known, &path.index(i)));
        }
        return;
    }
    let Some(text) = service.meta().annotation(SOURCE_RANGES) else { return };
    let annotations = Path::of(&["metadata", "annotations"]);
    let path = annotations.key(SOURCE_RANGES);
    if !is_balanced(spec) {
        errors.push(Error::forbidden(&path, ONLY_BALANCED));
    }
    if old.and_then(|o| o.meta().annotation(SOURCE_RANGES)) != Some(text) && !text.trim().is_empty() {
        for range in text.trim().split(',').map(str::trim) {
            errors.extend(validate_cidr_of_legacy_field(range, env.ip_rules(), &[], &path));
        }
    }
}

fn check_class(spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    let path = SPEC.child("loadBalancerClass");
    let class = spec.some("loadBalancerClass").and_then(Value::as_str);
    if let Some(before) = before.filter(|b| is_balanced(b) && is_balanced(spec))
        && before.some("loadBalancerClass") != spec.some("loadBalancerClass")
    {
        errors.push(Error::invalid(&path, member(spec, "loadBalancerClass"), UNCHANGED));
    }
    match class {
        Some(class) if is_balanced(spec) => qualified_name(class, &path, errors),
        Some(_) => errors.push(Error::forbidden(&path, ONLY_BALANCED)),
        None => {}
    }
}

fn check_external_policy(spec: &Value, errors: &mut ErrorList) {
    let (policy, path) = (spec.text("externalTrafficPolicy"), SPEC.child("externalTrafficPolicy"));
    if is_reachable_from_outside(spec) {
        one_of(policy, &["Cluster", "Local"], &path, errors);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(Error::invalid(&path, BadValue::json(policy), detail));
    }
    let (number, path) = (spec.number("healthCheckNodePort"), SPEC.child("healthCheckNodePort"));
    match (needs_health_check(spec), number) {
        (false, 0) => {}
        (false, _) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(Error::invalid(&path, number, detail));
        }
        (true, 0) => errors.push(Error::required(&path, "")),
        (true, _) => port(number, &path, errors),
    }
}

fn check_internal_policy(spec: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("internalTrafficPolicy");
    match spec.some("internalTrafficPolicy").and_then(Value::as_str) {
        None if matches!(spec.text("type"), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.push(Error::required(&path, ""));
        }
        None => {}
        Some(policy) => supported(policy, &["Cluster", "Local"], &path, errors),
    }
}

/// Addresses stay, but a second one may come and go.
fn check_addresses_update(spec: &Value, before: &Value, errors: &mut ErrorList) {
    if [spec, before].iter().any(|s| s.text("type") == "ExternalName") || (is_headless(spec) && is_headless(before)) {
        return;
    }
    let (new, old, shown) = (spec.texts("clusterIPs"), before.texts("clusterIPs"), member(spec, "clusterIPs"));
    let path = SPEC.child("clusterIPs");
    if new.len() == old.len() {
        for (i, _) in old.iter().zip(&new).enumerate().filter(|(_, (a, b))| a != b) {
            errors.push(Error::invalid(&path.index(i), shown, UNCHANGED));
        }
        return;
    }
    if new.is_empty() {
        errors.push(Error::invalid(&path.index(0), shown, "primary clusterIP can not be unset"));
    }
    if !old.is_empty() && !new.is_empty() && new[0] != old[0] {
        errors.push(Error::invalid(&path.index(0), shown, UNCHANGED));
    }
    if old.len() > new.len() && new.len() == 1 {
        check_single_stack(spec, "clusterIP", errors);
    }
}

fn check_single_stack(spec: &Value, what: &str, errors: &mut ErrorList) {
    if spec.text("ipFamilyPolicy") != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.push(Error::invalid(&SPEC.child("ipFamilyPolicy"), member(spec, "ipFamilyPolicy"), detail));
    }
}

fn check_families_update(spec: &Value, before: &Value, errors: &mut ErrorList) {
    let named = [spec, before].iter().any(|s| s.text("type") == "ExternalName");
    if named || is_headless(spec) || is_headless(before) {
        return;
    }
    let (new, old) = (spec.texts("ipFamilies"), before.texts("ipFamilies"));
    let path = SPEC.item("ipFamilies", 0);
    if new.len() == old.len() {
        for _ in old.iter().zip(&new).filter(|(a, b)| a != b) {
            errors.push(Error::invalid(&path, member(spec, "ipFamilies"), UNCHANGED));
        }
        return;
    }
    if old.len() > new.len() && spec.list("clusterIPs").is_empty() {
        errors.push(Error::invalid(&path, member(spec, "ipFamilies"), "primary ipFamily can not be unset"));
    }
    if !old.is_empty() && !new.is_empty() && new[0] != old[0] {
        errors.push(Error::invalid(&path, member(spec, "clusterIPs"), UNCHANGED));
    }
    if old.len() > new.len() && new.len() == 1 {
        check_single_stack(spec, "ipFamily", errors);
    }
}

fn check_status(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    let balancer = |service: &Value| service.at(&["status", "loadBalancer"]).cloned().unwrap_or(Value::Null);
    let path = Path::of(&["status", "loadBalancer"]);
    check_balancer(env, &balancer(new), &balancer(old), member(new, "spec"), &path, errors);
}

fn check_balancer(env: &Env, status: &Value, old: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("ingress");
    let points = status.list("ingress");
    if !is_balanced(spec) && !points.is_empty() {
        errors.push(Error::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    let known: Vec<&str> = old.list("ingress").iter().map(|p| p.text("ip")).filter(|ip| !ip.is_empty()).collect();
    for (i, point) in points.iter().enumerate() {
        let path = path.index(i);
        let (ip, hostname) = (point.text("ip"), point.text("hostname"));
        if !ip.is_empty() {
            errors.extend(validate_ip_of_legacy_field(ip, env.ip_rules(), &known, &path.child("ip")));
        }
        let mode_path = path.child("ipMode");
        match point.some("ipMode").and_then(Value::as_str) {
            None if !ip.is_empty() => errors.push(Error::required(&mode_path, "must be specified when `ip` is set")),
            Some(_) if ip.is_empty() => {
                errors.push(Error::forbidden(&mode_path, "may not be specified when `ip` is not set"));
            }
            Some(mode) => supported(mode, &["Proxy", "VIP"], &mode_path, errors),
            None => {}
        }
        if !hostname.is_empty() {
            dns_subdomain(hostname, &path.child("hostname"), errors);
            if parse_ip_sloppy(hostname).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(Error::invalid(&path.child("hostname"), hostname, detail));
            }
        }
    }
}
