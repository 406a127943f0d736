use super::backend::Written;
use super::*;
use crate::metrics::audit::AuditMetrics;
use http::Method;
use kubelith_auth::User;
use kubelith_auth::remote::{FetchError, FetchRequest, FetchResponse, HttpFetch};
use kubelith_http::RequestInfo;
use kubelith_meta::time::Time;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn policy(rules: &str) -> Result<Policy, String> {
    Policy::parse(format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}").as_bytes())
}

fn request(method: &str, path: &str) -> RequestInfo {
    let uri: http::Uri = path.parse().unwrap();
    RequestInfo::parse(&Method::from_bytes(method.as_bytes()).unwrap(), uri.path(), &uri).unwrap()
}

#[test]
fn the_first_rule_that_fits_decides() {
    let policy = policy(
        r#"
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: [kubelet], verbs: [get]}
- {level: Metadata, userGroups: [devs], namespaces: [a, ""]}
- {level: Request, resources: [{group: apps, resources: [deployments, "*/scale", "replicasets/*"]}], omitStages: [Panic]}
- {level: RequestResponse, resources: [{group: "", resources: [secrets], resourceNames: [s]}], omitManagedFields: false}
- {level: Metadata, resources: [{group: "*"}]}
- {level: Metadata, nonResourceURLs: ["/api*", /version]}
"#,
    )
    .unwrap();
    let cases = [
        ("kubelet", "GET", "/api/v1/namespaces/x/pods/p", Level::None),
        ("kubelet", "POST", "/api/v1/namespaces/x/pods", Level::Metadata),
        ("alice", "GET", "/api/v1/namespaces/a/secrets/s", Level::Metadata),
        ("alice", "GET", "/api/v1/nodes", Level::Metadata),
        ("bob", "GET", "/apis/apps/v1/deployments", Level::Request),
        ("bob", "GET", "/apis/apps/v1/namespaces/x/statefulsets/x/scale", Level::Request),
        ("bob", "GET", "/apis/apps/v1/namespaces/x/replicasets/x", Level::Request),
        ("bob", "GET", "/apis/apps/v1/namespaces/x/replicasets/x/status", Level::Request),
        ("bob", "GET", "/apis/apps/v1/namespaces/x/deployments/x/status", Level::Metadata),
        ("bob", "GET", "/api/v1/namespaces/x/secrets/s", Level::RequestResponse),
        ("bob", "GET", "/api/v1/namespaces/x/secrets/t", Level::Metadata),
        ("bob", "GET", "/apis/apps", Level::Metadata),
        ("bob", "GET", "/version", Level::Metadata),
        ("bob", "GET", "/version/x", Level::None),
    ];
    for (name, method, path, want) in cases {
        let groups: &[&str] = if name == "alice" { &["devs"] } else { &[] };
        let got = policy.evaluate(&User::named(name).with_groups(groups), &request(method, path));
        assert_eq!(got.level, want, "{name} {method} {path}");
        assert!(got.omit_stages.contains(Stage::RequestReceived));
        assert_eq!(got.omit_stages.contains(Stage::Panic), want == Level::Request);
        assert_eq!(got.omit_managed_fields, want != Level::RequestResponse);
    }
}

#[test]
fn bad_policies() {
    for (rules, want) in [
        ("rules: []", "loaded illegal policy with 0 rules"),
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: All}]",
            "rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [a]}]",
            "rules[0].nonResourceURLs[0]: Invalid value: \"a\": non-resource URL rules must begin with a '/' character",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource",
        ),
        (
            "omitStages: [Never]\nrules: [{level: None}]",
            "omitStages[0]: Invalid value: \"Never\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
    ] {
        assert_eq!(policy(rules).unwrap_err(), want, "{rules}");
    }
    assert!(Policy::parse(b"kind: Policy").unwrap_err().starts_with("unknown group version field"));
}

