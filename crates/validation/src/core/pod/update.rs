//! Pods as they come and as they change: little of a spec may.

use super::{Owner, PodName, spec};
use crate::common::{Fields, SPEC, immutable_member, member, meta, meta_update, name_full, qualified_name};
use crate::{Request, Rules};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{
    IpRules, name_is_dns_subdomain, parse_ip_sloppy, range_message, validate_ip_of_legacy_field,
};
use kubelith_meta::object::Namespacing;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

pub const POD: Rules = Rules { create: |_, pod| on_create(pod), update: on_update };

fn on_create(pod: &Value) -> ErrorList {
    let mut errors = meta(pod, Namespacing::Required, name_is_dns_subdomain);
    check_whole(pod, &mut errors);
    let own = member(pod, "spec");
    if !own.list("ephemeralContainers").is_empty() {
        errors.push(Error::forbidden(&SPEC.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !own.text("nodeName").is_empty() && !own.list("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(Error::forbidden(&SPEC.child("nodeName"), detail));
    }
    errors
}

fn check_whole(pod: &Value, errors: &mut ErrorList) {
    let own = member(pod, "spec");
    let annotations = Path::of(&["metadata", "annotations"]);
    if let Some(value) = pod.meta().annotation(MIRROR)
        && own.text("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(Error::invalid(&annotations.key(MIRROR), value, detail));
    }
    if let Some(cost) = pod.meta().annotation(DELETION_COST) {
        // A number as people write it: no plus, no zeros in front.
        let is_right = cost.parse::<i32>().is_ok_and(|n| n.to_string() == cost);
        if !is_right {
            errors.push(Error::invalid(&annotations.key(DELETION_COST), cost, "must be a 32bit integer"));
        }
    }
    spec(own, PodName(pod.meta().name()), Owner::Pod, &SPEC, errors);
    if own.text("serviceAccountName").is_empty() {
        for (i, volume) in own.list("volumes").iter().enumerate() {
            for (j, source) in member(volume, "projected").list("sources").iter().enumerate() {
                if source.has("serviceAccountToken") {
                    let path = SPEC.item("volumes", i);
                    let path = path.child("projected");
                    let path = path.item("sources", j);
                    let detail = "must not be specified when serviceAccountName is not set";
                    errors.push(Error::forbidden(&path.child("serviceAccountToken"), detail));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for (i, container) in own.list(list).iter().enumerate() {
            let image = container.text("image");
            if image.trim() != image {
                let path = SPEC.item(list, i);
                let detail = "must not have leading or trailing whitespace";
                errors.push(Error::invalid(&path.child("image"), image, detail));
            }
        }
    }
}

fn on_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    match request.subresource {
        "" => check_update(new, old, &mut errors),
        "status" => check_status(new, old, &mut errors),
        "ephemeralcontainers" => check_ephemeral(new, old, &mut errors),
        "resize" => check_resize(new, old, &mut errors),
        _ => {}
    }
    errors
}

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn check_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(new, errors);
    let (own, before) = (member(new, "spec"), member(old, "spec"));
    for list in ["containers", "initContainers"] {
        if own.list(list).len() != before.list(list).len() {
            errors.push(Error::forbidden(&SPEC.child(list), "pod updates may not add or remove containers"));
            return;
        }
        for (i, container) in own.list(list).iter().enumerate() {
            let (image, path) = (container.text("image"), SPEC.item(list, i));
            if image.is_empty() {
                errors.push(Error::required(&path.child("image"), ""));
            }
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(Error::invalid(&path.child("image"), image, detail));
            }
        }
    }
    let path = SPEC.child("activeDeadlineSeconds");
    match (own.int("activeDeadlineSeconds"), before.int("activeDeadlineSeconds")) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            return errors.push(Error::invalid(&path, new, range_message(0, i64::from(i32::MAX))));
        }
        (Some(new), Some(old)) if old < new => {
            return errors.push(Error::invalid(&path, new, "must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(Error::invalid(&path, Value::Null, detail));
        }
        _ => {}
    }
    check_tolerations(own, before, errors);
    let known: Vec<&str> = before.list("schedulingGates").iter().map(|g| g.text("name")).collect();
    for (i, gate) in own.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        if !known.contains(&name) {
            let path = SPEC.item("schedulingGates", i);
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(Error::forbidden(&path.child("name"), detail));
        }
    }
    if unchangeable(own, before) != unchangeable(before, before) {
        errors.push(Error::forbidden(&SPEC, UPDATABLE));
    }
}

/// Ephemeral containers only come.
fn check_ephemeral(new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(new, errors);
    if old.meta().annotation(MIRROR).is_some() {
        *errors = Error::forbidden(&Path::new(""), "static pods do not support ephemeral containers").into();
        return;
    }
    let path = SPEC.child("ephemeralContainers");
    let own = member(new, "spec").list("ephemeralContainers");
    for before in member(old, "spec").list("ephemeralContainers") {
        let name = before.text("name");
        match own.iter().find(|container| container.text("name") == name) {
            None => {
                let detail = format!("existing ephemeral containers \"{name}\" may not be removed\n");
                errors.push(Error::forbidden(&path, detail));
            }
            Some(container) if container != before => {
                let detail = format!("existing ephemeral containers \"{name}\" may not be changed\n");
                errors.push(Error::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
}

/// A resize changes how much processor and memory containers have, and nothing else.
fn check_resize(new: &Value, old: &Value, errors: &mut ErrorList) {
    check_whole(new, errors);
    if old.meta().annotation(MIRROR).is_some() {
        *errors = Error::forbidden(&Path::new(""), "static pods cannot be resized").into();
        return;
    }
    let without_amounts = |pod: &Value| {
        let mut spec = member(pod, "spec").clone();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                for kind in ["requests", "limits"] {
                    for resource in ["cpu", "memory"] {
                        container.remove_at(&["resources", kind, resource]);
                    }
                    if container.at(&["resources", kind]).is_some_and(Value::is_empty) {
                        container.remove_at(&["resources", kind]);
                    }
                }
                if container.get("resources").is_some_and(Value::is_empty) {
                    container.make_object().remove("resources");
                }
            }
        }
        spec
    };
    if without_amounts(new) != without_amounts(old) {
        errors.push(Error::forbidden(&SPEC, "only cpu and memory resources are mutable"));
    }
}

/// Old tolerations stay, but for how long they hold.
fn check_tolerations(own: &Value, before: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("tolerations");
    let key = |t: &Value| ["key", "operator", "value", "effect"].map(|k| t.text(k).to_owned());
    let all: Vec<_> = own.list("tolerations").iter().map(key).collect();
    if before.list("tolerations").iter().any(|old| !all.contains(&key(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(Error::forbidden(&path, detail));
        return;
    }
    super::tolerations(own.list("tolerations"), &path, errors);
}

/// A spec without what an update may change.
fn unchangeable(spec: &Value, before: &Value) -> Value {
    let mut spec = spec.clone();
    let is_gated = !before.list("schedulingGates").is_empty();
    let was_negative = before.int("terminationGracePeriodSeconds").is_some_and(|s| s < 0);
    let object = spec.make_object();
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        object.remove(key);
    }
    for list in ["containers", "initContainers"] {
        for container in object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.make_object().remove("image");
        }
    }
    if was_negative {
        object.remove("terminationGracePeriodSeconds");
    }
    if is_gated {
        // What nodes it may go to is still open.
        object.remove("nodeSelector");
        if let Some(affinity) = object.get_mut("affinity") {
            affinity.make_object().remove("nodeAffinity");
            if affinity.is_empty() {
                object.remove("affinity");
            }
        }
    }
    spec
}

fn check_status(new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    let (status, before) = (member(new, "status"), member(old, "status"));
    for (i, condition) in status.list("conditions").iter().enumerate() {
        let path = path.item("conditions", i);
        if let Some(generation) = condition.int("observedGeneration").filter(|g| *g < 0) {
            let detail = "must be a non-negative integer";
            errors.push(Error::invalid(&path.child("observedGeneration"), generation, detail));
        }
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            qualified_name(kind, &path.child("Type"), errors);
        }
    }
    let nominated = status.text("nominatedNodeName");
    if !nominated.is_empty() && nominated != before.text("nominatedNodeName") {
        let path = path.child("nominatedNodeName");
        name_full(name_is_dns_subdomain, nominated, &path, errors);
        if !member(old, "spec").text("nodeName").is_empty() {
            errors.push(Error::forbidden(&path, "may not be set on pods that are already bound to a node"));
        }
    }
    if let Some(generation) = status.int("observedGeneration").filter(|g| *g < 0) {
        let detail = "must be a non-negative integer";
        errors.push(Error::invalid(&path.child("observedGeneration"), generation, detail));
    }
    immutable_member(status, before, "qosClass", &path, errors);
    check_transitions(status, before, member(old, "spec"), &path, errors);
    check_ips(status, before, "podIPs", &path, errors);
    check_ips(status, before, "hostIPs", &path, errors);
}

/// What has ended does not run again, unless it is to be restarted.
fn check_transitions(status: &Value, before: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let policy_of = |name: &str| {
        let own = spec.list("containers").iter().find(|c| c.text("name") == name);
        own.map(|c| c.text("restartPolicy")).filter(|p| !p.is_empty()).unwrap_or(spec.text("restartPolicy"))
    };
    for (i, was) in before.list("containerStatuses").iter().enumerate() {
        let Some(end) = member(was, "state").some("terminated") else { continue };
        let name = was.text("name");
        let may_restart = match policy_of(name) {
            "Always" => true,
            "OnFailure" => end.number("exitCode") != 0,
            _ => false,
        };
        let now = status.list("containerStatuses").iter().find(|s| s.text("name") == name);
        if !may_restart && now.is_some_and(|s| !member(s, "state").has("terminated")) {
            let path = path.item("containerStatuses", i);
            errors.push(Error::forbidden(&path.child("state"), "may not be transitioned to non-terminated state"));
        }
    }
}

fn check_ips(status: &Value, before: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(key);
    let known: Vec<&str> = before.list(key).iter().map(|ip| ip.text("ip")).collect();
    let all: Vec<&str> = status.list(key).iter().map(|ip| ip.text("ip")).collect();
    for (i, ip) in all.iter().enumerate() {
        errors.extend(validate_ip_of_legacy_field(ip, IpRules::Strict, &known, &path.index(i)));
    }
    let parsed: Vec<_> = all.iter().filter_map(|ip| parse_ip_sloppy(ip)).map(|ip| ip.to_canonical()).collect();
    let is_dual = parsed.iter().any(|ip| ip.is_ipv4()) && parsed.iter().any(|ip| ip.is_ipv6());
    if all.len() > 1 && (!is_dual || all.len() > 2) {
        let detail = "may specify no more than one IP for each IP family";
        let shown: Vec<String> =
            all.iter().map(|ip| format!("{{\"IP\":{}}}", kubelith_meta::text::quote(ip))).collect();
        let shown = kubelith_meta::field::BadValue::text(format!("[{}]", shown.join(",")));
        errors.push(Error::invalid(&path, shown, detail));
    }
}
