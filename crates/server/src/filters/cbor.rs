//! CBOR at the edge (gate CBORServingAndStorage): bodies come in as JSON and answers go out of JSON, so nobody behind
//! these filters knows of it. Two of them, since an answer may be a refusal, and a body is read for those only who may
//! send it.

mod words;

use super::Layer;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, future};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use kubelith_codec::{cbor, json, negotiate, yaml};
use kubelith_handlers::{Limits, body};
use kubelith_http::negotiated::{self, accept_of};
use kubelith_http::{Body, BoxError, BoxHandler, Reply, Request, RequestBody, Response, labels, query, respond};
use kubelith_meta::{Status, Value, random};
use words::Read;

const CBOR: &str = "application/cbor";
const SEQUENCE: &str = "application/cbor-seq";
const APPLY: &str = "application/apply-patch+cbor";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// No document, whoever reads it.
const BROKEN: &[u8] = b"{";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Document,
    Events,
}

/// Answers in CBOR to who prefers it. Errors that list media types name it to everybody.
pub fn answers() -> Layer {
    Layer::from_fn("cbor-answers", |mut request, next| {
        let path = request.uri().path().to_owned();
        let Some(accept) = wanted(&request) else {
            let reply = next.handle(request);
            return Reply::pending(async move { named(reply.await, &path) });
        };
        request.headers_mut().insert(ACCEPT, accept);
        // What is compressed cannot be rewritten.
        request.headers_mut().remove(ACCEPT_ENCODING);
        let verb = labels::reported_verb(&request);
        let reply = next.handle(request);
        Reply::pending(async move {
            let response = named(reply.await, &path);
            // Nothing of what was asked for can be had: that is said in JSON.
            if response.status() == StatusCode::NOT_ACCEPTABLE {
                return response;
            }
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
    let read = match (request.method() == Method::DELETE, media_type == JSON) {
        (true, _) => Read::Options,
        (false, true) => Read::Object,
        (false, false) => Read::Applied,
    };
    let sent = std::mem::replace(request.body_mut(), RequestBody::Full(None));
    let sent = match body::read(sent, Limits::default().body_bytes).await {
        Ok(sent) => sent,
        Err(status) => return respond::status(&request, &status),
    };
    let decoded = match sent.is_empty() && read == Read::Options {
        true => Ok(Value::Null),
        false => words::decode(&sent, read),
    };
    let text = match &decoded {
        Ok(Value::Null) => Bytes::new(),
        Ok(value) => Bytes::from(json::to_vec(value)),
        // Who knows the kind refuses it.
        Err(_) => Bytes::from_static(BROKEN),
    };
    let pretty = query::first(request.uri().query(), "pretty");
    let pretty = negotiate::wants_pretty(pretty.as_deref(), request.header("user-agent"));
    let headers = request.headers().clone();
    request.headers_mut().remove(CONTENT_LENGTH);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    *request.body_mut() = RequestBody::Full(Some(text));
    let response = next.handle(request).await;
    if response.status() != StatusCode::BAD_REQUEST {
        return response;
    }
    let message = told(&response).and_then(|said| {
        let message = said.str_at(&["message"]);
        match &decoded {
            Err(why) => words::unreadable(message, why, &body::summarize(&sent), read),
            Ok(value) => words::mistyped(message, value),
        }
    });
    match message {
        Some(message) => negotiated::status(&headers, pretty, &Status::bad_request(message)),
        None => response,
    }
}

/// The text of an answer that is not passed on from elsewhere, and its media type.
fn text_of(response: &Response) -> Option<(&str, &Bytes)> {
    let Body::Full(Some(text)) = response.body() else { return None };
    Some((response.headers().get(CONTENT_TYPE)?.to_str().ok()?, text))
}

/// What a refusal says. One in protobuf is not looked into.
fn told(response: &Response) -> Option<Value> {
    match text_of(response)? {
        (JSON, text) => json::parse(text).ok(),
        (YAML, text) => yaml::read(text).ok().map(|read| read.value),
        _ => None,
    }
}

/// A refusal that lists media types, with those of CBOR.
fn named(response: Response, path: &str) -> Response {
    if !matches!(response.status(), StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE) {
        return response;
    }
    let named = match (text_of(&response), told(&response)) {
        // As text, whose members have an order of their own.
        (Some((JSON, text)), _) => words::named(&String::from_utf8_lossy(text), path).into_bytes(),
        (Some((YAML, _)), Some(mut said)) => {
            let message = words::named(said.str_at(&["message"]), path);
            said.set_at(&["message"], Value::from(message));
            yaml::to_vec(&said)
        }
        _ => return response,
    };
    let (mut head, _) = response.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(Bytes::from(named)))
}

/// What to ask for in place of CBOR, if that is what the client likes best of all that we have.
fn wanted(request: &Request) -> Option<HeaderValue> {
    let path = request.uri().path();
    let is_api = ["/api", "/apis", "/statusz", "/flagz"]
        .iter()
        .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let accept = accept_of(request.headers());
    if !is_api || !accept.contains("cbor") || request.headers().contains_key(UPGRADE) {
        return None;
    }
    let clauses = negotiate::parse_accept(&accept);
    let known = |kind: &str, subkind: &str| {
        kind == "*"
            || (kind == "application" && matches!(subkind, "*" | "json" | "yaml" | "cbor" | "vnd.kubernetes.protobuf"))
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

fn any_order() -> cbor::Order {
    cbor::Order::Turned(random::random_bits() as u64)
}

/// A whole answer. Lists are as large as they are in JSON.
async fn document(body: Body) -> Result<Body, BoxError> {
    let text = body.collect().await?.to_bytes();
    if text.is_empty() {
        return Ok(Body::empty());
    }
    Ok(Body::from(cbor::to_vec(&json::parse(&text)?, any_order())))
}

/// Events, of which each is a line.
fn sequence(body: Body) -> Body {
    let mut unread = BytesMut::new();
    let pieces = body.into_data_stream().map(move |piece| {
        unread.extend_from_slice(&piece?);
        let mut out = Vec::new();
        while let Some(end) = unread.iter().position(|b| *b == b'\n') {
            let line = unread.split_to(end + 1);
            out.extend(cbor::to_vec(&json::parse(&line)?, any_order()));
        }
        Ok(Bytes::from(out))
    });
    // An empty piece would look like the end.
    Body::stream(pieces.filter(|piece| future::ready(!matches!(piece, Ok(piece) if piece.is_empty()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_http::RequestInfo;
    use std::sync::Arc;

    /// Says what it got, in JSON.
    fn echo() -> BoxHandler {
        Arc::new(|request: Request| {
            let accept = request.header("accept").to_owned();
            let content_type = request.header("content-type").to_owned();
            Reply::pending(async move {
                let body = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
                let sent = json::parse(&body).unwrap_or_default();
                let said =
                    Value::from([("accept", Value::from(accept)), ("type", content_type.into()), ("body", sent)]);
                let line = [json::to_vec(&said), b"\n".to_vec()].concat();
                respond::json(StatusCode::OK, line)
            })
        })
    }

    async fn ask(path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (String, Bytes) {
        let mut request = http::Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = RequestBody::Full(Some(body.into()));
        let mut request = Request::from(request.body(body).unwrap());
        let info = RequestInfo::parse(request.method(), path, request.uri()).unwrap();
        request.context_mut().info = Some(Arc::new(info));
        let response = answers().wrap(bodies().wrap(echo())).handle(request).await;
        let media_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        (media_type, response.into_body().collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn nobody_behind_knows_of_it() {
        let sent = cbor::to_vec(&json::parse(br#"{"kind":"X"}"#).unwrap(), cbor::Order::Sorted);
        for (path, accept, content_type, want) in [
            ("/api/v1/pods", "application/cbor", CBOR, (CBOR, JSON, JSON)),
            ("/api/v1/pods", "application/json", CBOR, (JSON, "application/json", JSON)),
            (
                "/api/v1/pods",
                "application/cbor;as=T;v=v1, */*",
                APPLY,
                (CBOR, "application/json;as=T;v=v1", "application/apply-patch+yaml"),
            ),
            (
                "/api/v1/pods",
                "application/json, application/cbor",
                CBOR,
                (JSON, "application/json, application/cbor", JSON),
            ),
            ("/openapi/v2", "application/cbor", CBOR, (JSON, "application/cbor", JSON)),
        ] {
            let (media_type, body) =
                ask(path, &[("accept", accept), ("content-type", content_type)], sent.clone()).await;
            let said = if media_type == CBOR { cbor::decode(&body) } else { json::parse(&body) }.unwrap();
            assert_eq!(
                (media_type.as_str(), said.str_at(&["accept"]), said.str_at(&["type"])),
                want,
                "{path} {accept}"
            );
            assert_eq!(said.str_at(&["body", "kind"]), "X");
        }
    }
}
