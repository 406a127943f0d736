//! While the server leaves, new requests are sent elsewhere with a 429 and a closed connection
//! (`--shutdown-send-retry-after`).

use super::Layer;
use crate::loopback::LoopbackUser;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use kubelith_http::{Reply, Request, respond};
use tokio_util::sync::CancellationToken;

pub fn layer(not_accepting: CancellationToken) -> Layer {
    Layer::from_fn("retry-after", move |request, next| {
        if !not_accepting.is_cancelled() || is_exempt(&request) {
            return next.handle(request);
        }
        let message = "The apiserver is shutting down, please try again later.";
        let mut response = respond::error_text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Reply::Ready(response)
    })
}

/// Probes, scrapes and our own loops go on to the end. The wait group must exempt the same requests, else it
/// would wait for those that this filter lets in.
pub fn is_exempt(request: &Request) -> bool {
    request.extensions().get::<LoopbackUser>().is_some()
        || request.header("user-agent").starts_with("kube-apiserver/")
        || ["/readyz", "/livez", "/healthz", "/metrics"].iter().any(|p| request.info().path.starts_with(p))
}
