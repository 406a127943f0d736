//! `/metrics`: a registry as text.

use super::Registry;
use super::Selection;
use http::{HeaderValue, Method, StatusCode};
use kubelith_http::{BoxHandler, Reply, Request, respond};
use prometheus::{Encoder, TextEncoder};
use std::sync::Arc;

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");

/// Serves what `selection` leaves of a registry. A DELETE lets counts begin anew.
pub fn metrics_route(
    registry: Registry,
    selection: Arc<Selection>,
    reset: impl Fn() + Send + Sync + 'static,
) -> BoxHandler {
    Arc::new(move |request: Request| -> Reply {
        if request.method() == Method::DELETE {
            reset();
            return Reply::Ready(respond::text(StatusCode::OK, "metrics reset\n"));
        }
        let mut text = Vec::with_capacity(64 * 1024);
        let families = match selection.is_everything() {
            true => registry.gather(),
            false => selection.select(registry.gather()),
        };
        let response = match TextEncoder::new().encode(&families, &mut text) {
            Ok(()) => respond::with_type(StatusCode::OK, CONTENT_TYPE, text),
            Err(why) => respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        Reply::Ready(response)
    })
}
