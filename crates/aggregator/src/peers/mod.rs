//! Other servers of the cluster, which may serve what this one does not: during an upgrade they are of another release. Each is
//! asked what it serves when it comes; requests for what only others serve are passed on to one of them, and discovery has
//! what all of them serve.

mod known;
mod metrics;
mod way;

use crate::api_service::{ApiService, value_of};
use crate::handler::{path_and_query, unavailable};
use futures::future::BoxFuture;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderName, HeaderValue, StatusCode};
use known::{Known, Peer};
use kubelith_auth::User;
use kubelith_codec::json::{self, Select};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, negotiated};
use kubelith_meta::{GroupVersion, Status, Str, Value};
use kubelith_observe::metrics::Registry;
use kubelith_openapi::discovery::Discovery;
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::{ClientCertificate, Forward, HostHeader, Identity, Origin, Redirects, Target, forward};
use kubelith_server::controller::{Backoff, Change, Controller, Next};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_store::cache::{CachedObject, ResourceCache};
use metrics::PeerMetrics;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use way::Way;

/// By which a server knows that a request was passed on already, and must not be again.
const PASSED_ON: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");
const LEASES: &str = "kube-system/";
const COMPONENT_LABEL: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";
/// What this server serves alone, or all that there is if the other does not know the difference.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,\
                      application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// For one document, and its bytes at most.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// For a server that is not ready yet, or just gone.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_secs(30) };
/// How long the start waits until all that are there were asked.
const START: Duration = Duration::from_secs(5);
/// The one key of both controllers: all is looked at together.
const ALL: &str = "peers";

/// Where another server is, by its id: `host:port`.
pub trait Locate: Send + Sync {
    fn address<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

pub struct PeerConfig {
    /// What this server is called.
    pub server: Str,
    pub locate: Arc<dyn Locate>,
    pub leases: Arc<ResourceCache>,
    pub api_services: Arc<ResourceCache>,
    pub crds: Option<Arc<ResourceCache>>,
    pub discovery: Arc<Discovery>,
    pub registry: Registry,
    /// By which other servers know this one.
    pub certificate: Arc<ClientCertificate>,
    /// Of the certificates of other servers, in PEM.
    pub authorities: PathBuf,
    pub route: Route,
}

pub struct PeerProxy {
    config: PeerConfig,
    way: Way,
    known: Known,
    metrics: PeerMetrics,
}

impl PeerProxy {
    pub fn new(config: PeerConfig) -> Result<Arc<PeerProxy>, String> {
        let way = Way::new(config.authorities.clone(), config.certificate.clone(), config.route.clone())?;
        config.discovery.join_peers(config.server.clone());
        let metrics = PeerMetrics::new(&config.registry);
        Ok(Arc::new(PeerProxy { config, way, known: Known::default(), metrics }))
    }

    /// Passes requests on, and everything else to `next`.
    pub fn before(self: &Arc<Self>, next: BoxHandler) -> BoxHandler {
        Arc::new(Link { peers: self.clone(), next })
    }

    /// In the order in which health shows them. Names are the reference's.
    pub fn hooks(self: &Arc<Self>) -> Vec<PostStartHook> {
        let peers = self.clone();
        let nothing = |name: &'static str| PostStartHook::new(name, |_| async { Ok(()) });
        let follow = PostStartHook::new("peer-discovery-workers", |context| async move {
            let (asked, tracked) = (peers.clone(), peers.clone());
            let own = peers.config.server.clone();
            let mut tracker = Controller::new("active-gv-tracker", move |_: Str| {
                let peers = tracked.clone();
                async move { Ok::<_, String>(peers.exclude()) }
            })
            .key(ALL)
            .watches(&peers.config.api_services, |_| vec![ALL.into()]);
            if let Some(crds) = &peers.config.crds {
                tracker = tracker.watches(crds, |_| vec![ALL.into()]);
            }
            let tracker = tracker.start(&context.tasks);
            let running = Controller::new("peer-discovery-cache-sync", move |_: Str| {
                let peers = asked.clone();
                async move { peers.ask_all().await.map(|()| Next::Done) }
            })
            .watches(
                &peers.config.leases,
                move |change| {
                    if concerns(change, &own) { vec![ALL.into()] } else { Vec::new() }
                },
            )
            .backoff(BACKOFF)
            .metrics(&context.metrics)
            .start(&context.tasks);
            // A client that asks at once for what others serve gets it.
            let settled = async {
                tracker.settled().await;
                running.settled().await;
            };
            let _ = tokio::time::timeout(START, settled).await;
            Ok(())
        });
        vec![nothing("mixed-version-proxy-handler"), nothing("local-discovery-cache-sync"), follow]
    }

    /// Custom resources and extension servers are the same for all servers: what others knew of them may be old.
    fn exclude(&self) -> Next {
        let mut shared: Vec<GroupVersion> = Vec::new();
        if let Some(crds) = &self.config.crds {
            shared.extend(crds.snapshot().range("", None).flat_map(|crd| versions_of(crd)));
        }
        let api_services = self.config.api_services.snapshot();
        let services = api_services.range("", None).filter_map(|object| value_of(object));
        let services = services.map(|object| ApiService::read(&object)).filter(|service| service.service.is_some());
        shared.extend(services.map(|service| service.gv));
        let again = self.known.set_shared(shared.into_iter().collect());
        self.publish();
        again.map_or(Next::Done, Next::After)
    }

    async fn ask_all(&self) -> Result<(), String> {
        let (mut peers, mut failed) = (BTreeMap::new(), None);
        for server in self.servers() {
            match self.ask(&server).await {
                Ok(peer) => drop(peers.insert(server, peer)),
                Err(why) => failed = Some(why),
            }
        }
        self.known.set_peers(peers);
        self.publish();
        failed.map_or(Ok(()), Err)
    }

