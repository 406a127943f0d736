//! The server as a client of itself: requests that enter the filter chain without a socket, as
//! system:apiserver. Controllers, hooks and admission use it; objects are values.

mod resource_ref;
mod watch;

pub use resource_ref::ResourceRef;
pub use watch::{WatchEvent, WatchEvents, WatchKind};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method};
use http_body_util::BodyExt;
use kubelith_auth::User;
use kubelith_auth::user::{API_SERVER, GROUP_AUTHENTICATED, GROUP_MASTERS};
use kubelith_codec::json;
use kubelith_http::{BoxHandler, Request, RequestBody, Response};
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::{Status, Value};
use kubelith_observe::metrics::rest_client::RestClientMetrics;
use std::sync::Arc;
use std::time::Instant;

/// Names the field manager of what we write ourselves, as in the reference.
const AGENT: HeaderValue = HeaderValue::from_static("kube-apiserver/v1.36.4");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METADATA: HeaderValue = HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
const METADATA_LIST: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
/// A deletion answers an object or a Status.
const METADATA_OR_ANY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.5");

/// Who a request without a socket is from. Only this crate can put it into a request's extensions, so the
/// authentication filter trusts it.
#[derive(Debug, Clone)]
pub(crate) struct LoopbackUser(pub Arc<User>);

/// Parts of the server hold it before the chain is complete; it works from then on.
#[derive(Clone)]
pub struct LoopbackClient {
    chain: Arc<ArcSwapOption<Connected>>,
    user: Arc<User>,
    /// Its part before the slash names the field manager of what is written.
    agent: HeaderValue,
}

/// What requests enter, and who counts them.
struct Connected {
    chain: BoxHandler,
    metrics: Option<Arc<RestClientMetrics>>,
}

/// The four ways to change an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Dropping a future ends a read; a write that passed admission is done whether anybody waits for it or not.
impl LoopbackClient {
    /// A client of `chain`.
    pub fn new(chain: BoxHandler) -> LoopbackClient {
        let client = LoopbackClient::unconnected();
        client.connect(chain, None);
        client
    }

    /// A client that answers 503 until it is connected.
    pub fn unconnected() -> LoopbackClient {
        let user = User::named(API_SERVER).with_groups(&[GROUP_MASTERS, GROUP_AUTHENTICATED]);
        LoopbackClient { chain: Arc::default(), user: Arc::new(user), agent: AGENT }
    }

    /// Connects this client and all clones of it.
    pub(crate) fn connect(&self, chain: BoxHandler, metrics: Option<Arc<RestClientMetrics>>) {
        self.chain.store(Some(Arc::new(Connected { chain, metrics })));
    }

    /// Lets go of the server, of which parts hold this client: without this none of them would ever go.
    pub fn disconnect(&self) {
        self.chain.store(None);
    }

    /// The same client as someone else.
    pub fn as_user(&self, user: impl Into<Arc<User>>) -> LoopbackClient {
        LoopbackClient { chain: self.chain.clone(), user: user.into(), agent: self.agent.clone() }
    }

    /// The same client as another program.
    pub fn as_agent(mut self, agent: &'static str) -> LoopbackClient {
        self.agent = HeaderValue::from_static(agent);
        self
    }

    pub async fn get(&self, object: &ResourceRef<'_>) -> Result<Value, Status> {
        self.call(Method::GET, object, None, JSON).await
    }

    pub async fn list(&self, collection: &ResourceRef<'_>) -> Result<Value, Status> {
        self.call(Method::GET, collection, None, JSON).await
    }

    pub async fn create(&self, collection: &ResourceRef<'_>, object: &Value) -> Result<Value, Status> {
        self.call(Method::POST, collection, Some(json::to_vec(object).into()), JSON).await
    }

    /// As `create`. Nobody looks at what was made of the object.
    pub async fn create_unseen(&self, collection: &ResourceRef<'_>, object: &Value) -> Result<(), Status> {
        let body = Bytes::from(json::to_vec(object));
        unseen(self.send(request(Method::POST, &collection.path(), Some(body), JSON)?).await).await
    }

    pub async fn update(&self, target: &ResourceRef<'_>, object: &Value) -> Result<Value, Status> {
        self.call(Method::PUT, target, Some(json::to_vec(object).into()), JSON).await
    }

    pub async fn patch(&self, target: &ResourceRef<'_>, kind: PatchType, patch: &Value) -> Result<Value, Status> {
        let media_type = HeaderValue::from_static(kind.media_type());
        self.call(Method::PATCH, target, Some(json::to_vec(patch).into()), media_type).await
    }

    /// As `patch`, for large objects: what is answered is their metadata.
    pub async fn patch_large(&self, target: &ResourceRef<'_>, kind: PatchType, patch: &Value) -> Result<Value, Status> {
        let media_type = HeaderValue::from_static(kind.media_type());
        let mut request = request(Method::PATCH, &target.path(), Some(json::to_vec(patch).into()), media_type)?;
        request.headers_mut().insert(ACCEPT, METADATA);
        read(self.send(request).await).await
    }

