//! The built-in resources over the memory store, from request to response, without sockets and filters.

use http::Method;
use http_body_util::BodyExt;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_codec::json;
use kubelith_kube::actions::Access;
use kubelith_kube::{Install, install};
use kubelith_meta::Value;
use kubelith_meta::time::SystemClock;
use kubelith_registry::admission::AdmitAll;
use kubelith_server::api::Api;
use kubelith_server::discovery::{Discovery, Source};
use kubelith_server::handlers::Limits;
use kubelith_server::http::{BoxHandler, RequestBody};
use kubelith_server::request_info::RequestInfo;
use kubelith_server::routes;
use kubelith_store::MemoryStore;
use kubelith_store::cache::Hub;
use std::sync::Arc;

struct Server(BoxHandler);

impl Server {
    async fn start() -> Server {
        let store = Arc::new(MemoryStore::default());
        let hub = Hub::start(store, "/registry/").await.unwrap();
        let installed = install(Install {
            catalog: kubelith_catalog::builtin(),
            hub,
            admission: Arc::new(AdmitAll),
            objects: Objects::new(),
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            garbage_collection: true,
            access: Access {
                roles: Arc::default(),
                tokens: kubelith_kube::actions::no_tokens(),
                authenticator: Arc::new(Anonymous::new([])),
                authorizer: Arc::new(AlwaysAllow),
                audiences: Arc::new([]),
            },
            runtime_config: Default::default(),
            strategies: Default::default(),
            gates: Arc::new(|_| false),
        })
        .await
        .unwrap();
        let api = Api::new(installed.routes, routes::not_found());
        let discovery = Discovery::new("127.0.0.1:6443");
        discovery.set(Source::BuiltIn, installed.discovery);
        Server(discovery.before(api))
    }

    async fn send(&self, method: Method, uri: &str, body: &str) -> (u16, Value) {
        self.send_as(method, uri, "application/json", body).await
    }

    async fn send_as(&self, method: Method, uri: &str, content_type: &str, body: &str) -> (u16, Value) {
        let body = (!body.is_empty()).then(|| bytes::Bytes::from(body.to_owned()));
        let mut request = http::Request::builder()
            .method(method.clone())
            .uri(uri)
            .header("Content-Type", content_type)
            .body(RequestBody::Full(body))
            .unwrap();
        let info = RequestInfo::parse(&method, request.uri().path(), request.uri()).unwrap();
        request.extensions_mut().insert(Arc::new(info));
        let response = self.0.handle(request).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, json::parse(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).as_ref())))
    }
}

#[tokio::test]
async fn a_config_map_lives_and_dies() {
    let server = Server::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, made) = server.send(Method::POST, maps, r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#).await;
    assert_eq!(code, 201, "{made:?}");
    assert_eq!(made.str_at(&["kind"]), "ConfigMap");
    let (code, again) = server.send(Method::POST, maps, r#"{"metadata":{"name":"a"}}"#).await;
    assert_eq!((code, again.str_at(&["reason"])), (409, "AlreadyExists"));
    let (code, got) = server.send(Method::GET, &format!("{maps}/a"), "").await;
    assert_eq!((code, &got), (200, &made));
    let (code, list) = server.send(Method::GET, maps, "").await;
    assert_eq!(code, 200);
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(1));
    let patch = r#"{"data":{"x":"y"}}"#;
    let (code, patched) =
        server.send_as(Method::PATCH, &format!("{maps}/a"), "application/merge-patch+json", patch).await;
    assert_eq!((code, patched.str_at(&["data", "x"])), (200, "y"), "{patched:?}");
    let (code, _) = server.send(Method::DELETE, &format!("{maps}/a"), "").await;
    assert_eq!(code, 200);
    let (code, _) = server.send(Method::GET, &format!("{maps}/a"), "").await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn discovery_lists_the_groups() {
    let server = Server::start().await;
    let (code, groups) = server.send(Method::GET, "/apis", "").await;
    assert_eq!(code, 200);
    let names: Vec<&str> =
        groups.get("groups").and_then(Value::as_array).unwrap().iter().map(|g| g.str_at(&["name"])).collect();
    assert_eq!(&names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
}
