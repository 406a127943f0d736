//! POST of a new object.

use super::body;
use super::context::Context;
use super::fields::Ownership;
use super::options::{Write, WriteOptions};
use super::output;
use http::StatusCode;
use kubelith_http::{RequestBody, Response};
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Created, Wanted};
use std::sync::Arc;

/// Objects that may be too much for the store together with their managedFields (etcd takes 1.5 MiB) come in bodies
/// larger than this.
const LARGE: usize = 256 << 10;

pub async fn create(cx: Arc<Context>, body: RequestBody) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    let format = cx.input_format()?;
    let bytes = body::read(body, cx.endpoint.limits.body_bytes).await?;
    let options = WriteOptions::parse(&cx.query, Write::Create)?;
    let mut object = cx.decode(&bytes, format, options.field_validation)?;
    let is_large = bytes.len() > LARGE;
    drop(bytes);
    let mut call = cx.call(options.mode);
    call.name = Str::from(object.value.str_at(&["metadata", "name"]));
    cx.complete(&mut object);
    cx.audit_request(&object.value);
    check_metadata(&cx, &call, &mut object.value)?;

    let wanted = if output::wants_cached_json(&cx, &negotiated) { Wanted::Json } else { Wanted::Object };

    // From here on the write runs to its end, whether or not the client waits for it.
    let task = {
        let cx = cx.clone();
        async move {
            let mut object = cx.track(None, object, &options);
            if cx.endpoint.is_as_stored() {
                object.seal();
            }
            let object = object.value;
            let spare = is_large.then(|| object.clone());
            let created = match (create_object(&cx, &call, object, &options.object, wanted).await, spare) {
                (Err(status), Some(mut object)) if Ownership::is_too_much(&status) => {
                    Ownership::Dropped.settle(&mut object);
                    create_object(&cx, &call, object, &options.object, wanted).await?
                }
                (done, _) => done?,
            };
            Ok(match created {
                Created::Object(object) => Created::Object(cx.to_request_version(object).await?),
                json @ Created::Json(_) => json,
            })
        }
    };
    match super::run_to_end(cx.late.clone(), task).await? {
        Created::Json(json) => Ok(output::cached_json(&cx, StatusCode::CREATED, json)),
        Created::Object(object) => output::value(&cx, &negotiated, StatusCode::CREATED, object),
    }
}

/// Mutating admission and the registry, for an object at the request's version.
async fn create_object(
    cx: &Context,
    call: &Call,
    object: Value,
    options: &Value,
    wanted: Wanted,
) -> Result<Created, Status> {
    let resource = &cx.endpoint.resource;
    let mut object = resource.convert(object, &resource.working_kind(call)).await?;
    let request = resource.asks(call, Operation::Create, None, Some(options));
    resource.admission.admit(request, &mut object).await?;
    dedup_owners(cx, &mut object, Owners::AsAdmitted);
    resource.create(call, object, Some(options), wanted).await
}

/// The namespace of the object is the request's.
fn check_metadata(cx: &Context, call: &Call, object: &mut Value) -> Result<(), Status> {
    let resource = &cx.endpoint.resource;
    wipe_system_metadata(object);
    resource.ensure_namespace(call, object)?;
    dedup_owners(cx, object, Owners::AsSent);
    Ok(())
}

/// What the server alone says of an object is no part of what a client creates, and not owned by it.
fn wipe_system_metadata(object: &mut Value) {
    let Some(Value::Object(meta)) = object.make_object().get_mut("metadata") else { return };
    for name in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta.remove(name);
    }
}

/// When owner references are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    AsSent,
    /// By mutating admission; also what a patch made, which is looked at then only.
    AsAdmitted,
}

/// Owner references that occur twice are kept once, with a warning.
pub fn dedup_owners(cx: &Context, object: &mut Value, owners: Owners) {
    let Some(list) = object.at_mut(&["metadata", "ownerReferences"]).and_then(Value::as_array_mut) else { return };
    let is_unique = |(i, owner): (usize, &Value)| !list[..i].contains(owner);
    if list.iter().enumerate().all(is_unique) {
        return;
    }
    let mut kept: Vec<Value> = Vec::with_capacity(list.len());
    let mut repeated: Vec<Str> = Vec::new();
    for owner in list.drain(..) {
        if kept.contains(&owner) {
            repeated.push(Str::from(owner.str_at(&["uid"])));
        } else {
            kept.push(owner);
        }
    }
    *list = kept;
    let when = match owners {
        Owners::AsSent => "",
        Owners::AsAdmitted => " after mutating admission happens",
    };
    cx.warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        repeated.join(", ")
    ));
}
