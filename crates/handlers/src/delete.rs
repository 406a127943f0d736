//! DELETE of one object or of a collection.

use super::context::Context;
use super::options::{self, ListOptions};
use super::selection::Selection;
use super::{body, list, output, views};
use futures::{StreamExt, TryStreamExt};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::negotiate::{self, Format};
use kubelith_codec::{proto, typed, yaml};
use kubelith_http::{RequestBody, Response, negotiated};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupVersionKind, Status, Str, Value};
use kubelith_registry::{Call, DeleteBy, DeleteOptions, DeleteOutcome, Mode};
use kubelith_store::cache::CachedObject;
use std::sync::Arc;

pub async fn delete(cx: Arc<Context>, request: RequestBody) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    let (options, mode, object) = read_options(&cx, request).await?;
    let call = cx.call(mode);
    if options.ignore_read_error {
        authorize_unsafe(&cx).await?;
    }
    let orphan = options.orphan_dependents;
    let result = {
        let (cx, call) = (cx.clone(), call.clone());
        super::run_to_end(cx.late.clone(), async move {
            let resource = &cx.endpoint.resource;
            let result = resource.delete(&call, &options, DeleteBy::Client(&object)).await?;
            let object = match result.object {
                Value::Null => Value::Null,
                object => cx.to_request_version(object).await?,
            };
            Ok((object, result.outcome))
        })
        .await?
    };
    let (object, outcome) = result;
    if object.is_null() {
        let status = Status::deleted_unseen(&cx.endpoint.kind.kind, &call.name);
        return Ok(negotiated::status(&cx.headers, cx.pretty(), &status));
    }
    let returns_object = cx.endpoint.resource.strategy.delete_returns_object();
    // 202 only where the client asked for a cascading deletion in the old words, and it is under way.
    if returns_object || outcome == DeleteOutcome::Pending {
        let waits = outcome == DeleteOutcome::Pending && orphan == Some(false);
        let code = if waits { StatusCode::ACCEPTED } else { StatusCode::OK };
        return output::value(&cx, &negotiated, code, object);
    }
    let status = Status::deleted(&call.resource, &call.name, object.str_at(&["metadata", "uid"]));
    Ok(negotiated::status(&cx.headers, cx.pretty(), &status))
}

pub async fn delete_collection(cx: Arc<Context>, request: RequestBody) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    let mut list_options = ListOptions::parse(&cx.query, cx.endpoint.limits.initial_events)?;
    list_options.read_in_pages();
    // A selector of fields that the kind does not have is told before anything about the body.
    Selection::new(&cx, &list_options)?;
    let (options, mode, object) = read_options(&cx, request).await?;
    if options.ignore_read_error {
        return Err(options::not_for_collections());
    }
    let page = list::find(&cx, &list_options).await?;
    let found = page.objects();
    let call = cx.call(mode);

    {
        let cx = cx.clone();
        super::run_to_end(cx.late.clone(), async move {
            let workers = cx.endpoint.limits.delete_collection_workers.max(1);
            let shared = Arc::new((call, options, object));
            let deletions = futures::stream::iter(found).map(move |cached| {
                let (cx, shared) = (cx.clone(), shared.clone());
                async move { delete_one(&cx, &shared.0, &cached, &shared.1, &shared.2).await }
            });
            // In the order of the list, whoever is done first.
            deletions.buffered(workers).try_collect::<()>().await
        })
        .await?;
    }
    // They are answered as they were, which is what the page has. No copy is made of them: whoever empties a collection may do so
    // because there is no memory left.
    list::answer(&cx, &negotiated, page).await
}

