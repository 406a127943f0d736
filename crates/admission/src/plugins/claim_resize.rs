//! PersistentVolumeClaimResize: claims grow only where their class says that volumes can.

use super::storage_class;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_meta::quantity::Quantity;
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::parse;
use std::sync::Arc;

pub struct PersistentVolumeClaimResize {
    objects: Arc<Objects>,
}

impl PersistentVolumeClaimResize {
    pub fn new(objects: Arc<Objects>) -> PersistentVolumeClaimResize {
        PersistentVolumeClaimResize { objects }
    }

    fn can_grow(&self, claim: &Value, old: &Value) -> bool {
        let class = storage_class(claim);
        if class.is_empty() || class != storage_class(old) {
            return false;
        }
        let class = self.objects.cached("storage.k8s.io", "storageclasses", "", class);
        let class = class.and_then(|class| parse(&class));
        class.is_some_and(|class| class.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true))
    }
}

impl Plugin for PersistentVolumeClaimResize {
    fn validate<'a>(&'a self, request: Request<'a>, claim: &'a Value) -> Verdict<'a> {
        let Some(old) = request.old else { return Verdict::Idle };
        if request.operation != Operation::Update || !request.is_for("", "persistentvolumeclaims") {
            return Verdict::Idle;
        }
        if size(claim) <= size(old) {
            return Verdict::Idle;
        }
        if old.str_at(&["status", "phase"]) != "Bound" {
            return Verdict::Ready(
                Err(request.forbidden(claim, "Only bound persistent volume claims can be expanded")),
            );
        }
        if !self.can_grow(claim, old) {
            let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                       support resize";
            return Verdict::Ready(Err(request.forbidden(claim, why)));
        }
        Verdict::PASSED
    }
}

/// Nothing asked for is less than anything.
fn size(claim: &Value) -> Option<Quantity> {
    claim.at(&["spec", "resources", "requests", "storage"]).and_then(|amount| Quantity::from_value(amount).ok())
}
