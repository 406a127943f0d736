//! RuntimeClass: pods carry the overhead of their runtime and go to the nodes that have it.

use super::{list, tolerations};
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::parse;
use std::sync::Arc;

const OVERHEAD: [&str; 2] = ["spec", "overhead"];
const NODE_SELECTOR: [&str; 2] = ["spec", "nodeSelector"];
const TOLERATIONS: [&str; 2] = ["spec", "tolerations"];

pub struct RuntimeClass {
    objects: Arc<Objects>,
}

impl RuntimeClass {
    pub fn new(objects: Arc<Objects>) -> RuntimeClass {
        RuntimeClass { objects }
    }

    async fn class(&self, name: &str, request: Request<'_>, pod: &Value) -> Result<Value, Status> {
        let found = self.objects.find("node.k8s.io", "runtimeclasses", "", name).await?;
        let unknown = || request.forbidden(pod, format!("pod rejected: RuntimeClass {name:?} not found"));
        found.and_then(|class| parse(&class)).ok_or_else(unknown)
    }
}

impl Plugin for RuntimeClass {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        let Some(name) = class_name(pod).map(Str::from) else { return Verdict::Idle };
        Verdict::pending(async move {
            let class = self.class(&name, request, pod).await?;
            set_overhead(request, &class, pod)?;
            set_scheduling(request, &class, pod)
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        match class_name(pod) {
            Some(name) => Verdict::pending(async move {
                let class = self.class(name, request, pod).await?;
                check_overhead(request, class.get("overhead"), pod)
            }),
            None => Verdict::Ready(check_overhead(request, None, pod)),
        }
    }
}

fn class_name(pod: &Value) -> Option<&str> {
    pod.at(&["spec", "runtimeClassName"]).and_then(Value::as_str)
}

fn check_overhead(request: Request<'_>, overhead: Option<&Value>, pod: &Value) -> Result<(), Status> {
    match overhead {
        Some(overhead) if !same_amounts(overhead.get("podFixed"), pod.at(&OVERHEAD)) => {
            Err(request.forbidden(pod, MISMATCH))
        }
        None if pod.at(&OVERHEAD).is_some() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(request.forbidden(pod, why))
        }
        _ => Ok(()),
    }
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn set_overhead(request: Request<'_>, class: &Value, pod: &mut Value) -> Result<(), Status> {
    let Some(overhead) = class.get("overhead") else { return Ok(()) };
    let fixed = overhead.get("podFixed");
    if pod.at(&OVERHEAD).is_some_and(|given| !given.is_empty()) && !same_amounts(fixed, pod.at(&OVERHEAD)) {
        return Err(request.forbidden(pod, MISMATCH));
    }
    match fixed {
        Some(fixed) => pod.set_at(&OVERHEAD, fixed.clone()),
        None => drop(pod.remove_at(&OVERHEAD)),
    }
    Ok(())
}

fn set_scheduling(request: Request<'_>, class: &Value, pod: &mut Value) -> Result<(), Status> {
    let Some(scheduling) = class.get("scheduling") else { return Ok(()) };
    for (key, value) in scheduling.get("nodeSelector").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        let wanted = value.as_str().unwrap_or("");
        let given = pod.at(&NODE_SELECTOR).and_then(|s| s.get(key)).and_then(Value::as_str);
        if let Some(given) = given.filter(|given| *given != wanted) {
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(request.forbidden(pod, why));
        }
        pod.set_at(&[NODE_SELECTOR[0], NODE_SELECTOR[1], key], value.clone());
    }
    let (own, more) = (list(pod, &TOLERATIONS), list(scheduling, &["tolerations"]));
    if !(own.is_empty() && more.is_empty()) {
        let merged = tolerations::merge(own.to_vec(), more.to_vec());
        pod.set_at(&TOLERATIONS, Value::Array(merged));
    }
    Ok(())
}

/// Whether two lists of resources have the same amounts, however they are written.
fn same_amounts(a: Option<&Value>, b: Option<&Value>) -> bool {
    let amounts = |list: Option<&Value>| -> Vec<(Str, Option<Quantity>)> {
        let members = list.and_then(Value::as_object).into_iter().flat_map(Map::iter);
        members.map(|(name, amount)| (name.into(), Quantity::from_value(amount).ok())).collect()
    };
    amounts(a) == amounts(b)
}
