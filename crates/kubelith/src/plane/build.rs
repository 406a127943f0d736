//! From options to a server that is ready to run, in the order in which the parts depend on each other.

use super::seed::Seed;
use crate::access::{AccessMetrics, Authorities, ClientCas, Setup, barrier};
use crate::blueprint::Blueprint;
use crate::certificates::{Certificates, Lasting};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::flow_control::FlowControl;
use crate::options::{ClockOptions, Options};
use crate::storage::{Begin, Storage};
use crate::test_api::TestApi;
use crate::version;
use crate::{audit, chain, console, egress_metrics};
use kubelith_auth::impersonation::Modes;
use kubelith_auth::service_account::KeySet;
use kubelith_console::Sessions;
use kubelith_listen::HttpOptions;
use kubelith_meta::Clock;
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::{SystemClock, TestClock};
use kubelith_observe::metrics::Metrics;
use kubelith_observe::spans::Tracer;
use kubelith_openapi::Subject;
use kubelith_server::chain::ChainConfig;
use kubelith_server::faults::Faults;
use kubelith_server::filters::audit::Audit;
use kubelith_server::filters::authentication::AuthenticationOptions;
use kubelith_server::identity::ServerIdentity;
use kubelith_server::lifecycle::{Begun, Tasks};
use kubelith_server::routes::{self, Routes};
use kubelith_server::{Server, ServerBuilder, ServerConfig};
use kubelith_store::MemoryStore;
use kubelith_store::cache::Inheritance;
use kubelith_system::process;
use kubelith_tls::{DynamicTls, TlsOptions};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What `--enable-logs-handler` shows.
const LOGS: &str = "/var/log";

/// What a server is put together from.
pub struct Parts {
    /// Completed with our own certificates.
    pub options: Arc<Options>,
    pub flags: Arc<Flags>,
    pub certificates: Certificates,
    pub clock: PlaneClock,
    pub made_up: MadeUp,
    /// Of these options.
    pub blueprint: Arc<Blueprint>,
    /// What a fork has from the server that it was forked from.
    pub forked: Option<Forked>,
}

pub struct Forked {
    pub store: MemoryStore,
    pub inheritance: Inheritance,
    /// Keys of tokens that were signed before.
    pub keys: Arc<KeySet>,
    pub identity: ServerIdentity,
    /// Whether that server was ready then.
    pub settled: Settled,
}

/// Whether all that a server does at its start was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Yes,
    NotYet,
}

impl Settled {
    fn begun(self) -> Begun {
        match self {
            Settled::Yes => Begun::AsCopy,
            Settled::NotYet => Begun::Anew,
        }
    }

    /// Raised when `ready` is, or already: a copy has all that it was copied from.
    fn or_when(self, ready: CancellationToken) -> CancellationToken {
        let raised = CancellationToken::new();
        raised.cancel();
        if self == Settled::Yes { raised } else { ready }
    }
}

/// What a server has from the one that it is a copy of, if it is one.
struct Origin {
    begin: Begin,
    /// Keys of tokens that were signed before.
    older: Option<Arc<KeySet>>,
    settled: Settled,
    identity: ServerIdentity,
}

impl Origin {
    fn of(forked: Option<Forked>, clock: Arc<dyn Clock>, made_up: &MadeUp) -> Origin {
        if let Some(Forked { store, inheritance, keys, identity, settled }) = forked {
            let begin = Begin { clock, store: Some(store), inheritance, server_id: identity.id.clone() };
            return Origin { begin, older: Some(keys), settled, identity };
        }
        let hostname = process::hostname().unwrap_or_else(|| "localhost".into());
        let identity = ServerIdentity::of_host(&hostname, made_up);
        let begin = Begin { clock, store: None, inheritance: Inheritance::default(), server_id: identity.id.clone() };
        Origin { begin, older: None, settled: Settled::NotYet, identity }
    }
}

/// Where a server has its time from.
#[derive(Clone)]
pub enum PlaneClock {
    System,
    /// It stands still until it is turned.
    Manual(Arc<TestClock>),
}

impl PlaneClock {
    pub fn of(options: ClockOptions) -> PlaneClock {
        match options {
            ClockOptions::System => PlaneClock::System,
            ClockOptions::Manual(from) => {
                PlaneClock::Manual(Arc::new(TestClock::new(from.unwrap_or_else(|| SystemClock.now()))))
            }
        }
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        match self {
            PlaneClock::System => Arc::new(SystemClock),
            PlaneClock::Manual(clock) => clock.clone(),
        }
    }

    /// One that shows the same now, and goes its own way from here on.
    pub fn fork(&self) -> PlaneClock {
        match self {
            PlaneClock::System => PlaneClock::System,
            PlaneClock::Manual(clock) => PlaneClock::Manual(Arc::new(TestClock::new(clock.now()))),
        }
    }
}

