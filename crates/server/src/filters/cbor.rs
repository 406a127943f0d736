//! CBOR at the edge (gate CBORServingAndStorage): bodies come in as JSON and answers go out of JSON, so nobody behind
//! these filters knows of it. Two of them, since an answer may be a refusal, and a body is read for those only who may
//! send it.

use super::Layer;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, future};
use http::{HeaderValue, StatusCode};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, UPGRADE};
use http_body_util::BodyExt;
use kubelith_codec::{cbor, json, negotiate};
use kubelith_handlers::{Limits, body};
use kubelith_http::negotiated::accept_of;
use kubelith_http::{Body, BoxError, BoxHandler, Reply, Request, RequestBody, Response, labels, respond};
use kubelith_meta::Status;

const CBOR: &str = "application/cbor";
const SEQUENCE: &str = "application/cbor-seq";
const APPLY: &str = "application/apply-patch+cbor";
const JSON: &str = "application/json";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Document,
    Events,
}

/// Answers in CBOR to who prefers it.
pub fn answers() -> Layer {
    Layer::from_fn("cbor-answers", |mut request, next| {
        let Some(accept) = wanted(&request) else { return next.handle(request) };
        request.headers_mut().insert(ACCEPT, accept);
        // What is compressed cannot be rewritten.
        request.headers_mut().remove(ACCEPT_ENCODING);
        let verb = labels::reported_verb(&request);
        let reply = next.handle(request);
        Reply::pending(async move {
            let response = reply.await;
            let form = match verb == "WATCH" && response.status() == StatusCode::OK {
                true => Form::Events,
                false => Form::Document,
            };
            rewritten(response, form).await
        })
    })
}

/// Takes bodies in CBOR.
pub fn bodies() -> Layer {
    Layer::from_fn("cbor-bodies", |request, next| {
        let content_type = negotiate::parse_media_type(request.header("content-type")).unwrap_or_default();
        let media_type = match content_type.as_ref() {
            CBOR => JSON,
            APPLY => "application/apply-patch+yaml",
            _ => return next.handle(request),
        };
        let next = next.clone();
        Reply::pending(async move { read(request, media_type, next).await })
    })
}

async fn read(mut request: Request, media_type: &'static str, next: BoxHandler) -> Response {
    let sent = std::mem::replace(request.body_mut(), RequestBody::Full(None));
    let limit = Limits::default().body_bytes;
    let text = match body::read(sent, limit).await {
        Ok(sent) if sent.is_empty() => None,
        Ok(sent) => match cbor::decode(&sent) {
            Ok(value) => Some(Bytes::from(json::to_vec(&value))),
            Err(why) => return respond::status(&request, &undecodable(&why, &sent)),
        },
        Err(status) => return respond::status(&request, &status),
    };
    request.headers_mut().remove(CONTENT_LENGTH);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    *request.body_mut() = RequestBody::Full(text);
    next.handle(request).await
}

fn undecodable(why: &dyn std::fmt::Display, sent: &[u8]) -> Status {
    let summary = body::summarize(sent);
    Status::bad_request(format!(
        "the object provided is unrecognized: unable to determine group/version/kind: {why} ({summary})"
    ))
}

/// What to ask for in place of CBOR, if that is what the client likes best of all that we have.
fn wanted(request: &Request) -> Option<HeaderValue> {
    let path = request.uri().path();
    let is_api = ["/api", "/apis"].iter().any(|root| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let accept = accept_of(request.headers());
    if !is_api || !accept.contains("cbor") || request.headers().contains_key(UPGRADE) {
        return None;
    }
    let clauses = negotiate::parse_accept(&accept);
    let known = |kind: &str, subkind: &str| {
        kind == "*" || (kind == "application" && matches!(subkind, "*" | "json" | "yaml" | "cbor" | "vnd.kubernetes.protobuf"))
    };
    let best = clauses.iter().find(|clause| known(clause.kind, clause.subkind))?;
    if best.subkind != "cbor" {
        return None;
    }
    let mut instead = JSON.to_owned();
    for (name, value) in &best.params {
        instead.push_str(&format!(";{name}={value}"));
    }
    HeaderValue::try_from(instead).ok()
}

async fn rewritten(response: Response, form: Form) -> Response {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let Some(params) = content_type.strip_prefix(JSON).filter(|rest| rest.is_empty() || rest.starts_with(';')) else {
        return response;
    };
    let params = params.to_owned();
    let (mut head, body) = response.into_parts();
    let (media_type, body) = match form {
        Form::Events => (SEQUENCE.to_owned(), sequence(body)),
        Form::Document => match document(body).await {
            Ok(body) => (format!("{CBOR}{params}"), body),
            Err(why) => {
                tracing::error!(err = %why, "an answer cannot be written in CBOR");
                (JSON.to_owned(), Body::empty())
            }
        },
    };
    head.headers.remove(CONTENT_LENGTH);
    if let Ok(media_type) = HeaderValue::try_from(media_type) {
        head.headers.insert(CONTENT_TYPE, media_type);
    }
    Response::from_parts(head, body)
}

/// A whole answer. Lists are as large as they are in JSON.
async fn document(body: Body) -> Result<Body, BoxError> {
    let text = body.collect().await?.to_bytes();
    if text.is_empty() {
        return Ok(Body::empty());
    }
    Ok(Body::from(cbor::to_vec(&json::parse(&text)?)))
}

/// Events, of which each is a line.
fn sequence(body: Body) -> Body {
    let mut unread = BytesMut::new();
    let pieces = body.into_data_stream().map(move |piece| {
        unread.extend_from_slice(&piece?);
        let mut out = Vec::new();
        while let Some(end) = unread.iter().position(|b| *b == b'\n') {
            let line = unread.split_to(end + 1);
            out.extend(cbor::to_vec(&json::parse(&line)?));
        }
        Ok(Bytes::from(out))
    });
    // An empty piece would look like the end.
    Body::stream(pieces.filter(|piece| future::ready(!matches!(piece, Ok(piece) if piece.is_empty()))))
}
