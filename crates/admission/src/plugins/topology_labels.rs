//! PodTopologyLabels: a pod carries the zone and the region of its node, from the moment it has one.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{Collection, parse};
use std::sync::Arc;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub struct PodTopologyLabels {
    nodes: Collection,
}

impl PodTopologyLabels {
    pub fn new(objects: &Arc<Objects>) -> PodTopologyLabels {
        PodTopologyLabels { nodes: objects.of("", "nodes") }
    }
}

impl Plugin for PodTopologyLabels {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for_any_part("", "pods") {
            return Verdict::Idle;
        }
        let node = match request.call.subresource.as_str() {
            "" => object.str_at(&["spec", "nodeName"]),
            "binding" if object.str_at(&["target", "kind"]) == "Node" => object.str_at(&["target", "name"]),
            _ => "",
        };
        if node.is_empty() {
            return Verdict::Idle;
        }
        let node = self.nodes.cached("", node).and_then(|node| parse(&node));
        for label in LABELS {
            if let Some(value) = node.as_ref().and_then(|node| node.meta().label(label)) {
                object.meta_mut().set_label(label, value);
            }
        }
        Verdict::PASSED
    }
}
