//! A real API server within a test: no cluster, no port, no file that outlives it.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kubelith_testing::{Fault, Kubelith};
//!
//! let k = Kubelith::start().await?;
//! let answer = k.get("/api/v1/namespaces/default").await?;
//! assert_eq!(answer.body["metadata"]["name"], "default");
//!
//! // Another server with the same objects, at no cost. Neither sees the other from here on.
//! let fork = k.fork().await?;
//!
//! // What is hard to get out of a cluster.
//! fork.fault(Fault::answer(503).verbs(["get"]).resource("namespaces").times(1))?;
//! assert_eq!(fork.get("/api/v1/namespaces/default").await?.code, 503);
//! assert_eq!(fork.get("/api/v1/namespaces/default").await?.code, 200);
//! # Ok(()) }
//! ```
//!
//! With the feature `kube`, `k.client()` is a client of kube-rs. `k.connector()` is for anything else that is made with hyper;
//! `k.kubeconfig()` opens a port for programs in other languages.

mod builder;
mod connector;
mod fault;
#[cfg(feature = "kube")]
mod kube_client;
mod runtime;
mod send;
mod webhook;

pub use builder::{Builder, Controllers};
pub use connector::{Connector, Pipe};
pub use fault::{Fault, FaultHandle};
pub use kubelith::plane::Snapshot;
pub use kubelith_server::faults::FaultReport;
pub use send::Answer;
pub use webhook::{Decision, Review, Webhook};

use builder::Users;
use kubelith::plane::Plane;
use kubelith_meta::time::Duration as Span;
use runtime::ServerRuntime;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Why something could not be had of the server. What the server answers to requests is no such error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);

impl From<String> for Error {
    fn from(why: String) -> Error {
        Error(why)
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A control plane. Dropped, it is gone: its connections end, and so do its tasks and threads.
pub struct Kubelith {
    // Fields are dropped in this order: the plane before what it runs on, and files last.
    plane: Plane,
    port: Mutex<Option<SocketAddr>>,
    users: Arc<Users>,
    runtime: Arc<ServerRuntime>,
    files: Arc<TempDir>,
    /// Those that the test answers, for as long as a fork has their configurations.
    webhooks: Vec<Arc<webhook::Served>>,
}

impl Kubelith {
    /// Starts a server with everything as usual: RBAC, all controllers, an administrator.
    pub async fn start() -> Result<Kubelith> {
        Kubelith::builder().start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs on the threads of the server, whatever runtime the test has.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T> {
        self.runtime.run(work).await
    }

    /// Another server with the same objects, revisions and users. Memory is shared as far as neither writes.
    pub async fn fork(&self) -> Result<Kubelith> {
        let snapshot = self.snapshot().await?;
        self.fork_at(snapshot).await
    }

    /// Another server with the objects of a snapshot.
    pub async fn fork_of(&self, snapshot: &Snapshot) -> Result<Kubelith> {
        self.fork_at(snapshot.clone()).await
    }

    async fn fork_at(&self, snapshot: Snapshot) -> Result<Kubelith> {
        let plane = self.runtime.run_here(self.plane.seed().fork(snapshot)).await?;
        Ok(Kubelith {
            plane,
            port: Mutex::default(),
            users: self.users.clone(),
            runtime: self.runtime.clone(),
            files: self.files.clone(),
            webhooks: self.webhooks.clone(),
        })
    }

    /// All objects as they are now. Costs nothing, however many there are.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.runtime.run_here(self.plane.seed().snapshot()).await
    }

    /// Makes all objects as they were. Resource versions go on: whoever watches sees what changes by it.
    pub async fn reset(&self, to: &Snapshot) -> Result<()> {
        self.plane.wake();
        let (seed, snapshot) = (self.plane.seed().clone(), to.clone());
        self.run(async move { seed.reset(&snapshot).await }).await
    }

    /// Waits until all is done that a server does when it starts. A fork answers before.
    pub async fn ready(&self) -> Result<()> {
        self.run(self.plane.ready()).await
    }

    /// Scripts an answer. It stays until it has had its turns, is cleared, or the server goes.
    pub fn fault(&self, fault: Fault) -> Result<FaultHandle> {
        let faults =
            self.plane.faults().ok_or_else(|| Error("the server was built without its test API".to_owned()))?;
        FaultHandle::add(faults, fault)
    }

    /// All faults, with how often they have acted.
    pub fn faults(&self) -> Vec<FaultReport> {
        self.plane.faults().map(|faults| faults.list()).unwrap_or_default()
    }

    pub fn clear_faults(&self) {
        if let Some(faults) = self.plane.faults() {
            faults.clear();
        }
    }

    /// Turns the clock of a server that was built with one to turn.
    pub fn advance(&self, by: Duration) -> Result<()> {
        self.plane.wake();
        let by = Span::from_nanos(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX));
        self.plane.seed().advance(by)?;
        Ok(())
    }

    /// The server's time.
    pub fn now(&self) -> SystemTime {
        let now = self.plane.seed().now();
        let seconds = Duration::from_secs(now.unix_seconds().max(0).unsigned_abs());
        SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(now.subsec_nanos().into())
    }

    /// Connects hyper's clients to the server: HTTP/1.1 over a pipe in memory. Requests need a token, see [`Kubelith::token`].
    pub fn connector(&self) -> Connector {
        Connector::new(self.plane.doorway(), None)
    }

    /// Connects as somebody who has a certificate: no token is needed. The certificate is made for this.
    pub fn connector_with_certificate(&self, user: &str, group: Option<&str>) -> Result<Connector> {
        let (certificate, _) = self.plane.issue_client(user, group)?;
        Ok(Connector::new(self.plane.doorway(), Some(connector::certificates(&certificate)?)))
    }

    /// The token of the administrator, who is in system:masters.
    pub fn token(&self) -> &str {
        self.users.admin_token()
    }

    /// The token of a user that the builder was told of.
    pub fn token_of(&self, user: &str) -> Option<&str> {
        self.users.token_of(user)
    }

    /// A certificate for a user and its key, in PEM, for clients that come through the port.
    pub fn certificate(&self, user: &str, group: Option<&str>) -> Result<(String, String)> {
        Ok(self.plane.issue_client(user, group)?)
    }

    /// Where the server listens, on loopback, with TLS. The port is opened when it is first asked for.
    pub fn address(&self) -> Result<SocketAddr> {
        let mut port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        match *port {
            Some(address) => Ok(address),
            None => {
                let address = self.plane.listen((Ipv4Addr::LOCALHOST, 0).into())?;
                Ok(*port.insert(address))
            }
        }
    }

    /// The administrator's kubeconfig, for programs that come through the port.
    pub fn kubeconfig(&self) -> Result<String> {
        let address = self.address()?;
        self.plane.kubeconfig(address)?.ok_or_else(|| Error("flags name another authority for clients".to_owned()))
    }

    /// PEM of what clients of the port trust.
    pub fn certificate_authority(&self) -> Result<String> {
        Ok(self.plane.authority()?)
    }

    /// Stops in order, as the program does at a signal. Dropping the server is quicker.
    pub async fn stop(self) -> Result<()> {
        let Kubelith { plane, runtime, .. } = self;
        runtime.run(async move { plane.stop().await }).await
    }
}
