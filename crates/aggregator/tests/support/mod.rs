//! A server with an aggregator, and extension servers beside it, all in this process and on loopback.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod raw;

use arc_swap::ArcSwapOption;
use http_body_util::{BodyExt, Full};
use kubelith_aggregator::{Config, Local, Locate, PeerConfig, PeerProxy, Routing};
use kubelith_auth::authn::request_header::{RequestHeader, RequestHeaderConfig, RequestHeaderNames};
use kubelith_auth::authn::x509::CaPool;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_catalog::RuntimeConfig;
use kubelith_codec::json;
use kubelith_handlers::api::Api;
use kubelith_kube::{Install, Installed, install};
use kubelith_meta::time::SystemClock;
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_observe::metrics::Metrics;
use kubelith_observe::metrics::Registry;
use kubelith_openapi::discovery::{Discovery, Source};
use kubelith_openapi::{Library, OpenApi};
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::{ClientCertificate, Identity, Redirects};
use kubelith_server::installation::Installation;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_server::testing::{ADMIN_TOKEN, Answer, Place, TestServer};
use kubelith_server::{Delegate, ServerBuilder, served};
use kubelith_store::MemoryStore;
use kubelith_store::cache::Hub;
use kubelith_tls::{Pki, PkiOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a test waits for at most. Nothing takes nearly as long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The name in the certificates of extension servers.
pub const SERVICE: &str = "extension.default.svc";

/// By which extension servers know the aggregator.
pub struct FrontProxy {
    dir: tempfile::TempDir,
}

impl FrontProxy {
    pub fn new() -> FrontProxy {
        let dir = tempfile::tempdir().unwrap();
        Pki::open(dir.path(), PkiOptions::all(["localhost"], [])).unwrap();
        FrontProxy { dir }
    }

    pub fn certificate(&self) -> Arc<ClientCertificate> {
        ClientCertificate::load(self.dir.path().join("admin.crt"), self.dir.path().join("admin.key")).unwrap()
    }

    pub fn ca(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("ca.crt")).unwrap()
    }
}

/// The main server.
pub struct Cluster {
    pub server: TestServer,
    pub front_proxy: FrontProxy,
    pub client: LoopbackClient,
}

impl Cluster {
    pub async fn start() -> Cluster {
        let front_proxy = FrontProxy::new();
        let apis = Apis::open(&[], |_| false).await;
        let certificate = front_proxy.certificate();
        let server = TestServer::start(|builder| {
            let client = builder.loopback();
            builder.delegate(apis.aggregated(client, certificate))
        })
        .await;
        let client = server.loopback.clone();
        Cluster { server, front_proxy, client }
    }

    /// Registers a server on loopback as `version.group`; `trust` goes into the spec.
    pub async fn register(&self, group: &str, version: &str, port: u16, trust: (&str, Value)) {
        self.put_service("extension").await;
        let name = format!("{version}.{group}");
        let mut object = json::parse(
            format!(
                r#"{{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{{"name":"{name}"}},
                "spec":{{"group":"{group}","version":"{version}","groupPriorityMinimum":1000,"versionPriority":15,
                "service":{{"namespace":"default","name":"extension","port":{port}}}}}}}"#
            )
            .as_bytes(),
        )
        .unwrap();
        object.set_at(&["spec", trust.0], trust.1);
        self.client.create(&ResourceRef::new(&api_services()), &object).await.unwrap();
    }

    /// A service that stands for loopback.
    pub async fn put_service(&self, name: &str) {
        let service = json::parse(
            format!(
                r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}"}},
                "spec":{{"type":"ExternalName","externalName":"localhost"}}}}"#
            )
            .as_bytes(),
        )
        .unwrap();
        let services = GroupVersionResource::new("", "v1", "services");
        let outcome = self.client.create(&ResourceRef::new(&services).namespace("default"), &service).await;
        if let Err(status) = outcome {
            assert!(status.is_already_exists(), "{}", status.message);
        }
    }

    /// The condition Available: status, reason, message.
    pub async fn available(&self, name: &str) -> (String, String, String) {
        let object = self.client.get(&ResourceRef::new(&api_services()).name(name)).await.unwrap();
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
        let found = conditions.iter().find(|c| c.str_at(&["type"]) == "Available").cloned().unwrap_or_default();
        let text = |key: &str| found.str_at(&[key]).to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Waits for an APIService to have this status, and for the route to know.
    pub async fn until_available(&self, name: &str, status: &str) {
        eventually(&format!("{name} to be {status}"), || async { self.available(name).await.0 == status }).await;
        let (version, group) = name.split_once('.').unwrap();
        let path = format!("/apis/{group}/{version}/nothing");
        let refused = status != "True";
        eventually(&format!("the route of {name}"), || async {
            let answer = self.server.get(&path, ADMIN_TOKEN).await;
            (answer.status == 503 && answer.text() == "service unavailable\n") == refused
        })
        .await;
    }

    pub async fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {ADMIN_TOKEN}"))
            .header("content-type", "application/json")
            .body(Full::from(bytes::Bytes::from(body.to_owned())))
            .unwrap();
        self.server.send(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.server.get(path, ADMIN_TOKEN).await
    }
}

pub fn api_services() -> GroupVersionResource {
    GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices")
}

/// Trusts any certificate.
pub fn insecure() -> (&'static str, Value) {
    ("insecureSkipTLSVerify", Value::Bool(true))
}

pub fn value(answer: &Answer) -> Value {
    json::parse(&answer.body).unwrap_or_else(|_| panic!("no JSON: {} {}", answer.status, answer.text()))
}

