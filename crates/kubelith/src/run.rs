//! From options to a running server, in the order in which the parts depend on each other.

use crate::access::{ClientCas, Setup, barrier};
use crate::flags::{Effect, Flags};
use crate::flow_control::FlowControl;
use crate::options::{Options, RequestHeaderOptions};
use crate::storage::Storage;
use crate::version;
use crate::{audit, chain};
use kubelith_auth::authn::request_header::RequestHeaderNames;
use kubelith_server::chain::ChainConfig;
use kubelith_server::egress::Route;
use kubelith_server::filters::audit::Audit;
use kubelith_server::filters::authentication::AuthenticationOptions;
use kubelith_server::identity::ServerIdentity;
use kubelith_server::lifecycle::{Tasks, termination};
use kubelith_server::listen::{self, HttpOptions, Listener, bind};
use kubelith_server::metrics::Metrics;
use kubelith_server::routes::{self, Routes};
use kubelith_server::spans::Tracer;
use kubelith_server::tls::{CertKeyFiles, DynamicTls, Pki, PkiOptions, TlsOptions, local_names};
use kubelith_server::{ServerBuilder, ServerConfig, logging};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Objects may be nested as deep as the decoders let them (10,000 levels), and many walks over them recurse. Stacks are
/// reserved, not used: only what a thread has touched counts as memory.
const STACK_BYTES: usize = 64 << 20;

/// How often certificates are looked at for their end.
const RENEW_INTERVAL: Duration = Duration::from_secs(12 * 3600);

/// What `--enable-logs-handler` shows.
const LOGS: &str = "/var/log";