fn event(level: Level, object: &str) -> Event {
    let mut user = User::named("alice").with_groups(&["devs", "ops"]);
    user.extra.insert("k".into(), vec!["v".into()]);
    let facts = Facts {
        level,
        audit_id: "id-1".into(),
        request_uri: "/api/v1/namespaces/n/pods?a=b&c=d".into(),
        verb: "create".into(),
        user: Arc::new(user),
        source_ips: vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        user_agent: "kubectl".into(),
        object: Some(ObjectRef {
            resource: "pods".into(),
            namespace: "n".into(),
            version: "v1".into(),
            ..ObjectRef::default()
        }),
        received: Time::parse("2026-01-02T03:04:05Z").unwrap(),
    };
    let gathered = Gathered {
        annotations: vec![("b".into(), "2".into()), ("a".into(), "1".into())],
        impersonated: Some((Arc::new(User::named("bob")), "impersonate:user-info")),
        names: ObjectNames { name: "p".into(), ..ObjectNames::default() },
        request_object: (!object.is_empty()).then(|| object.to_owned().into()),
        response_object: None,
    };
    let status = ResponseStatus { code: 201, ..ResponseStatus::default() };
    let at = Time::parse("2026-01-02T03:04:06.000007Z").unwrap();
    Event { facts: Arc::new(facts), stage: Stage::ResponseComplete, at, status: Some(status), gathered }
}

#[test]
fn both_forms() {
    let mut json = Vec::new();
    event(Level::Request, "{\"a\":1}\n").write_json(&mut json);
    assert_eq!(
        String::from_utf8(json).unwrap(),
        concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"id-1","stage":"ResponseComplete","#,
            r#""requestURI":"/api/v1/namespaces/n/pods?a=b\u0026c=d","verb":"create","#,
            r#""user":{"username":"alice","groups":["devs","ops"],"extra":{"k":["v"]}},"#,
            r#""impersonatedUser":{"username":"bob"},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"#,
            r#""sourceIPs":["10.0.0.1","::1"],"userAgent":"kubectl","#,
            r#""objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1"},"#,
            r#""responseStatus":{"metadata":{},"code":201},"requestObject":{"a":1},"#,
            r#""requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:06.000007Z","#,
            r#""annotations":{"a":"1","b":"2"}}"#
        )
    );
    assert_eq!(
        event(Level::Request, "").legacy_line(),
        concat!(
            r#"2026-01-02T03:04:05.000000Z AUDIT: id="id-1" stage="ResponseComplete" ip="10.0.0.1" method="create" "#,
            r#"user="alice" groups="\"devs\",\"ops\"" as="bob" asgroups="" user-agent="kubectl" namespace="n" "#,
            r#"uri="/api/v1/namespaces/n/pods?a=b&c=d" response="201""#
        )
    );
}

/// Keeps what it is given, as long as it is not told to fail.
#[derive(Default)]
struct Memory {
    batches: Mutex<Vec<Vec<Arc<Event>>>>,
    fails: bool,
}

impl Backend for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_> {
        if self.fails {
            return Written::Now(Err("disk full".into()));
        }
        self.batches.lock().unwrap().push(events);
        Written::Now(Ok(()))
    }
}

fn metrics() -> AuditMetrics {
    AuditMetrics::new(&crate::metrics::Registry::new())
}

#[tokio::test]
async fn modes_differ_in_what_a_failure_means() {
    for (mode, fails, want) in [
        (Mode::Blocking, false, true),
        (Mode::Blocking, true, true),
        (Mode::BlockingStrict, false, true),
        (Mode::BlockingStrict, true, false),
    ] {
        let metrics = metrics();
        let mut backends = Backends::new(&metrics);
        backends.add(Arc::new(Memory { fails, ..Memory::default() }), mode.clone(), None);
        assert_eq!(backends.process(event(Level::Metadata, "")).done().await, want, "{mode:?} {fails}");
        assert_eq!(metrics.errors.with_label_values(&["memory"]).get(), u64::from(fails));
    }
}

