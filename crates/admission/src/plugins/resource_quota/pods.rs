//! What a pod counts for, and which scopes it is in.

use super::quota::Scope;
use crate::plugins::amounts::{Amounts, add, amounts, is_pod_level, is_sidecar, of_containers, raise, set_pod_level};
use crate::plugins::list;
use kubelith_meta::quantity::{Format, Quantity};
use kubelith_meta::time::{Duration, Time};
use kubelith_meta::{Str, Value};
use kubelith_pods::qos_class;
use kubelith_rules::Features;
use std::collections::{BTreeMap, BTreeSet};

pub const COUNT: &str = "count/pods";

/// Resources of a pod's quota beside those with a prefix.
const RESOURCES: [&str; 11] = [
    COUNT,
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// Where a quota counts one of these, each container must say how much it needs.
const REQUIRED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// The prefix of resources that stand for a device class.
pub const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
const REQUESTS: &str = "requests.";

/// Feature gates that change what a pod counts for.
#[derive(Debug, Clone, Copy)]
pub struct Gates {
    pub pod_level_resources: bool,
    pub in_place_resize: bool,
}

pub fn one() -> Quantity {
    Quantity::new(1, Format::DecimalSi)
}

pub fn counts(resource: &str) -> bool {
    RESOURCES.contains(&resource)
        || resource.starts_with("hugepages-")
        || resource.starts_with("requests.hugepages-")
        || is_extended_in_quota(resource)
}

/// Whether the name of a quota's resource stands for an extended resource.
pub fn is_extended_in_quota(resource: &str) -> bool {
    let Some(name) = resource.strip_prefix(REQUESTS) else { return false };
    !is_native(resource) || name.starts_with(DEVICE_CLASS)
}

fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Whether a container asks for an extended resource by this name.
pub fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with(REQUESTS)
        && kubelith_meta::names::is_qualified_name(&format!("{REQUESTS}{resource}")).is_empty()
}

/// What keeps a pod from being counted: containers that do not say how much they need.
pub fn lacks(pod: &Value, restricted: &[Str], gates: Gates) -> Result<(), String> {
    if gates.pod_level_resources && asks_as_a_whole(pod) {
        return Ok(());
    }
    let required: Vec<&str> = REQUIRED.into_iter().filter(|name| restricted.iter().any(|r| r == name)).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let all = list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
    for container in all {
        let of = |kind: &str| amounts(container.at(&["resources", kind]));
        let said = compute(&of("requests"), &of("limits"));
        for name in required.iter().filter(|name| !said.contains_key(**name)) {
            missing.entry(name).or_default().insert(container.str_at(&["name"]));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let texts = missing.iter().map(|(resource, containers)| {
        let names: Vec<&str> = containers.iter().copied().collect();
        format!("{resource} for: {}", names.join(","))
    });
    Err(format!("must specify {}", texts.collect::<Vec<_>>().join("; ")))
}

fn asks_as_a_whole(pod: &Value) -> bool {
    let asks = |kind: &str| {
        let map = pod.at(&["spec", "resources", kind]).and_then(Value::as_object);
        map.is_some_and(|map| map.iter().any(|(name, _)| is_pod_level(name)))
    };
    asks("requests") || asks("limits")
}

/// What the pod counts for now.
pub fn usage(pod: &Value, gates: Gates, now: Time) -> Amounts {
    // The number of objects is that of all that are stored; the rest is what lives.
    let mut total = Amounts::from([(COUNT.into(), one())]);
    if lives(pod, now) {
        add(&mut total, &compute(&requests(pod, gates), &limits(pod, gates)));
    }
    total
}

/// A pod that ended counts no longer, nor does one that should have been gone by now: its node may be lost.
fn lives(pod: &Value, now: Time) -> bool {
    if matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded") {
        return false;
    }
    let meta = pod.meta();
    match (meta.deletion_timestamp(), meta.deletion_grace_period_seconds()) {
        (Some(at), Some(grace)) => now <= at + Duration::from_secs(grace),
        _ => true,
    }
}

fn requests(pod: &Value, gates: Gates) -> Amounts {
    let infeasible = resize_is_infeasible(pod);
    let mut total = of_containers(pod, |container| {
        let mut own = amounts(container.at(&["resources", "requests"]));
        if let Some(status) = running(pod, container, gates) {
            if infeasible {
                own.clear();
            }
            raise(&mut own, amounts(status.at(&["resources", "requests"])));
            raise(&mut own, amounts(status.get("allocatedResources")));
        }
        own
    });
    if gates.pod_level_resources {
        set_pod_level(&mut total, pod, "requests");
    }
    add(&mut total, &amounts(pod.at(&["spec", "overhead"])));
    total
}

fn limits(pod: &Value, gates: Gates) -> Amounts {
    let infeasible = resize_is_infeasible(pod);
    let mut total = of_containers(pod, |container| {
        let mut own = amounts(container.at(&["resources", "limits"]));
        if let Some(status) = running(pod, container, gates) {
            if infeasible {
                own.clear();
            }
            raise(&mut own, amounts(status.at(&["resources", "limits"])));
        }
        own
    });
    if gates.pod_level_resources {
        set_pod_level(&mut total, pod, "limits");
    }
    for (name, overhead) in amounts(pod.at(&["spec", "overhead"])) {
        if let Some(limit) = total.get_mut(&name).filter(|limit| !limit.is_zero()) {
            *limit += &overhead;
        }
    }
    total
}

/// The status of a container that tells what it runs with, which may differ from its spec while it is resized.
fn running<'a>(pod: &'a Value, container: &Value, gates: Gates) -> Option<&'a Value> {
    if !gates.in_place_resize {
        return None;
    }
    let name = container.str_at(&["name"]);
    let of = |key: &str| list(pod, &["status", key]).iter().find(|status| status.str_at(&["name"]) == name);
    let is_init = list(pod, &["spec", "initContainers"]).iter().any(|init| init.str_at(&["name"]) == name);
    let status = match is_init {
        false => of("containerStatuses"),
        true if is_sidecar(container) => of("initContainerStatuses"),
        true => None,
    };
    status.filter(|status| status.get("resources").is_some_and(|r| !r.is_null()))
}

