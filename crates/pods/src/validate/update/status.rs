//! What a node may say about a pod.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_user_or_group_id, name_is_dns_subdomain, parse_ip_sloppy, validate_ip_of_legacy_field};
use kubelith_rules::Env;
use kubelith_rules::common::{
    Fields, dns_label, immutable_member, member, name_full, qualified_name, quantity, quantity_text,
};
use kubelith_rules::internal;

const MAX_IMAGE_REFERENCE: usize = 256;
const MAX_HEALTH_MESSAGE: usize = 1024;
const NOT_NEGATIVE: &str = "must be a non-negative integer";
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

pub fn check(env: &Env, new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    let (status, before) = (member(new, "status"), member(old, "status"));
    let (spec, spec_before) = (member(new, "spec"), member(old, "spec"));
    check_conditions(status, &path, errors);
    if spec.text("nodeName") != spec_before.text("nodeName") {
        errors.push(Error::forbidden(&path.child("nodeName"), "may not be changed directly"));
    }
    let nominated = status.text("nominatedNodeName");
    if !nominated.is_empty() && nominated != before.text("nominatedNodeName") {
        let path = path.child("nominatedNodeName");
        name_full(name_is_dns_subdomain, nominated, &path, errors);
        if env.features.clears_nomination && !spec_before.text("nodeName").is_empty() {
            errors.push(Error::forbidden(&path, "may not be set on pods that are already bound to a node"));
        }
    }
    if let Some(generation) = status.int("observedGeneration").filter(|g| *g < 0) {
        errors.push(Error::invalid(&path.child("observedGeneration"), generation, NOT_NEGATIVE));
    }
    immutable_member(status, before, "qosClass", &path, errors);
    check_transitions(env, status, before, spec_before, &path, errors);
    check_claims(status, spec, &path.child("resourceClaimStatuses"), errors);
    if let Some(claim) = status.some("extendedResourceClaimStatus") {
        check_extended_claim(claim, spec, &path.child("extendedResourceClaimStatus"), errors);
    }
    check_node_claims(status, spec, &path, errors);
    check_ips(env, status, before, "podIPs", &path, errors);
    if let Some(first) = status.list("hostIPs").first().map(|ip| ip.text("ip"))
        && first != status.text("hostIP")
    {
        let path = path.item("hostIPs", 0);
        errors.push(Error::invalid(&path.child("ip"), first, "must be equal to `hostIP`"));
    }
    check_ips(env, status, before, "hostIPs", &path, errors);
    for (list, _) in LISTS {
        check_users(status.list(list), spec, &path.child(list), errors);
    }
    for (list, containers) in [LISTS[0], LISTS[1]] {
        check_allocated(status.list(list), spec.list(containers), &path.child(list), errors);
    }
    check_ephemeral_resources(status, &path, errors);
    if env.features.image_digests {
        for (list, _) in LISTS {
            check_images(status.list(list), &path.child(list), errors);
        }
    }
}

/// Which images the volumes of containers were made of.
fn check_images(statuses: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, status) in statuses.iter().enumerate() {
        for (j, mount) in status.list("volumeMounts").iter().enumerate() {
            let Some(image) = member(mount, "volumeStatus").some("image") else { continue };
            let path = path.index(i);
            let path = path.item("volumeMounts", j);
            let path = path.children(&["volumeStatus", "imageVolumeStatus", "imageRef"]);
            if image.text("imageRef").is_empty() {
                errors.push(Error::required(&path, "imageRef must not be empty"));
            }
            if image.text("imageRef").len() > MAX_IMAGE_REFERENCE {
                errors.push(Error::too_long(&path, MAX_IMAGE_REFERENCE));
            }
        }
    }
}

fn check_ephemeral_resources(status: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (i, status) in status.list("ephemeralContainerStatuses").iter().enumerate() {
        if !status.list("allocatedResourcesStatus").is_empty() {
            let path = path.item("ephemeralContainerStatuses", i);
            let detail = "must not be specified in container status";
            errors.push(Error::forbidden(&path.child("allocatedResourcesStatus"), detail));
        }
    }
}

fn check_conditions(status: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (i, condition) in status.list("conditions").iter().enumerate() {
        let path = path.item("conditions", i);
        if let Some(generation) = condition.int("observedGeneration").filter(|g| *g < 0) {
            errors.push(Error::invalid(&path.child("observedGeneration"), generation, NOT_NEGATIVE));
        }
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            qualified_name(kind, &path.child("Type"), errors);
        }
    }
}

