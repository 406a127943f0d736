//! What priority and fairness costs a request when there are free seats: `cargo bench -p kubelith-server --bench fairness`.
//!
//! Classification among the default schemas, estimate, seats and their release, metrics; no handler, no other filter.
//! With several threads all of them ask the same level, the worst case for its lock.

use kubelith_auth::User;
use kubelith_codec::json;
use kubelith_fairness::{FlowSchema, PriorityLevel};
use kubelith_http::{Request, RequestBody, RequestInfo};
use kubelith_meta::Value;
use kubelith_observe::metrics::Metrics;
use kubelith_server::fairness::{Fairness, Objects, Started};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: u32 = 500_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let metrics = Metrics::new();
    let fairness = Fairness::new(600, &metrics.registry);
    fairness.configure(defaults());
    let pod = "/api/v1/namespaces/default/pods/web-0";
    for (name, method, path, user, groups) in [
        ("exempt get", "GET", pod, "admin", &["system:masters", "system:authenticated"]),
        (
            "lease update",
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
            "system:node:n",
            &["system:nodes", "system:authenticated"],
        ),
        ("global-default get", "GET", pod, "alice", &["devs", "system:authenticated"]),
        (
            "global-default list",
            "GET",
            "/api/v1/namespaces/default/pods?limit=500&resourceVersion=0",
            "alice",
            &["devs", "system:authenticated"],
        ),
    ] {
        let request = request(method, path, User::named(user).with_groups(groups));
        for threads in [1, 2] {
            let took = measure(&fairness, &request, threads);
            println!("{name}, {threads} at a time: {took:.0} ns");
        }
    }
}

/// Nanoseconds per request, from start to end.
fn measure(fairness: &Arc<Fairness>, request: &Request, threads: usize) -> f64 {
    let ask = |rounds: u32| {
        for _ in 0..rounds {
            match fairness.start(request) {
                Started::Running(permit) => drop(permit),
                _ => panic!("there are free seats"),
            }
        }
    };
    ask(10_000);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| ask(ROUNDS));
        }
    });
    started.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

fn request(method: &str, path: &str, user: User) -> Request {
    let mut request = Request::from(
        http::Request::builder().method(method).uri(path).body(RequestBody::Full(None)).expect("a request"),
    );
    let plain = path.split('?').next().unwrap_or(path);
    let info = RequestInfo::parse(request.method(), plain, request.uri()).expect("a resource");
    request.context_mut().info = Some(Arc::new(info));
    request.context_mut().user = Some(Arc::new(user));
    request
}

/// Levels and schemas as a fresh server has them, as far as these requests meet them.
fn defaults() -> Objects {
    let level = |name: &str, shares: i64| {
        let queuing = Value::from([("queues", 64i64), ("handSize", 6), ("queueLengthLimit", 50)]);
        let response = Value::from([("type", Value::from("Queue")), ("queuing", queuing)]);
        let limited = Value::from([("nominalConcurrencyShares", Value::from(shares)), ("limitResponse", response)]);
        let spec = Value::from([("type", Value::from("Limited")), ("limited", limited)]);
        let object = Value::from([("metadata", Value::from([("name", name)])), ("spec", spec)]);
        PriorityLevel::parse(&object).expect("a level")
    };
    let schema = |(name, level, precedence, subject, rule): (&str, &str, u32, &str, &str)| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"matchingPrecedence":{precedence},"distinguisherMethod":{{"type":"ByUser"}},
            "priorityLevelConfiguration":{{"name":"{level}"}},"rules":[{{"subjects":[{subject}],"resourceRules":[{rule}]}}]}}}}"#
        );
        FlowSchema::parse(&json::parse(text.as_bytes()).expect("JSON"))
    };
    let nodes = r#"{"kind":"Group","group":{"name":"system:nodes"}}"#;
    let manager = r#"{"kind":"User","user":{"name":"system:kube-controller-manager"}}"#;
    let scheduler = r#"{"kind":"User","user":{"name":"system:kube-scheduler"}}"#;
    let system = r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"kube-system","name":"*"}}"#;
    let accounts = r#"{"kind":"Group","group":{"name":"system:serviceaccounts"}}"#;
    let everybody = r#"{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group","group":{"name":"system:authenticated"}}"#;
    let all = r#"{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}"#;
    let leases = r#"{"verbs":["get","create","update"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"namespaces":["*"]}"#;
    let leaders = [manager, scheduler, system].join(",");
    Objects {
        levels: [
            ("system", 30),
            ("node-high", 40),
            ("leader-election", 10),
            ("workload-high", 40),
            ("workload-low", 100),
            ("global-default", 20),
        ]
        .map(|(name, shares)| level(name, shares))
        .into(),
        schemas: [
            ("system-leader-election", "leader-election", 100, leaders.as_str(), leases),
            ("system-node-high", "node-high", 400, nodes, leases),
            ("system-nodes", "system", 500, nodes, all),
            ("kube-controller-manager", "workload-high", 800, manager, all),
            ("kube-scheduler", "workload-high", 800, scheduler, all),
            ("kube-system-service-accounts", "workload-high", 900, system, all),
            ("service-accounts", "workload-low", 9000, accounts, all),
            ("global-default", "global-default", 9900, everybody, all),
        ]
        .map(schema)
        .into(),
    }
}