/// To delete what cannot be read takes a permission of its own.
async fn authorize_unsafe(cx: &Context) -> Result<(), Status> {
    const VERB: &str = "unsafe-delete-ignore-read-errors";
    let resource = cx.endpoint.resource.descriptor.group_resource();
    let refuse = |why: String| Status::forbidden(&resource, &cx.info.name, why);
    if !cx.info.subresource.is_empty() {
        let option = options::IGNORE_READ_ERROR;
        return Err(refuse(format!("{option} delete option is not allowed on a subresource or non-resource request")));
    }
    match cx.decide(VERB).await {
        Some((decision, _)) if decision.allowed() => Ok(()),
        Some((decision, _)) => Err(refuse(match decision.error {
            Some(why) => format!("error while checking permission for \"{VERB}\", {why}"),
            None => format!("not permitted to do \"{VERB}\", reason: {}", decision.reason),
        })),
        None => Err(refuse(format!("error while checking permission for \"{VERB}\""))),
    }
}

/// Deletes an object of a collection, unless it cannot be shown in the version asked for. One that is gone meanwhile is as good.
async fn delete_one(
    cx: &Context,
    call: &Call,
    cached: &CachedObject,
    options: &DeleteOptions,
    object: &Value,
) -> Result<(), Status> {
    views::json_of(cx, cached).await?;
    let resource = &cx.endpoint.resource;
    let namespace = if resource.namespaced() { Str::from(cached.namespace()) } else { call.namespace.clone() };
    let call = Call { name: cached.name().into(), namespace, ..call.clone() };
    match resource.delete(&call, options, DeleteBy::Collector(object)).await {
        Err(status) if !status.is_not_found() => Err(status),
        _ => Ok(()),
    }
}

/// Options come from the body if there is one, else from the query.
async fn read_options(cx: &Context, request: RequestBody) -> Result<(DeleteOptions, Mode, Value), Status> {
    let bytes = body::read(request, cx.endpoint.limits.body_bytes).await?;
    let malformed = cx.endpoint.resource.hub.malformed();
    if bytes.is_empty() {
        return options::delete_options(None, &cx.query, malformed);
    }
    let format =
        negotiate::input(cx.header(CONTENT_TYPE), negotiate::BUILT_IN).map_err(negotiated::negotiation_error)?;
    let object = decode_options(&bytes, format)?;
    if let Some(audit) = &cx.audit {
        // The reference writes options down as it holds them, at no version that exists.
        let mut shown = object.clone();
        shown.set_at(&["apiVersion"], "meta.k8s.io/__internal".into());
        shown.set_at(&["kind"], "DeleteOptions".into());
        audit.request_object(&shown);
    }
    options::delete_options(Some(&object), &cx.query, malformed)
}

/// DeleteOptions are read at any version of any group, and mistakes are answered without the words that other
/// bodies get.
fn decode_options(bytes: &[u8], format: negotiate::Format) -> Result<Value, Status> {
    let kind = GroupVersionKind::new("meta.k8s.io", "v1", "DeleteOptions");
    let bad = |e: &dyn std::fmt::Display| Status::bad_request(e.to_string());
    let schema = kubelith_catalog::builtin().type_schema("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    let schema = schema.ok_or_else(|| Status::internal_error("DeleteOptions has no type"))?;
    let check = |given: &GroupVersionKind| {
        if given.kind == kind.kind {
            return Ok(());
        }
        let (name, version) = (quote(&given.kind), quote(&given.group_version().to_string()));
        let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
        Err(Status::bad_request(format!("no kind {name} is registered for version {version} in scheme \"{scheme}\"")))
    };
    let json_text;
    let text = match format {
        Format::Protobuf => {
            let envelope = proto::Envelope::read(bytes).map_err(|e| bad(&e))?;
            check(&envelope.type_meta.with_defaults(&kind).map_err(|e| bad(&e))?)?;
            return proto::decode(envelope.raw, &schema).map_err(|e| bad(&e));
        }
        Format::Yaml => {
            json_text = json::to_vec(&yaml::read(bytes).map_err(|e| bad(&e))?.value);
            &json_text
        }
        Format::Json | Format::Text => bytes,
    };
    check(&json::type_meta(text).and_then(|m| m.with_defaults(&kind)).map_err(|e| bad(&e))?)?;
    typed::decode(text, &schema, Strictness::Lenient).map(|d| d.value).map_err(|e| bad(&e))
}
