//! What knowing who asks, deciding whether they may, and writing it down cost a request with warm caches:
//! `cargo bench -p kubelith-server --bench access`.
//!
//! The same request goes through the filter chain twice: once with everybody let in and nothing kept, once with a bearer
//! token that the cache knows, RBAC with 10,000 bindings and the audit log at level Metadata, both stages. The difference
//! is the price. Fairness is measured elsewhere.

use http::StatusCode;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authn::build::{Authenticators, TokenAuthenticators};
use kubelith_auth::authn::token_file::TokenFile;
use kubelith_auth::authz::builtin::{AlwaysAllow, PrivilegedGroup};
use kubelith_auth::authz::rbac::{RbacAuthorizer, RbacIndex, RbacKind};
use kubelith_auth::authz::union::AuthorizerUnion;
use kubelith_auth::clock::SystemClock;
use kubelith_auth::{Authenticator, Authorizer, User, bootstrap};
use kubelith_features::FeatureGates;
use kubelith_http::{BoxHandler, Reply, Request, RequestBody, respond};
use kubelith_meta::Value;
use kubelith_observe::audit::backend::Written;
use kubelith_observe::audit::{Backend, Backends, Event, Mode, Policy};
use kubelith_observe::metrics::Metrics;
use kubelith_server::chain::{self, ChainConfig, InFlight};
use kubelith_server::filters::audit::Audit;
use kubelith_server::filters::authentication::AuthenticationOptions;
use kubelith_server::lifecycle::Lifecycle;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BINDINGS: usize = 10_000;
const ROUNDS: u32 = 50_000;
const SERIES: usize = 5;

/// Encodes events and forgets them: what is measured is our work, not the disk's.
struct Nowhere;

impl Backend for Nowhere {
    fn name(&self) -> &'static str {
        "nowhere"
    }

    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_> {
        let mut out = Vec::with_capacity(1024);
        events.iter().for_each(|e| e.write_json(&mut out));
        std::hint::black_box(out);
        Written::Now(Ok(()))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let open = chain(anonymous(), Arc::new(AlwaysAllow), None);
        let known = chain(tokens(), Arc::new(AlwaysAllow), None);
        let allowed = chain(tokens(), rbac(), None);
        let audited = chain(tokens(), rbac(), Some(audit()));
        let mut before = 0.0;
        for (name, handler) in
            [("nothing", &open), ("+ authentication", &known), ("+ authorization", &allowed), ("+ audit", &audited)]
        {
            let took = measure(handler).await;
            println!("{name}: {took:.2} µs per request ({:+.2})", took - before);
            before = took;
        }
    });
}

/// The fastest of some series: the others were disturbed.
async fn measure(handler: &BoxHandler) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..SERIES {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            let request = Request::from(
                http::Request::get("/api/v1/namespaces/ns-77/pods/web-0")
                    .header("authorization", "Bearer secret-token-of-user-77")
                    .header("user-agent", "kubectl/v1.36.0 (linux/amd64)")
                    .body(RequestBody::Full(None))
                    .expect("a request"),
            );
            let response = handler.handle(request).await;
            assert_eq!(response.status(), 200);
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    }
    best
}

fn chain(
    authenticator: Arc<dyn Authenticator>,
    authorizer: Arc<dyn Authorizer>,
    audit: Option<Arc<Audit>>,
) -> BoxHandler {
    let config = ChainConfig {
        console: None,
        cbor: false,
        memory_budget: None,
        service_quality: None,
        tracer: None,
        authentication: AuthenticationOptions {
            authenticator,
            audiences: vec!["api".into()],
            proxy_headers: None,
            remove_also: None,
        },
        impersonation: kubelith_auth::impersonation::Modes::All,
        authorizer,
        audit,
        flow_control: None,
        faults: None,
        max_reads_in_flight: 400,
        max_writes_in_flight: 200,
        request_timeout: Duration::from_secs(60),
        goaway_chance: 0.0,
        hsts_directives: Vec::new(),
        cors_allowed_origins: Vec::new(),
        send_retry_after: false,
    };
    let end: BoxHandler =
        Arc::new(|_: Request| -> Reply { Reply::pending(async { respond::json(StatusCode::OK, "{}") }) });
    chain::build(end, config, &Lifecycle::default(), &InFlight::default(), &Metrics::new()).handler
}

fn anonymous() -> Arc<dyn Authenticator> {
    struct Everybody(Anonymous);
    impl Authenticator for Everybody {
        fn authenticate<'a>(
            &'a self,
            request: kubelith_auth::AuthRequest<'a>,
        ) -> kubelith_auth::Answer<'a, kubelith_auth::Authentication> {
            self.0.authenticate(request)
        }
    }
    Arc::new(Everybody(Anonymous::new([])))
}

fn tokens() -> Arc<dyn Authenticator> {
    let user = User::named("user-77").with_groups(&["team-7"]);
    let file = TokenFile::new([("secret-token-of-user-77".to_owned(), user)]);
    let parts = Authenticators {
        api_audiences: vec!["api".into()],
        request_header: None,
        client_certificate: None,
        tokens: TokenAuthenticators { token_file: Some(Arc::new(file)), ..TokenAuthenticators::default() },
        token_success_ttl: Duration::from_secs(10),
        token_failure_ttl: Duration::ZERO,
        anonymous: Some(Anonymous::new([])),
        stats: Arc::default(),
    };
    parts.build(Arc::new(SystemClock)).expect("an authenticator")
}

fn rbac() -> Arc<dyn Authorizer> {
    let index = Arc::new(RbacIndex::default());
    for object in bootstrap::policy(&FeatureGates::default()) {
        index.put(object.kind, &object.object);
    }
    for i in 0..BINDINGS / 2 {
        index.put(RbacKind::ClusterRoleBinding, &binding(i, ""));
        index.put(RbacKind::RoleBinding, &binding(i, &format!("ns-{}", i % 500)));
    }
    Arc::new(AuthorizerUnion::new(vec![Arc::new(PrivilegedGroup), Arc::new(RbacAuthorizer::new(index))]))
}

fn binding(i: usize, namespace: &str) -> Value {
    let mut object = Value::object();
    object.set_at(&["metadata", "name"], format!("binding-{i}").into());
    object.set_at(&["metadata", "namespace"], namespace.into());
    object.set_at(&["roleRef", "kind"], "ClusterRole".into());
    object.set_at(&["roleRef", "name"], "system:aggregate-to-view".into());
    let subject = Value::from([("kind", Value::from("User")), ("name", format!("user-{i}").into())]);
    object.set_at(&["subjects"], Value::Array(vec![subject]));
    object
}

fn audit() -> Arc<Audit> {
    let policy =
        Policy::parse(b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]").expect("a policy");
    let metrics = Metrics::new().audit;
    let mut backends = Backends::new(&metrics);
    backends.add(Arc::new(Nowhere), Mode::Blocking, None);
    Arc::new(Audit { policy, backends: Arc::new(backends), metrics })
}
