//! PodTopologyLabels: a pod carries the zone and the region of its node, from the moment it has one.

use super::done;
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Admission, Operation, Request};
use kubelith_registry::objects::parse;
use std::sync::Arc;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub struct PodTopologyLabels {
    objects: Arc<Objects>,
}

impl PodTopologyLabels {
    pub fn new(objects: Arc<Objects>) -> PodTopologyLabels {
        PodTopologyLabels { objects }
    }
}

impl Admission for PodTopologyLabels {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        if request.operation != Operation::Create || !request.is_for_any_part("", "pods") {
            return done(Ok(()));
        }
        let node = match request.call.subresource.as_str() {
            "" => object.str_at(&["spec", "nodeName"]),
            "binding" if object.str_at(&["target", "kind"]) == "Node" => object.str_at(&["target", "name"]),
            _ => "",
        };
        if node.is_empty() {
            return done(Ok(()));
        }
        let node = self.objects.cached("", "nodes", "", node).and_then(|node| parse(&node));
        for label in LABELS {
            if let Some(value) = node.as_ref().and_then(|node| node.meta().label(label)) {
                object.meta_mut().set_label(label, value);
            }
        }
        done(Ok(()))
    }
}
