//! Tables of what objects count for, and requests at once against a store that refuses stale writes.

use super::check::{Demand, check};
use super::config::Limited;
use super::evaluator::{Evaluators, Measure};
use super::others::Devices;
use super::pods::Gates;
use super::quota::Quota;
use crate::plugins::amounts::Amounts;
use kubelith_codec::json;
use kubelith_meta::time::{Clock, TestClock, Time};
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, GroupVersionKind, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Mode, Warnings};
use std::sync::Arc;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn evaluators() -> Evaluators {
    let objects = Objects::new();
    let gates = Gates { pod_level_resources: true, in_place_resize: true };
    let clock: Arc<dyn Clock> = Arc::new(TestClock::new(Time::parse("2026-01-01T00:00:00Z").unwrap()));
    let devices = Devices {
        classes: objects.of("resource.k8s.io", "deviceclasses"),
        claims: objects.of("resource.k8s.io", "resourceclaims"),
        pods: objects.of("", "pods"),
        extended: true,
        gates,
    };
    let features = kubelith_rules::Env::default().features;
    Evaluators { gates, features, devices, clock }
}

fn shown(amounts: &Amounts) -> String {
    amounts.iter().map(|(name, amount)| format!("{name}={}", amount.canonical())).collect::<Vec<_>>().join(" ")
}

fn measure(group: &str, plural: &str) -> Measure {
    Measure::of(&GroupResource::new(group, plural), true).unwrap()
}

#[test]
fn pods_count_for_what_they_may_use() {
    let evaluators = evaluators();
    for (pod, want) in [
        (r#"{"spec":{"containers":[{"name":"a"}]}}"#, "count/pods=1 pods=1"),
        (r#"{"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Failed"}}"#, "count/pods=1"),
        (
            r#"{"metadata":{"deletionTimestamp":"2025-12-31T23:59:00Z","deletionGracePeriodSeconds":30},"spec":{}}"#,
            "count/pods=1",
        ),
        (
            r#"{"metadata":{"deletionTimestamp":"2025-12-31T23:59:50Z","deletionGracePeriodSeconds":30},"spec":{}}"#,
            "count/pods=1 pods=1",
        ),
        (
            r#"{"spec":{"containers":[
                {"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2","x.com/gpu":"1"}}},
                {"name":"b","resources":{"requests":{"cpu":"500m","hugepages-2Mi":"2Mi","x.com/gpu":"1"}}}],
                "initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}}],
                "overhead":{"cpu":"250m","memory":"1Mi"}}}"#,
            "count/pods=1 cpu=3250m hugepages-2Mi=2Mi limits.cpu=2250m memory=1025Mi pods=1 requests.cpu=3250m \
             requests.hugepages-2Mi=2Mi requests.memory=1025Mi requests.x.com/gpu=1",
        ),
        (
            r#"{"spec":{"resources":{"requests":{"cpu":"4"}},"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}}"#,
            "count/pods=1 cpu=4 pods=1 requests.cpu=4",
        ),
        (
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},
                "status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2"}}}]}}"#,
            "count/pods=1 cpu=2 pods=1 requests.cpu=2",
        ),
        (
            r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"9"}}}]},
                "status":{"conditions":[{"type":"PodResizePending","reason":"Infeasible"}],
                "containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2"}}}]}}"#,
            "count/pods=1 cpu=2 pods=1 requests.cpu=2",
        ),
    ] {
        assert_eq!(shown(&evaluators.usage(&Measure::Pods, &value(pod))), want, "{pod}");
    }
}