    fn publish(&self) {
        let own = self.config.discovery.resources();
        let groups = self.known.refresh(&own.into_iter().collect());
        self.config.discovery.set_peers(groups);
    }

    /// The ids of the others.
    fn servers(&self) -> Vec<Str> {
        let leases = self.config.leases.snapshot();
        let others = leases.range(LEASES, None).filter_map(|lease| holder_of(lease)).map(|(id, _)| id);
        others.filter(|id| *id != self.config.server).collect()
    }

    async fn ask(&self, server: &str) -> Result<Peer, String> {
        let authority = self.authority(server).await.inspect_err(|_| self.metrics.not_asked("hostport_resolution"))?;
        let user = User { groups: vec!["system:authenticated".into()], ..User::named("system:apiserver") };
        let mut peer = Peer::default();
        for path in ["/api", "/apis"] {
            let target = Target { authority: authority.clone(), path_and_query: PathAndQuery::from_static(path) };
            let fetched = self.way.transport().fetch(target, &user, ACCEPT, None, (MAX_BYTES, TIMEOUT)).await;
            let document = fetched.map_err(|e| e.to_string()).and_then(|answer| {
                self.metrics.passed(answer.status, ["", "", ""]);
                match answer.status {
                    StatusCode::OK => json::parse(&answer.body).map_err(|e| e.to_string()),
                    code => Err(format!("discovery request failed with status: {}", code.as_u16())),
                }
            });
            let document = document.and_then(|document| peer.add(&document));
            document.map_err(|why| {
                self.metrics.not_asked("fetch_discovery");
                format!("discovery of {server}, {path}: {why}")
            })?;
        }
        Ok(peer)
    }

    async fn authority(&self, server: &str) -> Result<Authority, String> {
        let address = self.config.locate.address(server).await?;
        let with_port = address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && !port.is_empty());
        match with_port {
            true => address.parse().map_err(|_| format!("invalid address {address}")),
            false => Err(format!("address {address}: missing port in address")),
        }
    }

    async fn pass(&self, servers: &[Str], mut request: Request) -> Response {
        let info = request.info().clone();
        let resource = [info.group.as_str(), info.version.as_str(), info.resource.as_str()];
        let mut addresses = Vec::new();
        for server in servers {
            match self.authority(server).await {
                Ok(authority) => addresses.push(authority),
                Err(why) => tracing::error!(err = why, server = server.as_str(), "where another server is"),
            }
        }
        if addresses.is_empty() {
            self.metrics.not_passed("endpoint_resolution", resource);
            let why = "Error getting ip and port info of the remote server while proxying";
            return negotiated::status(request.headers(), false, &Status::service_unavailable(why));
        }
        let authority = addresses.swap_remove(kubelith_meta::random::random_bits() as usize % addresses.len());
        let (Some(path_and_query), Some(user)) = (path_and_query(&request), request.user().cloned()) else {
            self.metrics.not_passed("proxy_transport", resource);
            return unavailable("no user details present in request");
        };
        request.headers_mut().insert(PASSED_ON, HeaderValue::from_static("true"));
        let how = Forward {
            user: Some((user, Identity::WithUid)),
            redirects: Redirects::Pass,
            host: HostHeader::Server,
            origin: Origin::Server,
        };
        let target = Target { authority, path_and_query };
        let response = forward(&self.way.transport(), target, request, &how).await.unwrap_or_else(unavailable);
        self.metrics.passed(response.status(), resource);
        response
    }
}

/// The proxy with what comes after it.
struct Link {
    peers: Arc<PeerProxy>,
    next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let info = request.info();
        // Mostly all servers serve the same, and there is nothing to look up.
        let servers = match info.is_resource_request {
            true => self.peers.known.only_at(&info.group, &info.version, &info.resource),
            false => None,
        };
        match servers {
            Some(servers) if request.header("x-kubernetes-peer-proxied") != "true" => {
                let peers = self.peers.clone();
                Reply::pending(async move { peers.pass(&servers, request).await })
            }
            _ => self.next.handle(request),
        }
    }
}

/// The id of a server and what tells its life from others, if this is a server's Lease.
fn holder_of(lease: &CachedObject) -> Option<(Str, Str)> {
    let value = value_of(lease)?;
    let ours = value.meta().label(COMPONENT_LABEL) == Some(COMPONENT);
    let holder = value.at(&["spec", "holderIdentity"]).and_then(Value::as_str)?;
    ours.then(|| (Str::from(value.meta().name()), Str::from(holder)))
}

/// Whether a server came, went, or was started anew. That it renews its Lease is no news.
fn concerns(change: &Change, own: &Str) -> bool {
    if !change.object().key.starts_with(LEASES) {
        return false;
    }
    let [old, new] = [&change.old, &change.new].map(|lease| lease.as_deref().and_then(holder_of));
    old != new && [old, new].into_iter().flatten().any(|(id, _)| id != *own)
}

static VERSIONS: Select = Select::Members(&[(
    "spec",
    Select::Members(&[("group", Select::All), ("versions", Select::Each(&Select::Members(&[("name", Select::All)])))]),
)]);

fn versions_of(crd: &CachedObject) -> Vec<GroupVersion> {
    let Ok(value) = json::parse_selected(&crd.json(), &VERSIONS) else { return Vec::new() };
    let group = Str::from(value.str_at(&["spec", "group"]));
    let versions = value.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    versions.iter().map(|version| GroupVersion::new(group.clone(), version.str_at(&["name"]))).collect()
}
