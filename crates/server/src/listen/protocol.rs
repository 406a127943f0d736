//! HTTP/1.1 and HTTP/2 as the driver sees them: hyper's connections have no common trait.

use super::HttpOptions;
use super::service::ConnectionService;
use super::stream::ClientStream;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Nearly every API object fits into one frame of this size, and a connection's window into memory.
const UPLOAD_WINDOW: u32 = 256 * 1024;
/// Of one request, as the reference.
const MAX_HEADER_BYTES: u32 = 1 << 20;
/// Per stream: what is made ahead of a slow reader.
const MAX_SEND_BUFFER: usize = 128 * 1024;

type Io = TokioIo<ClientStream>;

pub(super) trait Protocol: Send + 'static {
    type Connection: Send;

    fn serve(stream: ClientStream, service: ConnectionService, options: &HttpOptions) -> Self::Connection;

    /// Ready when the connection has ended, with the stream if it is still ours to close.
    fn poll(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>>;

    /// No new requests; ends when those under way are done.
    fn leave(conn: Pin<&mut Self::Connection>);

    /// The stream without the protocol's state and buffers; `None` if the protocol cannot be picked up again.
    fn into_stream(conn: Pin<Box<Self::Connection>>) -> Option<ClientStream>;

    /// Whether an idle connection can do without its state.
    const CAN_PARK: bool;
}

pub(super) struct Http1;

impl Protocol for Http1 {
    type Connection = http1::Connection<Io, ConnectionService>;
    const CAN_PARK: bool = true;

    fn serve(stream: ClientStream, service: ConnectionService, _: &HttpOptions) -> Self::Connection {
        http1::Builder::new()
            .timer(TokioTimer::new())
            // `Activity` tells idle connections from slow ones, which this timeout does not.
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES as usize)
            .title_case_headers(true)
            .serve_connection(TokioIo::new(stream), service)
    }

    fn poll(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        conn.as_mut().get_mut().poll_without_shutdown(cx)
    }

    fn leave(conn: Pin<&mut Self::Connection>) {
        conn.graceful_shutdown();
    }

    fn into_stream(conn: Pin<Box<Self::Connection>>) -> Option<ClientStream> {
        let parts = Pin::into_inner(conn).into_parts();
        let mut stream = parts.io.into_inner();
        if !parts.read_buf.is_empty() {
            stream.unread(parts.read_buf);
        }
        Some(stream)
    }
}

pub(super) struct Http2;

impl Protocol for Http2 {
    type Connection = http2::Connection<Io, ConnectionService, TokioExecutor>;
    /// Both sides keep the state of header compression.
    const CAN_PARK: bool = false;

    fn serve(stream: ClientStream, service: ConnectionService, options: &HttpOptions) -> Self::Connection {
        let streams = options.max_streams_per_connection;
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .initial_stream_window_size(UPLOAD_WINDOW)
            .initial_connection_window_size(UPLOAD_WINDOW.saturating_mul(streams).min(i32::MAX as u32))
            .max_frame_size(UPLOAD_WINDOW)
            .max_header_list_size(MAX_HEADER_BYTES)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .serve_connection(TokioIo::new(stream), service)
    }

    fn poll(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        conn.as_mut().poll(cx)
    }

    fn leave(conn: Pin<&mut Self::Connection>) {
        conn.graceful_shutdown();
    }

    fn into_stream(_: Pin<Box<Self::Connection>>) -> Option<ClientStream> {
        None
    }
}
