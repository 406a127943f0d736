//! The link of the chain that serves the page and opens and ends sessions. It stands before authentication: who opens the page is
//! nobody yet. Nothing below `/console` goes further.

use crate::PATH;
use crate::assets::{self, Asset};
use crate::session::{HEADER, LINK_SECONDS, Opened, Sessions, is_same_origin};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION};
use http::header::{ALLOW, SET_COOKIE, VARY};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubelith_http::{Reply, Request, Response, respond};
use kubelith_meta::Status;
use kubelith_server::filters::Layer;
use serde::Deserialize;
use std::sync::Arc;

/// Of a request to sign in.
const MAX_BODY: usize = 4096;

/// Nothing but our own files, no frames around it, nothing of the address to others; markup that is made of texts is refused.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=()"),
];

pub fn layer(sessions: Arc<Sessions>) -> Layer {
    Layer::from_fn("console", move |request, next| {
        let path = request.info().path.as_str();
        let Some(below) = path.strip_prefix("/console") else { return next.handle(request) };
        let reply = match below {
            "" => Reply::Ready(redirect()),
            "/session" => {
                let sessions = sessions.clone();
                Reply::pending(async move { session(&sessions, request).await })
            }
            _ if below.starts_with('/') => Reply::Ready(file(&request, &below[1..])),
            // `/consoles` is not ours.
            _ => return next.handle(request),
        };
        reply.map(|mut response| {
            for (name, value) in HEADERS {
                response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            response
        })
    })
}

fn redirect() -> Response {
    let mut response = respond::text(StatusCode::PERMANENT_REDIRECT, Bytes::new());
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PATH));
    response
}

fn file(request: &Request, name: &str) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let Some(asset) = assets::find(name) else { return respond::not_found() };
    let mut response = match request.header(IF_NONE_MATCH.as_str()).contains(&asset.etag) {
        true => respond::text(StatusCode::NOT_MODIFIED, Bytes::new()),
        false => content(request, asset),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(etag) = HeaderValue::try_from(&asset.etag) {
        headers.insert(ETAG, etag);
    }
    match *request.method() {
        Method::HEAD => respond::without_body(response),
        _ => response,
    }
}

fn content(request: &Request, asset: &Asset) -> Response {
    if !request.header(ACCEPT_ENCODING.as_str()).contains("gzip") {
        return respond::text(StatusCode::OK, Bytes::from_static(asset.content));
    }
    let mut response = respond::text(StatusCode::OK, asset.packed.clone());
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// What the page sends to sign in by a link.
#[derive(Deserialize)]
struct SignIn {
    code: String,
}

async fn session(sessions: &Sessions, request: Request) -> Response {
    // No form and no image can send this header, and no other origin may: CORS has nothing to do with these paths.
    if !request.headers().contains_key(HEADER) || !is_same_origin(request.headers()) {
        let why = "requests for sessions need the header X-Kubelith-Console, and come from the console itself";
        return respond::status_json(&Status::bad_request(why));
    }
    match *request.method() {
        Method::POST => {
            let headers = request.headers().clone();
            let body = Limited::new(request.into_body(), MAX_BODY).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            let Ok(SignIn { code }) = serde_json::from_slice(&body) else {
                return respond::status_json(&Status::bad_request("the body is not {\"code\": \"…\"}"));
            };
            match sessions.open(&code, &headers) {
                Some(opened) => welcome(opened),
                None => respond::status_json(&Status::unauthorized(&format!(
                    "the link is not valid: links are good once, for {} minutes. `kubectl create --raw /kubelith/v1/links -f \
                     /dev/null` makes another",
                    LINK_SECONDS / 60
                ))),
            }
        }
        Method::DELETE => {
            let mut response = respond::json(StatusCode::OK, "{}\n");
            if let Some(cookie) = sessions.close(request.headers()) {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            response
        }
        _ => not_allowed("POST, DELETE"),
    }
}

fn welcome(opened: Opened) -> Response {
    tracing::info!(user = %opened.user.name, "A session of the console began");
    let body = serde_json::json!({ "key": opened.key, "user": opened.user.name.as_str() });
    let mut response = respond::json(StatusCode::CREATED, body.to_string() + "\n");
    response.headers_mut().insert(SET_COOKIE, opened.cookie);
    response
}

fn not_allowed(allowed: &'static str) -> Response {
    let mut response = respond::error_text(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
