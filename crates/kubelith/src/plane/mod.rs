//! A control plane within the process: made of flags, reached through pipes and, if somebody wants one, through a port. Dropped, it
//! is gone, with its tasks, ports and memory.

pub mod build;
mod seed;

pub use seed::{Seed, Snapshot};

use crate::flags;
use crate::options::Options;
use build::{Built, Parts, build};
use kubelith_http::BoxHandler;
use kubelith_http::connection::PeerCertificates;
use kubelith_listen::{BindOptions, Listener, Sharing, Stop, bind, serve_pipe};
use kubelith_server::faults::Faults;
use kubelith_server::lifecycle::{Lifecycle, Tasks};
use kubelith_server::loopback::LoopbackClient;
use kubelith_store::cache::Hub;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a pipe holds of what one side sent and the other has not read: a usual list fits.
const PIPE_BYTES: usize = 64 << 10;
/// Between looks at whether a plane is ready, which takes it a few milliseconds.
const LOOK: Duration = Duration::from_micros(500);
/// A start that takes longer fails. It takes milliseconds, but minutes under tools that count instructions on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(300);

pub struct Plane {
    seed: Seed,
    faults: Option<Arc<Faults>>,
    handler: BoxHandler,
    client: LoopbackClient,
    hub: Option<Arc<Hub>>,
    tasks: Tasks,
    lifecycle: Lifecycle,
    /// Pipes and ports.
    doors: TaskTracker,
    stop_listening: Stop,
    stop: CancellationToken,
    running: Option<JoinHandle<Result<(), String>>>,
    /// Where all of it runs.
    runtime: Handle,
}

/// Opens pipes to a plane. It does not keep the plane.
#[derive(Clone)]
pub struct Doorway {
    handler: std::sync::Weak<dyn kubelith_http::Handler>,
    awake: CancellationToken,
    doors: TaskTracker,
    stop_listening: Stop,
    runtime: Handle,
}

impl Doorway {
    /// A connection that speaks HTTP/1.1 and nothing below it. `certificates`, leaf first, are what the client would have sent in a
    /// handshake. `None` once the plane is gone.
    pub fn open(&self, certificates: Option<PeerCertificates>) -> Option<DuplexStream> {
        let handler = self.handler.upgrade().filter(|_| !self.stop_listening.gracefully.is_cancelled())?;
        self.awake.cancel();
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        self.doors.spawn_on(serve_pipe(ours, certificates, handler, self.stop_listening.clone()), &self.runtime);
        Some(theirs)
    }
}

impl Plane {
    /// Starts a plane with the flags of the program. It runs on the runtime that this is called on, which must have more than one
    /// thread. Returns when it is ready.
    pub async fn start(args: &[String]) -> Result<Plane, String> {
        // The first server of a process unpacks the catalogue, while another thread makes keys and certificates.
        tokio::task::spawn_blocking(kubelith_catalog::builtin);
        let flags = flags::parse(args).map_err(|e| e.to_string())?;
        let options = Options::from_flags(&flags).map_err(|e| e.to_string())?;
        let plane = Plane::of(Parts::open(options, &flags)?).await?;
        plane.ready().await?;
        Ok(plane)
    }

    /// Begins to serve. Not all that a server does at a start is done then.
    pub(crate) async fn of(parts: Parts) -> Result<Plane, String> {
        let stop = CancellationToken::new();
        let Built { server, seed, faults, .. } = build(parts, &stop).await?.ok_or("the server was stopped")?;
        let (handler, client) = (server.handler(), server.loopback());
        let (tasks, lifecycle) = (server.tasks(), server.lifecycle());
        let (doors, stop_listening) = (TaskTracker::new(), Stop::default());
        let serving = {
            let (doors, stop) = (doors.clone(), stop_listening.clone());
            async move {
                stop.gracefully.cancelled().await;
                doors.close();
                stop.now.run_until_cancelled(doors.wait()).await;
            }
        };
        let running = server.run_behind(serving, stop_listening.clone(), stop.clone());
        let running = Some(tokio::spawn(async move { running.await.map_err(|e| e.to_string()) }));
        let (hub, runtime) = (seed.hub.upgrade(), Handle::current());
        Ok(Plane {
            seed,
            faults,
            handler,
            client,
            hub,
            tasks,
            lifecycle,
            doors,
            stop_listening,
            stop,
            running,
            runtime,
        })
    }

