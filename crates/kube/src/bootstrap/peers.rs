//! Where other servers reach this one, kept in the store while it serves.

use super::Bootstrap;
use super::store_leases::StoreLeases;
use kubelith_meta::Value;
use kubelith_server::lifecycle::{PostStartHook, PreShutdownHook};
use kubelith_server::{Delegate, Pauses};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const NAME: &str = "peer-endpoint-reconciler-controller";
const PREFIX: &str = "peerserverleases";
const INTERVAL: Duration = Duration::from_secs(10);
const IDENTITY: &str = "apiserverIdentity";

pub fn install(config: &Arc<Bootstrap>, kube: Delegate) -> Delegate {
    let Some(leases) = StoreLeases::new(config, PREFIX).map(Arc::new) else { return kube };
    let stop = CancellationToken::new();
    let (config, id) = (config.clone(), config.identity.id.clone());
    let (kept, stopped) = (leases.clone(), stop.clone());
    let start = PostStartHook::new(NAME, |context| async move {
        context.tasks.spawn_until_stopped(NAME, async move {
            super::kubernetes_service::until_ready(&config.client).await;
            stopped.run_until_cancelled(keep(&config, &kept)).await;
        });
        Ok(())
    });
    kube.post_start_hook(start).pre_shutdown_hook(PreShutdownHook::new(NAME, move || async move {
        stop.cancel();
        if let Ok(Err(why)) = tokio::time::timeout(2 * INTERVAL, leases.remove(&id)).await {
            tracing::error!(err = why, "unable to remove peer endpoint leases");
        }
        Ok(())
    }))
}

async fn keep(config: &Bootstrap, leases: &StoreLeases) {
    let mut pauses = Pauses::by(&config.clock);
    loop {
        let id = config.identity.id.as_str();
        let refreshed = leases.refresh(id, |object| describe(object, id, &config.peer_address)).await;
        if let Err(why) = refreshed {
            tracing::error!(err = why, "unable to update peer endpoint leases");
        }
        pauses.pause(INTERVAL).await;
    }
}

fn describe(object: &mut Value, id: &str, address: &str) {
    object.meta_mut().set_label(IDENTITY, id);
    let Ok(address) = address.parse::<SocketAddr>() else { return };
    let subset = Value::from([
        ("addresses", Value::from(vec![Value::from([("ip", address.ip().to_string())])])),
        ("ports", super::endpoints::ports(address.port())),
    ]);
    object.make_object().insert("subsets", vec![subset]);
}
