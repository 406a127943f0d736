//! From options to a running server, in the order in which the parts depend on each other.

use crate::access::{AccessMetrics, ClientCas, Setup, barrier};
use crate::certificates::{Certificates, local_url, quoted};
use crate::failure::Failure;
use crate::flags::{Effect, Flags};
use crate::flow_control::FlowControl;
use crate::options::Options;
use crate::storage::Storage;
use crate::version;
use crate::welcome::{self, Start};
use crate::{audit, chain, companion};
use kubelith_auth::impersonation::Modes;
use kubelith_cel::device::Gates;
use kubelith_cel::env::Libraries;
use kubelith_listen::{HttpOptions, Listener, bind};
use kubelith_observe::logging;
use kubelith_observe::metrics::Metrics;
use kubelith_observe::spans::Tracer;
use kubelith_openapi::Subject;
use kubelith_outbound::egress::Route;
use kubelith_rules::expression::Dialect;
use kubelith_server::chain::ChainConfig;
use kubelith_server::filters::audit::Audit;
use kubelith_server::filters::authentication::AuthenticationOptions;
use kubelith_server::identity::ServerIdentity;
use kubelith_server::lifecycle::{Tasks, termination};
use kubelith_server::routes::{self, Routes};
use kubelith_server::{ServerBuilder, ServerConfig};
use kubelith_tls::{DynamicTls, TlsOptions, local_names};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Objects may be nested as deep as the decoders let them (10,000 levels), and many walks over them recurse. Stacks are
/// reserved, not used: only what a thread has touched counts as memory.
const STACK_BYTES: usize = 64 << 20;

/// What `--enable-logs-handler` shows.
const LOGS: &str = "/var/log";

/// Runs until a signal ends it.
pub fn run(options: Options, flags: &Flags) -> Result<(), Failure> {
    kubelith_rules::expression::use_dialect(dialect(&options));
    logging::init_with(options.logging.format, options.logging.verbosity, options.logging.modules.clone());
    tracing::info!("Version: {}", version::info().git_version);
    warn(&options, flags);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build().map_err(|e| e.to_string())?;
    let outcome = runtime.block_on(serve(options, flags));
    // Whatever still blocks a thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

/// What new expressions in CEL may use: what the oldest server has that this one is compatible with.
fn dialect(options: &Options) -> Dialect {
    let on = |gate: &str| options.features.enabled(gate);
    let since = options.compatibility.min_compatibility.minor;
    Dialect {
        libraries: Libraries { since, authz_selectors: on("AuthorizeWithSelectors") },
        devices: Gates {
            consumable_capacity: on("DRAConsumableCapacity"),
            list_attributes: on("DRAListTypeAttributes"),
        },
    }
}

fn warn(options: &Options, flags: &Flags) {
    for flag in flags.without_effect() {
        match flag.effect {
            Effect::NotYet => tracing::warn!("--{} has no effect in this release", flag.name),
            Effect::NoUse => tracing::warn!("--{} has no effect", flag.name),
            Effect::Applies => {}
        }
    }
    if options.authorization.allows_always() {
        tracing::warn!(
            "Everybody with a credential may do everything: the authorization mode is AlwaysAllow. Strangers (anonymous \
             requests) are refused. Set --authorization-mode, for example to Node,RBAC"
        );
    }
    if matches!(options.egress.etcd, Route::Through(_)) {
        tracing::warn!("etcd is reached straight: no proxy is used for it yet");
    }
    for warning in options.features.warnings.iter().chain(&options.serving.policy.warnings) {
        tracing::warn!("{warning}");
    }
}

async fn serve(options: Options, flags: &Flags) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    termination::on_signal(stop.clone()).map_err(|e| e.to_string())?;

    let Some(options) = stop.run_until_cancelled(companion::look(options, flags)).await else { return Ok(()) };
    let certificates = Certificates::open(&options)?;
    let options = certificates.complete(options);
    certificates.warn(&options);
    let client_cas = ClientCas::load(options.authentication.client_ca_file.as_deref())?;
    let proxy_ca = options.authentication.request_header.as_ref().map(|proxy| &proxy.client_ca_file);
    let tls = DynamicTls::load(TlsOptions {
        serving: certificates.serving.clone(),
        sni: options.serving.sni.clone(),
        client_ca_files: client_cas.files().iter().chain(proxy_ca).cloned().collect(),
        policy: options.serving.policy.clone(),
        alpn: options.serving.alpn(),
    })
    .map_err(|e| e.to_string())?;

    let metrics = Metrics::new();
    metrics.describe(&version::emulating(&options.compatibility), &options.features);
    let storage = Storage::open(&options, kubelith_catalog::builtin(), &metrics);
    let storage = tokio::select! {
        storage = storage => storage?,
        // A store that does not come must not keep the process.
        () = stop.cancelled() => return Ok(()),
    };
    let identity = ServerIdentity::of_host(&local_names::hostname().unwrap_or_else(|| "localhost".into()));
    let setup = Setup::new(&options, client_cas, AccessMetrics::new(&metrics.registry, &identity.id)).await?;
    metrics.watch_tokens(&setup.stats());
    let access = setup.access.clone();
    let audit = audit::open(&options.audit, &options.egress.control_plane, &metrics.audit)?;
    let flow_control = FlowControl::new(&options, &metrics);
    let builder = ServerBuilder::new(server_config(&options, &setup, audit.clone(), &flow_control), metrics.clone());
    let tasks = builder.tasks();
    let builder = builder
        .routes(|routes| debug_routes(routes, &options, flags, tasks))
        .routes(|routes| flow_control.install(routes))
        .routes(|routes| setup.install(routes, &external_address(&options)))
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
        let (tracer, sending) = Tracer::new(config, &identity.id, tasks.stopping())?;
        tasks.spawn("span-export", sending);
        Ok::<Tracer, String>(tracer)
    };
    let tracer = options.tracing.as_ref().map(tracer).transpose()?;
    let builder = builder.tracer(tracer);
    if let Some(path) = &options.debug_socket {
        debug_socket(path, &builder.tasks());
    }
    let (client, tasks) = (builder.loopback(), builder.tasks());
    let frame = chain::Frame { client, tasks, metrics, flow_control, identity };
    let published = setup.published(&options.authentication);
    let publishes_keys = setup.publishes_keys(&external_address(&options));
    let (shared, builtin) = chain::Shared::open(&options, frame, storage.hub.clone(), access, published).await?;
    if publishes_keys {
        shared.openapi.put([Subject::OpenIdConfiguration, Subject::OpenIdKeys]);
    }
    let roles = setup.start(&shared.resources, &builder)?;
    let hub = shared.hub.clone();
    let chain = chain::build(&shared, builtin)?.behind(|next| {
        let next = shared.frame.flow_control.before(next, &shared.resources, hub.clone());
        barrier::before(next, roles, hub)
    });
    let builder = builder.delegate(chain);
    certificates.keep(&builder);
    let server = builder.build();

    let socket = bind(&options.serving.bind)
        .map_err(|e| Failure::of_listening(&address_of(&options), options.serving.bind.port, &e))?;
    let http = HttpOptions {
        max_streams_per_connection: options.serving.max_streams_per_connection,
        park_idle: options.serving.park_idle,
    };
    let listener = Listener::new(socket, Arc::new(tls), http);
    announce(&certificates, &listener, &options)?;
    server.run(listener, stop).await.map_err(|e| Failure::from(e.to_string()))
}

