//! LimitRanger: the limits of a namespace fill in what containers leave out, and bound what pods and claims ask for.

use super::amounts::{Amounts, amounts, of_containers, set_pod_level};
use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Map, Value, text};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::Collection;
use std::sync::Arc;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

pub struct LimitRanger {
    ranges: Collection,
}

impl LimitRanger {
    pub fn new(objects: &Arc<Objects>) -> LimitRanger {
        LimitRanger { ranges: objects.of("", "limitranges") }
    }

    /// The limits of the request's namespace, if it is for something that they bound.
    fn limits(&self, request: Request<'_>) -> Vec<Value> {
        let call = request.call;
        let pods = request.is_for("", "pods") && request.operation == Operation::Create;
        let resizes = request.is_for_any_part("", "pods")
            && call.subresource == "resize"
            && request.operation == Operation::Update;
        let claims = request.is_for("", "persistentvolumeclaims")
            && matches!(request.operation, Operation::Create | Operation::Update);
        // What is being deleted must be able to lose its finalizers, whatever the limits have become.
        let leaving = request.old.is_some_and(|old| old.meta().is_being_deleted());
        if leaving || !(pods || resizes || claims) {
            return Vec::new();
        }
        self.ranges.list(&call.namespace)
    }
}

impl Plugin for LimitRanger {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if request.is_for_any_part("", "pods") {
            for range in self.limits(request) {
                fill_in(&range, pod);
            }
        }
        Verdict::PASSED
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        for range in self.limits(request) {
            let problems = if request.is_for_any_part("", "pods") {
                check_pod(&range, object)
            } else {
                check_claim(&range, object)
            };
            if !problems.is_empty() {
                return Verdict::Ready(Err(request.forbidden(object, text::aggregate(problems))));
            }
        }
        Verdict::PASSED
    }
}

fn fill_in(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in of_type(range, "Container") {
        for (defaults, key) in [(&mut requests, "defaultRequest"), (&mut limits, "default")] {
            for (name, amount) in limit.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter) {
                defaults.insert(name, amount.clone());
            }
        }
    }
    let mut notes = Vec::new();
    for (key, word) in [("containers", "container"), ("initContainers", "init container")] {
        for container in pod.at_mut(&["spec", key]).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container.str_at(&["name"]).to_owned();
            let set_limits = merge(container, "limits", &limits);
            let set_requests = merge(container, "requests", &requests);
            for (set, what) in [(set_requests, "request"), (set_limits, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {what} for {word} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        pod.meta_mut().set_annotation(ANNOTATION, &format!("LimitRanger plugin set: {}", notes.join("; ")));
    }
}

/// Sets the amounts that are absent; answers which.
fn merge(container: &mut Value, kind: &str, defaults: &Map) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults.iter() {
        let path = ["resources", kind, name];
        if container.at(&path).is_none() {
            container.set_at(&path, amount.clone());
            set.push(name.to_owned());
        }
    }
    set
}

fn of_type<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    list(range, &["spec", "limits"]).iter().filter(move |limit| limit.str_at(&["type"]) == kind)
}

fn check_claim(range: &Value, claim: &Value) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let requests = amounts(claim.at(&["spec", "resources", "requests"]));
    let mut problems = Vec::new();
    for limit in of_type(range, KIND) {
        for (name, bound) in &amounts(limit.get("min")) {
            problems.extend(below(KIND, name, bound, &requests, &Amounts::new()));
        }
        for (name, bound) in &amounts(limit.get("max")) {
            let bound_text = bound.canonical();
            match requests.get(name) {
                None => {
                    problems.push(format!("maximum {name} usage per {KIND} is {bound_text}.  No request is specified"))
                }
                Some(request) if request > bound => {
                    let request = request.canonical();
                    problems.push(format!("maximum {name} usage per {KIND} is {bound_text}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    problems
}

fn check_pod(range: &Value, pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for limit in list(range, &["spec", "limits"]) {
        match limit.str_at(&["type"]) {
            "Container" => {
                let all = list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
                for container in all {
                    let of = |kind: &str| amounts(container.at(&["resources", kind]));
                    check(limit, "Container", &of("requests"), &of("limits"), &mut problems);
                }
            }
            "Pod" => {
                let (requests, limits) = (of_pod(pod, "requests"), of_pod(pod, "limits"));
                check(limit, "Pod", &requests, &limits, &mut problems);
            }
            _ => {}
        }
    }
    problems
}

fn check(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, problems: &mut Vec<String>) {
    for (name, bound) in &amounts(limit.get("min")) {
        problems.extend(below(kind, name, bound, requests, limits));
    }
    for (name, bound) in &amounts(limit.get("max")) {
        problems.extend(above(kind, name, bound, requests, limits));
    }
    for (name, bound) in &amounts(limit.get("maxLimitRequestRatio")) {
        problems.extend(ratio(kind, name, bound, requests, limits));
    }
}

fn below(kind: &str, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let start = format!("minimum {name} usage per {kind} is {}", bound.canonical());
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{start}.  No request is specified")),
        (Some(request), _) if request < bound => Some(format!("{start}, but request is {}", request.canonical())),
        (_, Some(limit)) if limit < bound => Some(format!("{start}, but limit is {}", limit.canonical())),
        _ => None,
    }
}

fn above(kind: &str, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {}", bound.canonical());
    match (limits.get(name), requests.get(name)) {
        (None, _) => Some(format!("{start}.  No limit is specified")),
        (Some(limit), _) if limit > bound => Some(format!("{start}, but limit is {}", limit.canonical())),
        (_, Some(request)) if request > bound => Some(format!("{start}, but request is {}", request.canonical())),
        _ => None,
    }
}

fn ratio(kind: &str, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let start = format!("{name} max limit to request ratio per {kind} is {}", bound.canonical());
    let Some(request) = requests.get(name).filter(|request| !request.is_zero()) else {
        return Some(format!("{start}, but no request is specified or request is 0"));
    };
    let Some(limit) = limits.get(name).filter(|limit| !limit.is_zero()) else {
        return Some(format!("{start}, but no limit is specified or limit is 0"));
    };
    let found = limit.as_approximate_f64() / request.as_approximate_f64();
    (found > bound.as_approximate_f64()).then(|| format!("{start}, but provided ratio is {found:.6}"))
}

/// What the pod needs as a whole, by its spec.
fn of_pod(pod: &Value, kind: &str) -> Amounts {
    let mut total = of_containers(pod, |container| amounts(container.at(&["resources", kind])));
    set_pod_level(&mut total, pod, kind);
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts_of(cpu: &str) -> Amounts {
        amounts(Some(&Value::from([("cpu", cpu)])))
    }

    #[test]
    fn bounds() {
        let one = Quantity::from_value(&"1".into()).unwrap();
        let (half, two) = (amounts_of("500m"), amounts_of("2"));
        assert_eq!(below("Pod", "cpu", &one, &two, &two), None);
        assert_eq!(
            below("Pod", "cpu", &one, &half, &two).as_deref(),
            Some("minimum cpu usage per Pod is 1, but request is 500m")
        );
        assert_eq!(
            above("Pod", "cpu", &one, &half, &Amounts::new()).as_deref(),
            Some("maximum cpu usage per Pod is 1.  No limit is specified")
        );
        assert_eq!(
            ratio("Container", "cpu", &one, &half, &two).as_deref(),
            Some("cpu max limit to request ratio per Container is 1, but provided ratio is 4.000000")
        );
    }
}