    /// Begins what a server does in the background, if it is a copy that has slept until now. Whoever comes in wakes it, too.
    pub fn wake(&self) {
        self.lifecycle.awake.cancel();
    }

    /// Waits until everything that a server does at its start is done.
    pub fn ready(&self) -> impl Future<Output = Result<(), String>> + Send + 'static {
        self.wake();
        let (client, tasks, lifecycle) = (self.client.clone(), self.tasks.clone(), self.lifecycle.clone());
        async move {
            let ready = async {
                lifecycle.started.cancelled().await;
                while !client.get_path("/readyz").await.is_ok_and(|answer| answer.status().is_success()) {
                    tokio::time::sleep(LOOK).await;
                }
                lifecycle.first_passes.close();
                lifecycle.first_passes.wait().await;
            };
            tokio::select! {
                done = tokio::time::timeout(START_LIMIT, ready) => {
                    done.map_err(|_| "the server did not become ready".to_owned())
                }
                why = tasks.failed() => Err(why),
            }
        }
    }

    /// The state of this plane, and what copies of it are made from.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// `None` without `--enable-test-api`.
    pub fn faults(&self) -> Option<&Arc<Faults>> {
        self.faults.as_ref()
    }

    pub fn doorway(&self) -> Doorway {
        Doorway {
            handler: Arc::downgrade(&self.handler),
            awake: self.lifecycle.awake.clone(),
            doors: self.doors.clone(),
            stop_listening: self.stop_listening.clone(),
            runtime: self.runtime.clone(),
        }
    }

    /// Serves a port, too, with TLS; 0 is a free one. Answers where.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr, String> {
        self.wake();
        let (listener, local) = self.bind(address)?;
        self.doors.spawn_on(listener.serve(self.handler.clone(), self.stop_listening.clone()), &self.runtime);
        Ok(local)
    }

    /// Serves something else than the API, with the certificate of this plane, until told to stop: forks may need it when this
    /// plane is gone. Answers where.
    pub fn serve_beside(&self, address: SocketAddr, handler: BoxHandler, stop: Stop) -> Result<SocketAddr, String> {
        let (listener, local) = self.bind(address)?;
        self.runtime.spawn(listener.serve(handler, stop));
        Ok(local)
    }

    fn bind(&self, address: SocketAddr) -> Result<(Listener, SocketAddr), String> {
        let _runtime = self.runtime.enter();
        let tls = Arc::new(build::tls(&self.seed.options, &self.seed.certificates)?);
        let to = BindOptions { address: address.ip(), port: address.port(), sharing: Sharing::Exclusive };
        let socket = bind(&to).map_err(|e| format!("failed to listen on {address}: {e}"))?;
        let listener = Listener::new(socket, tls, build::http(&self.seed.options));
        let local = listener.local_addr().map_err(|e| e.to_string())?;
        Ok((listener, local))
    }

    /// The administrator's kubeconfig for a port of this plane; `None` if flags name another authority for clients.
    pub fn kubeconfig(&self, address: SocketAddr) -> Result<Option<String>, String> {
        self.seed.certificates.kubeconfig(&format!("https://{address}"))
    }

    /// PEM of what clients of a port trust.
    pub fn authority(&self) -> Result<String, String> {
        self.seed.certificates.authority()
    }

    /// A certificate for a client and its key, in PEM. The group is one that the client is in.
    pub fn issue_client(&self, name: &str, group: Option<&str>) -> Result<(String, String), String> {
        self.seed.certificates.issue_client(name, group)
    }

    /// Stops in order: requests under way are answered. Dropping a plane does not wait for them.
    pub async fn stop(mut self) -> Result<(), String> {
        self.stop.cancel();
        match self.running.take() {
            Some(running) => running.await.map_err(|e| e.to_string())?,
            None => Ok(()),
        }
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.stop.cancel();
        self.stop_listening.gracefully.cancel();
        self.stop_listening.now.cancel();
        self.tasks.stopping().cancel();
        if let Some(running) = self.running.take() {
            running.abort();
        }
        // Parts of a server hold each other. What ties the knot is undone here, or nothing of it would ever go.
        self.client.disconnect();
        if let Some(hub) = self.hub.take() {
            hub.clear();
        }
    }
}