/// What has ended does not run again, unless it is to be restarted.
fn check_transitions(env: &Env, status: &Value, before: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let all = spec.list("initContainers").iter().chain(spec.list("containers"));
    let restarts_all = |rule: &Value| rule.text("action") == "RestartAllContainers";
    let any_may_restart = all.flat_map(|c| c.list("restartPolicyRules")).any(restarts_all);
    let (by_rules, any_may_restart) =
        (env.features.restart_rules, any_may_restart && env.features.restarts_all_containers);
    let policy = spec.text("restartPolicy");
    for (list, containers) in LISTS {
        let is_ephemeral = containers == "ephemeralContainers";
        let all_restart = if by_rules { any_may_restart } else { policy == "Always" };
        if all_restart && !is_ephemeral {
            continue;
        }
        for (i, was) in before.list(list).iter().enumerate() {
            let Some(end) = member(was, "state").some("terminated") else { continue };
            let is_same = |other: &&Value| other.text("name") == was.text("name");
            let is_back = |s: &Value| !member(s, "state").has("terminated");
            let mut now = status.list(list).iter().filter(is_same).filter(|s| is_back(s)).count();
            if !is_ephemeral && !by_rules {
                let may_restart = end.number("exitCode") != 0 && policy == "OnFailure";
                now = if may_restart { 0 } else { now };
            } else if !is_ephemeral {
                let container = spec.list(containers).iter().find(is_same);
                let may_restart = container.is_some_and(|c| restarts(c, spec, end.number("exitCode")));
                now = if may_restart { 0 } else { now.min(1) };
            }
            for _ in 0..now {
                let path = path.item(list, i);
                errors.push(Error::forbidden(&path.child("state"), "may not be transitioned to non-terminated state"));
            }
        }
    }
}

/// Whether a container is started again after it has ended with this code.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let own = container.some("restartPolicy").and_then(Value::as_str);
    if own.is_some() {
        let applies = |rule: &&Value| {
            let Some(codes) = rule.some("exitCodes") else { return false };
            let is_listed = codes.list("values").iter().any(|v| v.as_i64() == Some(code));
            match codes.text("operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                _ => false,
            }
        };
        let rule = container.list("restartPolicyRules").iter().find(applies);
        if rule.is_some_and(|rule| matches!(rule.text("action"), "Restart" | "RestartAllContainers")) {
            return true;
        }
    }
    let known = own.filter(|policy| matches!(*policy, "Always" | "OnFailure" | "Never"));
    match known.unwrap_or(spec.text("restartPolicy")) {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

fn check_claims(status: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = Vec::new();
    for (i, claim) in status.list("resourceClaimStatuses").iter().enumerate() {
        let (name, path) = (claim.text("name"), path.index(i));
        if !spec.list("resourceClaims").iter().any(|c| c.text("name") == name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(Error::invalid(&path.child("name"), name, detail));
        }
        if seen.contains(&name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
        seen.push(name);
        if let Some(object) = claim.some("resourceClaimName").and_then(Value::as_str) {
            name_full(name_is_dns_subdomain, object, &path.child("resourceClaimName"), errors);
        }
    }
}

fn check_extended_claim(claim: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mappings = path.child("requestMappings");
    if claim.list("requestMappings").is_empty() {
        errors.push(Error::required(&mappings, "at least one request mapping is required"));
    }
    let mut seen = Vec::new();
    for (i, mapping) in claim.list("requestMappings").iter().enumerate() {
        let at = mappings.index(i);
        let key = ["containerName", "resourceName", "requestName"].map(|key| mapping.text(key));
        // Of containers with one name the last counts.
        let mut all = spec.list("initContainers").iter().chain(spec.list("containers"));
        match all.rfind(|c| c.text("name") == key[0]) {
            Some(container) => {
                if container.at(&["resources", "requests", key[1]]).is_none() {
                    let detail = "must match the extended resource name of an entry in \
                                  spec.initContainers.resources.requests or spec.containers.resources.requests";
                    errors.push(Error::invalid(&at.child("resourceName"), key[1], detail));
                }
            }
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(Error::invalid(&at.child("containerName"), key[0], detail));
            }
        }
        dns_label(key[2], &path.child("requestName"), errors);
        if seen.contains(&key) {
            for (name, value) in ["containerName", "resourceName", "requestName"].into_iter().zip(key) {
                errors.push(Error::duplicate(&at.child(name), value));
            }
        }
        seen.push(key);
    }
    let (name, path) = (claim.text("resourceClaimName"), path.child("resourceClaimName"));
    if name.is_empty() {
        errors.push(Error::required(&path, ""));
    } else {
        name_full(name_is_dns_subdomain, name, &path, errors);
    }
}

fn check_node_claims(status: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let names = |list: &[Value], name: &str| list.iter().any(|c| c.some("resourceClaimName") == Some(&name.into()));
    for (i, claim) in status.list("nodeAllocatableResourceClaimStatuses").iter().enumerate() {
        let path = path.item("nodeAllocatableResourceClaimStatuses", i);
        let (name, name_path) = (claim.text("resourceClaimName"), path.child("resourceClaimName"));
        if name.is_empty() {
            errors.push(Error::required(&name_path, "must not be empty"));
        }
        if !names(spec.list("resourceClaims"), name) && !names(status.list("resourceClaimStatuses"), name) {
            errors.push(Error::invalid(&name_path, name, "no mapping found in pod reference"));
        }
        if claim.list("containers").is_empty() {
            errors.push(Error::required(&path.child("containers"), "must not be empty"));
        }
        let path = path.child("resources");
        if claim.map("resources").is_none_or(|map| map.is_empty()) {
            errors.push(Error::required(&path, "must not be empty"));
        }
        for (resource, amount) in claim.entries("resources") {
            let path = path.key(resource);
            let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
            if !is_native {
                let detail = "must be a node allocatable resource name";
                errors.push(Error::invalid(&path, BadValue::json(resource), detail));
            }
            if quantity(amount).is_some_and(|q| q.signum() < 0) {
                errors.push(Error::invalid(&path, quantity_text(amount), "must be non-negative"));
            }
        }
    }
}

fn check_ips(env: &Env, status: &Value, before: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(key);
    let known: Vec<&str> = before.list(key).iter().map(|ip| ip.text("ip")).collect();
    let all: Vec<&str> = status.list(key).iter().map(|ip| ip.text("ip")).collect();
    for (i, ip) in all.iter().enumerate() {
        errors.extend(validate_ip_of_legacy_field(ip, env.ip_rules(), &known, &path.index(i)));
    }
    if all.len() <= 1 {
        return;
    }
    let parsed: Vec<_> = all.iter().map_while(|ip| parse_ip_sloppy(ip)).map(|ip| ip.to_canonical()).collect();
    if parsed.len() < all.len() {
        let ip = all[parsed.len()];
        let detail = format!("failed to check for dual stack with error:invalid IP[{}]: {ip}", parsed.len());
        errors.push(Error::internal(&path, detail));
    }
    let is_dual =
        parsed.len() == all.len() && parsed.iter().any(|ip| ip.is_ipv4()) && parsed.iter().any(|ip| ip.is_ipv6());
    if !is_dual || all.len() > 2 {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(&path, internal::shown("[]PodIP", status.get(key)), detail));
    }
}

