//! Objects as clients of one version see them: cached bytes where they are that already, other forms made once.

use super::context::Context;
use super::subresource_view::SubresourceView;
use crate::cells::Cells;
use bytes::Bytes;
pub use kubelith_codec::object::{object_json, type_prefix};
use kubelith_codec::{json, proto};
use kubelith_meta::{Map, Status, Value};
use kubelith_store::cache::{CachedObject, Form};

/// Whether objects are cached at the endpoint's version, unless they were written in another.
pub fn has_native_cache(cx: &Context) -> bool {
    *cx.endpoint.resource.cached_kind() == cx.endpoint.kind
}

/// Whether the cached JSON is what the endpoint shows of the object.
pub fn is_native(cx: &Context, cached: &CachedObject) -> bool {
    !cached.is_foreign && has_native_cache(cx)
}

/// The object as JSON in the endpoint's version. For one of many: an object that is packed remains so.
pub async fn json_of(cx: &Context, cached: &CachedObject) -> Result<Bytes, Status> {
    cx.endpoint.resource.readable(cached)?;
    if is_native(cx, cached) {
        return Ok(cached.json_once());
    }
    let (kind, generation) = (&cx.endpoint.kind, cx.endpoint.resource.conversion.generation());
    if let Some(bytes) = cached.form(Form::Json, kind, generation) {
        return Ok(bytes);
    }
    let object = json::parse_stored(&cached.json_once()).map_err(Status::internal_error)?;
    let object = cx.endpoint.resource.convert(object, kind).await?;
    Ok(cached.keep_form(Form::Json, kind, generation, object_json(&object).into()))
}

/// The object as a value in the endpoint's version.
pub async fn value_of(cx: &Context, cached: &CachedObject) -> Result<Value, Status> {
    json::parse_stored(&json_of(cx, cached).await?).map_err(Status::internal_error)
}

/// What the endpoint's view shows of the object.
pub async fn view_of(cx: &Context, cached: &CachedObject, view: &dyn SubresourceView) -> Result<Value, Status> {
    cx.endpoint.resource.readable(cached)?;
    let object = json::parse(&cached.json()).map_err(Status::internal_error)?;
    view.read(&cx.to_request_version(object).await?)
}

/// The object as enveloped protobuf.
pub async fn protobuf_of(cx: &Context, cached: &CachedObject) -> Result<Bytes, Status> {
    let (kind, generation) = (&cx.endpoint.kind, cx.endpoint.resource.conversion.generation());
    if let Some(bytes) = cached.form(Form::Protobuf, kind, generation) {
        return Ok(bytes);
    }
    let json = json_of(cx, cached).await?;
    let bytes = match proto::from_json(&json, cx.endpoint.schema()) {
        Some(bytes) => bytes.into(),
        None => protobuf_value(cx, &json::parse_stored(&json).map_err(Status::internal_error)?)?,
    };
    Ok(cached.keep_form(Form::Protobuf, kind, generation, bytes))
}

pub fn protobuf_value(cx: &Context, object: &Value) -> Result<Bytes, Status> {
    let encoded = proto::to_vec(object, cx.endpoint.schema());
    encoded.map(Bytes::from).map_err(Status::internal_error)
}

/// kind, apiVersion and metadata, and nothing else.
pub fn partial_metadata(cx: &Context, object: &Value, version: &str) -> Value {
    metadata_of(&*cx.endpoint.cells, object, version)
}

/// The same, of an object that no endpoint has.
pub fn metadata_of(cells: &dyn Cells, object: &Value, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(Value::object);
    for name in cells.field_annotations(object) {
        metadata.remove_at(&["annotations", name]);
    }
    if metadata.get("annotations").is_some_and(Value::is_empty) {
        metadata.remove_at(&["annotations"]);
    }
    as_partial(metadata, version)
}

/// An object of which there is metadata alone.
pub fn as_partial(metadata: Value, version: &str) -> Value {
    let mut partial = Map::new();
    partial.insert("apiVersion", format!("meta.k8s.io/{version}"));
    partial.insert("kind", "PartialObjectMetadata");
    partial.insert("metadata", metadata);
    Value::Object(partial)
}
