//! Every answer depends on who asks: no shared cache may keep it.

use super::Layer;
use http::HeaderValue;
use http::header::CACHE_CONTROL;

pub fn layer() -> Layer {
    Layer::from_fn("cache-control", |request, next| {
        next.handle(request).map(|mut response| {
            response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
            response
        })
    })
}
