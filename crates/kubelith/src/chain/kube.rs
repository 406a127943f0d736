//! The kube server: the built-in groups and the objects that every cluster has.

use super::{Builtin, Shared};
use crate::options::NetworkOptions;
use kubelith_handlers::api::Api;
use kubelith_kube::bootstrap::{Bootstrap, KubernetesService, StorageBarrier};
use kubelith_kube::connect::{self, ConnectFeatures};
use kubelith_openapi::SharedDocuments;
use kubelith_openapi::discovery::Source;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::{Delegate, served};
use std::sync::Arc;

pub fn server(
    shared: &Shared<'_>,
    mut builtin: Builtin,
    next: Delegate,
    peer_hooks: Vec<PostStartHook>,
    storage_versions: Option<Arc<StorageBarrier>>,
) -> Result<Delegate, String> {
    let enabled = |gate: &str| shared.options.features.enabled(gate);
    connect::install(
        &mut builtin.routes,
        &shared.resources,
        &shared.options.kubelet,
        shared.access.authorizer.clone(),
        ConnectFeatures {
            upgrades_need_create: enabled("AuthorizePodWebsocketUpgradeCreatePermission"),
            log_streams: enabled("PodLogsQuerySplitStreams"),
            translates_commands: enabled("TranslateStreamCloseWebsocketRequests"),
            tunnels_ports: enabled("PortForwardWebsockets"),
            trusts_kubelets_with_websockets: enabled("ExtendWebSocketsToKubelet"),
        },
        &shared.frame.metrics.registry,
    )?;
    shared.discovery.set(Source::BuiltIn, builtin.entries);
    let documents = || SharedDocuments::new(served::subjects(&builtin.routes));
    shared.openapi.put_shared(shared.frame.blueprint.documents.get_or_init(documents));
    Ok(bootstrap(shared, storage_versions).install(next.behind(|next| Api::new(builtin.routes, next)), peer_hooks))
}

/// What writes wait for, if StorageVersion objects are kept.
pub fn storage_versions(shared: &Shared<'_>) -> Option<Arc<StorageBarrier>> {
    let enabled = |gate: &str| shared.options.features.enabled(gate);
    let served = shared.resources.contains_key(&("internal.apiserver.k8s.io".into(), "storageversions".into()));
    let kept = served && enabled("StorageVersionAPI") && enabled("APIServerIdentity");
    kept.then(|| StorageBarrier::new(&shared.resources))
}

fn bootstrap(shared: &Shared<'_>, storage_versions: Option<Arc<StorageBarrier>>) -> Bootstrap {
    let network = &shared.options.network;
    let port = shared.options.serving.bind.port;
    let enabled = |gate: &str| shared.options.features.enabled(gate);
    Bootstrap {
        client: shared.frame.client.clone(),
        hub: shared.hub.clone(),
        resources: shared.resources.clone(),
        services: shared.services.clone(),
        clock: shared.clock.clone(),
        identity: shared.frame.identity.clone(),
        peer_address: enabled("UnknownVersionInteroperabilityProxy").then(|| network.peer_address(port).to_string()),
        service: kubernetes_service(network, port),
        service_ranges: network.service_ranges.iter().map(ToString::to_string).collect(),
        authentication: shared.authentication.clone(),
        leadership: enabled("CoordinatedLeaderElection").then_some(shared.options.generic.leadership),
        storage_versions,
        beginning: shared.beginning,
        roles: shared.access.uses_roles.then(|| Arc::new(shared.options.features.clone())),
    }
}

fn kubernetes_service(network: &NetworkOptions, port: u16) -> KubernetesService {
    KubernetesService {
        address: network.kubernetes_service_address(),
        node_port: network.kubernetes_service_node_port as u16,
        server_address: network.advertise_address,
        server_port: port,
        reconciler: network.endpoint_reconciler,
    }
}