#[tokio::test]
async fn what_is_too_large_is_cut_or_dropped() {
    let metrics = metrics();
    let memory = Arc::new(Memory::default());
    let mut backends = Backends::new(&metrics);
    let limits = Truncation { max_event_bytes: 900, max_batch_bytes: 10_000 };
    backends.add(memory.clone(), Mode::Blocking, Some(limits));
    let large = format!("\"{}\"", "x".repeat(1000));
    for object in ["1", large.as_str()] {
        assert!(backends.process(event(Level::Request, object)).done().await);
    }
    let mut hopeless = event(Level::Request, "1");
    hopeless.gathered.annotations.push(("long".into(), "x".repeat(1000)));
    assert!(backends.process(hopeless).done().await);
    let kept = memory.batches.lock().unwrap();
    assert_eq!(kept.len(), 2);
    assert!(kept[0][0].gathered.request_object.is_some());
    assert!(kept[1][0].gathered.request_object.is_none());
    assert!(kept[1][0].gathered.annotations.iter().any(|(k, v)| k == "audit.k8s.io/truncated" && v == "true"));
    assert_eq!(metrics.errors.with_label_values(&["truncate"]).get(), 1);
}

fn batches(buffer: usize, max_size: usize) -> BatchOptions {
    BatchOptions { buffer, max_size, max_wait: Duration::from_secs(30), throttle: None, concurrency: 1 }
}

#[tokio::test(start_paused = true)]
async fn nothing_held_is_lost_at_the_end() {
    let memory = Arc::new(Memory::default());
    let mut backends = Backends::new(&metrics());
    backends.add(memory.clone(), Mode::Batch(batches(100, 4)), None);
    for _ in 0..10 {
        assert!(backends.process(event(Level::Metadata, "")).done().await);
    }
    backends.shut_down().await;
    let sizes: Vec<usize> = memory.batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [4, 4, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_does_not_wait_for_ever_and_a_full_buffer_loses() {
    let metrics = metrics();
    let memory = Arc::new(Memory::default());
    let mut backends = Backends::new(&metrics);
    backends.add(memory.clone(), Mode::Batch(batches(2, 10)), None);
    // The worker has not run yet: the third finds no place.
    for _ in 0..3 {
        backends.process(event(Level::Metadata, "")).done().await;
    }
    assert_eq!(metrics.errors.with_label_values(&["buffered"]).get(), 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(memory.batches.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [2]);
}

/// Fails as often as told, then takes everything.
struct Flaky {
    failures: Mutex<u32>,
    bodies: Mutex<Vec<String>>,
}

impl HttpFetch for Flaky {
    fn fetch(&self, request: FetchRequest) -> futures::future::BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let mut failures = self.failures.lock().unwrap();
            if *failures > 0 {
                *failures -= 1;
                return Err(FetchError::Other("no route".into()));
            }
            self.bodies.lock().unwrap().push(request.json_body.unwrap_or_default());
            Ok(FetchResponse { status: 200, ..FetchResponse::default() })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_tried_again() {
    for (failures, delivered) in [(0, 1), (4, 1), (5, 0)] {
        let hook = Arc::new(Flaky { failures: Mutex::new(failures), bodies: Mutex::default() });
        let backend = WebhookBackend::new(hook.clone(), "https://hook".into(), Duration::from_secs(10));
        let Written::Later(sending) = backend.write(vec![Arc::new(event(Level::Metadata, ""))]) else {
            panic!("a webhook takes time")
        };
        assert_eq!(sending.await.is_ok(), delivered == 1, "{failures}");
        let bodies = hook.bodies.lock().unwrap();
        assert_eq!(bodies.len(), delivered);
        let start = r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"kind":"Event""#;
        assert!(bodies.iter().all(|b| b.starts_with(start) && b.ends_with("}]}")));
    }
}
