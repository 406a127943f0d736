//! Subresources that lead out of the server: `proxy` of services, pods and nodes, and what kubelets do for pods (`log`,
//! `exec`, `attach`, `portforward`). Each finds where the other side is (`location`, `kubelet`), asks admission, and
//! passes the request on through the server's proxy core.

mod kubelet;
mod location;
mod metrics;
mod options;
mod run;
mod ways;

pub use kubelet::KubeletOptions;

use crate::Resources;
use kubelet::Kubelets;
use kubelith_auth::Authorizer;
use kubelith_handlers::api::Routes;
use kubelith_meta::GroupVersion;
use kubelith_observe::metrics::Registry;
use kubelith_outbound::proxy::{ClientCertificate, TlsClient, Transport};
use kubelith_registry::Resource;
use kubelith_tls::Trust;
use metrics::ConnectMetrics;
use run::Connect;
use std::sync::Arc;

/// What a request connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectKind {
    ServiceProxy,
    PodProxy,
    NodeProxy,
    Log,
    Exec,
    Attach,
    PortForward,
}

/// What all of them work with.
struct Parts {
    services: Arc<Resource>,
    endpoints: Arc<Resource>,
    pods: Arc<Resource>,
    kubelets: Kubelets,
    authorizer: Arc<dyn Authorizer>,
    features: ConnectFeatures,
    metrics: Arc<ConnectMetrics>,
    /// To services and pods; their certificates are nobody's to vouch for.
    plain: Arc<Transport>,
    tls: Arc<Transport>,
}

/// What feature gates decide.
#[derive(Debug, Clone, Copy)]
pub struct ConnectFeatures {
    /// A GET that takes over a connection needs the right to create, too (AuthorizePodWebsocketUpgradeCreatePermission).
    pub upgrades_need_create: bool,
    /// Logs may be asked for by stream (PodLogsQuerySplitStreams).
    pub log_streams: bool,
    /// exec and attach by WebSocket become SPDY on the way to kubelets (TranslateStreamCloseWebsocketRequests).
    pub translates_commands: bool,
    /// SPDY in a WebSocket is taken out of it on the way to kubelets (PortForwardWebsockets).
    pub tunnels_ports: bool,
    /// Kubelets that speak WebSocket are left to do so (ExtendWebSocketsToKubelet).
    pub trusts_kubelets_with_websockets: bool,
}

/// Puts the actions into the routes of the core group, as far as its resources are there.
pub fn install(
    routes: &mut Routes,
    resources: &Resources,
    kubelets: &KubeletOptions,
    authorizer: Arc<dyn Authorizer>,
    features: ConnectFeatures,
    registry: &Registry,
) -> Result<(), String> {
    let find = |plural: &str| resources.get(&("".into(), plural.into())).cloned();
    let (Some(services), Some(endpoints), Some(pods), Some(nodes)) =
        (find("services"), find("endpoints"), find("pods"), find("nodes"))
    else {
        return Ok(());
    };
    let anyone =
        TlsClient { trust: Trust::Anyone, server_name: None, certificate: ClientCertificate::none(), flaws: None };
    let text = |e: kubelith_outbound::proxy::TlsClientError| e.to_string();
    let parts = Arc::new(Parts {
        services,
        endpoints,
        pods,
        kubelets: Kubelets::new(nodes, kubelets)?,
        authorizer,
        features,
        metrics: Arc::new(ConnectMetrics::new(registry)),
        plain: Arc::new(Transport::by(&kubelets.route, None).map_err(text)?.limited_to(kubelets.bandwidth)),
        tls: Arc::new(Transport::by(&kubelets.route, Some(&anyone)).map_err(text)?.limited_to(kubelets.bandwidth)),
    });
    let Some(core) = routes.versions.get_mut(&GroupVersion::new("", "v1")) else { return Ok(()) };
    for (plural, subresource, kind) in [
        ("services", "proxy", ConnectKind::ServiceProxy),
        ("pods", "proxy", ConnectKind::PodProxy),
        ("nodes", "proxy", ConnectKind::NodeProxy),
        ("pods", "log", ConnectKind::Log),
        ("pods", "exec", ConnectKind::Exec),
        ("pods", "attach", ConnectKind::Attach),
        ("pods", "portforward", ConnectKind::PortForward),
    ] {
        if let Some(served) = core.get_mut(plural) {
            served.actions.insert(subresource.into(), Arc::new(Connect { kind, parts: parts.clone() }));
        }
    }
    Ok(())
}
