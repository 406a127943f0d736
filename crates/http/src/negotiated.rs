//! Documents and errors in the representation that was negotiated, and the errors of negotiating and routing.

use crate::message::{Body, Response};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use kubelith_codec::negotiate::{self, Format, PlainEndpoint, RouteError};
use kubelith_codec::object::answer_json;
use kubelith_codec::{json, yaml};
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::{GroupResource, Status, Value};
use std::borrow::Cow;

/// All Accept headers as one.
pub fn accept_of(headers: &HeaderMap) -> Cow<'_, str> {
    let mut all = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok());
    let first = all.next().unwrap_or("");
    all.fold(Cow::Borrowed(first), |accept, next| Cow::Owned(format!("{accept},{next}")))
}

pub fn negotiation_error(error: negotiate::NegotiationError) -> Status {
    match error {
        negotiate::NegotiationError::NotAcceptable(types) => Status::not_acceptable(&types),
        negotiate::NegotiationError::UnsupportedMediaType(types) => Status::unsupported_media_type(&types),
    }
}

pub fn route_error(error: RouteError) -> Status {
    let code = match error {
        RouteError::NotAcceptable(_) => 406,
        RouteError::UnsupportedMediaType => 415,
    };
    generic(code, &error.to_string())
}

/// An error of routing, which knows no resource yet.
fn generic(code: u16, text: &str) -> Status {
    Status::from(ForeignResponse {
        code,
        method: "",
        resource: GroupResource::default(),
        name: "",
        body: text,
        retry_after_seconds: 0,
        unexpected: false,
    })
}

pub fn no_such_resource() -> Status {
    generic(404, "404: Page Not Found")
}

pub fn no_such_method() -> Status {
    generic(405, "405: Method Not Allowed")
}

/// Any document that has a type in the built-in table: Statuses, tables, lists, discovery.
pub fn encode(format: Format, object: &Value, pretty: bool) -> Result<Bytes, Status> {
    Ok(match format {
        Format::Json => json_text(answer_json(object), pretty),
        Format::Yaml => yaml::to_vec(object).into(),
        Format::Protobuf => {
            let kind = kind_of(object);
            let types = kubelith_catalog::builtin();
            let schema = types
                .kind_schema(&kind)
                .ok_or_else(|| Status::internal_error(format!("{kind} has no protobuf form")))?;
            kubelith_codec::proto::to_vec(object, &schema).map_err(Status::internal_error)?.into()
        }
        Format::Text => Bytes::from(object.as_str().unwrap_or_default().to_owned()),
    })
}

fn json_text(compact: Vec<u8>, pretty: bool) -> Bytes {
    if !pretty {
        return compact.into();
    }
    let mut out = Vec::with_capacity(2 * compact.len());
    json::reindent(&mut out, &compact);
    out.push(b'\n');
    out.into()
}

fn kind_of(object: &Value) -> kubelith_meta::GroupVersionKind {
    // The core group's discovery documents do not say their version.
    let version = Some(object.str_at(&["apiVersion"])).filter(|v| !v.is_empty()).unwrap_or("v1");
    let version = kubelith_meta::GroupVersion::parse(version).unwrap_or_default();
    version.with_kind(object.str_at(&["kind"]))
}

/// In an answer's extensions if no route took the request: such requests are not counted.
#[derive(Debug, Clone, Copy)]
pub struct NotRouted;

/// Marks an answer of who looked for a route and found none.
pub fn not_routed(mut response: Response) -> Response {
    response.extensions_mut().insert(NotRouted);
    response
}

/// A Status in the representation the client asked for; JSON if it asked for none that we have.
pub fn status(headers: &HeaderMap, pretty: bool, status: &Status) -> Response {
    let negotiated = negotiate::output(&accept_of(headers), negotiate::BUILT_IN, &PlainEndpoint);
    // Who asks for something else gets JSON to be read by people.
    let pretty = pretty || negotiated.is_err();
    let format = negotiated.map_or(Format::Json, |o| o.format);
    // Its members have an order of their own.
    let body = match format {
        Format::Json => json_text(status.to_json().into_bytes(), pretty),
        _ => encode(format, &status.to_value(), pretty).unwrap_or_else(|_| status.to_json().into()),
    };
    let mut response = Response::new(Body::from(body));
    let code = if status.code == 0 && status.is_success() { 200 } else { status.code };
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if let Some(seconds) = status.retry_after_seconds().filter(|s| *s > 0) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_printed_in_its_order() {
        let error = Status::not_found(&kubelith_meta::GroupResource::new("", "pods"), "p");
        for (pretty, begin) in [
            (false, r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#),
            (
                true,
                "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"pods",
            ),
        ] {
            let Body::Full(Some(body)) = status(&HeaderMap::new(), pretty, &error).into_body() else {
                panic!("a body")
            };
            assert!(body.starts_with(begin.as_bytes()), "{body:?}");
        }
    }
}
