//! DELETE of one object or of a collection.

use super::context::Context;
use super::options::{self, ListOptions};
use super::{body, list, output, views};
use crate::http::{RequestBody, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use kubelith_codec::json::Strictness;
use kubelith_codec::negotiate;
use kubelith_meta::{GroupVersionKind, Status, Str, Value};
use kubelith_registry::{DeleteOptions, DeleteOutcome, Mode};
use std::sync::Arc;

pub async fn delete(cx: Arc<Context>, request: RequestBody) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    let (options, mode, object) = read_options(&cx, request).await?;
    let call = cx.call(mode);
    let result = {
        let (cx, call) = (cx.clone(), call.clone());
        super::run_to_end(async move {
            let resource = &cx.endpoint.resource;
            let result = resource.delete(&call, &options, Some(&object)).await?;
            Ok((cx.to_request_version(result.object).await?, result.outcome))
        })
        .await?
    };
    let (object, outcome) = result;
    let returns_object = cx.endpoint.resource.strategy.delete_returns_object();
    // A pending deletion of an object that only waits for the garbage collector's finalizers is "accepted"
    // only where the client asked for orphans the old way; everything else is 200.
    if returns_object || outcome == DeleteOutcome::Pending {
        return output::value(&cx, &negotiated, StatusCode::OK, object);
    }
    let status = Status::deleted(&call.resource, &call.name, object.str_at(&["metadata", "uid"]));
    Ok(output::status(&cx.headers, cx.pretty(), &status))
}

pub async fn delete_collection(cx: Arc<Context>, request: RequestBody) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    let list_options = ListOptions::parse(&cx.query)?;
    let (options, mode, object) = read_options(&cx, request).await?;
    let page = list::find(&cx, &list_options).await?;
    let found = page.objects();
    let mut call = cx.call(mode);

    let deleted = {
        let cx = cx.clone();
        super::run_to_end(async move {
            let mut values = Vec::with_capacity(found.len());
            for cached in found {
                values.push(views::value_of(&cx, &cached).await?);
                call.name = Str::from(cached.name());
                if cx.endpoint.resource.namespaced() {
                    call.namespace = Str::from(cached.namespace());
                }
                match cx.endpoint.resource.delete(&call, &options, Some(&object)).await {
                    Err(status) if !status.is_not_found() => return Err(status),
                    _ => {}
                }
            }
            Ok(values)
        })
        .await?
    };
    let list = list::list_value(&cx, &negotiated, deleted, page.meta())?;
    let body = output::encode(negotiated.format, &list, cx.pretty())?;
    Ok(output::bytes(&cx, StatusCode::OK, negotiated.format, body))
}

/// Options come from the body if there is one, else from the query.
async fn read_options(cx: &Context, request: RequestBody) -> Result<(DeleteOptions, Mode, Value), Status> {
    let bytes = body::read(request, cx.endpoint.limits.body_bytes).await?;
    if bytes.is_empty() {
        return options::delete_options(None, &cx.query);
    }
    let format =
        negotiate::input(cx.header(CONTENT_TYPE), negotiate::BUILT_IN).map_err(super::context::negotiation_error)?;
    let object = decode_options(cx, &bytes, format)?;
    options::delete_options(Some(&object), &cx.query)
}

/// DeleteOptions may be given at any version that has them.
fn decode_options(cx: &Context, bytes: &[u8], format: negotiate::Format) -> Result<Value, Status> {
    let kind = GroupVersionKind::new(cx.endpoint.kind.group.clone(), cx.endpoint.kind.version.clone(), "DeleteOptions");
    super::typed::decode_builtin(bytes, format, Strictness::Lenient, &kind).map(|d| d.object)
}
