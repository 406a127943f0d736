//! Volumes and claims stay while they are in use: their finalizers go when nobody uses them any more.

use crate::caches::Needle;
use crate::{Context, caches};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Change, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::BTreeSet;
use std::sync::Arc;

const OF_VOLUMES: &str = "kubernetes.io/pv-protection";
const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
/// Claims looked at a time.
const WORKERS: usize = 10;

/// What keeps an object of one resource.
struct Protection {
    client: LoopbackClient,
    resource: GroupVersionResource,
    cache: Arc<ResourceCache>,
    finalizer: &'static str,
    /// Whether it is in use.
    in_use: Box<dyn Fn(&Value) -> bool + Send + Sync>,
}

pub fn protect_volumes(context: &Context) {
    let Some(volumes) = context.world.cache("", "persistentvolumes") else { return };
    let protection = Protection {
        client: context.client("pv-protection-controller"),
        resource: GroupVersionResource::new("", "v1", "persistentvolumes"),
        cache: volumes,
        finalizer: OF_VOLUMES,
        in_use: Box::new(|volume| volume.str_at(&["status", "phase"]) == "Bound"),
    };
    protection.controller("pvprotection").metrics(&context.metrics).start(&context.tasks);
}

pub fn protect_claims(context: &Context) {
    let (Some(claims), Some(pods)) =
        (context.world.cache("", "persistentvolumeclaims"), context.world.cache("", "pods"))
    else {
        return;
    };
    let users = pods.clone();
    let protection = Protection {
        client: context.client("pvc-protection-controller"),
        resource: GroupVersionResource::new("", "v1", "persistentvolumeclaims"),
        cache: claims,
        finalizer: OF_CLAIMS,
        in_use: Box::new(move |claim| is_used(claim, &users)),
    };
    protection
        .controller("pvcprotection")
        .watches(&pods, claims_of)
        .workers(WORKERS)
        .metrics(&context.metrics)
        .start(&context.tasks);
}

impl Protection {
    fn controller(self, name: &'static str) -> Controller {
        let (cache, finalizer, this) = (self.cache.clone(), self.finalizer, Arc::new(self));
        Controller::new(name, move |key: Str| {
            let this = this.clone();
            async move { this.reconcile(&key).await }
        })
        .watches(&cache, move |change| match &change.new {
            Some(new) if caches::BEING_DELETED.is_in(new) || !caches::mentions(new, finalizer) => {
                vec![change.key()]
            }
            _ => Vec::new(),
        })
    }

    async fn reconcile(&self, key: &str) -> Result<Next, Status> {
        let Some(mut object) = self.cache.get(key).and_then(|o| caches::value(&o)) else { return Ok(Next::Done) };
        let protected = object.meta().has_finalizer(self.finalizer);
        match object.meta().is_being_deleted() {
            true if protected && !(self.in_use)(&object) => drop(object.meta_mut().remove_finalizer(self.finalizer)),
            false if !protected => drop(object.meta_mut().add_finalizer(self.finalizer)),
            _ => return Ok(Next::Done),
        }
        let (namespace, name) = (object.meta().namespace().to_owned(), object.meta().name().to_owned());
        let target = ResourceRef::new(&self.resource).namespace(&namespace).name(&name);
        match self.client.update(&target, &object).await {
            Err(status) if status.is_not_found() => Ok(Next::Done),
            outcome => outcome.map(|_| Next::Done),
        }
    }
}

/// Claims that a pod names, before or after a change of it.
fn claims_of(change: &Change) -> Vec<Str> {
    let mut keys = BTreeSet::new();
    for pod in [&change.old, &change.new].into_iter().flatten().filter(|pod| has_claims(pod)) {
        let Some(pod) = caches::value(pod) else { continue };
        let namespace = pod.meta().namespace();
        keys.extend(volumes(&pod).filter_map(|v| claim_name(&pod, v)).map(|name| format!("{namespace}/{name}").into()));
    }
    keys.into_iter().collect()
}

fn has_claims(pod: &CachedObject) -> bool {
    static CLAIM: Needle = Needle::new("\"persistentVolumeClaim\":{");
    static EPHEMERAL: Needle = Needle::new("\"ephemeral\":{");
    CLAIM.is_in(pod) || EPHEMERAL.is_in(pod)
}

fn volumes(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default().iter()
}

fn claim_name(pod: &Value, volume: &Value) -> Option<String> {
    if let Some(claim) = volume.get("persistentVolumeClaim").filter(|c| !c.is_null()) {
        return Some(claim.str_at(&["claimName"]).to_owned());
    }
    volume.get("ephemeral").filter(|e| !e.is_null())?;
    Some(format!("{}-{}", pod.meta().name(), volume.str_at(&["name"])))
}

/// Whether a pod that is on a node uses the claim: one that is not will not be started with a claim that is going.
fn is_used(claim: &Value, pods: &ResourceCache) -> bool {
    let prefix = format!("{}/", claim.meta().namespace());
    let snapshot = pods.snapshot();
    let mut pods = snapshot.range(&prefix, None).filter(|pod| has_claims(pod)).filter_map(|pod| caches::value(pod));
    pods.any(|pod| uses(&pod, claim))
}

fn uses(pod: &Value, claim: &Value) -> bool {
    if pod.str_at(&["spec", "nodeName"]).is_empty() {
        return false;
    }
    let meta = pod.meta();
    let shut_down = meta.is_being_deleted() && meta.deletion_grace_period_seconds() == Some(0);
    let owns = || claim.meta().controller().is_some_and(|owner| owner.uid() == meta.uid());
    volumes(pod).any(|volume| {
        let named = claim_name(pod, volume).is_some_and(|name| name == claim.meta().name());
        let ephemeral = volume.get("persistentVolumeClaim").is_none_or(Value::is_null);
        named && (!ephemeral || (!shut_down && owns()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn who_uses_a_claim() {
        let claim = json::parse(br#"{"metadata":{"name":"p-v","namespace":"n"}}"#).unwrap();
        let owned = json::parse(
            br#"{"metadata":{"name":"p-v","ownerReferences":[{"uid":"u","kind":"Pod","name":"p","controller":true}]}}"#,
        )
        .unwrap();
        let plain = r#"{"name":"v","persistentVolumeClaim":{"claimName":"p-v"}}"#;
        let ephemeral = r#"{"name":"v","ephemeral":{}}"#;
        let gone = r#","deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0"#;
        for (claim, volume, node, meta, used) in [
            (&claim, plain, "node", "", true),
            (&claim, plain, "node", gone, true),
            (&claim, plain, "", "", false),
            (&claim, r#"{"name":"v","persistentVolumeClaim":{"claimName":"x"}}"#, "node", "", false),
            (&claim, ephemeral, "node", "", false),
            (&owned, ephemeral, "node", "", true),
            (&owned, ephemeral, "node", gone, false),
        ] {
            let pod = format!(
                r#"{{"metadata":{{"name":"p","uid":"u"{meta}}},"spec":{{"nodeName":"{node}","volumes":[{volume}]}}}}"#
            );
            assert_eq!(uses(&json::parse(pod.as_bytes()).unwrap(), claim), used, "{pod}");
        }
    }
}