/// Runs until a signal ends it.
pub fn run(options: Options, flags: &Flags) -> Result<(), String> {
    kubelith_validation::allow_privileged(options.admission.allow_privileged);
    logging::init_with(options.logging.format, options.logging.verbosity, options.logging.modules.clone());
    warn(&options, flags);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build().map_err(|e| e.to_string())?;
    let outcome = runtime.block_on(serve(options, flags));
    // Whatever still blocks a thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

fn warn(options: &Options, flags: &Flags) {
    for flag in flags.without_effect() {
        match flag.effect {
            Effect::NotYet => tracing::warn!("--{} has no effect in this release", flag.name),
            Effect::NoUse => tracing::warn!("--{} has no effect", flag.name),
            Effect::Applies => {}
        }
    }
    if matches!(options.egress.etcd, Route::Through(_)) {
        tracing::warn!("etcd is reached straight: no proxy is used for it yet");
    }
    for warning in options.features.warnings.iter().chain(&options.serving.policy.warnings) {
        tracing::warn!("{warning}");
    }
}

/// Without another front proxy, extension servers know this server by a certificate of its own authority.
fn with_front_proxy(mut options: Options, pki: &Pki) -> Options {
    let (proxy, certificate) = (&mut options.authentication.request_header, &mut options.aggregator.client_certificate);
    if proxy.is_none() && certificate.is_none() {
        *certificate = Some(CertKeyFiles { cert: pki.front_proxy_cert(), key: pki.front_proxy_key() });
        *proxy = Some(RequestHeaderOptions {
            client_ca_file: pki.front_proxy_ca(),
            allowed_names: vec![Pki::FRONT_PROXY_NAME.to_owned()],
            names: RequestHeaderNames { uid: Vec::new(), ..RequestHeaderNames::standard() },
        });
    }
    options
}

async fn serve(options: Options, flags: &Flags) -> Result<(), String> {
    let stop = CancellationToken::new();
    termination::on_signal(stop.clone()).map_err(|e| e.to_string())?;

    let pki = open_pki(&options)?;
    let options = with_front_proxy(options, &pki);
    let client_cas = ClientCas::load(&pki.ca_cert(), options.authentication.client_ca_file.as_deref())?;
    let tls = DynamicTls::load(TlsOptions {
        serving: serving_files(&options, &pki),
        sni: options.serving.sni.clone(),
        client_ca_files: client_cas.files().to_vec(),
        policy: options.serving.policy.clone(),
        alpn: options.serving.alpn(),
    })
    .map_err(|e| e.to_string())?;

    let metrics = Metrics::new();
    metrics.describe(&version::emulating(&options.compatibility), &options.features);
    let storage = Storage::open(&options, kubelith_catalog::builtin(), &metrics).await?;
    let setup = Setup::new(&options, client_cas).await?;
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
    let identity = ServerIdentity::of_host(&local_names::hostname().unwrap_or_else(|| "localhost".into()));
    let tracer = |config| Tracer::start(config, &identity.id, &builder.tasks());
    let tracer = options.tracing.as_ref().map(tracer).transpose()?;
    let builder = builder.tracer(tracer);
    if let Some(path) = &options.debug_socket {
        debug_socket(path, &builder.tasks());
    }
    let (client, tasks) = (builder.loopback(), builder.tasks());
    let frame = chain::Frame { client, tasks, metrics, flow_control, identity };
    let published = setup.published(&options.authentication);
    let (shared, builtin) = chain::Shared::open(&options, frame, storage.hub.clone(), access, published).await?;
    let roles = setup.start(&shared.resources, &builder)?;
    let hub = shared.hub.clone();
    let chain = chain::build(&shared, builtin)?.behind(|next| {
        let next = shared.frame.flow_control.before(next, &shared.resources, hub.clone());
        barrier::before(next, roles, hub)
    });
    let builder = builder.delegate(chain);
    keep_certificates(&builder, pki.clone(), &options);
    let server = builder.build();

    let socket = bind(&options.serving.bind)
        .map_err(|e| format!("failed to create listener: failed to listen on {}: {e}", address_of(&options)))?;
    let http = HttpOptions { max_streams_per_connection: options.serving.max_streams_per_connection };
    let listener = Listener::new(socket, Arc::new(tls), http);
    announce(&options, &pki, &listener)?;
    server.run(listener, stop).await.map_err(|e| e.to_string())
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
    match listen::debug_socket(path, routes) {
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

fn open_pki(options: &Options) -> Result<Pki, String> {
    let network = &options.network;
    let mut names: std::collections::BTreeSet<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .into();
    names.extend(local_names::hostname());
    let external = &options.generic.external_hostname;
    if !external.is_empty() && external.parse::<IpAddr>().is_err() {
        names.insert(external.clone());
    }
    let mut addresses = local_names::interface_addresses();
    addresses.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    addresses.extend([network.advertise_address, network.kubernetes_service_address()]);
    addresses.extend(Some(options.serving.bind.address).filter(|a| !a.is_unspecified()));
    let serving_dir = options.serving.cert_dir.clone();
    Pki::open(options.data_dir.join("pki"), PkiOptions { names, addresses, serving_dir }).map_err(|e| e.to_string())
}

fn serving_files(options: &Options, pki: &Pki) -> CertKeyFiles {
    let own = || CertKeyFiles { cert: pki.serving_cert(), key: pki.serving_key() };
    options.serving.certificate.clone().unwrap_or_else(own)
}

/// Renews certificates while the server runs; the listener reads them again by itself. New ones are brought to the disk
/// once it is ready: until then the disk is busy with the first objects.
fn keep_certificates(builder: &ServerBuilder, pki: Pki, options: &Options) {
    let (kubeconfig, server) = (kubeconfig_path(options), server_url(options));
    let ca = options.serving.certificate.as_ref().map(|c| c.cert.clone());
    let ready = builder.lifecycle().has_been_ready;
    builder.tasks().spawn_until_stopped("certificate-renewal", async move {
        ready.cancelled().await;
        let made = pki.clone();
        if let Ok(Err(why)) = tokio::task::spawn_blocking(move || made.sync()).await {
            tracing::warn!(err = %why, "certificates may not be on disk");
        }
        loop {
            tokio::time::sleep(RENEW_INTERVAL).await;
            let renewed = pki.renew().and_then(|_| pki.write_admin_kubeconfig(&kubeconfig, &server, ca.as_deref()));
            if let Err(why) = renewed {
                tracing::error!(err = %why, "certificates not renewed");
            }
        }
    });
}

fn kubeconfig_path(options: &Options) -> PathBuf {
    options.data_dir.join("admin.kubeconfig")
}

/// The URL for clients on this machine.
fn server_url(options: &Options) -> String {
    let bind = &options.serving.bind;
    let address = if bind.address.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { bind.address };
    format!("https://{}", std::net::SocketAddr::new(address, bind.port))
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

/// Writes the kubeconfig and says how to use it. Connections are accepted already: they wait in the socket.
fn announce(options: &Options, pki: &Pki, listener: &Listener) -> Result<(), String> {
    let path = kubeconfig_path(options);
    let ca = options.serving.certificate.as_ref().map(|c| c.cert.as_path());
    pki.write_admin_kubeconfig(&path, &server_url(options), ca).map_err(|e| e.to_string())?;
    let local = listener.local_addr().map_err(|e| e.to_string())?;
    tracing::info!("Serving securely on {local}");
    println!("export KUBECONFIG={}", shell_quoted(&std::path::absolute(&path).unwrap_or(path)));
    Ok(())
}

fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
