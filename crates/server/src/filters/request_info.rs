//! Reads what the request is about, once for all.

use super::Layer;
use http::StatusCode;
use kubelith_http::context::Received;
use kubelith_http::{Reply, RequestInfo, query, respond};
use std::sync::Arc;

pub fn layer() -> Layer {
    Layer::from_fn("request-info", |mut request, next| {
        request.context_mut().received = Some(Received::now());
        let Some(path) = query::decode_path(request.uri().path()) else {
            return Reply::Ready(respond::text(StatusCode::BAD_REQUEST, "400 Bad Request"));
        };
        match RequestInfo::parse(request.method(), &path, request.uri()) {
            Ok(info) => {
                request.context_mut().info = Some(Arc::new(info));
                next.handle(request)
            }
            Err(why) => {
                let why = format!("failed to create RequestInfo: {why}");
                Reply::Ready(respond::internal_error(&request.uri().to_string(), why))
            }
        }
    })
}
