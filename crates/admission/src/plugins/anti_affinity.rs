//! LimitPodHardAntiAffinityTopology: a pod may keep others off its node, not off a whole zone.

use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Request;

const HOSTNAME: &str = "kubernetes.io/hostname";
const TERMS: [&str; 4] = ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

#[derive(Debug, Clone, Copy)]
pub struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        let keys = list(pod, &TERMS).iter().map(|term| term.str_at(&["topologyKey"]));
        Verdict::Ready(match keys.into_iter().find(|key| *key != HOSTNAME) {
            None => Ok(()),
            Some(key) => {
                let why = format!(
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is \
                     allowed"
                );
                Err(Status::forbidden(&request.call.resource, pod.meta().name(), why))
            }
        })
    }
}
