//! HTTP/1.1 over any two-way stream within the process: no socket, no TLS. Who is on the other side is known to whoever opened it.

use super::Stop;
use super::activity::Activity;
use super::control::{Connections, Order};
use super::protocol::{MAX_HEADER_BYTES, MAX_HEADERS};
use super::service::ConnectionService;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubelith_http::BoxHandler;
use kubelith_http::askers::Askers;
use kubelith_http::connection::{ConnectionInfo, PeerCertificates};
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Serves until the other side leaves or the server stops. `certificates` are what a client would have sent in a handshake.
pub async fn serve_pipe<S>(stream: S, certificates: Option<PeerCertificates>, handler: BoxHandler, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let connection = Arc::new(ConnectionInfo {
        remote: here,
        local: here,
        peer_certificates: certificates,
        askers: Askers::default(),
    });
    let entry = Arc::new(Connections::default()).enter();
    let control = entry.control.clone();
    let service = ConnectionService::new(handler, connection, control.clone(), Arc::new(Activity::default()));
    let mut serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(MAX_HEADER_BYTES as usize)
        .max_headers(MAX_HEADERS)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service.clone());
    let mut leaving = false;
    let ended = loop {
        let served = std::future::poll_fn(|cx| match control.poll(cx) {
            Order::Stay => serving.poll_without_shutdown(cx).map(Some),
            Order::Leave if leaving => serving.poll_without_shutdown(cx).map(Some),
            _ => Poll::Ready(None),
        });
        tokio::select! {
            () = stop.now.cancelled() => return,
            () = stop.gracefully.cancelled(), if !leaving => control.order(Order::Leave),
            outcome = served => match outcome {
                Some(outcome) => break outcome,
                None if leaving => return,
                None => {}
            },
        }
        if !leaving {
            leaving = true;
            Pin::new(&mut serving).graceful_shutdown();
        }
    };
    // What follows a 101 belongs to whoever asked for it.
    if let (Ok(()), Some(slot)) = (ended, service.take_upgrade()) {
        let parts = serving.into_parts();
        let (read, write) = tokio::io::split(parts.io.into_inner());
        let _ = slot.fulfil(tokio::io::join(Cursor::new(parts.read_buf).chain(read), write));
    }
}