/// Waits until something holds, looking again as soon as other work was done.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let outcome = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    outcome.await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Built-in groups, some of them, over a store in memory.
pub struct Apis {
    installed: Installed,
}

impl Apis {
    /// With these entries of `--runtime-config`.
    pub async fn open(on: &[(&str, &str)], gates: fn(&str) -> bool) -> Apis {
        let hub = Hub::start(Arc::new(MemoryStore::default()), "/registry/").await.unwrap();
        let pairs: BTreeMap<String, String> = on.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let installed = install(Install {
            runtime_config: RuntimeConfig::parse(kubelith_catalog::builtin(), &pairs).unwrap(),
            gates: Arc::new(gates),
            ..Install::unguarded(hub)
        });
        Apis { installed: installed.await.unwrap() }
    }

    fn served(self) -> (Delegate, Arc<Discovery>, Arc<OpenApi>) {
        let discovery = Discovery::new("127.0.0.1:6443");
        let openapi =
            OpenApi::new(Library { catalog: kubelith_catalog::builtin(), release: "1.36".into(), enums: true });
        discovery.set(Source::BuiltIn, self.installed.discovery);
        openapi.put(served::subjects(&self.installed.routes));
        let api = Delegate::end().behind(|next| Api::new(self.installed.routes, next));
        let documents = (discovery.clone(), openapi.clone());
        (api.behind(|next| documents.1.before(documents.0.before(next))), discovery, openapi)
    }

    /// Behind a proxy to other servers of the cluster, which `configure` has its part in.
    pub fn beside(self, peers: impl FnOnce(PeerConfig) -> PeerConfig, registry: Registry) -> Delegate {
        let cache = |group: &str, plural: &str| self.installed.resources[&(group.into(), plural.into())].cache.clone();
        let config = PeerConfig {
            server: "own".into(),
            locate: Arc::new(Nowhere),
            leases: cache("coordination.k8s.io", "leases"),
            api_services: cache("apiregistration.k8s.io", "apiservices"),
            crds: Some(cache("apiextensions.k8s.io", "customresourcedefinitions")),
            discovery: Discovery::new(""),
            registry,
            certificate: ClientCertificate::none(),
            authorities: PathBuf::new(),
            route: Route::Direct,
        };
        let (next, discovery, _) = self.served();
        let peers = PeerProxy::new(peers(PeerConfig { discovery, ..config })).unwrap();
        next.behind(|next| peers.before(next)).post_start_hooks(peers.hooks())
    }

    /// As an extension server has them.
    pub fn alone(self) -> Delegate {
        self.served().0
    }

    fn aggregated(self, client: LoopbackClient, certificate: Arc<ClientCertificate>) -> Delegate {
        let cache = |group: &str, plural: &str| self.installed.resources[&(group.into(), plural.into())].cache.clone();
        let (api_services, services) = (cache("apiregistration.k8s.io", "apiservices"), cache("", "services"));
        let endpoint_slices = Some(cache("discovery.k8s.io", "endpointslices"));
        let crds = Some(cache("apiextensions.k8s.io", "customresourcedefinitions"));
        let built_in = self.installed.discovery.iter().map(|e| Local {
            gv: kubelith_meta::GroupVersion::new(e.group.clone(), e.version.name.clone()),
            group_priority: e.group_priority,
            version_priority: e.version_priority,
        });
        let built_in = built_in.collect();
        let (next, discovery, openapi) = self.served();
        let config = Config {
            readings: Arc::default(),
            api_services,
            services,
            endpoint_slices,
            crds,
            client,
            clock: Arc::new(SystemClock),
            metrics: Metrics::new(),
            discovery,
            openapi,
            built_in,
            routing: Routing::ClusterIp,
            redirects: Redirects::Refuse,
            identity: Identity::WithUid,
            certificate,
            route: Route::Direct,
            installation: Installation::default(),
        };
        kubelith_aggregator::serve(config, next)
    }
}

/// No server is anywhere.
struct Nowhere;

impl Locate for Nowhere {
    fn address<'a>(&'a self, _: &'a str) -> futures::future::BoxFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Ok(String::new())))
    }
}

/// An extension server: our own server with one group on, which believes the front proxy alone.
pub async fn extension(front_proxy: &FrontProxy, group_version: &str, port: u16) -> TestServer {
    let apis = Apis::open(&[("api/all", "false"), (group_version, "true")], |_| true).await;
    extension_of(front_proxy, port, |builder| builder.delegate(apis.alone())).await
}

pub async fn extension_of(
    front_proxy: &FrontProxy,
    port: u16,
    set_up: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> TestServer {
    behind(front_proxy, Place { names: &[SERVICE], port, ..Place::default() }, set_up).await
}

/// A server that believes the front proxy alone.
pub async fn behind(
    front_proxy: &FrontProxy,
    place: Place<'_>,
    set_up: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> TestServer {
    let ca = CaPool::from_pem(&front_proxy.ca()).unwrap();
    let config = RequestHeaderConfig { ca, allowed_names: Vec::new(), headers: RequestHeaderNames::standard() };
    let authenticator = RequestHeader::new(Arc::new(ArcSwapOption::from_pointee(config)), Arc::new(SystemClock));
    let configure = |config: &mut kubelith_server::ServerConfig| {
        config.chain.authentication.authenticator = Arc::new(authenticator);
        config.chain.authorizer = Arc::new(AlwaysAllow);
    };
    TestServer::start_at(place, configure, set_up).await
}

/// The rest of a body.
pub async fn rest(body: hyper::body::Incoming) -> bytes::Bytes {
    body.collect().await.unwrap().to_bytes()
}
