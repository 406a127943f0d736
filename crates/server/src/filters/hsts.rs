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
        let value = value.clone();
        next.handle(request).map(|mut response| {
            response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert(value);
            response
        })
    }))
}