fn resize_is_infeasible(pod: &Value) -> bool {
    let pending = list(pod, &["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == "PodResizePending");
    pending.is_some_and(|condition| condition.str_at(&["reason"]) == "Infeasible")
}

/// By the names that quotas have for it.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut total = Amounts::from([("pods".into(), one())]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            total.insert(name.into(), request.clone());
            total.insert(format!("{REQUESTS}{name}").into(), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            total.insert(format!("limits.{name}").into(), limit.clone());
        }
    }
    for (name, request) in requests {
        if name.starts_with("hugepages-") {
            total.insert(name.clone(), request.clone());
            total.insert(format!("{REQUESTS}{name}").into(), request.clone());
        }
        if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            total.insert(format!("{REQUESTS}{name}").into(), request.clone());
        }
    }
    total
}

pub fn is_terminating(pod: &Value) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

pub fn in_scope(pod: &Value, scope: &Scope, features: &Features) -> Result<bool, String> {
    Ok(match scope.name.as_str() {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod, features),
        "NotBestEffort" => !is_best_effort(pod, features),
        "PriorityClass" => match pod.str_at(&["spec", "priorityClassName"]) {
            "" => scope.selects(&[])?,
            class => scope.selects(&[class])?,
        },
        "CrossNamespacePodAffinity" => looks_into_other_namespaces(pod),
        _ => false,
    })
}

pub fn is_best_effort(pod: &Value, features: &Features) -> bool {
    match pod.str_at(&["status", "qosClass"]) {
        "" => qos_class(features, pod) == "BestEffort",
        class => class == "BestEffort",
    }
}

fn looks_into_other_namespaces(pod: &Value) -> bool {
    let other = |term: &Value| {
        !list(term, &["namespaces"]).is_empty() || term.get("namespaceSelector").is_some_and(|s| !s.is_null())
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let terms = |when: &str| list(pod, &["spec", "affinity", kind, when]).iter();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(other)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .filter_map(|weighted| weighted.get("podAffinityTerm"))
                .any(other)
    })
}
