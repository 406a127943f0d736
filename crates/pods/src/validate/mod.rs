//! Pods and the pod templates of workloads.

pub mod annotations;
mod container;
mod handler;
mod mounts;
mod projected;
mod qos;
mod resources;
mod scheduling;
mod security;
mod update;
mod variables;
pub mod volumes;
mod windows;

pub use qos::qos_class;
pub use resources::requirements;
pub use scheduling::{node_selector, taint_effect, tolerations};
pub use update::RULES;
pub use volumes::PodName;

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    is_dns1123_subdomain_with_underscore, name_is_dns_subdomain, range_message, validate_ip_of_legacy_field,
};
use kubelith_meta::selector::validate_labels;
use kubelith_meta::{Value, members};
use kubelith_rules::Env;
use kubelith_rules::common::{
    Fields, dns_label, dns_subdomain, invalid_all, member, name_full, no_backsteps, qualified_name, supported,
};
use kubelith_rules::values::preemption_policy;

/// Whose spec it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Pod,
    Template,
}

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;

/// The spec of a pod, or in the template of one.
pub fn spec(env: &Env, spec: &Value, name: PodName<'_>, owner: Owner, path: &Path<'_>, errors: &mut ErrorList) {
    members!(spec =>
        affinity: "affinity",
        dns_config: "dnsConfig",
        dns_policy: "dnsPolicy",
        gates: "schedulingGates",
        grace_period: "terminationGracePeriodSeconds",
        host_aliases: "hostAliases",
        host_network: "hostNetwork",
        host_users: "hostUsers",
        node_selector: "nodeSelector",
        os: "os",
        pod_resources: "resources",
        readiness_gates: "readinessGates",
        resource_claims: "resourceClaims",
        restart_policy: "restartPolicy",
        scheduling_group: "schedulingGroup",
        security_context: "securityContext",
        spread: "topologySpreadConstraints",
        tolerations: "tolerations",
        volumes: "volumes",
    );
    if grace_period.is_null() {
        errors.push(Error::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volumes::check(volumes.items(), name, owner, &path.child("volumes"), errors);
    resources::check_pod_claims(resource_claims.items(), &path.child("resourceClaims"), errors);
    let pod = container::Pod::new(env, spec, &volumes);
    container::check_containers(&pod, &path.child("containers"), errors);
    container::check_init_containers(&pod, &path.child("initContainers"), errors);
    container::check_ephemeral_containers(&pod, &path.child("ephemeralContainers"), errors);
    if let Some(resources) = pod_resources.set().filter(|_| env.features.pod_level_resources) {
        resources::check_pod(resources, spec, &path.child("resources"), errors);
    }
    if host_network.is_true() {
        check_host_network(spec, owner, path, errors);
    }
    let policies = ["Always", "OnFailure", "Never"];
    kubelith_rules::common::one_of(restart_policy.or_empty(), &policies, &path.child("restartPolicy"), errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    kubelith_rules::common::one_of(dns_policy.or_empty(), &policies, &path.child("dnsPolicy"), errors);
    if let Some(labels) = node_selector.as_object() {
        errors.extend(validate_labels(labels, &path.child("nodeSelector")));
    }
    if let Some(context) = security_context.set() {
        security::check_pod(env, context, spec, &path.child("securityContext"), errors);
    }
    if let Some(affinity) = affinity.set() {
        scheduling::check_affinity(affinity, &path.child("affinity"), errors);
    }
    check_dns(env, dns_policy.or_empty(), dns_config.set(), &path.child("dnsConfig"), errors);
    for (i, gate) in readiness_gates.items().iter().enumerate() {
        let path = path.item("readinessGates", i);
        qualified_name(gate.text("conditionType"), &path.child("conditionType"), errors);
    }
    check_scheduling_gates(gates.items(), path, errors);
    scheduling::check_spread(env, spread.items(), &path.child("topologySpreadConstraints"), errors);
    windows::check_host_process(env, spec, path, errors);
    if !host_users.is_null() {
        security::check_host_users(env, spec, path, errors);
    }
    check_names(spec, path, errors);
    scheduling::tolerations(env, tolerations.items(), &path.child("tolerations"), errors);
    check_host_aliases(env, host_aliases.items(), path, errors);
    check_classes(spec, path, errors);
    if let Some(os) = os.set() {
        check_os(os, spec, path, errors);
    }
    if let Some(group) = scheduling_group.set() {
        let path = path.children(&["schedulingGroup", "podGroupName"]);
        match group.some("podGroupName").and_then(Value::as_str) {
            Some(name) => name_full(name_is_dns_subdomain, name, &path, errors),
            None => errors.push(Error::invalid(&path, Value::Null, "must specify one of: `podGroupName`")),
        }
    }
    variables::check_files(spec, path, errors);
}

fn check_host_network(spec: &Value, owner: Owner, path: &Path<'_>, errors: &mut ErrorList) {
    for (i, container) in spec.list("containers").iter().enumerate() {
        for (j, port) in container.list("ports").iter().enumerate() {
            let (host, own) = (port.number("hostPort"), port.number("containerPort"));
            if (owner == Owner::Pod || host != 0) && host != own {
                let path = path.item("containers", i);
                let path = path.item("ports", j);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(&path.child("hostPort"), host, detail));
            }
        }
    }
}

fn check_dns(env: &Env, policy: &str, config: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if policy == "None" {
        let Some(config) = config else {
            return errors.push(Error::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
        };
        if config.list("nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.push(Error::required(&path.child("nameservers"), detail));
        }
    }
    let Some(config) = config else { return };
    let servers = config.texts("nameservers");
    if servers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(Error::invalid(&path.child("nameservers"), member(config, "nameservers"), detail));
    }
    for (i, server) in servers.into_iter().enumerate() {
        errors.extend(validate_ip_of_legacy_field(server, env.ip_rules(), &[], &path.item("nameservers", i)));
    }
    let searches = config.texts("searches");
    let shown = member(config, "searches");
    if searches.len() > MAX_SEARCHES {
        let detail = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(Error::invalid(&path.child("searches"), shown, detail));
    }
    if searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        let detail =
            format!("must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list");
        errors.push(Error::invalid(&path.child("searches"), shown, detail));
    }
    for (i, search) in searches.into_iter().enumerate().filter(|(_, s)| *s != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        invalid_all(is_dns1123_subdomain_with_underscore(search), &path.item("searches", i), search, errors);
    }
    for (i, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            errors.push(Error::required(&path.item("options", i), "must not be empty"));
        }
    }
}

