//! What is done to pods beside reading and writing them.

mod binding;
mod conditions;
mod eviction;

pub use binding::Bind;
pub use eviction::Evict;

use kubelith_handlers::api::ActionCall;
use kubelith_handlers::options::WriteOptions;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Resource};
use std::sync::Arc;

/// The creation of an object that is never stored, but does something to a pod.
struct Deed {
    /// The pod that the request is about.
    call: Call,
    object: Value,
    options: WriteOptions,
    /// Of the object, as admission is told.
    kind: GroupVersionKind,
}

impl Deed {
    /// Reads the request. `kinds` are what its body may be, the usual one first.
    async fn read(request: &mut ActionCall, pods: &Resource, kinds: &[GroupVersionKind]) -> Result<Deed, Status> {
        let (mut object, options) = request.decode_create(kinds).await?;
        let info = &request.info;
        let named = if info.name.is_empty() { object.str_at(&["metadata", "name"]).into() } else { info.name.clone() };
        let call = Call {
            verb: info.verb.clone(),
            user: request.user.clone(),
            resource: pods.descriptor.group_resource(),
            version: info.version.clone(),
            kind: pods.descriptor.storage.kind.clone(),
            namespace: info.namespace.clone(),
            name: named,
            subresource: info.subresource.clone(),
            mode: options.mode,
            deadline: request.request.deadline().map(Into::into),
            warnings: request.warnings.clone(),
        };
        pods.ensure_namespace(&call, &mut object)?;
        let kind = object.gvk();
        let object = request.track_create(&kind, object, pods.clock.now())?;
        Ok(Deed { kind, call, object, options })
    }

    /// The call as admission sees it.
    fn admitted_call(&self, request: &ActionCall) -> Call {
        let resource = kubelith_meta::GroupResource::new(request.info.group.clone(), request.info.resource.clone());
        Call { kind: self.kind.clone(), resource, ..self.call.clone() }
    }

    async fn admit(&mut self, pods: &Resource, request: &ActionCall) -> Result<(), Status> {
        let call = self.admitted_call(request);
        let options = Some(&self.options.object);
        let asked = pods.asks(&call, Operation::Create, None, options);
        pods.admission.admit(asked, &mut self.object).await
    }

    async fn validate(&self, pods: &Resource, request: &ActionCall) -> Result<(), Status> {
        let call = self.admitted_call(request);
        let options = Some(&self.options.object);
        let asked = pods.asks(&call, Operation::Create, None, options);
        pods.admission.validate(asked, &self.object).await
    }

    fn check_name(&self) -> Result<(), Status> {
        if self.object.str_at(&["metadata", "name"]) == self.call.name {
            return Ok(());
        }
        Err(Status::bad_request(format!("name in URL does not match name in {} object", self.kind.kind)))
    }
}

/// The stored pods, for actions that outlive the request they came with.
type Pods = Arc<Resource>;
