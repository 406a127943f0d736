//! StorageObjectInUseProtection: volumes, claims and volume attributes classes get a finalizer, so that they stay
//! while something uses them.

use super::done;
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};

#[derive(Debug, Clone, Copy)]
pub struct StorageObjectInUseProtection;

impl Admission for StorageObjectInUseProtection {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        let resource = &request.call.resource;
        let finalizer = match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "persistentvolumes") => "kubernetes.io/pv-protection",
            ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
            ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
            _ => return done(Ok(())),
        };
        if request.operation == Operation::Create && request.call.subresource.is_empty() {
            object.meta_mut().add_finalizer(finalizer);
        }
        done(Ok(()))
    }
}
