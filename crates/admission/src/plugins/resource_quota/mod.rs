//! ResourceQuota: what a namespace may hold and use.
//!
//! A request that is let in is charged before the object is written: the use in a quota's status is raised by a write
//! that fails if anybody else changed the quota in between, so that requests at once, at several servers, never pass
//! it together. What is charged and then not written is corrected by the quota controller.

mod batches;
mod check;
mod config;
mod evaluator;
mod others;
mod pods;
mod quota;
#[cfg(test)]
mod tests;

use self::batches::Batches;
use self::check::Demand;
use self::config::Limited;
use self::evaluator::{Evaluators, Measure};
use self::others::Devices;
use self::pods::Gates;
use crate::plugin::{Plugin, Verdict};
use futures::future::BoxFuture;
use kubelith_meta::time::Clock;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use std::sync::Arc;

/// Writes the status of a quota, as long as nobody else changed it.
pub trait QuotaStatus: Send + Sync + 'static {
    /// Answers the quota as it was written.
    fn update<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>>;
}

pub struct ResourceQuota {
    batches: Arc<Batches>,
    /// Whether claims of devices are counted by class.
    devices: bool,
}

/// What the plugin is made from.
pub struct Parts<'a> {
    pub objects: &'a Arc<Objects>,
    pub status: Arc<dyn QuotaStatus>,
    pub clock: Arc<dyn Clock>,
    pub gates: &'a dyn Fn(&str) -> bool,
    pub configuration: Option<&'a [u8]>,
}

impl ResourceQuota {
    pub fn new(parts: Parts<'_>) -> Result<ResourceQuota, String> {
        let Parts { objects, status, clock, gates, configuration } = parts;
        let pod_gates = Gates {
            pod_level_resources: gates("PodLevelResources"),
            in_place_resize: gates("InPlacePodVerticalScaling"),
        };
        let devices = gates("DynamicResourceAllocation");
        let evaluators = Evaluators {
            gates: pod_gates,
            devices: Devices {
                classes: objects.of("resource.k8s.io", "deviceclasses"),
                claims: objects.of("resource.k8s.io", "resourceclaims"),
                pods: objects.of("", "pods"),
                extended: devices && gates("DRAExtendedResource"),
                gates: pod_gates,
            },
            clock,
        };
        let limited = Limited::read(configuration)?;
        let batches = Batches::new(objects.of("", "resourcequotas"), status, evaluators, limited);
        Ok(ResourceQuota { batches, devices })
    }
}

impl Plugin for ResourceQuota {
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        let call = request.call;
        let makes_namespace =
            request.operation == Operation::Create && call.kind.group.is_empty() && call.kind.kind == "Namespace";
        // Most namespaces have no quota: they pay for this look only.
        if call.namespace.is_empty() || makes_namespace || !self.batches.concern(&call.namespace) {
            return Verdict::PASSED;
        }
        let Some(measure) = Measure::of(&call.resource, self.devices).filter(|m| m.handles(request, object)) else {
            return Verdict::PASSED;
        };
        let demand = Demand {
            call: call.clone(),
            operation: request.operation,
            measure,
            object: object.clone(),
            old: request.old.cloned(),
        };
        Verdict::pending(self.batches.decide(demand))
    }
}
