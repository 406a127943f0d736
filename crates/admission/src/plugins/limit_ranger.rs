//! LimitRanger: the limits of a namespace fill in what containers leave out, and bound what pods and claims ask for.

use super::amounts::{Amounts, amounts, of_containers};
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
    let (Some(request), limit) = (requests.get(name), limits.get(name)) else {
        return Some(format!("{start}.  No request is specified"));
    };
    let ([asked, most], least) = at_one_scale([request, limit.unwrap_or(&Quantity::default())], bound);
    match limit {
        _ if asked < least => Some(format!("{start}, but request is {}", request.canonical())),
        Some(limit) if most < least => Some(format!("{start}, but limit is {}", limit.canonical())),
        _ => None,
    }
}

fn above(kind: &str, name: &str, bound: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {}", bound.canonical());
    let (Some(limit), request) = (limits.get(name), requests.get(name)) else {
        return Some(format!("{start}.  No limit is specified"));
    };
    let ([most, asked], bound) = at_one_scale([limit, request.unwrap_or(&Quantity::default())], bound);
    match request {
        _ if most > bound => Some(format!("{start}, but limit is {}", limit.canonical())),
        Some(request) if asked > bound => Some(format!("{start}, but request is {}", request.canonical())),
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
    let ([request, limit], _) = at_one_scale([request, limit], bound);
    let found = limit as f64 / request as f64;
    // A thousand times both, as the reference has it: what a product rounds up is above.
    let is_above = match bound.value() <= MAX_MILLI {
        true => found * 1000.0 > bound.milli_value() as f64,
        false => found > bound.value() as f64,
    };
    is_above.then(|| format!("{start}, but provided ratio is {found:.6}"))
}

/// The largest number whose thousandths can be counted.
const MAX_MILLI: i64 = i64::MAX / 1000;

/// Amounts as whole numbers of thousandths, or of ones if that is too many.
fn at_one_scale<const N: usize>(amounts: [&Quantity; N], bound: &Quantity) -> ([i64; N], i64) {
    let fits = |amount: &Quantity| amount.value() <= MAX_MILLI;
    match amounts.iter().all(|amount| fits(amount)) && fits(bound) {
        true => (amounts.map(Quantity::milli_value), bound.milli_value()),
        false => (amounts.map(Quantity::value), bound.value()),
    }
}

/// What the pod needs as a whole, by its spec.
fn of_pod(pod: &Value, kind: &str) -> Amounts {
    let mut total = of_containers(pod, |container| amounts(container.at(&["resources", kind])));
    // Huge pages of the whole pod do not count here, as they do for quotas.
    let whole = amounts(pod.at(&["spec", "resources", kind]));
    total.extend(whole.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    /// A limit, the spec of a pod, and what is wrong with it.
    const CASES: &[(&str, &str, &[&str])] = &[
        (r#"{"type":"Pod","min":{"cpu":"1"}}"#, r#"{"containers":[{"resources":{"requests":{"cpu":"2"}}}]}"#, &[]),
        (
            r#"{"type":"Pod","min":{"cpu":"1"}}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"500m"}}}]}"#,
            &["minimum cpu usage per Pod is 1, but request is 500m"],
        ),
        (
            r#"{"type":"Container","min":{"cpu":"1"}}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"900m"}}}],"initContainers":[{}]}"#,
            &[
                "minimum cpu usage per Container is 1, but limit is 900m",
                "minimum cpu usage per Container is 1.  No request is specified",
            ],
        ),
        (
            r#"{"type":"Container","max":{"cpu":"1"}}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"500m"}}}]}"#,
            &["maximum cpu usage per Container is 1.  No limit is specified"],
        ),
        (
            r#"{"type":"Container","max":{"cpu":"1","memory":"1Gi"}}"#,
            r#"{"containers":[{"resources":{"requests":{"memory":"2Gi"},"limits":{"cpu":"2","memory":"1Gi"}}}]}"#,
            &[
                "maximum cpu usage per Container is 1, but limit is 2",
                "maximum memory usage per Container is 1Gi, but request is 2Gi",
            ],
        ),
        // The greatest init container counts if it needs more than all others together, with the sidecars before it.
        (
            r#"{"type":"Pod","max":{"cpu":"3"}}"#,
            r#"{"containers":[{"resources":{"limits":{"cpu":"1"}}}],"initContainers":[
                {"restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}},{"resources":{"limits":{"cpu":"3"}}}]}"#,
            &["maximum cpu usage per Pod is 3, but limit is 4"],
        ),
        // What the whole pod says stands in place of the sum, but not for huge pages.
        (
            r#"{"type":"Pod","max":{"cpu":"2","hugepages-2Mi":"2Mi"}}"#,
            r#"{"resources":{"limits":{"cpu":"3","hugepages-2Mi":"4Mi"}},
                "containers":[{"resources":{"limits":{"cpu":"1","hugepages-2Mi":"2Mi"}}}]}"#,
            &["maximum cpu usage per Pod is 2, but limit is 3"],
        ),
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"1"}}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"2"}}}]}"#,
            &["cpu max limit to request ratio per Container is 1, but provided ratio is 4.000000"],
        ),
        // Just as much as is allowed.
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"1100m"}}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1100m"}}}]}"#,
            &[],
        ),
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2","memory":"2"}}"#,
            r#"{"containers":[{"resources":{"requests":{"memory":"1"},"limits":{"memory":"0"}}}]}"#,
            &[
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
                "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            ],
        ),
        (r#"{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"}}"#, r#"{"containers":[{}]}"#, &[]),
    ];

    #[test]
    fn bounds() {
        for (limit, spec, want) in CASES {
            let range = value(&format!(r#"{{"spec":{{"limits":[{limit}]}}}}"#));
            let pod = value(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(check_pod(&range, &pod), *want, "{limit} {spec}");
        }
    }

    #[test]
    fn claims() {
        let range = value(
            r#"{"spec":{"limits":[{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}]}}"#,
        );
        for (requests, want) in [
            (r#"{"storage":"1Gi"}"#, vec![]),
            (
                r#"{"storage":"1Mi"}"#,
                vec!["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"],
            ),
            (
                r#"{"storage":"3Gi"}"#,
                vec!["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"],
            ),
            (
                "{}",
                vec![
                    "minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
                    "maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified",
                ],
            ),
        ] {
            let claim = value(&format!(r#"{{"spec":{{"resources":{{"requests":{requests}}}}}}}"#));
            assert_eq!(check_claim(&range, &claim), want, "{requests}");
        }
    }

    #[test]
    fn defaults() {
        let range = value(
            r#"{"spec":{"limits":[{"type":"Pod","default":{"cpu":"9"}},
                {"type":"Container","default":{"cpu":"2","memory":"1Gi"},"defaultRequest":{"cpu":"1"}}]}}"#,
        );
        let mut pod = value(
            r#"{"metadata":{},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"3"}}}],
                "initContainers":[{"name":"i"}]}}"#,
        );
        fill_in(&range, &mut pod);
        let want = value(
            r#"{"metadata":{"annotations":{"kubernetes.io/limit-ranger":
                "LimitRanger plugin set: cpu request for container a; memory limit for container a; cpu request for init container i; cpu, memory limit for init container i"}},
                "spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"3","memory":"1Gi"},"requests":{"cpu":"1"}}}],
                "initContainers":[{"name":"i","resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1"}}}]}}"#,
        );
        assert_eq!(pod, want);
    }
}
