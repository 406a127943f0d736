//! Amounts of resources: requests that follow from limits, and rounding.

use super::{Rules, is_absent, is_zero};
use kubelith_meta::quantity::MILLI;
use kubelith_meta::{Map, Quantity, Str, Value};
use std::collections::BTreeMap;

pub const RULES: Rules = &[
    ("io.k8s.api.core.v1.ResourceRequirements", |m| round_up(m, &["limits", "requests"])),
    ("io.k8s.api.core.v1.VolumeResourceRequirements", |m| round_up(m, &["limits", "requests"])),
    ("io.k8s.api.core.v1.PodSpec", |m| round_up(m, &["overhead"])),
    ("io.k8s.api.core.v1.PodStatus", |m| round_up(m, &["allocatedResources"])),
    ("io.k8s.api.core.v1.ContainerStatus", |m| round_up(m, &["allocatedResources"])),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", |m| round_up(m, &["capacity"])),
    ("io.k8s.api.core.v1.PersistentVolumeClaimStatus", |m| round_up(m, &["allocatedResources", "capacity"])),
    ("io.k8s.api.core.v1.ResourceQuotaSpec", |m| round_up(m, &["hard"])),
    ("io.k8s.api.core.v1.ResourceQuotaStatus", |m| round_up(m, &["hard", "used"])),
];

/// Brings the amounts in these members to whole thousandths.
pub fn round_up(map: &mut Map, members: &[&str]) {
    for member in members {
        let Some(Value::Object(amounts)) = map.get_mut(member) else { continue };
        for (_, amount) in amounts.iter_mut() {
            if amount.as_str().is_some_and(may_need_rounding) {
                round(amount);
            }
        }
    }
}

/// Only fractions, exponents and the suffixes n and u can be finer than a thousandth.
fn may_need_rounding(text: &str) -> bool {
    text.bytes().any(|b| matches!(b, b'.' | b'n' | b'u' | b'e' | b'E'))
}

fn round(amount: &mut Value) {
    let Some(Ok(mut quantity)) = amount.as_str().map(Quantity::parse) else { return };
    quantity.round_up(MILLI);
    let rounded = quantity.to_string();
    if amount.as_str() != Some(&rounded) {
        *amount = Value::from(rounded);
    }
}

/// Adds the amounts of `from` that `map[member]` lacks. A map without any stays as it is.
pub fn complete(map: &mut Map, member: &str, from: &Map) {
    if from.keys().all(|name| map.get(member).is_some_and(|m| m.get(name).is_some())) {
        return;
    }
    let to = map.entry_or_null(member).make_object();
    for (name, amount) in from.iter() {
        if !to.contains_key(name) {
            to.insert(name, amount.clone());
        }
    }
}

/// A container that says only limits requests as much.
pub fn requests_from_limits(container: &mut Map) {
    let Some(Value::Object(resources)) = container.get("resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    let has_all = limits.keys().all(|name| resources.get("requests").is_some_and(|m| m.get(name).is_some()));
    if !has_all {
        let limits = limits.clone();
        if let Some(Value::Object(resources)) = container.get_mut("resources") {
            complete(resources, "requests", &limits);
        }
    }
}

/// Resources of a pod as a whole: limits for huge pages from the containers' limits, and, where there are limits,
/// requests from the containers' requests or else from the limits.
pub fn pod_level(spec: &mut Map) {
    let Some(Value::Object(resources)) = spec.get("resources") else { return };
    if is_zero(resources, "limits") && is_zero(resources, "requests") {
        return;
    }
    let mut resources = resources.clone();
    let mut limits = Map::new();
    for (name, amount) in aggregate(spec, "limits") {
        let requested = resources.get("requests").is_some_and(|m| m.get(&name).is_some());
        if is_huge_page(&name) && !requested {
            limits.insert(name, amount.to_string());
        }
    }
    complete(&mut resources, "limits", &limits);

    if !is_zero(&resources, "limits") {
        let mut requests = Map::new();
        for (name, amount) in aggregate(spec, "requests") {
            if matches!(name.as_str(), "cpu" | "memory") {
                requests.insert(name, amount.to_string());
            }
        }
        let limits = resources.get("limits").and_then(Value::as_object).into_iter().flat_map(Map::iter);
        for (name, amount) in limits {
            let supported = matches!(name, "cpu" | "memory") || is_huge_page(name);
            if supported && !requests.contains_key(name) {
                requests.insert(name, amount.clone());
            }
        }
        complete(&mut resources, "requests", &requests);
    }
    if spec.get("resources").and_then(Value::as_object) != Some(&resources) {
        spec.insert("resources", resources);
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

type Amounts = BTreeMap<Str, Quantity>;

/// What all containers need together: the sum of those that run, or the most that any step of the start needs. An init
/// container that restarts runs beside all that come after it.
fn aggregate(spec: &Map, member: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in containers(spec, "containers") {
        add(&mut total, &amounts(container, member));
    }
    let (mut beside, mut most) = (Amounts::new(), Amounts::new());
    for container in containers(spec, "initContainers") {
        let mut needed = amounts(container, member);
        if super::text(container, "restartPolicy") == "Always" {
            add(&mut total, &needed);
            add(&mut beside, &needed);
            raise(&mut most, &beside);
        } else {
            add(&mut needed, &beside);
            raise(&mut most, &needed);
        }
    }
    raise(&mut total, &most);
    total
}

fn containers<'a>(spec: &'a Map, member: &str) -> impl Iterator<Item = &'a Map> {
    spec.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn amounts(container: &Map, member: &str) -> Amounts {
    let found = container.get("resources").and_then(|r| r.get(member)).and_then(Value::as_object);
    let found = found.into_iter().flat_map(Map::iter);
    found.filter_map(|(name, amount)| Some((name.into(), Quantity::from_value(amount).ok()?))).collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match to.get_mut(name) {
            Some(sum) => *sum += amount,
            None => {
                to.insert(name.clone(), amount.clone());
            }
        }
    }
}

fn raise(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if to.get(name).is_none_or(|have| amount > have) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// Copies a list of amounts that is not given at all.
pub fn copy_absent(map: &mut Map, from: &str, to: &str) {
    if is_absent(map, to)
        && let Some(amounts) = map.get(from).filter(|v| !v.is_null()).cloned()
    {
        map.insert(to, amounts);
    }
}
