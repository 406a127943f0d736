//! What the servers of the chain share, and the built-in resources, which exist before any of them.

use super::services::{self, Routing};
use crate::admission_metrics::AdmissionMetrics;
use crate::blueprint::Blueprint;
use crate::chain::own_requests::{OwnRequests, own_server};
use crate::flow_control::FlowControl;
use crate::options::Options;
use kubelith_admission::plugins::QuotaUsage;
use kubelith_admission::{FindCustom, HookFactory, Manifests, Reviewer};
use kubelith_catalog::RuntimeConfig;
use kubelith_handlers::Limits;
use kubelith_handlers::options::InitialEvents;
use kubelith_kube::actions::Access;
use kubelith_kube::bootstrap::Beginning;
use kubelith_kube::bootstrap::authentication::AuthenticationInfo;
use kubelith_kube::services::{PortRange, ServiceNetwork, Services};
use kubelith_kube::{Install, Installed, Resources, install};
use kubelith_meta::Clock;
use kubelith_meta::Value;
use kubelith_meta::names::Cidr;
use kubelith_meta::random::MadeUp;
use kubelith_observe::metrics::Metrics;
use kubelith_openapi::discovery::Discovery;
use kubelith_openapi::{Library, OpenApi};
use kubelith_outbound::client::Kubeconfig;
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::hook::{self, HookClients, HookConfig, OwnServer, Resolve, Users};
use kubelith_registry::Objects;
use kubelith_registry::admission::Admission;
use kubelith_rules::Env;
use kubelith_server::identity::ServerIdentity;
use kubelith_server::installation::Installation;
use kubelith_server::lifecycle::{Begun, Tasks};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_server::served::count_what_is_served;
use kubelith_store::cache::Hub;
use kubelith_tls::Flaws;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What the frame lends to the servers.
#[derive(Clone)]
#[allow(dead_code, reason = "the extensions server and the aggregator take what they need")]
pub struct Frame {
    /// Calls the whole server from within; works once it is built.
    pub client: LoopbackClient,
    /// For work that goes on in the background. Start it in a post-start hook, not while the chain is built.
    pub tasks: Tasks,
    /// Raised when the post-start hooks are done.
    pub started: CancellationToken,
    pub begun: Begun,
    pub metrics: Metrics,
    pub flow_control: FlowControl,
    /// Who this server is among those of the cluster.
    pub identity: ServerIdentity,
    pub clock: Arc<dyn Clock>,
    /// Where uids and generated names come from.
    pub made_up: MadeUp,
    /// Of the options.
    pub blueprint: Arc<Blueprint>,
}

/// Everything a server of the chain may need.
#[allow(dead_code, reason = "the extensions server and the aggregator take what they need")]
pub struct Shared<'a> {
    pub options: &'a Options,
    pub frame: Frame,
    pub hub: Arc<Hub>,
    /// The built-in resources that are stored, of all groups.
    pub resources: Arc<Resources>,
    /// What gives services their addresses and ports.
    pub services: Arc<Services>,
    /// Which groups there are; each server sets a source of its own.
    pub discovery: Arc<Discovery>,
    /// Documents of all group versions; servers put and remove theirs.
    pub openapi: Arc<OpenApi>,
    /// Admission of built-in and custom resources.
    pub admission: Arc<dyn Admission>,
    /// Files that admission takes part of its configuration from.
    pub manifests: Vec<Arc<Manifests>>,
    /// From services to addresses.
    pub resolve: Resolve,
    pub access: Access,
    /// What clients' credentials are checked against, as it is now, to be told to extension servers.
    pub authentication: Arc<dyn Fn() -> AuthenticationInfo + Send + Sync>,
    pub clock: Arc<dyn Clock>,
    /// Counts what quotas limit.
    pub quotas: Arc<QuotaUsage>,
    pub limits: Limits,
    /// Awaits those servers whose paths are not there at once.
    pub installation: Installation,
    /// Whether the objects of a new store are there.
    pub beginning: Beginning,
}