impl Parts {
    /// Opens certificates, or makes them.
    pub fn open(options: Options, flags: &Flags) -> Result<Parts, Failure> {
        let certificates = Certificates::open(&options)?;
        let options = Arc::new(certificates.complete(options));
        let clock = PlaneClock::of(options.test_api.clock);
        let made_up = options.test_api.seed.map_or(MadeUp::Random, MadeUp::seeded);
        let (flags, blueprint) = (Arc::new(flags.clone()), Arc::default());
        Ok(Parts { options, flags, certificates, clock, made_up, blueprint, forked: None })
    }

    pub fn tls(&self) -> Result<DynamicTls, String> {
        tls(&self.options, &self.certificates)
    }

    pub fn http(&self) -> HttpOptions {
        http(&self.options)
    }
}

/// How ports speak TLS.
pub fn tls(options: &Options, certificates: &Certificates) -> Result<DynamicTls, String> {
    let client_cas = ClientCas::load(options.authentication.client_ca_file.as_deref(), &Authorities::default())?;
    let proxy_ca = options.authentication.request_header.as_ref().map(|proxy| &proxy.client_ca_file);
    DynamicTls::load(TlsOptions {
        serving: certificates.serving.clone(),
        sni: options.serving.sni.clone(),
        client_ca_files: client_cas.files().iter().chain(proxy_ca).cloned().collect(),
        policy: options.serving.policy.clone(),
        alpn: options.serving.alpn(),
    })
    .map_err(|e| e.to_string())
}

pub fn http(options: &Options) -> HttpOptions {
    HttpOptions {
        max_streams_per_connection: options.serving.max_streams_per_connection,
        park_idle: options.serving.park_idle,
    }
}

/// A server that waits to be run.
pub struct Built {
    pub server: Server,
    pub seed: Seed,
    /// Answers scripted by tests, if there may be any.
    pub faults: Option<Arc<Faults>>,
    /// Of the console, if it is served.
    pub sessions: Option<Arc<Sessions>>,
}

/// `None` if it was told to stop before its store came.
pub async fn build(parts: Parts, stop: &CancellationToken) -> Result<Option<Built>, Failure> {
    let Parts { options, flags, certificates, clock: plane_clock, made_up, blueprint, forked } = parts;
    let clock = plane_clock.clock();
    let client_cas = ClientCas::load(options.authentication.client_ca_file.as_deref(), &blueprint.authorities)?;
    let metrics = Metrics::new();
    metrics.describe(&version::emulating(&options.compatibility), &options.features);
    egress_metrics::watch(&options.egress, &metrics.registry);
    let Origin { begin, older, settled, identity } = Origin::of(forked, clock.clone(), &made_up);
    let storage = Storage::open(&options, kubelith_catalog::builtin(), &blueprint, &metrics, begin);
    let Some(storage) = stop.run_until_cancelled(storage).await else { return Ok(None) };
    let storage = storage?;
    let access_metrics = AccessMetrics::new(&metrics, &identity.id);
    let setup =
        Setup::new(&options, (client_cas, &blueprint.authorities), access_metrics, clock.clone(), older).await?;
    metrics.watch_tokens(&setup.stats());
    let access = setup.access.clone();
    let audit = audit::open(&options.audit, &options.egress.control_plane, &metrics)?;
    let flow_control = FlowControl::new(&options, &metrics, clock.clone(), blueprint.flow_control.clone());
    let faults = options.test_api.served.then(|| Arc::new(Faults::default()));
    let sessions = options.console.then(|| Sessions::new(clock.clone()));
    let config = server_config(&options, &setup, audit.clone(), &flow_control, faults.clone(), sessions.as_ref());
    let builder = ServerBuilder::new(config, metrics.clone());
    let builder = builder.begun(settled.begun());
    let seed = Seed {
        options: options.clone(),
        flags: flags.clone(),
        certificates: certificates.clone(),
        kept: storage.kept.clone(),
        hub: Arc::downgrade(&storage.hub),
        keys: setup.keys(),
        clock: plane_clock,
        made_up: made_up.clone(),
        identity: identity.clone(),
        blueprint: blueprint.clone(),
        has_been_ready: settled.or_when(builder.lifecycle().has_been_ready),
    };
    let test_api = faults.clone().map(|faults| TestApi::new(seed.clone(), faults));
    let tasks = builder.tasks();
    let builder = builder
        .routes(|routes| debug_routes(routes, &options, &flags, tasks))
        .routes(|routes| flow_control.install(routes))
        .routes(|routes| setup.install(routes, &options.external_address()))
        .routes(|routes| test_api.into_iter().for_each(|api| api.install(routes)))
        .routes(|routes| {
            if let Some(sessions) = sessions.clone() {
                let sources = console::sources(&options, &storage, &flow_control, &metrics);
                kubelith_console::install(routes, sources, sessions);
            }
        })
        .checks(|checks| storage.add_checks(checks))
        .at_end({
            let closing = storage.closing();
            move || async move {
                if let Some(audit) = audit {
                    audit.backends.shut_down().await;
                }
                closing.await;
            }
        });
    storage.spawn(&builder.tasks());
    let builder = storage.hooks().into_iter().fold(builder, ServerBuilder::post_start_hook);
    let tasks = builder.tasks();
    let tracer = |config| {
        let (tracer, sending) = Tracer::new(config, &options.egress.control_plane, &identity.id, tasks.stopping())?;
        tasks.spawn("span-export", sending);
        Ok::<Tracer, String>(tracer)
    };
    let tracer = options.tracing.as_ref().map(tracer).transpose()?;
    let builder = builder.tracer(tracer);
    if let Some(path) = &options.debug_socket {
        debug_socket(path, &builder.tasks());
    }
    let (client, tasks) = (builder.loopback(), builder.tasks());
    let started = builder.lifecycle().started;
    let frame = chain::Frame {
        client,
        tasks,
        started,
        begun: settled.begun(),
        metrics,
        flow_control,
        identity,
        clock,
        made_up,
        blueprint,
    };
    let published = setup.published(&options.authentication);
    let publishes_keys = setup.publishes_keys(&options.external_address());
    let opened = chain::Shared::open(&options, frame, storage.hub.clone(), access, published).await;
    // What could not be loaded may be damaged, and what was loaded counts only if it is not.
    storage.checked().await?;
    let (mut shared, builtin) = opened?;
    if publishes_keys {
        shared.openapi.put([Subject::OpenIdConfiguration, Subject::OpenIdKeys]);
    }
    shared.beginning = chain::write_beginning(&shared, &builtin).await;
    let roles = setup.start(&shared.resources, &builder)?;
    let hub = shared.hub.clone();
    let chain = chain::build(&shared, builtin)?.behind(|next| {
        let next = shared.frame.flow_control.before(next, &shared.resources, hub.clone());
        barrier::before(next, roles, hub)
    });
    let builder = builder.delegate(chain);
    certificates.keep(&builder, if options.test_api.served { Lasting::No } else { Lasting::Yes });
    Ok(Some(Built { server: builder.build(), seed, faults, sessions }))
}

