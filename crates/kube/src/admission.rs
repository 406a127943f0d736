//! Admission that belongs to the built-in kinds.

use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use std::future::ready;

/// Namespaces that a cluster cannot do without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Keeps the immortal namespaces from being deleted.
#[derive(Debug, Default, Clone, Copy)]
pub struct NamespaceLifecycle;

impl Admission for NamespaceLifecycle {
    fn admit<'a>(&'a self, request: Request<'a>, _: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        let call = request.call;
        let deletes = request.operation == Operation::Delete
            && call.resource.group.is_empty()
            && call.resource.resource == "namespaces";
        if deletes && IMMORTAL.contains(&call.name.as_str()) {
            let status = Status::forbidden(&call.resource, &call.name, "this namespace may not be deleted");
            return Box::pin(ready(Err(status)));
        }
        Box::pin(ready(Ok(())))
    }

    fn validate<'a>(&'a self, _: Request<'a>, _: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Ok(())))
    }
}
