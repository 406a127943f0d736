//! Lets scripts of other origins in, if `--cors-allowed-origins` names them.

use super::Layer;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kubelith_http::{Body, Reply, Response};
use regex::Regex;

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
);

/// `None` if no origin is allowed.
pub fn layer(origins: Vec<Regex>) -> Option<Layer> {
    if origins.is_empty() {
        return None;
    }
    Some(Layer::from_fn("cors", move |request, next| {
        let allowed = request
            .headers()
            .get(ORIGIN)
            .filter(|o| o.to_str().is_ok_and(|o| !o.is_empty() && origins.iter().any(|re| re.is_match(o))))
            .cloned();
        let Some(origin) = allowed else { return next.handle(request) };
        if request.method() == Method::OPTIONS {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            allow(response.headers_mut(), origin);
            return Reply::Ready(response);
        }
        next.handle(request).map(|mut response| {
            allow(response.headers_mut(), origin);
            response
        })
    }))
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Date"));
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
}
