//! Objects that every server has: made after the start, kept as they must be, through the server's own front door.
//!
//! | file | keeps |
//! |---|---|
//! | beginning | those of a new store that are the same everywhere, written in one go |
//! | namespaces | the system namespaces |
//! | peers | where other servers reach this one, in the store |
//! | authentication | what extension servers must know to trust this one |
//! | identity | a Lease for this server; Leases of servers that are gone |
//! | token_tracking | since when uses of legacy tokens are recorded |
//! | roles | RBAC's default policy |
//! | priority | the system priority classes |
//! | flow_control | default flow schemas and priority levels |
//! | leader_election | who leads, of components that ask for it; off by default |
//! | storage_versions | in which versions this server stores what; off by default |
//! | kubernetes_service | the service of this server, its endpoints and slice |
//! | service_cidr | the default range of service addresses |

pub mod authentication;
mod beginning;
mod endpoints;
mod flow_control;
mod identity;
mod kubernetes_service;
mod leader_election;
mod namespaces;
mod peers;
mod priority;
mod roles;
mod service_cidr;
mod storage_barrier;
mod storage_versions;
mod store_leases;
mod token_tracking;

pub use beginning::{Beginning, FirstObjects, Own};
pub use endpoints::EndpointReconciler;
pub use kubernetes_service::KubernetesService;
pub use leader_election::LeadershipTimes;
pub use peers::PeerAddresses;
pub use storage_barrier::StorageBarrier;
pub use storage_versions::set_all as set_storage_versions;

use crate::Resources;
use crate::services::{Services, repair_hook};
use authentication::AuthenticationInfo;
use kubelith_features::FeatureGates;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::Delegate;
use kubelith_server::identity::ServerIdentity;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::{Hub, ResourceCache};
use std::sync::Arc;

/// What the objects are made from.
#[derive(Clone)]
pub struct Bootstrap {
    pub client: LoopbackClient,
    pub hub: Arc<Hub>,
    pub resources: Arc<Resources>,
    pub services: Arc<Services>,
    pub clock: Arc<dyn Clock>,
    pub identity: ServerIdentity,
    /// Under which other servers reach this one: `host:port`. None if they do not.
    pub peer_address: Option<String>,
    pub service: KubernetesService,
    /// `--service-cluster-ip-range`, the first of the cluster's main family.
    pub service_ranges: Vec<String>,
    /// What clients' credentials are checked against, as it is now.
    pub authentication: Arc<dyn Fn() -> AuthenticationInfo + Send + Sync>,
    /// If leaders are elected here.
    pub leadership: Option<LeadershipTimes>,
    /// What waits for StorageVersion objects, if they are kept.
    pub storage_versions: Option<Arc<StorageBarrier>>,
    /// The gates by which those roles are kept that every cluster has, if they are.
    pub roles: Option<Arc<FeatureGates>>,
    /// Whether the objects of a new store are there.
    pub beginning: Beginning,
}

impl Bootstrap {
    /// Adds the hooks to the kube server, in the order in which health lists them. `peer_hooks` are of those who pass requests
    /// on to other servers.
    pub fn install(self, kube: Delegate, peer_hooks: Vec<PostStartHook>) -> Delegate {
        let config = Arc::new(self);
        let kube = kube.post_start_hook(namespaces::hook(&config));
        let kube = peers::install(&config, kube, peer_hooks);
        let kube = kube.post_start_hook(authentication::hook(&config));
        let kube = identity::install(&config, kube)
            // The watch caches were filled before anything could be asked.
            .post_start_hook(PostStartHook::new("storage-readiness", |_| async { Ok(()) }))
            .post_start_hook(token_tracking::hook(&config))
            .post_start_hook(repair_hook(config.services.clone()));
        // A group that is switched off brings no objects.
        let when = |kube: Delegate, group: &str, plural: &str, hook: &dyn Fn() -> PostStartHook| {
            if config.cache(group, plural).is_some() { kube.post_start_hook(hook()) } else { kube }
        };
        let kube = match &config.roles {
            Some(gates) => {
                when(kube, "rbac.authorization.k8s.io", "clusterroles", &|| roles::hook(&config, gates.clone()))
            }
            None => kube,
        };
        let kube = when(kube, "scheduling.k8s.io", "priorityclasses", &|| priority::hook(&config));
        let kube = when(kube, "flowcontrol.apiserver.k8s.io", "flowschemas", &|| flow_control::hook(&config));
        let kube = match &config.storage_versions {
            Some(barrier) => kube.post_start_hook(storage_versions::hook(&config, barrier)),
            None => kube,
        };
        let kube = match config.leadership {
            Some(times) => leader_election::install(&config, times, kube),
            None => kube,
        };
        kubernetes_service::install(&config, kube).post_start_hook(service_cidr::hook(&config))
    }

    /// Whether there is an object of this key.
    fn has(&self, group: &str, plural: &str, key: &str) -> bool {
        self.cache(group, plural).is_some_and(|cache| cache.get(key).is_some())
    }

    /// The watch cache of a resource that is always served.
    fn cache(&self, group: &str, plural: &str) -> Option<Arc<ResourceCache>> {
        self.resources.get(&(group.into(), plural.into())).map(|r| r.cache.clone())
    }
}

/// Creates an object unless there is one of its name. It is looked for first: a webhook that refuses everything must not keep a server from starting
/// that has all it needs.
pub(crate) async fn ensure(
    client: &LoopbackClient,
    resource: &GroupVersionResource,
    object: &Value,
) -> Result<(), Status> {
    let meta = object.meta();
    let target = ResourceRef::new(resource).namespace(meta.namespace());
    if find(client, &target.clone().name(meta.name())).await?.is_some() {
        return Ok(());
    }
    match client.create_unseen(&target, object).await {
        Err(status) if !status.is_already_exists() => Err(status),
        _ => Ok(()),
    }
}

/// Makes a namespace unless it is there: what lives in it may be needed before the namespaces' own hook is done.
async fn ensure_namespace(client: &LoopbackClient, name: &str) -> Result<(), Status> {
    let object = Value::from([("metadata", Value::from([("name", name)]))]);
    ensure(client, &GroupVersionResource::new("", "v1", "namespaces"), &object).await
}

/// Reads an object; `None` if there is none.
async fn find(client: &LoopbackClient, target: &ResourceRef<'_>) -> Result<Option<Value>, Status> {
    match client.get(target).await {
        Ok(found) => Ok(Some(found)),
        Err(status) if status.is_not_found() => Ok(None),
        Err(status) => Err(status),
    }
}

const KUBE_SYSTEM: &str = "kube-system";