fn debug_routes(routes: &mut Routes, options: &Options, flags: &Arc<Flags>, tasks: Tasks) {
    if options.profiling {
        routes::install_debug(routes);
        routes::install_profiles(routes, tasks);
    }
    if flags.bool("enable-logs-handler") {
        routes::install_logs(routes, LOGS);
    }
    if options.features.enabled("ComponentFlagz") {
        let flags = flags.clone();
        routes::install_flagz(routes, move || flags.all().into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    }
}

/// As the reference: a socket that cannot be opened is logged, and the server runs without it.
fn debug_socket(path: &Path, tasks: &Tasks) {
    let mut routes = Routes::default();
    routes::install_debug(&mut routes);
    routes::install_profiles(&mut routes, tasks.clone());
    match kubelith_server::debug_socket(path, routes) {
        Ok(serving) => tasks.spawn_until_stopped("debug-socket", serving),
        Err(why) => tracing::error!(err = %why, path = %path.display(), "failed to start the debug socket"),
    }
}

fn server_config(
    options: &Options,
    setup: &Setup,
    audit: Option<Arc<Audit>>,
    flow_control: &FlowControl,
    faults: Option<Arc<Faults>>,
    sessions: Option<&Arc<Sessions>>,
) -> ServerConfig {
    let access = &setup.access;
    let generic = &options.generic;
    ServerConfig {
        chain: ChainConfig {
            console: sessions.cloned().map(kubelith_console::layer),
            authentication: AuthenticationOptions {
                authenticator: console::authenticator(sessions, access.authenticator.clone()),
                audiences: access.audiences.to_vec(),
                proxy_headers: setup.proxy_headers(),
                remove_also: sessions.map(|_| kubelith_console::remove_cookie as fn(&mut _)),
            },
            authorizer: access.authorizer.clone(),
            impersonation: match options.features.enabled("ConstrainedImpersonation") {
                true => Modes::All,
                false => Modes::Unconstrained,
            },
            tracer: None,
            audit,
            memory_budget: flow_control.memory_budget(options),
            service_quality: flow_control.service_quality(),
            flow_control: flow_control.layer(options),
            faults,
            max_reads_in_flight: generic.max_reads_in_flight,
            max_writes_in_flight: generic.max_writes_in_flight,
            request_timeout: generic.request_timeout,
            goaway_chance: generic.goaway_chance,
            hsts_directives: generic.hsts_directives.clone(),
            cors_allowed_origins: generic.cors_allowed_origins.clone(),
            cbor: options.features.enabled("CBORServingAndStorage"),
            send_retry_after: generic.shutdown_send_retry_after,
        },
        version: version::emulating(&options.compatibility),
        livez_grace_period: generic.livez_grace_period,
        shutdown_delay: generic.shutdown_delay,
        watch_termination_grace_period: generic.shutdown_watch_termination_grace_period,
        statusz: options.features.enabled("ComponentStatusz"),
        metrics: options.metrics.clone(),
    }
}
