//! The aggregator, put together: its handler in front of the other servers', its controllers as hooks, in the order in
//! which health shows them.

use crate::api_service::{ApiServiceReadings, ApiServices, Managed};
use crate::autoregister::{AutoRegister, Local};
use crate::availability::{self, Availability};
use crate::crd_registration::CrdRegistration;
use crate::discovery::{self, DiscoveryAggregation};
use crate::handler::{Link, Proxy};
use crate::metrics::AggregatorMetrics;
use crate::openapi::{self, OpenApiAggregation};
use crate::registration::{OWN_GROUP, Registration};
use crate::resolve::{Resolver, Routing, service_of};
use crate::routes::{Routes, Transports};
use kubelith_meta::Str;
use kubelith_meta::time::Clock;
use kubelith_observe::metrics::Metrics;
use kubelith_openapi::OpenApi;
use kubelith_openapi::discovery::Discovery;
use kubelith_outbound::egress::Route;
use kubelith_outbound::proxy::{ClientCertificate, Identity, Redirects};
use kubelith_server::Delegate;
use kubelith_server::controller::{Backoff, Change, Controller, Next};
use kubelith_server::health::Check;
use kubelith_server::installation::{Awaited, Installation};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::LoopbackClient;
use kubelith_store::cache::ResourceCache;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// APIServices are looked at again after this time: whether a server answers is nothing that a watch tells.
const RESYNC: Duration = Duration::from_secs(30);
/// For APIServices that fail.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), most: Duration::from_secs(30) };
/// Checks and writes at a time, as in the reference.
const WORKERS: usize = 5;
/// Built-in group versions registered at a time when the server starts: enough to share the store's commits.
const LOCAL_WORKERS: usize = 64;
/// Documents asked for at a time: a server that does not answer holds up one worker for seconds.
const DOCUMENT_WORKERS: usize = 16;
/// For servers that have no OpenAPI to give right now.
const DOCUMENT_BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(3600) };
/// Hooks of the two OpenAPI versions, and the controllers that they start.
const OPENAPI_V2: (&str, &str) = ("apiservice-openapi-controller", "apiservice-openapi");
const OPENAPI_V3: (&str, &str) = ("apiservice-openapiv3-controller", "apiservice-openapiv3");
/// How often the files of our certificate are looked at.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(60);

/// What the aggregator works with.
pub struct Config {
    pub api_services: Arc<ResourceCache>,
    /// Of APIServices.
    pub readings: Arc<ApiServiceReadings>,
    pub services: Arc<ResourceCache>,
    /// `None` if they are not served: no service has endpoints then.
    pub endpoint_slices: Option<Arc<ResourceCache>>,
    /// `None` if custom resources are not served.
    pub crds: Option<Arc<ResourceCache>>,
    pub client: LoopbackClient,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    pub discovery: Arc<Discovery>,
    pub openapi: Arc<OpenApi>,
    /// The group versions that this server serves itself.
    pub built_in: Arc<[Local]>,
    pub routing: Routing,
    pub redirects: Redirects,
    pub identity: Identity,
    /// By which other servers know us.
    pub certificate: Arc<ClientCertificate>,
    /// The way to services.
    pub route: Route,
    /// Awaits the routes of the APIServices that are there.
    pub installation: Installation,
}

/// Everything that the hooks share.
struct Parts {
    api_services: ApiServices,
    endpoint_slices: Option<Arc<ResourceCache>>,
    services: Arc<ResourceCache>,
    crds: Option<Arc<ResourceCache>>,
    routes: Arc<Routes>,
    resolver: Arc<Resolver>,
    transports: Arc<Transports>,
    registration: Arc<Registration>,
    availability: Arc<Availability>,
    auto_register: Arc<AutoRegister>,
    discovery: Arc<DiscoveryAggregation>,
    openapi: Arc<OpenApiAggregation>,
}