#[test]
fn other_objects_count() {
    let evaluators = evaluators();
    let services = "services.loadbalancers=";
    for (group, plural, object, want) in [
        ("", "configmaps", "{}", "configmaps=1 count/configmaps=1".to_owned()),
        ("apps", "deployments", "{}", "count/deployments.apps=1".to_owned()),
        ("", "services", r#"{"spec":{}}"#, format!("count/services=1 services=1 {services}0 services.nodeports=0")),
        (
            "",
            "services",
            r#"{"spec":{"type":"LoadBalancer","ports":[{},{}]}}"#,
            format!("count/services=1 services=1 {services}1 services.nodeports=2"),
        ),
        (
            "",
            "services",
            r#"{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{},{"nodePort":30000}]}}"#,
            format!("count/services=1 services=1 {services}1 services.nodeports=1"),
        ),
        (
            "",
            "persistentvolumeclaims",
            r#"{"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}}}"#,
            "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 \
             gold.storageclass.storage.k8s.io/requests.storage=1Gi persistentvolumeclaims=1 requests.storage=1Gi"
                .to_owned(),
        ),
        (
            "",
            "persistentvolumeclaims",
            r#"{"spec":{"resources":{"requests":{"storage":"1500m"}}},"status":{"allocatedResources":{"storage":"3"}}}"#,
            "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=3".to_owned(),
        ),
        (
            "resource.k8s.io",
            "resourceclaims",
            r#"{"spec":{"devices":{"requests":[
                {"exactly":{"deviceClassName":"a","allocationMode":"ExactCount","count":2}},
                {"firstAvailable":[{"deviceClassName":"a","allocationMode":"ExactCount","count":1},
                    {"deviceClassName":"b","allocationMode":"All"}]}]}}}"#,
            "a.deviceclass.resource.k8s.io/devices=3 b.deviceclass.resource.k8s.io/devices=32 \
             count/resourceclaims.resource.k8s.io=1 requests.deviceclass.resource.kubernetes.io/a=3 \
             requests.deviceclass.resource.kubernetes.io/b=32"
                .to_owned(),
        ),
    ] {
        assert_eq!(shown(&evaluators.usage(&measure(group, plural), &value(object))), want, "{object}");
    }
    assert_eq!(Measure::of(&GroupResource::new("", "events"), true), None);
}

fn demand(operation: Operation, plural: &str, object: &str, old: Option<&str>) -> Demand {
    let resource = GroupResource::new("", plural);
    Demand {
        measure: Measure::of(&resource, true).unwrap(),
        call: Call {
            verb: "".into(),
            user: Arc::new(User::named("alice")),
            resource,
            kind: GroupVersionKind::new("", "v1", "Any"),
            namespace: "n".into(),
            version: "v1".into(),
            deadline: None,
            name: "".into(),
            subresource: "".into(),
            mode: Mode::Real,
            warnings: Warnings::default(),
        },
        operation,
        object: value(object),
        old: old.map(value),
    }
}

fn quota(text: &str) -> Quota {
    Quota::of(value(text))
}

const POD: &str =
    r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}"#;

