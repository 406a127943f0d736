//! The service `kubernetes` in `default`, by which pods find this server, and this server among its endpoints while it is
//! ready.

use super::endpoints::{EndpointReconciler, Endpoints, NAMESPACE, SERVICE};
use super::store_leases::{Removal, StoreLeases};
use super::{Bootstrap, ensure_namespace, find};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::{Begun, PostStartHook, PreShutdownHook};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_server::{Delegate, Pauses};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

const INTERVAL: Duration = Duration::from_secs(10);
const READY_POLL: Duration = Duration::from_millis(10);
const LEASES: &str = "masterleases";
const SERVICE_PORT: i64 = 443;

#[derive(Debug, Clone)]
pub struct KubernetesService {
    /// The service's own address, in the first service range.
    pub address: IpAddr,
    /// 0: of type ClusterIP.
    pub node_port: u16,
    /// Under which the cluster reaches this server.
    pub server_address: IpAddr,
    pub server_port: u16,
    pub reconciler: EndpointReconciler,
}

/// What the hooks share. The lock is held over one reconciliation, so that none is under way when the server takes
/// itself out for good; `true` once it has.
struct Keeper {
    config: Arc<Bootstrap>,
    leases: StoreLeases,
    left: Mutex<bool>,
}

pub fn install(config: &Arc<Bootstrap>, kube: Delegate) -> Delegate {
    let Some(leases) = StoreLeases::new(config, LEASES) else { return kube };
    let keeper = Arc::new(Keeper { config: config.clone(), leases, left: Mutex::new(false) });
    let leaving = keeper.clone();
    let start = PostStartHook::new("bootstrap-controller", |context| async move {
        if context.begun == Begun::Anew {
            keeper.remove_stale().await;
        }
        let first = context.first_passes.token();
        context.tasks.spawn_until_stopped("kubernetes-service", async move {
            until_ready(&keeper.config.client, &context.started).await;
            keeper.keep(context.begun, first).await;
        });
        Ok(())
    });
    let stop = PreShutdownHook::new("stop-kubernetes-service-controller", move || async move {
        // The store may be out of reach; the stop must not wait for it for ever.
        match tokio::time::timeout(2 * INTERVAL, leaving.leave()).await {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => tracing::error!(err = why, "unable to remove endpoints from kubernetes service"),
            Err(_) => tracing::warn!("removing endpoints from the kubernetes service timed out"),
        }
        Ok(())
    });
    kube.post_start_hook(start).pre_shutdown_hook(stop)
}

impl Keeper {
    /// Until this server is ready nobody shall be sent to it, whatever an earlier life left behind.
    async fn remove_stale(&self) {
        match self.endpoints().remove(self.config.service.reconciler, &self.leases).await {
            Ok(Removal::Removed) => tracing::info!("removed stale endpoints of this server"),
            Ok(Removal::Absent) => {}
            Err(why) => tracing::error!(err = why, "error removing old endpoints from kubernetes service"),
        }
    }

    async fn keep(&self, begun: Begun, first: TaskTrackerToken) {
        let mut first = Some(first);
        let mut pauses = Pauses::by(&self.config.clock);
        // The slice is made last.
        let key = format!("{NAMESPACE}/{SERVICE}");
        if begun == Begun::AsCopy && self.config.has("discovery.k8s.io", "endpointslices", &key) {
            first.take();
            pauses.pause(INTERVAL).await;
        }
        loop {
            if let Err(why) = self.reconcile().await {
                tracing::error!(err = why, "unable to sync kubernetes service");
            }
            first.take();
            pauses.pause(INTERVAL).await;
        }
    }

    async fn reconcile(&self) -> Result<(), String> {
        let left = self.left.lock().await;
        if *left {
            return Ok(());
        }
        self.ensure_service().await.map_err(|e| e.to_string())?;
        self.endpoints().reconcile(self.config.service.reconciler, &self.leases).await
    }

    async fn leave(&self) -> Result<Removal, String> {
        let mut left = self.left.lock().await;
        *left = true;
        self.endpoints().remove(self.config.service.reconciler, &self.leases).await
    }

    fn endpoints(&self) -> Endpoints<'_> {
        let service = &self.config.service;
        Endpoints { client: &self.config.client, address: service.server_address, port: service.server_port }
    }

    /// Makes the service; one that is there is left as it is.
    async fn ensure_service(&self) -> Result<(), Status> {
        let (client, resource) = (&self.config.client, GroupVersionResource::new("", "v1", "services"));
        let collection = ResourceRef::new(&resource).namespace(NAMESPACE);
        if find(client, &collection.clone().name(SERVICE)).await?.is_some() {
            return Ok(());
        }
        ensure_namespace(client, NAMESPACE).await?;
        match client.create(&collection, &service(&self.config.service)).await {
            Err(status) if !status.is_already_exists() => Err(status),
            _ => Ok(()),
        }
    }
}

fn service(config: &KubernetesService) -> Value {
    let mut port = Value::from([
        ("name", Value::from("https")),
        ("protocol", "TCP".into()),
        ("port", Value::Int(SERVICE_PORT)),
        ("targetPort", Value::Int(config.server_port.into())),
    ]);
    if config.node_port > 0 {
        port.make_object().insert("nodePort", i64::from(config.node_port));
    }
    let metadata = Value::from([
        ("name", Value::from(SERVICE)),
        ("namespace", NAMESPACE.into()),
        ("labels", Value::from([("provider", "kubernetes"), ("component", "apiserver")])),
    ]);
    let spec = Value::from([
        ("ports", Value::from(vec![port])),
        ("clusterIP", config.address.to_string().into()),
        ("ipFamilyPolicy", "SingleStack".into()),
        ("sessionAffinity", "None".into()),
        ("type", if config.node_port > 0 { "NodePort" } else { "ClusterIP" }.into()),
    ]);
    Value::from([("metadata", metadata), ("spec", spec)])
}

/// Returns when /readyz is green.
pub async fn until_ready(client: &LoopbackClient, started: &CancellationToken) {
    started.cancelled().await;
    while !client.get_path("/readyz").await.is_ok_and(|r| r.status().is_success()) {
        tokio::time::sleep(READY_POLL).await;
    }
}
