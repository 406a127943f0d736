//! StorageObjectInUseProtection: volumes, claims and volume attributes classes get a finalizer, so that they stay
//! while something uses them.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::admission::{Operation, Request};

#[derive(Debug, Clone, Copy)]
pub struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        let resource = &request.call.resource;
        let finalizer = match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "persistentvolumes") => "kubernetes.io/pv-protection",
            ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
            ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
            _ => return Verdict::Idle,
        };
        if request.operation == Operation::Create && request.call.subresource.is_empty() {
            object.meta_mut().add_finalizer(finalizer);
        }
        Verdict::PASSED
    }
}
