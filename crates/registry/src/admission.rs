//! Where admission enters the life of a write. The plugins are a layer above; this is their seam.

use crate::call::Call;
use futures::future::BoxFuture;
use kubelith_meta::Value;
use kubelith_meta::status::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is asked for. Objects are at the resource's working version.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    /// The stored object, for updates and deletes.
    pub old: Option<&'a Value>,
    /// The options object of the request (CreateOptions, UpdateOptions, PatchOptions, DeleteOptions).
    pub options: Option<&'a Value>,
}

pub trait Admission: Send + Sync + 'static {
    /// May change `object` or refuse it. `object` is null for deletes.
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>>;

    /// May refuse what is about to be stored.
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>>;
}

/// Admits everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admit<'a>(&'a self, _: Request<'a>, _: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn validate<'a>(&'a self, _: Request<'a>, _: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