/// Puts the aggregator in front of `next`.
pub fn serve(config: Config, next: Delegate) -> Delegate {
    let readings = config.readings.clone();
    let api_services = ApiServices { cache: config.api_services.clone(), readings };
    let routes = Arc::new(Routes::default());
    let resolver = Arc::new(Resolver::new(config.routing, config.services.clone()));
    let transports = Arc::new(Transports::new(
        config.certificate.clone(),
        config.route.clone(),
        config.metrics.extension_servers.clone(),
        config.metrics.transports.clone(),
    ));
    let metrics = Arc::new(AggregatorMetrics::new(&config.metrics.registry));
    let registration = Registration::new(api_services.clone(), routes.clone(), transports.clone());
    let listed = registration.clone();
    config.discovery.list_groups_by(move || listed.groups());
    let auto_register = AutoRegister::new(api_services.clone(), config.client.clone());
    let built_in: Vec<&Local> = config.built_in.iter().filter(|l| l.gv.group != OWN_GROUP).collect();
    let names: Vec<Str> = built_in.iter().map(|local| local.name()).collect();
    for local in built_in {
        auto_register.want(local.clone(), Managed::OnStart);
    }
    let parts = Arc::new(Parts {
        discovery: Arc::new(DiscoveryAggregation {
            api_services: api_services.clone(),
            resolver: resolver.clone(),
            transports: transports.clone(),
            discovery: config.discovery,
            metrics: metrics.clone(),
            state: Mutex::default(),
        }),
        openapi: Arc::new(OpenApiAggregation {
            api_services: api_services.clone(),
            routes: routes.clone(),
            resolver: resolver.clone(),
            transports: transports.clone(),
            openapi: config.openapi,
            state: Mutex::default(),
        }),
        availability: Arc::new(Availability {
            api_services: api_services.clone(),
            client: config.client,
            resolver: resolver.clone(),
            transports: transports.clone(),
            metrics,
            clock: config.clock,
            user: availability::user(),
        }),
        endpoint_slices: config.endpoint_slices,
        services: config.services,
        crds: config.crds,
        routes: routes.clone(),
        resolver: resolver.clone(),
        transports,
        registration,
        auto_register,
        api_services: api_services.clone(),
    });
    let documents = parts.openapi.clone();
    let proxy = Arc::new(Proxy {
        routes,
        resolver,
        redirects: config.redirects,
        identity: config.identity,
        openapi_paths: Box::new(move |path| documents.backend(path)),
    });
    let hooks = next
        .behind(|next| config.installation.before(Arc::new(Link { proxy, next })))
        .post_start_hook(reload_certificate(&parts))
        .post_start_hook(PostStartHook::new("start-kube-aggregator-informers", |_| async { Ok(()) }))
        .post_start_hook(local_availability(&parts))
        .post_start_hook(remote_availability(&parts))
        .post_start_hook(registration_hook(&parts, config.installation.awaits_one()))
        .post_start_hook(discovery_hook(&parts))
        .post_start_hook(auto_registration(&parts));
    hooks
        .boot_check(completion(api_services, names))
        .post_start_hook(documents_hook(&parts, OPENAPI_V2, OpenApiAggregation::reconcile_v2))
        .post_start_hook(documents_hook(&parts, OPENAPI_V3, OpenApiAggregation::reconcile_v3))
}

fn its_name(change: &Change) -> Vec<Str> {
    vec![change.key()]
}

fn reload_certificate(parts: &Arc<Parts>) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("aggregator-reload-proxy-client-cert", |context| async move {
        context.tasks.spawn_until_stopped("aggregator-reload-proxy-client-cert", async move {
            loop {
                tokio::time::sleep(CERTIFICATE_INTERVAL).await;
                match parts.transports.certificate().reload() {
                    Ok(true) => {
                        tracing::info!("the proxy's client certificate was reloaded");
                        parts.registration.refresh();
                    }
                    Ok(false) => {}
                    Err(why) => tracing::warn!(err = why, "the proxy's client certificate was not reloaded"),
                }
            }
        });
        Ok(())
    })
}

fn local_availability(parts: &Arc<Parts>) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("apiservice-status-local-available-controller", |context| async move {
        let availability = parts.availability.clone();
        Controller::new("apiservice-local-availability", move |name| availability.clone().reconcile_local(name))
            .watches(&parts.api_services.cache, its_name)
            .workers(LOCAL_WORKERS)
            .backoff(BACKOFF)
            .start(&context.tasks);
        Ok(())
    })
}

/// Changes of services and slices concern the APIServices that use them.
fn remote_availability(parts: &Arc<Parts>) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("apiservice-status-remote-available-controller", |context| async move {
        let availability = parts.availability.clone();
        let (by_service, by_slice, resolver) = (parts.routes.clone(), parts.routes.clone(), parts.resolver.clone());
        let mut controller =
            Controller::new("apiservice-remote-availability", move |name| availability.clone().reconcile_remote(name));
        if let Some(slices) = &parts.endpoint_slices {
            controller = controller.watches(slices, move |change| {
                resolver.slice_changed(change.old.as_ref(), change.new.as_ref());
                let services = [&change.old, &change.new].into_iter().flatten().filter_map(|o| service_of(o));
                let services: BTreeSet<Str> = services.collect();
                users_of(&by_slice, |service| services.contains(service))
            });
        }
        controller
            .watches(&parts.services, move |change| {
                let key = change.key();
                users_of(&by_service, |service| *service == key)
            })
            .watches(&parts.api_services.cache, its_name)
            .workers(WORKERS)
            .backoff(BACKOFF)
            .every(RESYNC)
            .start(&context.tasks);
        Ok(())
    })
}