fn debug_routes(routes: &mut Routes, options: &Options, flags: &Flags, tasks: Tasks) {
    if options.profiling {
        routes::install_debug(routes);
        routes::install_profiles(routes, tasks);
    }
    if flags.bool("enable-logs-handler") {
        routes::install_logs(routes, LOGS);
    }
    if options.features.enabled("ComponentFlagz") {
        routes::install_flagz(routes, flags.all().into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
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
) -> ServerConfig {
    let access = &setup.access;
    let generic = &options.generic;
    ServerConfig {
        chain: ChainConfig {
            authentication: AuthenticationOptions {
                authenticator: access.authenticator.clone(),
                audiences: access.audiences.to_vec(),
                proxy_headers: setup.proxy_headers(),
            },
            authorizer: access.authorizer.clone(),
            impersonation: match options.features.enabled("ConstrainedImpersonation") {
                true => Modes::All,
                false => Modes::Unconstrained,
            },
            tracer: None,
            audit,
            service_quality: flow_control.service_quality(),
            flow_control: flow_control.layer(options),
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

/// Where clients outside find this server.
fn external_address(options: &Options) -> String {
    let (name, port) = (&options.generic.external_hostname, options.serving.bind.port);
    match name.as_str() {
        "" => std::net::SocketAddr::new(options.network.advertise_address, port).to_string(),
        name => format!("{name}:{port}"),
    }
}

fn address_of(options: &Options) -> String {
    std::net::SocketAddr::new(options.serving.bind.address, options.serving.bind.port).to_string()
}

/// Writes the kubeconfig and says how to use it: in a few lines to people, in one to programs. Connections are accepted
/// already: they wait in the socket.
fn announce(certificates: &Certificates, listener: &Listener, options: &Options) -> Result<(), String> {
    let start = match certificates.kubeconfig() {
        Some(path) if path.exists() => Start::Later,
        _ => Start::First,
    };
    let kubeconfig = certificates.write_kubeconfig()?.map(|path| welcome::absolute(&path));
    let local = listener.local_addr().map_err(|e| e.to_string())?;
    tracing::info!("Serving securely on {local}");
    if std::io::stdout().is_terminal() {
        print!("{}", welcome::text(options, &local_url(options), kubeconfig.as_deref(), start));
    } else if let Some(path) = kubeconfig {
        println!("export KUBECONFIG={}", quoted(&path));
    }
    Ok(())
}