    /// The metadata of an object.
    pub async fn get_metadata(&self, object: &ResourceRef<'_>) -> Result<Value, Status> {
        self.read_as(object, METADATA).await
    }

    /// A list of the metadata of objects.
    pub async fn list_metadata(&self, collection: &ResourceRef<'_>) -> Result<Value, Status> {
        self.read_as(collection, METADATA_LIST).await
    }

    async fn read_as(&self, target: &ResourceRef<'_>, accept: HeaderValue) -> Result<Value, Status> {
        let mut request = request(Method::GET, &target.path(), None, JSON)?;
        request.headers_mut().insert(ACCEPT, accept);
        read(self.send(request).await).await
    }

    /// As `delete`, of an object or of all objects of a collection. Nobody looks at what was deleted.
    pub async fn delete_unseen(&self, target: &ResourceRef<'_>, options: &Value) -> Result<(), Status> {
        let mut request = request(Method::DELETE, &target.path(), Some(json::to_vec(options).into()), JSON)?;
        request.headers_mut().insert(ACCEPT, if target.is_collection() { METADATA_LIST } else { METADATA_OR_ANY });
        unseen(self.send(request).await).await
    }

    /// `options` is a DeleteOptions.
    pub async fn delete(&self, target: &ResourceRef<'_>, options: Option<&Value>) -> Result<Value, Status> {
        self.call(Method::DELETE, target, options.map(|o| json::to_vec(o).into()), JSON).await
    }

    /// As `watch`, with the metadata of objects alone.
    pub async fn watch_metadata(&self, collection: &ResourceRef<'_>) -> Result<WatchEvents, Status> {
        let mut request = request(Method::GET, &collection.watch_path(), None, JSON)?;
        request.headers_mut().insert(ACCEPT, METADATA);
        let response = self.send(request).await;
        if !response.status().is_success() {
            return Err(read(response).await.err().unwrap_or_default());
        }
        Ok(WatchEvents::new(response.into_body()))
    }

    /// Events from now on, or from where the query of `collection` says.
    pub async fn watch(&self, collection: &ResourceRef<'_>) -> Result<WatchEvents, Status> {
        let response = self.send(request(Method::GET, &collection.watch_path(), None, JSON)?).await;
        if !response.status().is_success() {
            return Err(read(response).await.err().unwrap_or_default());
        }
        Ok(WatchEvents::new(response.into_body()))
    }

    /// GET of any path.
    pub async fn get_path(&self, path: &str) -> Result<Response, Status> {
        Ok(self.send(request(Method::GET, path, None, JSON)?).await)
    }

    /// Sends a request through the whole chain.
    pub async fn send(&self, mut request: Request) -> Response {
        request.extensions_mut().insert(LoopbackUser(self.user.clone()));
        request.headers_mut().insert(USER_AGENT, self.agent.clone());
        let connected = self.chain.load_full();
        let Some(Connected { chain, metrics }) = connected.as_deref() else {
            return kubelith_http::respond::status_json(&Status::service_unavailable("the server is starting"));
        };
        let Some(metrics) = metrics else { return chain.handle(request).await };
        let (method, begin) = (request.method().clone(), Instant::now());
        let sent = match request.body() {
            RequestBody::Full(body) => body.as_ref().map_or(0, Bytes::len),
            RequestBody::Incoming(_) => 0,
        };
        let response = chain.handle(request).await;
        let received = http_body::Body::size_hint(response.body()).exact();
        metrics.loopback(&method, response.status().as_u16(), begin.elapsed(), sent, received);
        response
    }

    async fn call(
        &self,
        method: Method,
        target: &ResourceRef<'_>,
        body: Option<Bytes>,
        content_type: HeaderValue,
    ) -> Result<Value, Status> {
        read(self.send(request(method, &target.path(), body, content_type)?).await).await
    }
}

fn request(method: Method, path: &str, body: Option<Bytes>, content_type: HeaderValue) -> Result<Request, Status> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, JSON)
        .header(CONTENT_TYPE, content_type)
        .body(RequestBody::Full(body))
        .map(Request::from)
        .map_err(|e| Status::internal_error(format!("{path}: {e}")))
}

/// Whether it went well.
async fn unseen(response: Response) -> Result<(), Status> {
    match response.status().is_success() {
        true => Ok(()),
        false => Err(read(response).await.err().unwrap_or_default()),
    }
}

/// The object that was answered, or the Status that says why there is none.
async fn read(response: Response) -> Result<Value, Status> {
    let code = response.status();
    let body = response.into_body().collect().await.map_err(Status::internal_error)?.to_bytes();
    let value = json::parse(&body).ok().filter(|v| v.as_object().is_some());
    if code.is_success() {
        return value.ok_or_else(|| Status::internal_error("the answer is not a JSON object"));
    }
    Err(match value.filter(|v| v.str_at(&["kind"]) == "Status") {
        Some(value) => Status::from_value(&value),
        None => {
            let text = String::from_utf8_lossy(&body);
            ForeignResponse { code: code.as_u16(), body: text.trim(), ..ForeignResponse::default() }.into()
        }
    })
}
