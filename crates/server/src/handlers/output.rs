//! Answers: one object, or a Status, in the representation that was negotiated.

use super::context::{Context, accept_of};
use super::views;
use crate::http::{Body, Response};
use crate::table;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use kubelith_codec::negotiate::{self, Format, Output, PlainEndpoint};
use kubelith_codec::{gzip, json, yaml};
use kubelith_meta::{Status, Value};
use kubelith_store::cache::CachedObject;

/// A cached object: its bytes as they are, if that is what the client wants.
pub async fn cached(cx: &Context, output: &Output, object: &CachedObject) -> Result<Response, Status> {
    if output.convert.is_none() && output.format == Format::Json && !cx.pretty() && !output.pretty {
        return Ok(bytes(cx, StatusCode::OK, Format::Json, views::json_of(cx, object).await?));
    }
    if output.convert.is_none() && output.format == Format::Protobuf {
        return Ok(bytes(cx, StatusCode::OK, Format::Protobuf, views::protobuf_of(cx, object).await?));
    }
    value(cx, output, StatusCode::OK, views::value_of(cx, object).await?)
}

/// An object that was written: `json` is what readers get of it, if that is known, and often what the writer wants.
pub fn written(
    cx: &Context,
    output: &Output,
    code: StatusCode,
    object: Value,
    json: Option<Bytes>,
) -> Result<Response, Status> {
    match json.filter(|_| wants_cached_json(cx, output)) {
        Some(json) => Ok(cached_json(cx, code, json)),
        None => value(cx, output, code, object),
    }
}

/// Whether the client wants an object just as it is cached.
pub fn wants_cached_json(cx: &Context, output: &Output) -> bool {
    let is_plain = output.convert.is_none() && output.format == Format::Json && !cx.pretty() && !output.pretty;
    is_plain && cx.endpoint.facet.is_none() && views::has_native_cache(cx)
}

/// An object as it is cached.
pub fn cached_json(cx: &Context, code: StatusCode, json: Bytes) -> Response {
    bytes(cx, code, Format::Json, json)
}

/// An object at the endpoint's version.
pub fn value(cx: &Context, output: &Output, code: StatusCode, object: Value) -> Result<Response, Status> {
    let object = match &output.convert {
        None => object,
        Some(target) => match target.kind.as_str() {
            "Table" => table::of_object(cx, &object, &target.version)?,
            "PartialObjectMetadata" => views::partial_metadata(cx, &object, &target.version),
            // A list of metadata was asked for where there is one object.
            other => return Err(not_a_list(cx, other)),
        },
    };
    if output.format == Format::Protobuf && output.convert.is_none() {
        return Ok(bytes(cx, code, Format::Protobuf, views::protobuf_value(cx, &object)?));
    }
    let body = encode(output.format, &object, cx.pretty() || output.pretty)?;
    Ok(bytes(cx, code, output.format, body))
}

fn not_a_list(cx: &Context, target: &str) -> Status {
    let is_custom = !cx.endpoint.formats.contains(&Format::Protobuf);
    if is_custom && cx.endpoint.facet.is_none() {
        return Status::unknown("content is not a list");
    }
    if is_custom {
        // The scale of a custom resource is of the version that clients see.
        let go_type = format!("{}.{}", cx.endpoint.kind.version, cx.endpoint.kind.kind);
        return wrong_shape(format!("you requested {target}, but the requested object is not a list (*{go_type})"));
    }
    let go_type = format!("{}.{}", super::typed::internal_package(&cx.endpoint.kind), cx.endpoint.kind.kind);
    wrong_shape(format!("you requested {target}, but the requested object is not a list (*{go_type})"))
}

/// 406: one object was asked for and there is a list, or the other way round.
pub fn wrong_shape(message: String) -> Status {
    let mut status = Status::not_acceptable(&[]);
    status.message = message;
    status
}

/// Any document that has a type in the built-in table: Statuses, tables, lists, discovery.
pub fn encode(format: Format, object: &Value, pretty: bool) -> Result<Bytes, Status> {
    Ok(match format {
        Format::Json => json_text(views::object_json(object), pretty),
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

/// A body, compressed if it is large and the client takes that.
pub fn bytes(cx: &Context, code: StatusCode, format: Format, body: Bytes) -> Response {
    let gzipped = gzip::applies(cx.header(http::header::ACCEPT_ENCODING), body.len());
    let body = if gzipped { Bytes::from(gzip::compress(&body)) } else { body };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if gzipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
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
