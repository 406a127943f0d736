//! What a change of a pod asks of the node that runs it: PodResizeValidator looks at its size, and
//! NodeDeclaredFeatureValidator at what it says it can do.

use super::amounts::{add, amounts, of_containers, set_pod_level};
use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::status::Cause;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::parse;
use std::sync::Arc;

pub struct PodResizeValidator {
    objects: Arc<Objects>,
}

pub struct NodeDeclaredFeatureValidator {
    objects: Arc<Objects>,
}

impl PodResizeValidator {
    pub fn new(objects: Arc<Objects>) -> PodResizeValidator {
        PodResizeValidator { objects }
    }

    fn check(&self, request: &Request<'_>, pod: &Value) -> Result<(), Status> {
        if request.call.subresource != "resize" || changed_on_node(request, pod).is_none() {
            return Ok(());
        }
        let node = node_of(&self.objects, request, pod)?;
        let refused = |why: String, reason: &str| {
            let mut status = request.forbidden(pod, why);
            status.details_mut().causes.push(Cause::new(reason, "", ""));
            status
        };
        if let Some(os) = node.meta().label("kubernetes.io/os").filter(|os| *os != "linux") {
            let (name, os) = (Quoted(node.meta().name()), Quoted(os));
            let why = format!("pod resize is only supported on linux nodes, node {name} is {os}");
            return Err(refused(why, "UnsupportedPlatform"));
        }
        let too_much = too_much(pod, &node);
        if too_much.is_empty() {
            return Ok(());
        }
        let why = format!("node didn't have enough allocatable resources: {}", too_much.join("; "));
        Err(refused(why, "NodeCapacity"))
    }
}

impl Plugin for PodResizeValidator {
    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        Verdict::Ready(self.check(&request, pod))
    }
}

impl NodeDeclaredFeatureValidator {
    pub fn new(objects: Arc<Objects>) -> NodeDeclaredFeatureValidator {
        NodeDeclaredFeatureValidator { objects }
    }

    fn check(&self, request: &Request<'_>, pod: &Value) -> Result<(), Status> {
        if !matches!(request.call.subresource.as_str(), "" | "resize") {
            return Ok(());
        }
        let Some(old) = changed_on_node(request, pod) else { return Ok(()) };
        let needed = needed_features(pod, old);
        if needed.is_empty() {
            return Ok(());
        }
        let node = node_of(&self.objects, request, pod)?;
        let declared = list(&node, &["status", "declaredFeatures"]);
        let missing: Vec<&str> =
            needed.into_iter().filter(|name| !declared.iter().any(|own| own.as_str() == Some(name))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let (missing, name) = (missing.join(", "), Quoted(node.meta().name()));
        let why = format!("pod update requires features {missing} which are not available on node {name}");
        Err(request.forbidden(pod, why))
    }
}

impl Plugin for NodeDeclaredFeatureValidator {
    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        Verdict::Ready(self.check(&request, pod))
    }
}

/// The pod as it was, if it is on a node and its spec changes. The spec is not looked into if it does not.
fn changed_on_node<'a>(request: &Request<'a>, pod: &Value) -> Option<&'a Value> {
    let is_update = request.operation == Operation::Update && request.is_for_any_part("", "pods");
    let is_bound = || !pod.str_at(&["spec", "nodeName"]).is_empty();
    request.old.filter(|old| is_update && old.meta().generation() != pod.meta().generation() && is_bound())
}

fn node_of(objects: &Objects, request: &Request<'_>, pod: &Value) -> Result<Value, Status> {
    let name = pod.str_at(&["spec", "nodeName"]);
    let node = objects.cached("", "nodes", "", name).and_then(|node| parse(&node));
    node.ok_or_else(|| request.forbidden(pod, format!("node {} not found", Quoted(name))))
}

/// What a node must be able to do for this update; what else features are about cannot change.
fn needed_features(pod: &Value, old: &Value) -> Vec<&'static str> {
    let mut needed = Vec::new();
    const WHOLE: [&str; 2] = ["spec", "resources"];
    if pod.at(&WHOLE) != old.at(&WHOLE) {
        needed.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let containers = |pod: &'_ Value| list(pod, &["spec", "initContainers"]).to_vec();
    let resized = containers(pod)
        .iter()
        .zip(containers(old))
        .any(|(new, old)| old.str_at(&["restartPolicy"]) != "Always" && new.get("resources") != old.get("resources"));
    if resized {
        needed.push("InPlacePodVerticalScalingInitContainers");
    }
    needed
}

/// The resources of which the pod requests more than the node has at all.
fn too_much(pod: &Value, node: &Value) -> Vec<String> {
    let amount = |value: Option<&Value>| value.and_then(|v| Quantity::from_value(v).ok()).unwrap_or_default();
    let mut found = Vec::new();
    for resource in ["cpu", "memory"] {
        let requested = requests(pod, resource);
        let allocatable = amount(node.at(&["status", "allocatable", resource]));
        if requested > allocatable {
            let number = |q: &Quantity| if resource == "cpu" { q.milli_value() } else { q.value() };
            let (requested, allocatable) = (number(&requested), number(&allocatable));
            found.push(format!("{resource}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    found
}

/// What a pod needs by its spec, overhead included.
fn requests(pod: &Value, resource: &str) -> Quantity {
    let mut total = of_containers(pod, |container| amounts(container.at(&["resources", "requests"])));
    set_pod_level(&mut total, pod, "requests");
    add(&mut total, &amounts(pod.at(&["spec", "overhead"])));
    total.remove(resource).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_a_pod_requests() {
        let cases = [
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]}"#,
                1500,
            ),
            (
                r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}}],
                    "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                                      {"resources":{"requests":{"cpu":"3"}}}]}"#,
                4000,
            ),
            (r#"{"resources":{"requests":{"cpu":"2"}},"overhead":{"cpu":"100m"},"containers":[{}]}"#, 2100),
        ];
        for (spec, milli) in cases {
            let pod = value(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(requests(&pod, "cpu").milli_value(), milli, "{spec}");
        }
    }

    #[test]
    fn what_does_not_fit() {
        let pod = value(r#"{"spec":{"containers":[{"resources":{"requests":{"cpu":"2","memory":"1Ki"}}}]}}"#);
        let node = value(r#"{"status":{"allocatable":{"cpu":"1","memory":"2Ki"}}}"#);
        assert_eq!(too_much(&pod, &node), ["cpu, requested: 2000, allocatable: 1000"]);
    }

    #[test]
    fn features_of_resizes() {
        let old = value(r#"{"spec":{"initContainers":[{"name":"a"},{"name":"s","restartPolicy":"Always"}]}}"#);
        let resized = r#"{"requests":{"cpu":"1"}}"#;
        let cases = [
            (format!(r#"{{"initContainers":[{{"name":"a"}},{{"name":"s","resources":{resized}}}]}}"#), vec![]),
            (
                format!(r#"{{"resources":{resized},"initContainers":[{{"name":"a","resources":{resized}}},{{}}]}}"#),
                vec!["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"],
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(needed_features(&value(&format!(r#"{{"spec":{spec}}}"#)), &old), expected, "{spec}");
        }
    }
}