#[test]
fn what_passes_a_quota_is_refused() {
    let evaluators = evaluators();
    let refused = |quotas: &[&str], demand: &Demand| {
        let quotas: Vec<Quota> = quotas.iter().map(|text| quota(text)).collect();
        match check(&evaluators, &[], &quotas, demand) {
            Ok(charges) => {
                charges.iter().map(|(i, used)| format!("{i}: {}", shown(used))).collect::<Vec<_>>().join("; ")
            }
            Err(status) => status.message.to_string(),
        }
    };
    let create = demand(Operation::Create, "pods", POD, None);
    let bare = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"},{"name":"a"}]}}"#;
    for (quotas, demand, want) in [
        // A quota whose status was never written limits nothing.
        (&[r#"{"metadata":{"name":"q"},"spec":{"hard":{"pods":"0"}}}"#][..], &create, ""),
        (&[r#"{"metadata":{"name":"q"},"status":{"hard":{"pods":"2"},"used":{"pods":"1"}}}"#], &create, "0: pods=2"),
        (
            &[
                r#"{"metadata":{"name":"q"},"status":{"hard":{"pods":"2","cpu":"1500m"},"used":{"pods":"2","cpu":"1"}}}"#,
            ],
            &create,
            "pods \"p\" is forbidden: exceeded quota: q, requested: cpu=1,pods=1, used: cpu=1,pods=2, limited: cpu=1500m,pods=2",
        ),
        (
            &[r#"{"metadata":{"name":"q"},"status":{"hard":{"pods":"2"}}}"#],
            &create,
            "pods \"p\" is forbidden: status unknown for quota: q, resources: pods",
        ),
        (
            &[r#"{"metadata":{"name":"q"},"status":{"hard":{"requests.cpu":"2","limits.memory":"1"},"used":{}}}"#],
            &demand(Operation::Create, "pods", bare, None),
            "pods \"p\" is forbidden: failed quota: q: must specify limits.memory for: a,c; requests.cpu for: a,c",
        ),
        // Scopes.
        (
            &[
                r#"{"metadata":{"name":"q"},"spec":{"scopes":["BestEffort"]},"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}}"#,
            ],
            &create,
            "",
        ),
        (
            &[
                r#"{"metadata":{"name":"q"},"spec":{"scopes":["NotBestEffort"]},"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}}"#,
            ],
            &create,
            "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
        ),
        // Two quotas: the second refuses, nothing is charged.
        (
            &[
                r#"{"metadata":{"name":"a"},"status":{"hard":{"pods":"5"},"used":{"pods":"1"}}}"#,
                r#"{"metadata":{"name":"b"},"status":{"hard":{"cpu":"1"},"used":{"cpu":"1"}}}"#,
            ],
            &create,
            "pods \"p\" is forbidden: exceeded quota: b, requested: cpu=1, used: cpu=1, limited: cpu=1",
        ),
        // An update is charged for what it adds, one that takes less is not looked at.
        (
            &[
                r#"{"metadata":{"name":"q"},"status":{"hard":{"requests.storage":"3"},"used":{"requests.storage":"2"}}}"#,
            ],
            &demand(
                Operation::Update,
                "persistentvolumeclaims",
                r#"{"metadata":{"name":"p"},"spec":{"resources":{"requests":{"storage":"3"}}}}"#,
                Some(
                    r#"{"metadata":{"name":"p","resourceVersion":"1"},"spec":{"resources":{"requests":{"storage":"2"}}}}"#,
                ),
            ),
            "0: requests.storage=3",
        ),
        (
            &[
                r#"{"metadata":{"name":"q"},"status":{"hard":{"requests.storage":"1"},"used":{"requests.storage":"2"}}}"#,
            ],
            &demand(
                Operation::Update,
                "persistentvolumeclaims",
                r#"{"metadata":{"name":"p"},"spec":{"resources":{"requests":{"storage":"1"}}}}"#,
                Some(
                    r#"{"metadata":{"name":"p","resourceVersion":"1"},"spec":{"resources":{"requests":{"storage":"2"}}}}"#,
                ),
            ),
            "",
        ),
    ] {
        assert_eq!(refused(quotas, demand), want, "{quotas:?}");
    }
}

#[test]
fn limited_resources_need_a_quota() {
    let evaluators = evaluators();
    let file = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration","limitedResources":[
        {"resource":"pods","matchContains":["pods"]},
        {"resource":"pods","matchScopes":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}]}"#;
    let limited = Limited::read(Some(file.as_bytes())).unwrap();
    let create = demand(Operation::Create, "pods", POD, None);
    let refused =
        |quotas: &[Quota], demand: &Demand| check(&evaluators, &limited, quotas, demand).err().map(|s| s.message);
    assert_eq!(
        refused(&[], &create).as_deref(),
        Some("pods \"p\" is forbidden: insufficient quota to consume: count/pods,pods")
    );
    let counting = |scopes: &str| {
        quota(&format!(
            r#"{{"metadata":{{"name":"q"}},"spec":{{{scopes}}},"status":{{"hard":{{"pods":"5","count/pods":"5"}},"used":{{"pods":"0","count/pods":"0"}}}}}}"#
        ))
    };
    assert_eq!(refused(&[counting("")], &create), None);
    let high = r#"{"metadata":{"name":"p"},"spec":{"priorityClassName":"high","containers":[]}}"#;
    let high = demand(Operation::Create, "pods", high, None);
    assert_eq!(
        refused(&[counting("")], &high).as_deref(),
        Some("insufficient quota to match these scopes: [{PriorityClass In [high]}]")
    );
    assert_eq!(refused(&[counting(r#""scopes":["PriorityClass"]"#)], &high), None);
}
