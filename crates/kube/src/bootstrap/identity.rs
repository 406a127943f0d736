//! A Lease for this server, renewed while it lives, and the Leases of servers that are gone.

use super::{Bootstrap, KUBE_SYSTEM, ensure_namespace, find};
use kubelith_meta::time::{Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::{Begun, PostStartHook, PreShutdownHook};
use kubelith_server::loopback::ResourceRef;
use kubelith_server::{Delegate, Pauses};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const COMPONENT_LABEL: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const PEER_ADDRESS: &str = "kubernetes.io/peer-advertise-address";
const RENEW: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);
const LEASE_SECONDS: i64 = 3600;
const COLLECT: Duration = Duration::from_secs(3600);
/// For the store to take the Lease away when the server stops.
const STOP_LIMIT: Duration = Duration::from_secs(10);

fn leases() -> GroupVersionResource {
    GroupVersionResource::new("coordination.k8s.io", "v1", "leases")
}

pub fn install(config: &Arc<Bootstrap>, kube: Delegate) -> Delegate {
    let keeper = Arc::new(Keeper { config: config.clone(), left: Mutex::new(false) });
    let (leaving, collected) = (keeper.clone(), config.clone());
    let start = PostStartHook::new("start-kube-apiserver-identity-lease-controller", |context| async move {
        // Nobody shall find an earlier life of this server. A copy goes on with the lease that it has.
        if context.begun == Begun::Anew {
            keeper.delete().await;
        }
        context.tasks.spawn_until_stopped("identity-lease", async move { keeper.keep(context.begun).await });
        Ok(())
    });
    let collect = PostStartHook::new("start-kube-apiserver-identity-lease-garbage-collector", |context| async move {
        context.tasks.spawn_until_stopped("identity-lease-gc", async move {
            let mut pauses = Pauses::by(&collected.clock);
            if context.begun == Begun::AsCopy {
                pauses.pause(COLLECT).await;
            }
            loop {
                collect(&collected).await;
                pauses.pause(COLLECT).await;
            }
        });
        Ok(())
    });
    let stop = PreShutdownHook::new("stop-kube-apiserver-identity-lease-controller", move || async move {
        let gone = tokio::time::timeout(STOP_LIMIT, async {
            *leaving.left.lock().await = true;
            leaving.delete().await;
        });
        if gone.await.is_err() {
            tracing::error!("unable to delete the identity lease in time");
        }
        Ok(())
    });
    kube.post_start_hook(start).pre_shutdown_hook(stop).post_start_hook(collect)
}

struct Keeper {
    config: Arc<Bootstrap>,
    /// Held over one renewal; `true` once the server has gone for good.
    left: Mutex<bool>,
}

impl Keeper {
    async fn keep(&self, begun: Begun) {
        let mut pauses = Pauses::by(&self.config.clock);
        let key = format!("{KUBE_SYSTEM}/{}", self.config.identity.id);
        if begun == Begun::AsCopy && self.config.has("coordination.k8s.io", "leases", &key) {
            pauses.pause(RENEW).await;
        }
        loop {
            let pause = match self.renew().await {
                Ok(()) => RENEW,
                Err(why) => {
                    tracing::warn!(err = %why, "identity lease not renewed, will be tried again");
                    RETRY
                }
            };
            pauses.pause(pause).await;
        }
    }

    async fn renew(&self) -> Result<(), Status> {
        let left = self.left.lock().await;
        if *left {
            return Ok(());
        }
        let (client, resource) = (&self.config.client, leases());
        let collection = ResourceRef::new(&resource).namespace(KUBE_SYSTEM);
        let target = collection.clone().name(&self.config.identity.id);
        match find(client, &target).await? {
            Some(mut lease) => {
                self.fill(&mut lease);
                client.update(&target, &lease).await.map(drop)
            }
            None => {
                ensure_namespace(client, KUBE_SYSTEM).await?;
                let mut lease = Value::object();
                lease.meta_mut().set_name(&self.config.identity.id).set_namespace(KUBE_SYSTEM);
                self.fill(&mut lease);
                client.create_unseen(&collection, &lease).await
            }
        }
    }

    fn fill(&self, lease: &mut Value) {
        let identity = &self.config.identity;
        let mut meta = lease.meta_mut();
        meta.set_label(COMPONENT_LABEL, COMPONENT).set_label(HOSTNAME_LABEL, &identity.hostname);
        if let Some(address) = &self.config.peer_address {
            meta.set_annotation(PEER_ADDRESS, address);
        }
        lease.set_at(&["spec", "holderIdentity"], identity.holder.as_str().into());
        lease.set_at(&["spec", "leaseDurationSeconds"], Value::Int(LEASE_SECONDS));
        lease.set_at(&["spec", "renewTime"], self.config.clock.now().rfc3339_micro().into());
    }

    async fn delete(&self) {
        let resource = leases();
        let target = ResourceRef::new(&resource).namespace(KUBE_SYSTEM).name(&self.config.identity.id);
        match self.config.client.delete(&target, None).await {
            Err(why) if !why.is_not_found() => tracing::error!(err = %why, "error deleting the identity lease"),
            _ => {}
        }
    }
}

/// Deletes the Leases of servers that did not renew them.
async fn collect(config: &Bootstrap) {
    let (client, resource) = (&config.client, leases());
    let collection = ResourceRef::new(&resource).namespace(KUBE_SYSTEM);
    let selector = format!("{COMPONENT_LABEL}={COMPONENT}");
    let list = match client.list(&collection.clone().with("labelSelector", &selector)).await {
        Ok(list) => list,
        Err(why) => return tracing::error!(err = %why, "error while listing apiserver leases"),
    };
    let now = config.clock.now();
    for lease in list.get("items").and_then(Value::as_array).unwrap_or_default() {
        // Our own is renewed, be it late.
        if lease.meta().name() == config.identity.id || !is_expired(lease, now) {
            continue;
        }
        // Renewed meanwhile? Then the precondition does not hold.
        let precondition = Value::from([("resourceVersion", lease.meta().resource_version())]);
        let options = Value::from([("preconditions", precondition)]);
        match client.delete(&collection.clone().name(lease.meta().name()), Some(&options)).await {
            Err(why) if !(why.is_not_found() || why.is_conflict()) => {
                tracing::error!(err = %why, "error deleting lease");
            }
            _ => {}
        }
    }
}

/// A lease that lacks what every server writes is no server's any more.
fn is_expired(lease: &Value, now: Time) -> bool {
    let renewed = Time::parse_micro(lease.str_at(&["spec", "renewTime"])).ok();
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64);
    match (renewed, seconds) {
        (Some(renewed), Some(seconds)) => now.since(renewed) > Span::from_secs(seconds),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry() {
        let lease = |spec: &[(&str, Value)]| {
            let mut lease = Value::object();
            for (key, value) in spec {
                lease.set_at(&["spec", key], value.clone());
            }
            lease
        };
        let now = Time::parse("2026-01-01T01:00:00Z").unwrap();
        let renewed = |t: &str| ("renewTime", Value::from(t));
        let duration = ("leaseDurationSeconds", Value::Int(60));
        for (spec, expired) in [
            (&[][..], true),
            (std::slice::from_ref(&duration), true),
            (&[renewed("2026-01-01T00:59:30.000000Z")], true),
            (&[renewed("2026-01-01T00:59:30.000000Z"), duration.clone()], false),
            (&[renewed("2026-01-01T00:58:59.000000Z"), duration.clone()], true),
        ] {
            assert_eq!(is_expired(&lease(spec), now), expired, "{spec:?}");
        }
    }
}