fn check_scheduling_gates(gates: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = Vec::new();
    for (i, gate) in gates.iter().enumerate() {
        let (name, path) = (gate.text("name"), path.item("schedulingGates", i));
        qualified_name(name, &path, errors);
        if seen.contains(&name) {
            errors.push(Error::duplicate(&path, name));
        }
        seen.push(name);
    }
}

fn check_names(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    members!(spec =>
        hostname_override: "hostnameOverride",
        service_account: "serviceAccountName",
        node: "nodeName",
        deadline: "activeDeadlineSeconds",
        hostname: "hostname",
        subdomain: "subdomain",
    );
    if let Some(name) = hostname_override.as_str() {
        let path = path.child("hostnameOverride");
        if spec.flag("setHostnameAsFQDN") {
            errors.push(Error::forbidden(&path, "may not be specified when setHostnameAsFQDN is true"));
        }
        if spec.flag("hostNetwork") {
            errors.push(Error::forbidden(&path, "may not be specified when hostNetwork is true"));
        }
        if name.len() > 64 {
            errors.push(Error::too_long(&path, 64));
        }
        dns_subdomain(name, &path, errors);
    }
    for (key, name) in [("serviceAccountName", service_account.or_empty()), ("nodeName", node.or_empty())] {
        if !name.is_empty() {
            name_full(name_is_dns_subdomain, name, &path.child(key), errors);
        }
    }
    if let Some(seconds) = deadline.as_i64().filter(|s| !(1..=i64::from(i32::MAX)).contains(s)) {
        let detail = range_message(1, i64::from(i32::MAX));
        errors.push(Error::invalid(&path.child("activeDeadlineSeconds"), seconds, detail));
    }
    for (key, name) in [("hostname", hostname.or_empty()), ("subdomain", subdomain.or_empty())] {
        if !name.is_empty() {
            dns_label(name, &path.child(key), errors);
        }
    }
}

fn check_host_aliases(env: &Env, aliases: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, alias) in aliases.iter().enumerate() {
        let path = path.item("hostAliases", i);
        errors.extend(validate_ip_of_legacy_field(alias.text("ip"), env.ip_rules(), &[], &path.child("ip")));
        for (j, hostname) in alias.texts("hostnames").into_iter().enumerate() {
            dns_subdomain(hostname, &path.item("hostnames", j), errors);
        }
    }
}

fn check_classes(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    members!(spec => priority: "priorityClassName", runtime: "runtimeClassName", overhead: "overhead");
    if !priority.or_empty().is_empty() {
        name_full(name_is_dns_subdomain, priority.or_empty(), &path.child("priorityClassName"), errors);
    }
    if let Some(class) = runtime.as_str() {
        name_full(name_is_dns_subdomain, class, &path.child("runtimeClassName"), errors);
    }
    preemption_policy(spec, path, errors);
    if let Some(overhead) = overhead.set() {
        let limits = Value::from([("limits", overhead.clone())]);
        requirements(&limits, &[], &path.child("overhead"), errors);
    }
}

fn check_os(os: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("os");
    match os.text("name") {
        "" => errors.push(Error::required(&at.child("name"), "")),
        name @ ("linux" | "windows") => windows::check_system(name, spec, path, errors),
        name => errors.push(Error::not_supported(&at, BadValue::json(name), ["linux", "windows"])),
    }
}

/// Where a node keeps something.
fn host_path(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if source.text("path").is_empty() {
        return errors.push(Error::required(&path.child("path"), ""));
    }
    no_backsteps(source.text("path"), &path.child("path"), errors);
    if let Some(kind) = source.some("type").and_then(Value::as_str) {
        const TYPES: [&str; 8] =
            ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
        supported(kind, &TYPES, &path.child("type"), errors);
    }
}
