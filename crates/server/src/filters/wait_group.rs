//! Counts short requests, so that the server leaves when the last one is answered.

use super::Layer;
use super::retry_after::is_exempt;
use crate::lifecycle::WaitGroup;
use http::HeaderValue;
use http::header::RETRY_AFTER;
use kubelith_http::{Reply, Response, respond};
use kubelith_meta::Status;

pub fn layer(group: WaitGroup) -> Layer {
    Layer::from_fn("wait-group", move |request, next| {
        if request.info().is_long_running() {
            return next.handle(request);
        }
        let Some(member) = group.join() else {
            if is_exempt(&request) {
                return next.handle(request);
            }
            return Reply::Ready(shutting_down());
        };
        next.handle(request).map(|response| response.map(|body| body.with_guard(member)))
    })
}

/// Another server answers, probably: the client should try again soon.
pub fn shutting_down() -> Response {
    let mut response = respond::status_json(&Status::service_unavailable("apiserver is shutting down"));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
    response
}
