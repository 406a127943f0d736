//! The TLS handshake, and what it tells about the client.

use super::activity::{Activity, HEAD_TIMEOUT};
use super::control::Connections;
use super::disposal::Disposal;
use super::driver::Driver;
use super::protocol::{Http1, Http2};
use super::service::ConnectionService;
use super::session::{Readiness, Session};
use super::socket::Socket;
use super::stream::ClientStream;
use super::{HttpOptions, ListenStats};
use kubelith_http::BoxHandler;
use kubelith_http::askers::Askers;
use kubelith_http::connection::{ConnectionInfo, PeerCertificates};
use kubelith_http::turns::Turns;
use kubelith_tls::{DynamicTls, HELLO_BYTES, SuiteOrder};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) struct Shared {
    pub handler: BoxHandler,
    pub tls: Arc<DynamicTls>,
    pub options: HttpOptions,
    pub stats: Arc<ListenStats>,
    pub connections: Arc<Connections>,
    pub disposal: Arc<Disposal>,
    /// Connections that have the state of their protocol.
    pub serving: AtomicUsize,
    /// Of connections that shake hands, each of which takes as long as many small requests.
    pub handshakes: Arc<Turns>,
    pub tasks: TaskTracker,
    /// Handshakes end with it.
    pub stop: CancellationToken,
}

/// Shakes hands, then starts the connection as a task of its own: the handshake's memory goes with its task.
pub(super) async fn accept(stream: TcpStream, remote: SocketAddr, shared: Arc<Shared>) {
    let activity = Arc::new(Activity::default());
    let stream = Socket::new(stream, activity.clone());
    let Ok(local) = stream.local_addr() else { return };
    let handshake = tokio::time::timeout(HEAD_TIMEOUT, async {
        std::future::poll_fn(|cx| stream.poll_read_ready(cx)).await?;
        if let Some(turn) = shared.handshakes.take() {
            turn.await;
        }
        let mut hello = [0; HELLO_BYTES];
        let came = stream.peek(&mut hello).await?;
        let config = shared.tls.config_for(local.ip(), SuiteOrder::of(&hello[..came]));
        Session::accept(config, stream).await
    });
    let Some(handshake) = shared.stop.run_until_cancelled(handshake).await else { return };
    let why = match handshake {
        Ok(Ok(stream)) => return start(Box::new(stream), activity, remote, local, shared),
        Ok(Err(e)) => e.to_string(),
        Err(_) => "timeout".to_owned(),
    };
    shared.stats.tls_handshake_errors.fetch_add(1, Ordering::Relaxed);
    tracing::debug!("http: TLS handshake error from {remote}: {why}");
}

fn start(
    stream: Box<Session<Socket>>,
    activity: Arc<Activity>,
    remote: SocketAddr,
    local: SocketAddr,
    shared: Arc<Shared>,
) {
    let session = stream.agreed();
    let is_h2 = session.alpn_protocol() == Some(b"h2");
    let peer_certificates = session
        .peer_certificates()
        .and_then(|chain| PeerCertificates::new(chain.iter().map(|c| c.clone().into_owned())));
    let entry = shared.connections.enter();
    let connection = Arc::new(ConnectionInfo {
        remote: SocketAddr::new(remote.ip().to_canonical(), remote.port()),
        local: SocketAddr::new(local.ip().to_canonical(), local.port()),
        peer_certificates,
        askers: Askers::default(),
    });
    if is_h2 {
        activity.multiplex();
    }
    let stream = ClientStream::new(stream, activity.clone(), connection.clone());
    let service = ConnectionService::new(shared.handler.clone(), connection, entry.control.clone(), activity);
    let tasks = shared.tasks.clone();
    if is_h2 {
        tasks.spawn(Driver::<Http2>::new(stream.gathering(), service, shared, entry));
    } else {
        tasks.spawn(Driver::<Http1>::new(stream, service, shared, entry));
    }
}
