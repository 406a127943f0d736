//! The socket: binding, accepting, TLS, HTTP/1.1 or HTTP/2 as the client chooses, and closing in order.

pub mod activity;

pub mod bind;
pub mod connection;
pub mod control;
mod crowd;
mod disposal;
mod driver;
mod inbox;
mod parking;
mod pipe;
mod protocol;
mod refusal;
pub mod service;
mod session;
mod socket;
mod stream;

pub use bind::{BindOptions, Sharing, bind};
pub use pipe::serve_pipe;
pub use stream::ClientStream;

use control::{Connections, Order};
use kubelith_http::BoxHandler;
use kubelith_tls::DynamicTls;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// As in the reference: what clients count on before they have seen our settings.
pub const DEFAULT_MAX_STREAMS: u32 = 100;
/// Dead peers are noticed within minutes, also where nothing is sent.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(180);
/// Pause after an accept that failed for want of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct HttpOptions {
    pub max_streams_per_connection: u32,
    /// Idle connections give up their protocol's state until they are used again.
    pub park_idle: bool,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions { max_streams_per_connection: DEFAULT_MAX_STREAMS, park_idle: true }
    }
}

/// What a listener counts; the metrics read it.
#[derive(Debug, Default)]
pub struct ListenStats {
    pub tls_handshake_errors: AtomicU64,
    /// How often an idle connection was parked.
    pub parked: AtomicU64,
    /// How often one was resumed.
    pub resumed: AtomicU64,
}

/// When to stop, and how.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// No new connections; the open ones end when their requests are done.
    pub gracefully: CancellationToken,
    /// Open connections are dropped.
    pub now: CancellationToken,
}

pub struct Listener {
    socket: TcpListener,
    tls: Arc<DynamicTls>,
    options: HttpOptions,
    stats: Arc<ListenStats>,
}

impl Listener {
    pub fn new(socket: TcpListener, tls: Arc<DynamicTls>, options: HttpOptions) -> Listener {
        Listener { socket, tls, options, stats: Arc::default() }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub fn tls(&self) -> Arc<DynamicTls> {
        self.tls.clone()
    }

    pub fn stats(&self) -> Arc<ListenStats> {
        self.stats.clone()
    }

    /// Serves until told to stop, and returns when all connections are gone.
    pub async fn serve(self, handler: BoxHandler, stop: Stop) {
        let tasks = TaskTracker::new();
        let connections = Arc::new(Connections::default());
        let shared = Arc::new(connection::Shared {
            handler,
            tls: self.tls,
            options: self.options,
            stats: self.stats,
            connections: connections.clone(),
            disposal: Arc::default(),
            serving: Default::default(),
            handshakes: Arc::default(),
            tasks: tasks.clone(),
            stop: stop.now.clone(),
        });
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.gracefully.cancelled() => break,
                () = stop.now.cancelled() => break,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, remote)) => {
                    tune(&stream);
                    tasks.spawn(connection::accept(stream, remote, shared.clone()));
                }
                // The connection is gone already; that is the client's affair.
                Err(e) if is_connection_error(&e) => {}
                Err(e) => {
                    tracing::warn!(error = %e, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.socket);
        connections.order_all(Order::Leave);
        tasks.close();
        if stop.now.run_until_cancelled(tasks.wait()).await.is_none() {
            connections.order_all(Order::Drop);
            tasks.wait().await;
        }
    }
}

fn tune(stream: &TcpStream) {
    // Both only make things better; a socket that refuses them still serves.
    let _ = stream.set_nodelay(true);
    let keep_alive = socket2::TcpKeepalive::new().with_time(TCP_KEEP_ALIVE).with_interval(TCP_KEEP_ALIVE);
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive);
}

fn is_connection_error(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(e.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
