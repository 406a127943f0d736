//! Amounts of resources by name: what containers ask for, and what that comes to for a pod.

use super::list;
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Str, Value};
use std::collections::BTreeMap;

pub type Amounts = BTreeMap<Str, Quantity>;

/// Reads a resource list; what is no quantity is left out.
pub fn amounts(value: Option<&Value>) -> Amounts {
    let members = value.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    members.filter_map(|(name, amount)| Some((Str::from(name), Quantity::from_value(amount).ok()?))).collect()
}

pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => *sum += amount,
            None => drop(total.insert(name.clone(), amount.clone())),
        }
    }
}

/// Takes the larger amount of each.
pub fn raise(total: &mut Amounts, others: Amounts) {
    for (name, amount) in others {
        if total.get(&name).is_none_or(|held| *held < amount) {
            total.insert(name, amount);
        }
    }
}

/// Whether a pod as a whole may ask for this resource.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

pub fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

/// What the containers of a pod need together, or more if an init container alone needs more. `of` tells what one needs.
pub fn of_containers(pod: &Value, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut total = Amounts::new();
    for container in list(pod, &["spec", "containers"]) {
        add(&mut total, &of(container));
    }
    // Sidecars go on running beside the containers, and beside the init containers after them.
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in list(pod, &["spec", "initContainers"]) {
        let mut own = of(container);
        if is_sidecar(container) {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut peak, own);
    }
    raise(&mut total, peak);
    total
}

/// Puts what the pod as a whole asks for in place of what its containers do.
pub fn set_pod_level(total: &mut Amounts, pod: &Value, kind: &str) {
    let whole = amounts(pod.at(&["spec", "resources", kind]));
    total.extend(whole.into_iter().filter(|(name, _)| is_pod_level(name)));
}
