//! What a plugin is. The chain of them is the `Admission` that the registry sees.

use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Request;

/// What a plugin says. Most know it at once, from the request or from the caches, and cost no future.
pub enum Verdict<'a> {
    Ready(Result<(), Status>),
    Pending(BoxFuture<'a, Result<(), Status>>),
}

impl<'a> Verdict<'a> {
    pub const PASSED: Verdict<'a> = Verdict::Ready(Ok(()));

    pub fn pending(future: impl Future<Output = Result<(), Status>> + Send + 'a) -> Verdict<'a> {
        Verdict::Pending(Box::pin(future))
    }
}

pub trait Plugin: Send + Sync + 'static {
    /// May change `object` or refuse it. `object` is null for deletes.
    fn admit<'a>(&'a self, _request: Request<'a>, _object: &'a mut Value) -> Verdict<'a> {
        Verdict::PASSED
    }

    /// May refuse what is about to be stored.
    fn validate<'a>(&'a self, _request: Request<'a>, _object: &'a Value) -> Verdict<'a> {
        Verdict::PASSED
    }
}
