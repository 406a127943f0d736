//! The connection to one target: made on first use, shared by all calls, and made again when it was lost.
//!
//! Calls are streams of HTTP/2 here and nothing in between: what a call says is written with one call of the system, and its answer
//! wakes its task alone. Layers of services with queues between them made four tasks and two writes of it.

use super::pongs::WithPongs;
use super::{Dial, Io, Target};
use bytes::Bytes;
use futures::FutureExt;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong};
use http::Uri;
use http::uri::PathAndQuery;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tonic::Status;

/// As kube-apiserver has it: short enough to notice a dead peer soon, long enough to cost nothing.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// TLS on loaded small machines can take seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A page of a list is megabytes: do not make the peer wait for window updates.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Cloning shares the connection.
#[derive(Clone)]
pub struct Channel(Arc<Shared>);

struct Shared {
    target: Target,
    dial: Option<Arc<dyn Dial>>,
    /// What the peer sees as the place of each method.
    origin: http::uri::Parts,
    open: Mutex<Option<Open>>,
    /// Held while one connects.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection that was made, and may have been lost since.
#[derive(Clone)]
pub(super) struct Open {
    pub requests: SendRequest<Bytes>,
    pub calls: Calls,
    /// Dropped when the connection ends.
    is_driven: std::sync::Weak<()>,
}

/// How many calls are under way on a connection.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Counts>);

#[derive(Default)]
struct Counts {
    all: AtomicUsize,
    /// Which are answered soon.
    short: AtomicUsize,
}

/// Counts one call until it is dropped.
pub(super) struct Counted {
    calls: Calls,
    is_short: bool,
}

impl Calls {
    pub fn begin(&self, is_short: bool) -> Counted {
        self.0.all.fetch_add(1, Ordering::Relaxed);
        self.0.short.fetch_add(usize::from(is_short), Ordering::Relaxed);
        Counted { calls: self.clone(), is_short }
    }

    fn any(&self) -> bool {
        self.0.all.load(Ordering::Relaxed) > 0
    }

    fn short(&self) -> usize {
        self.0.short.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.calls.0.all.fetch_sub(1, Ordering::Relaxed);
        self.calls.0.short.fetch_sub(usize::from(self.is_short), Ordering::Relaxed);
    }
}

/// What a call fails with that never left: it can be made again.
#[derive(Debug)]
struct NeverSent;

impl std::fmt::Display for NeverSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing was sent")
    }
}

impl std::error::Error for NeverSent {}

/// Whether the call failed before anything was sent.
pub fn never_sent(status: &Status) -> bool {
    std::error::Error::source(status).is_some_and(|source| source.is::<NeverSent>())
}

/// In gRPC's words, which operators know.
fn not_connected(error: &io::Error) -> Status {
    as_never_sent(Status::unavailable(format!("connection error: desc = \"transport: Error while dialing: {error}\"")))
}

pub(super) fn as_never_sent(mut status: Status) -> Status {
    status.set_source(Arc::new(NeverSent));
    status
}

impl Channel {
    /// It connects on first use; straight, unless `dial` does it. An error says what is wrong with the target.
    pub fn new(target: Target, dial: Option<Arc<dyn Dial>>) -> Result<Channel, String> {
        let scheme = if matches!(&target, Target::Tcp { tls: Some(_), .. }) { "https" } else { "http" };
        let origin = format!("{scheme}://{}", target.authority()).parse::<Uri>();
        let origin = origin.map_err(|error| format!("bad endpoint {target:?}: {error}"))?;
        let (open, connecting) = Default::default();
        Ok(Channel(Arc::new(Shared { target, dial, origin: origin.into_parts(), open, connecting })))
    }

    pub(super) fn uri(&self, method: &'static str) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme.clone_from(&self.0.origin.scheme);
        parts.authority.clone_from(&self.0.origin.authority);
        parts.path_and_query = Some(PathAndQuery::from_static(method));
        Uri::from_parts(parts)
            .expect("an origin has a scheme and an authority, and a method's path begins with a slash")
    }

    fn last(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last connection, if it takes one more call: not if it was lost, is to end, or has had as many calls as it can.
    async fn usable(&self) -> Option<Open> {
        let mut open = self.last().as_ref().filter(|open| open.is_driven.strong_count() > 0).cloned()?;
        poll_fn(|cx| open.requests.poll_ready(cx)).await.is_ok().then_some(open)
    }

    /// A connection that takes one more call.
    pub(super) async fn ready(&self) -> Result<Open, Status> {
        if let Some(open) = self.usable().await {
            return Ok(open);
        }
        let _turn = self.0.connecting.lock().await;
        if let Some(open) = self.usable().await {
            return Ok(open);
        }
        // Boxed, for it is seldom, and every future that has a call in it would have all of this.
        let open = self.connect().boxed().await.map_err(|error| not_connected(&error))?;
        *self.last() = Some(open.clone());
        Ok(open)
    }

    async fn connect(&self) -> io::Result<Open> {
        let connecting = async {
            let io = self.0.target.connect(self.0.dial.as_deref()).await?;
            h2::client::Builder::new()
                .initial_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .enable_push(false)
                .handshake::<_, Bytes>(WithPongs::new(io))
                .await
                .map_err(io::Error::other)
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let (requests, mut connection) = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let (driver, calls) = (Arc::new(()), Calls::default());
        let is_driven = Arc::downgrade(&driver);
        let pings = connection.ping_pong();
        let counted = calls.clone();
        tokio::spawn(async move {
            let _driver = driver;
            tokio::select! {
                () = drive(connection, &counted) => {}
                () = peer_is_silent(pings, &counted) => tracing::debug!("a gRPC connection does not answer any more"),
            }
        });
        Ok(Open { requests, calls, is_driven })
    }
}

/// Reads and writes until the connection ends. Of several calls each wakes it, but what they have to say goes with one write: those
/// that are ready go first, once for each time it is woken.
async fn drive(mut connection: Connection<WithPongs<Box<dyn Io>>, Bytes>, calls: &Calls) {
    let mut let_others = false;
    let ended = poll_fn(|cx| {
        let_others = !let_others && calls.short() > 1;
        if let_others {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        std::pin::Pin::new(&mut connection).poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a gRPC connection ended");
    }
}

/// Ends when the peer answers no pings. It gets none while nothing is called: servers refuse that.
async fn peer_is_silent(pings: Option<PingPong>, calls: &Calls) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
        if !calls.any() {
            continue;
        }
        match tokio::time::timeout(KEEP_ALIVE_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection itself tells.
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) => return,
        }
    }
}
