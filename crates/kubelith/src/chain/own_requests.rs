//! What admission plugins ask of this server: as a client of it, like any other.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt, Limited};
use kubelith_admission::Loopback;
use kubelith_auth::remote::{FetchError, FetchResponse};
use kubelith_http::{Request, RequestBody};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_outbound::proxy::hook::{MAX_ANSWER, OwnServer};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::sync::Arc;

/// The way to webhooks behind this very server.
pub fn own_server(client: LoopbackClient) -> OwnServer {
    Arc::new(move |path, review| {
        let client = client.clone();
        Box::pin(async move { post(&client, &path, review).await.map_err(FetchError::Other) })
    })
}

async fn post(client: &LoopbackClient, path: &str, review: Bytes) -> Result<FetchResponse, String> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let request =
        http::Request::builder().method(Method::POST).uri(path).header(CONTENT_TYPE, JSON).header(ACCEPT, JSON);
    let request = request.body(RequestBody::Full(Some(review))).map_err(|e| format!("Post {path}: {e}"))?;
    let (parts, body) = client.send(Request::from(request)).await.into_parts();
    let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|e| e.to_string())?;
    Ok(FetchResponse {
        status: parts.status.as_u16(),
        body: body.to_bytes(),
        content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
        retry_after_seconds: text(RETRY_AFTER).and_then(|value| value.parse().ok()),
        max_age_seconds: None,
    })
}

pub struct OwnRequests(pub LoopbackClient);

impl Loopback for OwnRequests {
    fn update_quota_status<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let quotas = GroupVersionResource::new("", "v1", "resourcequotas");
            let meta = quota.meta();
            let target = ResourceRef::new(&quotas).namespace(meta.namespace()).name(meta.name()).subresource("status");
            self.0.update(&target, quota).await
        })
    }

    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let namespaces = GroupVersionResource::new("", "v1", "namespaces");
            let mut namespace = Value::default();
            namespace.meta_mut().set_name(name);
            self.0.create(&ResourceRef::new(&namespaces), &namespace).await.map(drop)
        })
    }

    fn resources<'a>(&'a self, group_version: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let root = if group_version.contains('/') { "apis" } else { "api" };
            let answer = self.0.get_path(&format!("/{root}/{group_version}")).await?;
            let found = answer.status().is_success();
            let body = answer.into_body().collect().await.map_err(Status::internal_error)?.to_bytes();
            let listed = kubelith_codec::json::parse(&body).ok().filter(|_| found);
            listed.ok_or_else(|| Status::internal_error(format!("{group_version} is not served")))
        })
    }
}
