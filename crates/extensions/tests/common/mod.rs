//! A server with the built-in groups and the extensions, in this process, on the memory store.
#![allow(dead_code, reason = "each test uses its part")]

use kubelith_codec::json;
use kubelith_extensions::{Config, DefinitionStrategy, Extensions, ExtensionsMetrics};
use kubelith_handlers::Limits;
use kubelith_handlers::api::Api;
use kubelith_kube::{Install, install, strategies};
use kubelith_meta::time::SystemClock;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_observe::metrics::Metrics;
use kubelith_openapi::discovery::{Discovery, Source};
use kubelith_openapi::{Library, OpenApi};
use kubelith_outbound::proxy::hook::{HookClients, HookConfig};
use kubelith_registry::admission::AdmitAll;
use kubelith_rules::expression::{Dialect, Expressions};
use kubelith_server::fairness::ObjectCounts;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef, WatchKind};
use kubelith_server::testing::{ADMIN_TOKEN, TestServer};
use kubelith_server::{Delegate, served};
use kubelith_store::cache::Hub;
use kubelith_store::{MemoryStore, Store};
use std::sync::Arc;
use std::time::Duration;

const GROUP: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";
/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Server {
    /// Serves for as long as it is kept.
    pub frame: TestServer,
    pub client: LoopbackClient,
    #[allow(dead_code, reason = "only one of the test programs asks")]
    pub discovery: Arc<Discovery>,
    pub metrics: Metrics,
    pub counts: Arc<ObjectCounts>,
}

/// Starts a server on a store, which several may share.
pub async fn start(store: Arc<dyn Store>) -> Server {
    start_with(store, |_| ()).await
}

/// The same with other settings.
pub async fn start_with(store: Arc<dyn Store>, set: impl FnOnce(&mut Config)) -> Server {
    let hub = Hub::start(store, "/registry/").await.expect("a store");
    let strategy = DefinitionStrategy {
        defaults: strategies::of(GROUP, DEFINITIONS),
        expressions: Expressions::of(Dialect::default()),
    };
    let installed = install(Install {
        strategies: [((GROUP.into(), DEFINITIONS.into()), Arc::new(strategy) as _)].into(),
        ..Install::unguarded(hub.clone())
    });
    let installed = installed.await.expect("the built-in groups");
    let discovery = Discovery::new("127.0.0.1:6443");
    discovery.set(Source::BuiltIn, installed.discovery);
    let library = Library { catalog: kubelith_catalog::builtin(), release: "1.36".into(), enums: true };
    let (metrics, counts) = (Metrics::new(), Arc::<ObjectCounts>::default());
    let mut config = Config {
        hub,
        definitions: installed.resources[&(GROUP.into(), DEFINITIONS.into())].clone(),
        admission: Arc::new(AdmitAll),
        clock: Arc::new(SystemClock),
        limits: Limits::default(),
        written_as: kubelith_extensions::WrittenAs::Json,
        garbage_collection: true,
        metrics: Arc::new(ExtensionsMetrics::new(&metrics.registry)),
        counts: Some(counts.clone()),
        hooks: HookClients::new(HookConfig::direct(Arc::new(|_, name, _| Err(format!("service {name:?} not found"))))),
        webhook_timeout: kubelith_extensions::WEBHOOK_TIMEOUT,
        deletion_grace: Duration::ZERO,
        outlines: Arc::default(),
    };
    set(&mut config);
    let openapi = OpenApi::new(library);
    openapi.put(served::subjects(&installed.routes));
    let extensions = Extensions::new(config, discovery.clone(), openapi.clone());
    let served = extensions.clone();
    let chain = Delegate::end()
        .behind(|next| served.before(next))
        .behind(|next| Api::new(installed.routes, next))
        .behind(|next| openapi.before(discovery.before(next)))
        .post_start_hook(PostStartHook::new("controllers", move |context| async move {
            extensions.start(&context.client, &context.tasks);
            Ok(())
        }));
    let frame = TestServer::start(|builder| builder.delegate(chain)).await;
    Server { client: frame.loopback.clone(), frame, discovery, metrics, counts }
}

pub async fn in_memory() -> Server {
    start(Arc::new(MemoryStore::default())).await
}

pub fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("tests are JSON")
}

/// A definition of `things.example.com`, namespaced, with these versions.
pub fn definition(versions: &str) -> Value {
    value(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{{"name":"things.example.com"}},
            "spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"things","kind":"Thing"}},
                     "versions":{versions}}}}}"#
    ))
}

pub fn things(version: &str) -> GroupVersionResource {
    GroupVersionResource::new("example.com", version, "things")
}

pub fn definitions() -> GroupVersionResource {
    GroupVersionResource::new(GROUP, "v1", DEFINITIONS)
}

impl Server {
    /// Creates a definition and waits until it is established.
    pub async fn define(&self, definition: &Value) -> Value {
        let resource = definitions();
        self.client.create(&ResourceRef::new(&resource), definition).await.expect("the definition is valid");
        self.until("Established", "True").await
    }

    /// Waits until some definition has a condition.
    pub async fn until(&self, condition: &str, status: &str) -> Value {
        self.seen(&format!("{condition}={status}"), |object| has(object, condition, status)).await
    }

    #[allow(dead_code, reason = "only one of the test programs asks")]
    pub async fn until_established(&self, name: &str) {
        let is_it = |object: &Value| object.meta().name() == name && has(object, "Established", "True");
        self.seen(&format!("{name} established"), is_it).await;
    }

    /// Waits for a definition.
    async fn seen(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let resource = definitions();
        let found = async {
            let collection = ResourceRef::new(&resource).with("resourceVersion", "0");
            let mut events = self.client.watch(&collection).await.expect("definitions can be watched");
            loop {
                let event = events.next().await.expect("the watch goes on").expect("and does not fail");
                if wanted(&event.object) {
                    return event.object;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("never {what}"))
    }

    pub async fn create(&self, version: &str, object: &str) -> Result<Value, Status> {
        let resource = things(version);
        self.client.create(&ResourceRef::new(&resource).namespace("default"), &value(object)).await
    }

    /// The body of an answer to an administrator.
    pub async fn document(&self, path: &str) -> Value {
        let answer = self.frame.get(path, ADMIN_TOKEN).await;
        assert_eq!(answer.status, 200, "{path}");
        value(answer.text())
    }

    /// Deletes a definition that somebody keeps by a finalizer, lets it go, and waits for that; its last state.
    pub async fn undefine(&self, name: &str) -> Value {
        let resource = definitions();
        let collection = ResourceRef::new(&resource).with("resourceVersion", "0");
        let mut events = self.client.watch(&collection).await.expect("definitions can be watched");
        let target = ResourceRef::new(&resource).name(name);
        self.client.delete(&target, None).await.expect("it is there");
        let last = self.until("Terminating", "False").await;
        let patch = value(r#"{"metadata":{"finalizers":null}}"#);
        self.client.patch(&target, PatchType::Merge, &patch).await.expect("it is still there");
        let gone = async {
            loop {
                let event = events.next().await.expect("the watch goes on").expect("and does not fail");
                if event.kind == WatchKind::Deleted {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap_or_else(|_| panic!("{name} never goes"));
        last
    }

    pub async fn get(&self, version: &str, name: &str) -> Result<Value, Status> {
        let resource = things(version);
        self.client.get(&ResourceRef::new(&resource).namespace("default").name(name)).await
    }
}

fn has(definition: &Value, condition: &str, status: &str) -> bool {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
    conditions.iter().any(|c| c.str_at(&["type"]) == condition && c.str_at(&["status"]) == status)
}
