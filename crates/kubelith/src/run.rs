//! The server as a process: its log, its threads, its signals, its port.

use crate::certificates::{Certificates, local_url, quoted};
use crate::companion;
use crate::console;
use crate::failure::Failure;
use crate::flags::{Effect, Flags};
use crate::options::{Options, StorageBackend};
use crate::plane::build::{Parts, build};
use crate::version;
use crate::welcome::{self, Start};
use kubelith_console::Sessions;
use kubelith_listen::{Listener, Sharing, bind};
use kubelith_observe::logging;
use kubelith_server::lifecycle::termination;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Objects may be nested as deep as the decoders let them (10,000 levels), and many walks over them recurse. Stacks are
/// reserved, not used: only what a thread has touched counts as memory.
const STACK_BYTES: usize = 64 << 20;

/// Turns of tasks between two looks at who has sent something. Where all threads are busy, a request waits for so many turns
/// before anybody knows of it; the usual 61 are many when turns are long.
const EVENT_INTERVAL: u32 = 16;

/// Runs until a signal ends it.
pub fn run(options: Options, flags: &Flags) -> Result<(), Failure> {
    logging::init_with(options.logging.format, options.logging.verbosity, options.logging.modules.clone());
    tracing::info!("Version: {}", version::info().git_version);
    warn(&options, flags);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.event_interval(EVENT_INTERVAL);
    let runtime = builder.enable_all().thread_stack_size(STACK_BYTES).build().map_err(|e| e.to_string())?;
    let outcome = runtime.block_on(serve(options, flags));
    // Whatever still blocks a thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

fn warn(options: &Options, flags: &Flags) {
    for flag in flags.without_effect() {
        match flag.effect {
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
    for warning in options.features.warnings.iter().chain(&options.serving.policy.warnings) {
        tracing::warn!("{warning}");
    }
}

async fn serve(options: Options, flags: &Flags) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    termination::on_signal(stop.clone()).map_err(|e| e.to_string())?;

    let Some(options) = stop.run_until_cancelled(companion::look(options, flags)).await else { return Ok(()) };
    let early = bind_early(&options);
    let parts = Parts::open(options, flags)?;
    parts.certificates.warn(&parts.options);
    let tls = parts.tls()?;
    let (certificates, options, http) = (parts.certificates.clone(), parts.options.clone(), parts.http());
    // A store that does not come must not keep the process.
    let Some(built) = build(parts, &stop).await? else { return Ok(()) };

    let socket = match early {
        Some(socket) => socket,
        None => bind(&options.serving.bind).map_err(|e| Failure::of_listening(&options.serving.bind, &e))?,
    };
    let listener = Listener::new(socket, Arc::new(tls), http);
    announce(&certificates, &listener, &options, built.sessions.as_deref())?;
    built.server.run(listener, stop).await.map_err(|e| Failure::from(e.to_string()))
}

/// The socket, in which those who come early wait: tools that start servers look at them every 100 ms, and one that refuses them
/// costs them another such pause. Nobody is kept waiting for an etcd, nor taken away from another server on the same port. What fails here is
/// tried again, and told, in its turn.
fn bind_early(options: &Options) -> Option<TcpListener> {
    let is_soon =
        options.storage.backend != StorageBackend::Etcd3 && options.serving.bind.sharing == Sharing::Exclusive;
    is_soon.then(|| bind(&options.serving.bind).ok()).flatten()
}

/// Writes the kubeconfig and says how to use it: in a few lines to people, in one to programs. Connections are accepted
/// already: they wait in the socket.
fn announce(
    certificates: &Certificates,
    listener: &Listener,
    options: &Options,
    sessions: Option<&Sessions>,
) -> Result<(), String> {
    let start = match certificates.kubeconfig_path() {
        Some(path) if path.exists() => Start::Later,
        _ => Start::First,
    };
    let kubeconfig = certificates.write_kubeconfig()?.map(|path| welcome::absolute(&path));
    let local = listener.local_addr().map_err(|e| e.to_string())?;
    tracing::info!("Serving securely on {local}");
    if std::io::stdout().is_terminal() {
        // To people only: what programs print ends up in logs.
        let url = local_url(options);
        let console = sessions.filter(|_| kubeconfig.is_some()).map(|sessions| console::link(sessions, &url));
        print!("{}", welcome::text(options, &url, kubeconfig.as_deref(), console.as_deref(), start));
    } else if let Some(path) = kubeconfig {
        println!("export KUBECONFIG={}", quoted(&path));
    }
    Ok(())
}
