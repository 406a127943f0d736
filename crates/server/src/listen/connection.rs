//! One connection from accept to end.

use super::activity::{Activity, HEAD_TIMEOUT, Verdict, Watched};
use super::control::{Connections, Entry, Order};
use super::service::{ConnectionInfo, ConnectionService};
use super::{HttpOptions, ListenStats};
use crate::http::BoxHandler;
use crate::tls::{DynamicTls, PeerCertificates};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Nearly every API object fits into one frame of this size, and a connection's window into memory.
const UPLOAD_WINDOW: u32 = 256 * 1024;
/// Of one request, as the reference.
const MAX_HEADER_BYTES: u32 = 1 << 20;
/// Per stream: what is made ahead of a slow reader.
const MAX_SEND_BUFFER: usize = 128 * 1024;

pub(super) struct Shared {
    pub handler: BoxHandler,
    pub tls: Arc<DynamicTls>,
    pub options: HttpOptions,
    pub stats: Arc<ListenStats>,
    pub connections: Arc<Connections>,
    /// Handshakes end with it.
    pub stop: CancellationToken,
}

/// Each stage boxes the next one, so that an idle connection does not keep the handshake's memory.
pub(super) async fn serve(stream: TcpStream, remote: SocketAddr, shared: Arc<Shared>) {
    let Ok(local) = stream.local_addr() else { return };
    let config = shared.tls.config_for(local.ip());
    let handshake = Box::pin(TlsAcceptor::from(config).accept(stream));
    let handshake = tokio::time::timeout(HEAD_TIMEOUT, handshake);
    let Some(handshake) = shared.stop.run_until_cancelled(handshake).await else { return };
    let why = match handshake {
        Ok(Ok(stream)) => return Box::pin(serve_http(stream, remote, local, shared)).await,
        Ok(Err(e)) => e.to_string(),
        Err(_) => "timeout".to_owned(),
    };
    shared.stats.tls_handshake_errors.fetch_add(1, Ordering::Relaxed);
    tracing::debug!("http: TLS handshake error from {remote}: {why}");
}

async fn serve_http(stream: TlsStream<TcpStream>, remote: SocketAddr, local: SocketAddr, shared: Arc<Shared>) {
    let session = stream.get_ref().1;
    let is_h2 = session.alpn_protocol() == Some(b"h2");
    let peer_certificates = session
        .peer_certificates()
        .filter(|chain| !chain.is_empty())
        .map(|chain| PeerCertificates(chain.iter().map(|c| c.clone().into_owned()).collect()));
    let entry = shared.connections.enter();
    let connection = Arc::new(ConnectionInfo {
        remote: SocketAddr::new(remote.ip().to_canonical(), remote.port()),
        local: SocketAddr::new(local.ip().to_canonical(), local.port()),
        peer_certificates,
        control: entry.control.clone(),
    });
    let activity = Arc::new(Activity::default());
    let service = ConnectionService { handler: shared.handler.clone(), connection, activity: activity.clone() };
    if is_h2 {
        let streams = shared.options.max_streams_per_connection;
        let conn = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .initial_stream_window_size(UPLOAD_WINDOW)
            .initial_connection_window_size(UPLOAD_WINDOW.saturating_mul(streams).min(i32::MAX as u32))
            .max_frame_size(UPLOAD_WINDOW)
            .max_header_list_size(MAX_HEADER_BYTES)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        drop(shared);
        Driven::new(conn, |c| c.graceful_shutdown(), entry, activity).await;
    } else {
        let io = TokioIo::new(Watched::new(stream, activity.clone()));
        let conn = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES as usize)
            .title_case_headers(true)
            .serve_connection(io, service)
            .with_upgrades();
        drop(shared);
        Driven::new(conn, |c| c.graceful_shutdown(), entry, activity).await;
    }
}

/// Drives a connection to its end, telling it to leave when the server stops, when a request asked for it, or
/// when it has idled; drops it when it takes too long.
struct Driven<C, L> {
    conn: Pin<Box<C>>,
    /// hyper's graceful shutdown, which both protocols have under the same name and no common trait.
    leave: L,
    entry: Entry,
    activity: Arc<Activity>,
    leaving_since: Option<Instant>,
    look: Pin<Box<Sleep>>,
}

impl<C, L: Fn(Pin<&mut C>)> Driven<C, L> {
    fn new(conn: C, leave: L, entry: Entry, activity: Arc<Activity>) -> Driven<C, L> {
        let look = Box::pin(tokio::time::sleep_until(Instant::now() + HEAD_TIMEOUT));
        Driven { conn: Box::pin(conn), leave, entry, activity, leaving_since: None, look }
    }
}

impl<C, L> Future for Driven<C, L>
where
    C: Future<Output = hyper::Result<()>>,
    L: Fn(Pin<&mut C>) + Unpin,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            if let Poll::Ready(result) = this.conn.as_mut().poll(cx) {
                if let Err(e) = result {
                    tracing::trace!(error = %e, "connection ended");
                }
                return Poll::Ready(());
            }
            let order = this.entry.control.poll(cx);
            if order == Order::Drop {
                return Poll::Ready(());
            }
            let mut leave = order == Order::Leave && this.leaving_since.is_none();
            while !leave && this.look.as_mut().poll(cx).is_ready() {
                match this.activity.judge(this.leaving_since) {
                    Verdict::LookAgainAt(when) => this.look.as_mut().reset(when),
                    Verdict::TooSlow => return Poll::Ready(()),
                    Verdict::Idle => leave = true,
                }
            }
            if !leave {
                return Poll::Pending;
            }
            this.leaving_since = Some(Instant::now());
            (this.leave)(this.conn.as_mut());
            if let Verdict::LookAgainAt(when) = this.activity.judge(this.leaving_since) {
                this.look.as_mut().reset(when);
            }
        }
    }
}
