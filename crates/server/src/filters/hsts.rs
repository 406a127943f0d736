//! `Strict-Transport-Security`, if `--strict-transport-security-directives` are given.

use super::Layer;
use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;

/// `None` without directives.
pub fn layer(directives: &[String]) -> Option<Layer> {
    if directives.is_empty() {
        return None;
    }
    let value = HeaderValue::try_from(directives.join("; ")).ok()?;
    Some(Layer::from_fn("hsts", move |request, next| {
        let response = next.handle(request);
        let value = value.clone();
        Box::pin(async move {
            let mut response = response.await;
            response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert(value);
            response
        })
    }))
}
