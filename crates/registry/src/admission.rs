//! Where admission enters the life of a write. The plugins are a layer above; this is their seam.

use crate::resource::Resource;
use futures::future::BoxFuture;
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::status::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is asked for. Objects are at the resource's working version.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    /// The stored object, for updates and deletes.
    pub old: Option<&'a Value>,
    /// The options object of the request (CreateOptions, UpdateOptions, PatchOptions, DeleteOptions).
    pub options: Option<&'a Value>,
    /// What the request is about, or about a part of; `None` if nothing of it is stored.
    pub resource: Option<&'a Resource>,
}

impl Request<'_> {
    /// Whether the request is for this resource itself, not for one of its subresources.
    pub fn is_for(&self, group: &str, plural: &str) -> bool {
        self.is_for_any_part(group, plural) && self.call.subresource.is_empty()
    }

    pub fn is_for_any_part(&self, group: &str, plural: &str) -> bool {
        self.call.resource.group == group && self.call.resource.resource == plural
    }

    /// The refusal that admission answers with. `object` gives a name to what has none yet.
    pub fn forbidden(&self, object: &Value, why: impl std::fmt::Display) -> Status {
        let meta = object.meta();
        let name = [self.call.name.as_str(), meta.name(), meta.generate_name(), "Unknown"];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        Status::forbidden(&self.call.resource, name, why)
    }
}

pub trait Admission: Send + Sync + 'static {
    /// May change `object` or refuse it. `object` is null for deletes.
    fn admit<'a>(&'a self, _request: Request<'a>, _object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// May refuse what is about to be stored.
    fn validate<'a>(&'a self, _request: Request<'a>, _object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Admits everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct AdmitAll;

impl Admission for AdmitAll {}
