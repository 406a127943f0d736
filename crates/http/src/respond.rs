//! Answers that the frame itself gives: plain text as Go's net/http writes it, JSON documents, and errors.
//! Verb handlers have their own, negotiated writers.
use crate::message::{Body, Request, Response};
use crate::{negotiated, query};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use kubelith_codec::negotiate::{self, Format, Output, PlainEndpoint};
use kubelith_meta::Status;

pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const X_CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");
pub const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

pub fn with_type(code: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub fn text(code: StatusCode, body: impl Into<Bytes>) -> Response {
    with_type(code, TEXT, body)
}

pub fn json(code: StatusCode, body: impl Into<Bytes>) -> Response {
    with_type(code, JSON, body)
}

/// A plain-text error: the message and a line feed, which a browser must not take for HTML.
pub fn error_text(code: StatusCode, message: impl std::fmt::Display) -> Response {
    let mut response = text(code, format!("{message}\n"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

pub fn not_found() -> Response {
    error_text(StatusCode::NOT_FOUND, "404 page not found")
}

/// A Status as JSON, for answers that are not negotiated.
pub fn status_json(status: &Status) -> Response {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, status.to_json() + "\n")
}

/// A Status in the format that the client accepts, JSON if it accepts none.
pub fn status(request: &Request, status: &Status) -> Response {
    let pretty = query::first(request.uri().query(), "pretty");
    let pretty = negotiate::wants_pretty(pretty.as_deref(), request.header("user-agent"));
    let format = negotiate::output(request.header("accept"), negotiate::BUILT_IN, &PlainEndpoint);
    if pretty || !matches!(format, Ok(Output { format: Format::Json, .. }) | Err(_)) {
        return negotiated::status(request.headers(), pretty, status);
    }
    let mut response = status_json(status);
    if let Some(seconds) = status.retry_after_seconds().filter(|s| *s > 0) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A 500 for errors that have no Status of their own: `Internal Server Error: "/path": why`.
pub fn internal_error(request_uri: &str, why: impl std::fmt::Display) -> Response {
    let message = format!("Internal Server Error: {}: {why}", kubelith_meta::text::quote(request_uri));
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    error_text(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// What the answer to HEAD keeps: everything but the body, with the length that GET would have.
pub fn without_body(mut response: Response) -> Response {
    use http_body::Body as _;
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}
