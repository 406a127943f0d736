//! Subresources with a kind of their own that are a view of their parent's object: what is read there is made from the
//! parent, what is written there changes it. Scale is the one that clients know.

use super::context::Context;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Operation;
use kubelith_registry::{Call, Judged, WorkingVersion};
use kubelith_schema::{Column, TypedSchema};
use std::borrow::Cow;

/// A view of a resource's objects. Parents are at the request's version.
pub trait SubresourceView: Send + Sync + 'static {
    fn schema(&self) -> &TypedSchema;

    /// Of a table of views.
    fn columns(&self) -> &[Column];

    /// What GET answers.
    fn read(&self, parent: &Value) -> Result<Value, Status>;

    /// What a write answers, and what validating admission judges.
    fn written(&self, parent: &Value) -> Result<Value, Status>;

    /// What a write starts from: with metadata.managedFields, as far as they concern the view.
    fn begin(&self, parent: &Value) -> Result<Value, Status>;

    /// The parent as it is after `view` was written.
    fn finish(&self, call: &Call, parent: Value, view: &Value) -> Result<Value, Status>;
}

/// A stored object that a write changes, as the endpoint shows it.
pub struct WriteTarget<'a> {
    /// What the client changes, at the endpoint's kind.
    pub live: Cow<'a, Value>,
    /// The object that `live` is a view of.
    parent: Option<Value>,
}

impl Context {
    /// What a client of this endpoint sees of a stored object before it writes.
    pub(super) async fn write_target<'a>(&self, existing: &'a Value) -> Result<WriteTarget<'a>, Status> {
        if self.endpoint.view.is_none() && existing.is_of(&self.endpoint.object_kind()) {
            return Ok(WriteTarget { live: Cow::Borrowed(existing), parent: None });
        }
        let object = self.to_request_version(existing.clone()).await?;
        Ok(match &self.endpoint.view {
            Some(view) => WriteTarget { live: Cow::Owned(view.begin(&object)?), parent: Some(object) },
            None => WriteTarget { live: Cow::Owned(object), parent: None },
        })
    }

    /// Runs mutating admission on what the client wrote, then brings it to the working version of the stored object.
    pub(super) async fn admit(
        &self,
        call: &Call,
        object: Value,
        existing: Option<&Value>,
        target: Option<WriteTarget<'_>>,
        options: &Value,
    ) -> Result<Value, Status> {
        let resource = &self.endpoint.resource;
        let working = resource.working_kind(call);
        let operation = if existing.is_some() { Operation::Update } else { Operation::Create };
        if let (Some(view), Some(WriteTarget { live, parent: Some(parent) })) = (&self.endpoint.view, target) {
            let view_call = Call { kind: self.endpoint.kind.clone(), ..call.clone() };
            let mut written = object;
            let request = resource.asks(&view_call, operation, Some(&live), Some(options));
            resource.admission.admit(request, &mut written).await?;
            let changed = view.finish(call, parent, &written)?;
            return resource.convert(changed, &working).await;
        }
        let mut object = match resource.working {
            // It is in the version of the request, or says that it is something else: validation judges that.
            WorkingVersion::Request => object,
            WorkingVersion::One(_) => resource.convert(object, &working).await?,
        };
        let request = resource.asks(call, operation, existing, Some(options));
        resource.admission.admit(request, &mut object).await?;
        Ok(object)
    }

    /// What validating admission judges of an update.
    pub(super) fn judged(&self, object: &Value, old: &Value) -> Result<Judged, Status> {
        Ok(match &self.endpoint.view {
            Some(view) => Judged::View(Box::new((view.written(object)?, view.written(old)?))),
            None => Judged::Object,
        })
    }

    /// What a write answers, from the object at the working version.
    pub(super) async fn answer(&self, object: Value) -> Result<Value, Status> {
        let object = self.to_request_version(object).await?;
        match &self.endpoint.view {
            Some(view) => view.written(&object),
            None => Ok(object),
        }
    }
}