impl<'a> Shared<'a> {
    /// Makes the built-in resources over the watch caches.
    pub async fn open(
        options: &'a Options,
        frame: Frame,
        hub: Arc<Hub>,
        access: Access,
        authentication: Arc<dyn Fn() -> AuthenticationInfo + Send + Sync>,
    ) -> Result<(Shared<'a>, Builtin), String> {
        let (objects, clock) = (Objects::new(), frame.clock.clone());
        let routing = match options.aggregator.route_to_endpoints {
            true => Routing::Endpoints,
            false => Routing::ClusterIp,
        };
        let resolve = services::resolver(objects.clone(), routing);
        let gates = |gate: &str| options.features.enabled(gate);
        let env = Env::new(options.admission.allow_privileged, &gates, clock.clone());
        let env = Env { made_up: frame.made_up.clone(), ..env.with_dialect(options.dialect()) };
        let env = Arc::new(env);
        let plugins = kubelith_admission::Config {
            objects: objects.clone(),
            authorizer: access.authorizer.clone(),
            gates: Arc::new({
                let features = options.features.clone();
                move |gate: &str| features.enabled(gate)
            }),
            release: options.compatibility.emulation.minor,
            not_ready_toleration_seconds: options.admission.not_ready_toleration_seconds,
            unreachable_toleration_seconds: options.admission.unreachable_toleration_seconds,
            configuration: options.admission.configuration.clone(),
            hooks: hooks(options, resolve.clone(), own_server(frame.client.clone()), &frame.metrics),
            reviewer: reviewer(&frame.metrics.webhooks),
            custom: custom_resources(frame.client.clone()),
            observer: Arc::new(AdmissionMetrics::new(
                &frame.metrics.registry,
                &frame.identity.id,
                frame.metrics.requests.recent.clone(),
            )),
            server: Arc::new(OwnRequests(frame.client.clone())),
            clock: clock.clone(),
            made_up: frame.made_up.clone(),
            expressions: env.expressions.clone(),
        };
        let quotas = Arc::new(QuotaUsage::new(&objects, clock.clone(), &*plugins.gates));
        let admission = kubelith_admission::build(&plugins, &options.admission.switches);
        let chain = Arc::new(admission.map_err(|why| format!("failed to apply admission: {why}"))?);
        let (manifests, admission): (_, Arc<dyn Admission>) = (chain.manifests(), chain);
        let limits = Limits {
            min_request_timeout: options.generic.min_request_timeout,
            delete_collection_workers: options.storage.delete_collection_workers(),
            shards: options.features.enabled("ShardedListAndWatch"),
            pages_any_age: !options.storage.watch_cache,
            compresses: options.features.enabled("APIResponseCompression"),
            initial_events: match options.features.enabled("WatchList") {
                true => InitialEvents::Served,
                false => InitialEvents::Refused,
            },
            ..Limits::default()
        };
        let catalog = kubelith_catalog::builtin();
        let features = options.features.clone();
        let installed = install(Install {
            catalog,
            kinds: kubelith_kinds::BUILTIN,
            hub: hub.clone(),
            stored_as: options.storage.encoding,
            served_by: frame.blueprint.served_by(options),
            admission: admission.clone(),
            objects,
            service_network: ServiceNetwork {
                ranges: options
                    .network
                    .service_ranges
                    .iter()
                    .map(|r| Cidr { address: r.base, prefix: r.prefix })
                    .collect(),
                node_ports: PortRange {
                    base: options.network.service_node_ports.base,
                    size: options.network.service_node_ports.size,
                },
                ip_rules: env.ip_rules(),
            },
            clock: clock.clone(),
            made_up: frame.made_up.clone(),
            strategies: [super::extensions::strategy(env.expressions.clone())].into(),
            env,
            registry: frame.metrics.registry.clone(),
            limits,
            uncached: options.storage.uncached.clone(),
            garbage_collection: options.storage.garbage_collector,
            access: access.clone(),
            runtime_config: RuntimeConfig::parse(catalog, &options.storage.runtime_config)?,
            emulation: options.emulation(),
            gates: Arc::new(move |gate: &str| features.enabled(gate)),
            plan: frame.blueprint.plan(),
        });
        let Installed { routes, discovery: entries, resources, services, plan } =
            installed.await.map_err(|e| e.to_string())?;
        frame.blueprint.keep_plan(&plan);
        // They are completed as what is sent is, by resources that are there from here on.
        for manifest in &manifests {
            manifest.load().map_err(|why| format!("failed to apply admission: {why}"))?;
        }
        let discovery = Discovery::new(options.external_address());
        count_what_is_served(&frame.metrics.requests, discovery.clone());
        let shared = Shared {
            options,
            frame,
            hub,
            resources: Arc::new(resources),
            services,
            discovery,
            openapi: OpenApi::new(library(options)),
            admission,
            manifests,
            resolve,
            access,
            authentication,
            clock,
            quotas,
            limits,
            installation: Installation::default(),
            beginning: Beginning::default(),
        };
        Ok((shared, Builtin { routes, entries }))
    }
}

/// The way to admission webhooks, as whom a kubeconfig file says.
fn hooks(options: &Options, resolve: Resolve, own: OwnServer, metrics: &Metrics) -> HookFactory {
    let (egress, flaws, transports) = (options.egress.clone(), metrics.webhooks.clone(), metrics.transports.clone());
    Arc::new(move |kubeconfig| {
        let users = kubeconfig.map_or_else(|| Ok(Users::default()), Users::load)?;
        let (cluster, control_plane) = (egress.cluster.clone(), egress.control_plane.clone());
        let (resolve, own) = (resolve.clone(), Some(own.clone()));
        let (flaws, transports) = (Some(flaws.clone()), transports.clone());
        Ok(HookClients::new(HookConfig { resolve, own, users, cluster, control_plane, flaws, transports }))
    })
}

/// The way to the server that a kubeconfig file names: straight, as in the reference.
fn reviewer(flaws: &Arc<Flaws>) -> Reviewer {
    let flaws = flaws.clone();
    Arc::new(move |kubeconfig| {
        let mut kubeconfig = Kubeconfig::load(kubeconfig)?;
        kubeconfig.tls.flaws = Some(flaws.clone());
        hook::of_kubeconfig(&kubeconfig, &Route::Direct)
    })
}

/// Custom resources, read as every client reads them.
fn custom_resources(client: LoopbackClient) -> FindCustom {
    Arc::new(move |resource, namespace, name| {
        let client = client.clone();
        Box::pin(async move {
            let all = ResourceRef::new(&resource).namespace(&namespace);
            let Some(name) = name else {
                let list = client.list(&all).await?;
                return Ok(list.get("items").and_then(Value::as_array).unwrap_or(&[]).to_vec());
            };
            match client.get(&all.name(&name)).await {
                Ok(object) => Ok(vec![object]),
                Err(status) if status.is_not_found() => Ok(Vec::new()),
                Err(status) => Err(status),
            }
        })
    })
}

/// The built-in groups, for the server that serves them.
pub struct Builtin {
    pub routes: kubelith_handlers::api::Routes,
    pub entries: Vec<kubelith_openapi::discovery::Entry>,
}

/// What OpenAPI documents are made from.
fn library(options: &Options) -> Library {
    let version = crate::version::info();
    Library {
        catalog: kubelith_catalog::builtin(),
        release: format!("{}.{}", version.major, version.minor).into(),
        enums: options.features.enabled("OpenAPIEnums"),
    }
}
