//! Where other servers reach this one, kept in the store while it serves.

use super::Bootstrap;
use super::store_leases::{StoreLeases, first_address, first_port};
use crate::Resources;
use kubelith_meta::Value;
use kubelith_server::lifecycle::{Begun, PostStartHook, PreShutdownHook};
use kubelith_server::{Delegate, Pauses};
use kubelith_store::cache::Hub;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const NAME: &str = "peer-endpoint-reconciler-controller";
const PREFIX: &str = "peerserverleases";
const INTERVAL: Duration = Duration::from_secs(10);
const IDENTITY: &str = "apiserverIdentity";

/// Where other servers are, as they keep it in the store.
pub struct PeerAddresses(StoreLeases);

impl PeerAddresses {
    /// `None` if endpoints are not served.
    pub fn new(hub: &Hub, resources: &Resources) -> Option<PeerAddresses> {
        StoreLeases::below(hub, resources, PREFIX).map(PeerAddresses)
    }

    /// `host:port` of a server; empty if it says nothing.
    pub async fn of(&self, server: &str) -> Result<String, String> {
        let objects = self.0.objects().await?;
        let found = objects.iter().find(|object| object.meta().label(IDENTITY) == Some(server));
        let address = found.and_then(|object| {
            let ip = first_address(object)?.parse::<IpAddr>().ok()?;
            Some(SocketAddr::new(ip, u16::try_from(first_port(object)?).ok()?).to_string())
        });
        Ok(address.unwrap_or_default())
    }
}

/// The leases of this server, and `hooks` behind them. Without an address nobody is to reach it.
pub fn install(config: &Arc<Bootstrap>, kube: Delegate, hooks: Vec<PostStartHook>) -> Delegate {
    if config.peer_address.is_none() {
        return kube;
    }
    let Some(leases) = StoreLeases::new(config, PREFIX).map(Arc::new) else { return kube };
    let stop = CancellationToken::new();
    let (config, id) = (config.clone(), config.identity.id.clone());
    let (kept, stopped) = (leases.clone(), stop.clone());
    let start = PostStartHook::new(NAME, |context| async move {
        context.tasks.spawn_until_stopped(NAME, async move {
            super::kubernetes_service::until_ready(&config.client, &context.started).await;
            stopped.run_until_cancelled(keep(&config, &kept, context.begun)).await;
        });
        Ok(())
    });
    let leave = PreShutdownHook::new(NAME, move || async move {
        stop.cancel();
        if let Ok(Err(why)) = tokio::time::timeout(2 * INTERVAL, leases.remove(&id)).await {
            tracing::error!(err = why, "unable to remove peer endpoint leases");
        }
        Ok(())
    });
    kube.post_start_hook(start).pre_shutdown_hook(leave).post_start_hooks(hooks)
}

async fn keep(config: &Bootstrap, leases: &StoreLeases, begun: Begun) {
    let mut pauses = Pauses::by(&config.clock);
    let own = |object: &Value| object.meta().label(IDENTITY) == Some(config.identity.id.as_str());
    if begun == Begun::AsCopy && leases.objects().await.is_ok_and(|all| all.iter().any(own)) {
        pauses.pause(INTERVAL).await;
    }
    loop {
        let id = config.identity.id.as_str();
        let refreshed = leases.refresh(id, |object| describe(object, id, config.peer_address.as_deref())).await;
        if let Err(why) = refreshed {
            tracing::error!(err = why, "unable to update peer endpoint leases");
        }
        pauses.pause(INTERVAL).await;
    }
}

fn describe(object: &mut Value, id: &str, address: Option<&str>) {
    object.meta_mut().set_label(IDENTITY, id);
    let Some(Ok(address)) = address.map(str::parse::<SocketAddr>) else { return };
    let subset = Value::from([
        ("addresses", Value::from(vec![Value::from([("ip", address.ip().to_string())])])),
        ("ports", super::endpoints::ports(address.port())),
    ]);
    object.make_object().insert("subsets", vec![subset]);
}
