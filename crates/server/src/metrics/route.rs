//! `/metrics`: a registry as text.

use crate::http::{BoxHandler, Request, Response};
use crate::respond;
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode};
use prometheus::{Encoder, Registry, TextEncoder};
use std::sync::Arc;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub fn metrics_route(registry: Registry) -> BoxHandler {
    Arc::new(move |_: Request| -> BoxFuture<'static, Response> {
        let mut text = Vec::with_capacity(64 * 1024);
        let response = match TextEncoder::new().encode(&registry.gather(), &mut text) {
            Ok(()) => respond::with_type(StatusCode::OK, CONTENT_TYPE, text),
            Err(why) => respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        Box::pin(async move { response })
    })
}
