//! Containers of all three kinds.

use super::{handler, mounts, resources, security, variables};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_port_name;
use kubelith_meta::{Value, members};
use kubelith_rules::common::{Fields, dns_label, invalid_all, one_of, port, supported};
use kubelith_rules::values::PROTOCOLS;
use kubelith_rules::{Env, Seen};
use std::collections::BTreeSet;

/// What the containers of a pod share.
pub struct Pod<'a> {
    pub env: &'a Env,
    pub spec: &'a Value,
    /// Volumes that are all right, by name.
    pub volumes: &'a [(&'a str, &'a Value)],
    pub claims: Vec<&'a str>,
    pub grace_period: Option<i64>,
    /// Users of the pod are users of the host.
    pub host_users: bool,
}

impl<'a> Pod<'a> {
    pub fn new(env: &'a Env, spec: &'a Value, volumes: &'a [(&'a str, &'a Value)]) -> Pod<'a> {
        Pod {
            env,
            spec,
            volumes,
            claims: spec.list("resourceClaims").iter().map(|c| c.text("name")).collect(),
            grace_period: spec.int("terminationGracePeriodSeconds"),
            host_users: spec.get("hostUsers").and_then(Value::as_bool).unwrap_or(true),
        }
    }
}

pub fn check_containers(pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let containers = pod.spec.list("containers");
    if containers.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let mut names = Seen::default();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        check_common(container, pod, &path, errors);
        if !names.insert(container.text("name")) {
            errors.push(Error::duplicate(&path.child("name"), container.text("name")));
        }
        handler::check_lifecycle(container, pod, &path, errors);
        handler::check_probes(container, pod, &path, errors);
        if pod.env.features.restart_rules {
            check_restart_policy(pod.env, container, &path, errors);
        } else if container.has("restartPolicy") {
            let detail = "may not be set for non-init containers";
            errors.push(Error::forbidden(&path.child("restartPolicy"), detail));
        }
    }
    check_host_ports(containers, path, errors);
}

