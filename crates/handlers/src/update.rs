//! PUT of a whole object, or of its status.

use super::body;
use super::context::Context;
use super::create::{Owners, dedup_owners};
use super::fields::Ownership;
use super::options::{Write, WriteOptions};
use super::output;
use futures::future::BoxFuture;
use http::StatusCode;
use kubelith_http::{RequestBody, Response};
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::{Call, Change, IfAbsent, Judged, Outcome, Preconditions, Working};
use std::sync::Arc;

pub async fn update(cx: Arc<Context>, body: RequestBody) -> Result<Response, Status> {
    cx.ensure_named()?;
    let negotiated = cx.negotiate()?;
    let bytes = body::read(body, cx.endpoint.limits.body_bytes).await?;
    let options = WriteOptions::parse(&cx.query, Write::Update)?;
    let mut object = cx.decode(&bytes, cx.input_format()?, options.field_validation)?;
    let call = cx.call(options.mode);
    cx.endpoint.resource.ensure_namespace(&call, &mut object.value)?;
    check_name(&call, &object.value)?;
    cx.complete(&mut object);
    cx.audit_request(&object.value);

    let task = {
        let cx = cx.clone();
        async move {
            let ownership = Ownership::Kept;
            let mut change = Replace { cx: &cx, call: &call, object, options: &options, ownership };
            let resource = &cx.endpoint.resource;
            let mut done = resource.update(&call, &mut change, IfAbsent::Strategy, Some(&options.object)).await;
            if done.as_ref().is_err_and(Ownership::is_too_much) {
                change.ownership = Ownership::Dropped;
                done = resource.update(&call, &mut change, IfAbsent::Strategy, Some(&options.object)).await;
            }
            let updated = done?;
            Ok((cx.answer(updated.object).await?, updated.json, updated.outcome))
        }
    };
    let (object, json, outcome) = super::run_to_end(cx.late.clone(), task).await?;
    output::written(&cx, &negotiated, code_of(outcome), object, json)
}

pub fn code_of(outcome: Outcome) -> StatusCode {
    match outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Updated | Outcome::Deleted => StatusCode::OK,
    }
}

/// The name in the body is the name in the URL.
pub fn check_name(call: &Call, object: &Value) -> Result<(), Status> {
    let name = object.str_at(&["metadata", "name"]);
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    Ok(())
}

struct Replace<'a> {
    cx: &'a Context,
    call: &'a Call,
    /// At the request's version, as the client sent it.
    object: Working,
    options: &'a WriteOptions,
    ownership: Ownership,
}

impl Change for Replace<'_> {
    fn preconditions(&self) -> Preconditions {
        let uid = self.object.value.str_at(&["metadata", "uid"]);
        Preconditions { uid: (!uid.is_empty()).then(|| Str::from(uid)), resource_version: None }
    }

    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut object = self.object.clone();
            dedup_owners(self.cx, &mut object.value, Owners::AsSent);
            let target = match existing {
                Some(existing) => Some(self.cx.write_target(existing).await?),
                None => None,
            };
            let live = target.as_ref().map(|target| &*target.live);
            let mut object = self.cx.track(live, object, self.options).value;
            self.ownership.settle(&mut object);
            let mut object = self.cx.admit(self.call, object, existing, target, &self.options.object).await?;
            dedup_owners(self.cx, &mut object, Owners::AsAdmitted);
            Ok(object)
        })
    }

    fn may_create(&mut self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(self.cx.authorize_create())
    }

    fn judged(&self, object: &Value, old: &Value) -> Result<Judged, Status> {
        self.cx.judged(object, old)
    }
}