fn check_users(statuses: &[Value], spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let os = spec.some("os").map_or("linux", |os| os.text("name"));
    for (i, status) in statuses.iter().enumerate() {
        let Some(user) = member(status, "user").some("linux") else { continue };
        let path = path.index(i);
        let path = path.children(&["user", "linux"]);
        match os {
            "windows" => errors.push(Error::forbidden(&path, "cannot be set for a windows pod")),
            "linux" => check_linux_user(user, &path, errors),
            _ => {}
        }
    }
}

fn check_linux_user(user: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut check = |id: i64, path: &Path<'_>| {
        errors.extend(is_user_or_group_id(id).into_iter().map(|m| Error::invalid(path, id, m)));
    };
    for key in ["uid", "gid"] {
        check(user.number(key), &path.child(key));
    }
    for (i, group) in user.list("supplementalGroups").iter().enumerate() {
        check(group.as_i64().unwrap_or_default(), &path.item("supplementalGroups", i));
    }
}

/// The health of what containers have got, by the names under which they asked for it.
fn check_allocated(statuses: &[Value], containers: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, status) in statuses.iter().enumerate() {
        let container = containers.iter().find(|c| c.text("name") == status.text("name"));
        let path = path.index(i);
        for (j, allocated) in status.list("allocatedResourcesStatus").iter().enumerate() {
            let path = path.item("allocatedResourcesStatus", j);
            let name = allocated.text("name");
            if let Some(problem) = container.and_then(|c| unasked(member(c, "resources"), name)) {
                errors.push(Error::invalid(&path.child("name"), BadValue::json(name), problem));
            }
            check_health(allocated.list("resources"), &path, errors);
        }
    }
}

fn unasked(resources: &Value, name: &str) -> Option<&'static str> {
    if let Some(claim) = name.strip_prefix("claim:") {
        let asked = |c: &Value| match c.text("request") {
            "" => c.text("name") == claim,
            request => format!("{}/{request}", c.text("name")) == claim,
        };
        return (!resources.list("claims").iter().any(asked)).then_some(
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
             'claim:<claimName>' if request is empty",
        );
    }
    let is_asked = member(resources, "requests").get(name).is_some();
    (!is_asked).then_some("must match one of the container's resource requests")
}

fn check_health(resources: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen = Vec::new();
    for (k, resource) in resources.iter().enumerate() {
        let path = path.item("resources", k);
        kubelith_rules::common::supported(
            resource.text("health"),
            &["Healthy", "Unhealthy", "Unknown"],
            &path.child("health"),
            errors,
        );
        match resource.some("message").and_then(Value::as_str).map(str::len) {
            Some(0) => errors.push(Error::required(&path.child("message"), "must be non-empty if specified")),
            Some(length) if length > MAX_HEALTH_MESSAGE => {
                errors.push(Error::too_long(&path.child("message"), MAX_HEALTH_MESSAGE));
            }
            _ => {}
        }
        let id = resource.text("resourceID");
        if seen.contains(&id) {
            errors.push(Error::duplicate(&path.child("resourceID"), BadValue::json(id)));
        }
        seen.push(id);
    }
}