pub fn check_init_containers(pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let containers = pod.spec.list("initContainers");
    if containers.is_empty() {
        return;
    }
    let mut names: BTreeSet<&str> = pod.spec.list("containers").iter().map(|c| c.text("name")).collect();
    for (i, container) in containers.iter().enumerate() {
        let item = path.index(i);
        check_common(container, pod, &item, errors);
        let is_sidecar = container.text("restartPolicy") == "Always";
        check_init_restart_policy(pod.env, container, &item, errors);
        let name = container.text("name");
        if names.contains(name) {
            errors.push(Error::duplicate(&item.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        check_host_ports(std::slice::from_ref(container), path, errors);
        if is_sidecar {
            handler::check_lifecycle(container, pod, &item, errors);
            handler::check_probes(container, pod, &item, errors);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(key) {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(Error::forbidden(&item.child(key), detail));
                }
            }
            for (j, policy) in container.list("resizePolicy").iter().enumerate() {
                if policy.text("restartPolicy") == "RestartContainer" {
                    let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    let at = item.item("resizePolicy", j);
                    let shown = BadValue::json("RestartContainer");
                    errors.push(Error::invalid(&at.child("restartPolicy"), shown, detail));
                }
            }
        }
    }
}

pub fn check_ephemeral_containers(pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let containers = pod.spec.list("ephemeralContainers");
    if containers.is_empty() {
        return;
    }
    let others = ["containers", "initContainers"].into_iter().flat_map(|key| pod.spec.list(key));
    let mut names: BTreeSet<&str> = others.map(|c| c.text("name")).collect();
    let targets = names.clone();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        let name = container.text("name");
        check_common(container, pod, &path, errors);
        if names.contains(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        } else {
            names.insert(name);
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !targets.contains(target) {
            errors.push(Error::not_found(&path.child("targetContainerName"), target));
        }
        for key in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            // Resources are there or not by what is in them; all others by being there.
            if container.some(key).is_some_and(|v| key != "resources" || !v.is_empty()) {
                errors.push(Error::forbidden(&path.child(key), "cannot be set for an Ephemeral Container"));
            }
        }
        for (j, mount) in container.list("volumeMounts").iter().enumerate() {
            for key in ["subPath", "subPathExpr"] {
                if !mount.text(key).is_empty() {
                    let path = path.item("volumeMounts", j);
                    let detail = "cannot be set for an Ephemeral Container";
                    errors.push(Error::forbidden(&path.child(key), detail));
                }
            }
        }
    }
}

fn check_common(container: &Value, pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    members!(container =>
        name: "name",
        image: "image",
        message_policy: "terminationMessagePolicy",
        ports: "ports",
        env: "env",
        env_from: "envFrom",
        pull_policy: "imagePullPolicy",
        requirements: "resources",
        resize_policy: "resizePolicy",
        context: "securityContext",
    );
    if name.or_empty().is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    } else {
        dns_label(name.or_empty(), &path.child("name"), errors);
    }
    if image.or_empty().is_empty() {
        errors.push(Error::required(&path.child("image"), ""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(message_policy.or_empty(), &policies, &path.child("terminationMessagePolicy"), errors);
    check_ports(ports.items(), &path.child("ports"), errors);
    variables::check(pod.env, env.items(), path, errors);
    variables::check_sources(env_from.items(), &path.child("envFrom"), errors);
    mounts::check(container, pod.volumes, path, errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(pull_policy.or_empty(), &policies, &path.child("imagePullPolicy"), errors);
    if let Some(requirements) = requirements.set() {
        resources::requirements(requirements, &pod.claims, &path.child("resources"), errors);
    }
    check_resize_policy(resize_policy.items(), pod, &path.child("resizePolicy"), errors);
    if let Some(context) = context.set() {
        security::check_container(pod.env, context, pod.host_users, &path.child("securityContext"), errors);
    }
}

fn check_ports(ports: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut names = Seen::default();
    for (i, value) in ports.iter().enumerate() {
        let path = path.index(i);
        members!(value => name: "name", number: "containerPort", host: "hostPort", protocol: "protocol");
        let name = name.or_empty();
        if !name.is_empty() {
            let messages = is_port_name(name);
            if !messages.is_empty() {
                invalid_all(messages, &path.child("name"), name, errors);
            } else if !names.insert(name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
        }
        match number.or_zero() {
            0 => errors.push(Error::required(&path.child("containerPort"), "")),
            number => port(number, &path.child("containerPort"), errors),
        }
        match host.or_zero() {
            0 => {}
            number => port(number, &path.child("hostPort"), errors),
        }
        one_of(protocol.or_empty(), &PROTOCOLS, &path.child("protocol"), errors);
    }
}

fn check_host_ports(containers: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, value) in container.list("ports").iter().enumerate().filter(|(_, p)| p.number("hostPort") != 0) {
            let key = format!("{}/{}/{}", value.text("protocol"), value.text("hostIP"), value.number("hostPort"));
            if !taken.insert(key.clone()) {
                let path = path.index(i);
                let path = path.item("ports", j);
                errors.push(Error::duplicate(&path.child("hostPort"), key));
            }
        }
    }
}

fn check_resize_policy(policies: &[Value], pod: &Pod<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = Seen::default();
    for (i, policy) in policies.iter().enumerate() {
        let (resource, restart) = (policy.text("resourceName"), policy.text("restartPolicy"));
        if !seen.insert(resource) {
            errors.push(Error::duplicate(&path.index(i), BadValue::json(resource)));
        }
        one_of(resource, &["cpu", "memory"], path, errors);
        one_of(restart, &["NotRequired", "RestartContainer"], path, errors);
        if pod.spec.text("restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(Error::invalid(path, BadValue::json(restart), detail));
        }
    }
}

const RULES_NEED_POLICY: &str = "must specify restartPolicy when restart rules are used";

fn check_init_restart_policy(env: &Env, container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let has_rules = !container.list("restartPolicyRules").is_empty();
    match container.some("restartPolicy").and_then(Value::as_str) {
        None if has_rules => errors.push(Error::required(&path.child("restartPolicy"), RULES_NEED_POLICY)),
        None => {}
        Some(policy) if !env.features.restart_rules => {
            supported(policy, &["Always"], &path.child("restartPolicy"), errors);
        }
        Some("Always") if !env.features.restarts_all_containers && has_rules => {
            let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.push(Error::forbidden(&path.child("restartPolicyRules"), detail));
        }
        Some("Always") if !env.features.restarts_all_containers => {}
        Some(_) => check_restart_policy(env, container, path, errors),
    }
}

fn check_restart_policy(env: &Env, container: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    members!(container => policy: "restartPolicy", rules: "restartPolicyRules");
    let rules = rules.items();
    let policy_path = path.child("restartPolicy");
    match policy.as_str() {
        None if rules.is_empty() => return,
        None => errors.push(Error::required(&policy_path, RULES_NEED_POLICY)),
        Some(policy) => supported(policy, &["Always", "Never", "OnFailure"], &policy_path, errors),
    }
    if rules.len() > 20 {
        errors.push(Error::too_many(&path.child("restartPolicyRules"), rules.len(), 20));
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = path.item("restartPolicyRules", i);
        let actions: &[&str] = match env.features.restarts_all_containers {
            true => &["Restart", "RestartAllContainers"],
            false => &["Restart"],
        };
        supported(rule.text("action"), actions, &path.child("action"), errors);
        let Some(codes) = rule.some("exitCodes") else {
            errors.push(Error::required(&path.child("exitCodes"), "must be specified"));
            continue;
        };
        let path = path.child("exitCodes");
        supported(codes.text("operator"), &["In", "NotIn"], &path.child("operator"), errors);
        if codes.list("values").len() > 255 {
            errors.push(Error::too_many(&path.child("values"), codes.list("values").len(), 255));
        }
    }
}
