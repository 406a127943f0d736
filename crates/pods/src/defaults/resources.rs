//! Resources of containers and of whole pods: what is asked for follows from limits.

use kubelith_meta::{Map, Quantity, Str, Value};
use kubelith_rules::defaults::amounts::complete;
use kubelith_rules::defaults::{self, is_zero};
use std::collections::BTreeMap;

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
        if defaults::text(container, "restartPolicy") == "Always" {
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

pub fn amounts(container: &Map, member: &str) -> Amounts {
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
