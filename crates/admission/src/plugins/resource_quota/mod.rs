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
mod usage;

use self::batches::Batches;
use self::check::Demand;
use self::config::Limited;
use self::evaluator::{Evaluators, Measure};
use self::others::Devices;
use self::pods::Gates;
pub use self::pods::{is_best_effort, is_extended};
pub use self::usage::QuotaUsage;
use crate::loopback::Loopback;
use crate::plugin::{Plugin, Verdict};
use crate::plugins::is_of_namespace;
use kubelith_meta::Value;
use kubelith_meta::time::Clock;
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_rules::Features;
use std::sync::Arc;

pub struct ResourceQuota {
    batches: Arc<Batches>,
    /// Whether claims of devices are counted by class.
    devices: bool,
}

/// What the plugin is made from.
pub struct Parts<'a> {
    pub objects: &'a Arc<Objects>,
    pub server: Arc<dyn Loopback>,
    pub clock: Arc<dyn Clock>,
    pub gates: &'a dyn Fn(&str) -> bool,
    pub configuration: Option<&'a [u8]>,
}

impl ResourceQuota {
    pub fn new(parts: Parts<'_>) -> Result<ResourceQuota, String> {
        let Parts { objects, server, clock, gates, configuration } = parts;
        let (evaluators, devices) = evaluators(objects, clock, gates);
        let limited = Limited::read(configuration)?;
        let batches = Batches::new(objects.of("", "resourcequotas"), server, evaluators, limited);
        Ok(ResourceQuota { batches, devices })
    }
}

/// What counts objects, and whether claims of devices are counted by class.
fn evaluators(objects: &Arc<Objects>, clock: Arc<dyn Clock>, gates: &dyn Fn(&str) -> bool) -> (Evaluators, bool) {
    let pod_gates =
        Gates { pod_level_resources: gates("PodLevelResources"), in_place_resize: gates("InPlacePodVerticalScaling") };
    let devices = gates("DynamicResourceAllocation");
    let evaluators = Evaluators {
        gates: pod_gates,
        features: Features::of(gates),
        devices: Devices {
            classes: objects.of("resource.k8s.io", "deviceclasses"),
            claims: objects.of("resource.k8s.io", "resourceclaims"),
            pods: objects.of("", "pods"),
            extended: devices && gates("DRAExtendedResource"),
            gates: pod_gates,
        },
        clock,
    };
    (evaluators, devices)
}

impl Plugin for ResourceQuota {
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        let call = request.call;
        let makes_namespace = request.operation == Operation::Create && is_of_namespace(call);
        // Most namespaces have no quota: they pay for this look only.
        if call.namespace.is_empty() || makes_namespace || !self.batches.concern(&call.namespace) {
            return Verdict::Idle;
        }
        let Some(measure) = Measure::of(&call.resource, self.devices).filter(|m| m.handles(request, object)) else {
            return Verdict::Idle;
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
