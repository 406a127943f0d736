//! The built-in resources over a store, from request to response, without sockets and filters.

#[allow(dead_code, reason = "most tests are not about admission")]
pub mod admitted;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::Method;
use http_body_util::{BodyExt, BodyStream};
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_codec::json;
use kubelith_handlers::api::Api;
use kubelith_http::{Body, BoxHandler, Request, RequestBody, RequestInfo, Response};
use kubelith_kube::{Install, install};
use kubelith_meta::Value;
use kubelith_meta::user::User;
use kubelith_openapi::discovery::{Discovery, Source};
use kubelith_server::installation;
use kubelith_store::cache::Hub;
use kubelith_store::{MemoryStore, Store};
use std::sync::Arc;

pub struct Server {
    handler: BoxHandler,
    hub: Arc<Hub>,
}

#[allow(dead_code, reason = "each test file uses what it needs")]
impl Server {
    pub async fn start() -> Server {
        Server::on(Arc::new(MemoryStore::default())).await
    }

    pub async fn on(store: Arc<dyn Store>) -> Server {
        Server::with(store, |install| install).await
    }

    /// With something else than usual.
    pub async fn with(store: Arc<dyn Store>, change: impl FnOnce(Install) -> Install) -> Server {
        let hub = Hub::start(store, "/registry/").await.unwrap();
        let installed = install(change(Install::unguarded(hub.clone()))).await.unwrap();
        let api = Api::new(installed.routes, installation::nobody());
        let discovery = Discovery::new("127.0.0.1:6443");
        discovery.set(Source::BuiltIn, installed.discovery);
        Server { handler: discovery.before(api), hub }
    }

    pub async fn send(&self, method: Method, uri: &str, body: &str) -> (u16, Value) {
        self.send_as(method, uri, "application/json", body).await
    }

    pub async fn send_as(&self, method: Method, uri: &str, content_type: &str, body: &str) -> (u16, Value) {
        let response = self.request(method, uri, content_type, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, json::parse(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).as_ref())))
    }

    /// By a user.
    pub async fn send_by(&self, user: User, method: Method, uri: &str, content_type: &str, body: &str) -> (u16, Bytes) {
        let body = (!body.is_empty()).then(|| Bytes::from(body.to_owned()));
        let request = http::Request::builder().method(method).uri(uri).header("Content-Type", content_type);
        let mut request = Request::from(request.body(RequestBody::Full(body)).unwrap());
        request.context_mut().user = Some(Arc::new(user));
        let response = self.pass_on(request).await;
        let code = response.status().as_u16();
        (code, response.into_body().collect().await.unwrap().to_bytes())
    }

    /// The answer as it goes to the client.
    pub async fn send_raw(&self, method: Method, uri: &str, content_type: &str, body: &str) -> (u16, Bytes) {
        let response = self.request(method, uri, content_type, body).await;
        let code = response.status().as_u16();
        (code, response.into_body().collect().await.unwrap().to_bytes())
    }

    /// What a reader gets who wants it as `accept`.
    pub async fn read_as(&self, uri: &str, accept: &str) -> (u16, Bytes) {
        let response = self.accept(uri, accept).await;
        (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn accept(&self, uri: &str, accept: &str) -> Response {
        let request = http::Request::builder().uri(uri).header("Accept", accept).body(RequestBody::Full(None));
        self.pass(request.unwrap()).await
    }

    async fn request(&self, method: Method, uri: &str, content_type: &str, body: &str) -> Response {
        let body = (!body.is_empty()).then(|| Bytes::from(body.to_owned()));
        let request = http::Request::builder().method(method).uri(uri).header("Content-Type", content_type);
        self.pass(request.body(RequestBody::Full(body)).unwrap()).await
    }

    async fn pass(&self, request: http::Request<RequestBody>) -> Response {
        self.pass_on(Request::from(request)).await
    }

    async fn pass_on(&self, mut request: Request) -> Response {
        let info = RequestInfo::parse(&request.method().clone(), request.uri().path(), request.uri()).unwrap();
        request.context_mut().info = Some(Arc::new(info));
        request.context_mut().authorizer = Some(Arc::new(AlwaysAllow));
        self.handler.handle(request).await
    }

    pub async fn watch(&self, uri: &str) -> Events {
        self.watch_as(uri, "application/json").await
    }

    /// A watch whose events are wanted as `accept`.
    pub async fn watch_as(&self, uri: &str, accept: &str) -> Events {
        let response = self.accept(uri, accept).await;
        assert_eq!(response.status(), 200, "{uri} as {accept}");
        Events { body: BodyStream::new(response.into_body()) }
    }

    /// Waits until the caches have heard of all that was written.
    pub async fn settle(&self) {
        self.hub.fresh().await.unwrap();
    }

    /// Ends everything that runs for this server. Its store can be opened again.
    pub async fn stop(self) {
        self.hub.stop();
        self.hub.store().close().await;
    }
}

/// A watch's events as they come.
pub struct Events {
    body: BodyStream<Body>,
}

#[allow(dead_code, reason = "each test file uses what it needs")]
impl Events {
    /// Those that are there without waiting.
    pub fn ready(&mut self) -> Vec<(String, Value)> {
        let bytes = self.ready_bytes();
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let events = lines.map(|line| {
            let mut event = json::parse(line).unwrap();
            let object = event.remove_at(&["object"]).unwrap();
            (event.str_at(&["type"]).to_owned(), object)
        });
        events.collect()
    }

    /// What comes next, as it goes to the client.
    pub async fn piece(&mut self) -> Bytes {
        let piece = self.body.next().await.expect("the watch goes on");
        piece.unwrap().into_data().unwrap()
    }

    /// Those that are there without waiting, as they go to the client.
    pub fn ready_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(Some(piece)) = self.body.next().now_or_never() {
            bytes.extend_from_slice(&piece.unwrap().into_data().unwrap());
        }
        bytes
    }
}