/// The APIServices of services that `matches` knows by `namespace/name`. The registration controller may not have seen
/// a new one yet; that one is looked at because it is new.
fn users_of(routes: &Routes, matches: impl Fn(&Str) -> bool) -> Vec<Str> {
    let uses =
        |b: &&Arc<crate::routes::Backend>| matches(&Str::from(format!("{}/{}", b.service.namespace, b.service.name)));
    routes.all().iter().filter(uses).map(|b| b.name.clone()).collect()
}

/// Done when every APIService that was there has its route: before that, nobody can say that a path leads nowhere.
fn registration_hook(parts: &Arc<Parts>, routes: Awaited) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("apiservice-registration-controller", |context| async move {
        let registration = parts.registration.clone();
        let running = Controller::new("apiservice-registration", move |name| registration.clone().reconcile(name))
            .watches(&parts.api_services.cache, its_name)
            .start(&context.tasks);
        running.settled().await;
        routes.done();
        Ok(())
    })
}

/// Done when every server that was there was asked: those that did not answer are in the document as stale ones.
fn discovery_hook(parts: &Arc<Parts>) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("apiservice-discovery-controller", |context| async move {
        let (aggregation, changed) = (parts.discovery.clone(), parts.discovery.clone());
        let running = Controller::new("apiservice-discovery", move |name| aggregation.clone().reconcile(name))
            .watches(&parts.api_services.cache, move |change| {
                changed.changed(&change.key());
                its_name(change)
            })
            .workers(DOCUMENT_WORKERS)
            .backoff(Backoff { first: Duration::from_millis(500), most: discovery::REFRESH })
            .every(discovery::REFRESH)
            .start(&context.tasks);
        running.settled().await;
        Ok(())
    })
}

/// A controller of OpenAPI documents, under the hook's name and its own.
fn documents_hook<F>(
    parts: &Arc<Parts>,
    (hook, controller): (&'static str, &'static str),
    reconcile: impl Fn(Arc<OpenApiAggregation>, Str) -> F + Send + Sync + 'static,
) -> PostStartHook
where
    F: Future<Output = Result<Next, String>> + Send + 'static,
{
    let parts = parts.clone();
    PostStartHook::new(hook, move |context| async move {
        let aggregation = parts.openapi.clone();
        Controller::new(controller, move |name| reconcile(aggregation.clone(), name))
            .watches(&parts.api_services.cache, its_name)
            .workers(DOCUMENT_WORKERS)
            .backoff(DOCUMENT_BACKOFF)
            .every(openapi::REFRESH)
            .start(&context.tasks);
        Ok(())
    })
}

/// APIServices of custom resources are wanted before the first one that nobody wants is deleted.
fn auto_registration(parts: &Arc<Parts>) -> PostStartHook {
    let parts = parts.clone();
    PostStartHook::new("kube-apiserver-autoregistration", |context| async move {
        let tasks = context.tasks.clone();
        context.tasks.spawn_until_stopped("autoregister", async move {
            if let Some(crds) = &parts.crds {
                let names = CrdRegistration::new(parts.auto_register.clone());
                let changed = names.clone();
                let running = Controller::new("crd-autoregister", move |name| names.clone().reconcile(name))
                    .watches(crds, move |change| changed.changed(change))
                    .workers(WORKERS)
                    .start(&tasks);
                running.settled().await;
            }
            let auto_register = parts.auto_register.clone();
            let running = Controller::new("autoregister", move |name| auto_register.clone().reconcile(name))
                .watches(&parts.api_services.cache, its_name)
                .workers(LOCAL_WORKERS);
            parts.auto_register.remember();
            let running = running.start(&tasks);
            parts.auto_register.started(running.queue());
        });
        Ok(())
    })
}

/// Passes once every built-in group version was seen with an APIService that is available.
fn completion(api_services: ApiServices, names: Vec<Str>) -> Check {
    let pending = Mutex::new(names.into_iter().collect::<BTreeSet<Str>>());
    Check::sync("autoregister-completion", move || {
        let mut pending = pending.lock().expect("no panic under this lock");
        pending.retain(|name| !api_services.get(name).is_some_and(|a| a.is_available()));
        if pending.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = pending.iter().map(Str::as_str).collect();
        Err(format!("missing APIService: [{}]", names.join(" ")))
    })
}
