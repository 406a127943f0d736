//! Answers: one object in the representation that was negotiated.

use super::context::Context;
use super::views;
use crate::table;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, StatusCode};
use kubelith_codec::gzip;
use kubelith_codec::negotiate::{Format, Output};
use kubelith_http::negotiated::encode;
use kubelith_http::{Body, Response};
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_store::cache::CachedObject;

/// A cached object: its bytes as they are, if that is what the client wants.
pub async fn cached(cx: &Context, output: &Output, object: &CachedObject) -> Result<Response, Status> {
    if output.convert.is_none() && output.format == Format::Json && !cx.pretty() && !output.pretty {
        let json = match object.broken.is_none() && views::is_native(cx, object) {
            true => object.json(),
            false => views::json_of(cx, object).await?,
        };
        return Ok(bytes(cx, StatusCode::OK, Format::Json, json));
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
    is_plain && cx.endpoint.view.is_none() && views::has_native_cache(cx)
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
    if is_custom && cx.endpoint.view.is_none() {
        return Status::unknown("content is not a list");
    }
    if is_custom {
        // The scale of a custom resource is of the version that clients see.
        let go_type = format!("{}.{}", cx.endpoint.kind.version, cx.endpoint.kind.kind);
        return wrong_shape(format!("you requested {target}, but the requested object is not a list (*{go_type})"));
    }
    no_list_of(&cx.endpoint.kind, target)
}

/// The refusal to show an object of a built-in kind as a list.
pub fn no_list_of(kind: &GroupVersionKind, target: &str) -> Status {
    let go_type = format!("{}.{}", super::typed::internal_package(kind), kind.kind);
    wrong_shape(format!("you requested {target}, but the requested object is not a list (*{go_type})"))
}

/// 406: one object was asked for and there is a list, or the other way round.
pub fn wrong_shape(message: String) -> Status {
    let mut status = Status::not_acceptable(&[]);
    status.message = message;
    status
}

/// A body, compressed if it is large and the client takes that.
pub fn bytes(cx: &Context, code: StatusCode, format: Format, body: Bytes) -> Response {
    let gzipped = cx.endpoint.limits.compresses && gzip::applies(cx.header(http::header::ACCEPT_ENCODING), body.len());
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
