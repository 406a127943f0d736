//! HTTP/1.1 and HTTP/2 as the driver sees them: hyper's connections have no common trait.

use super::HttpOptions;
use super::activity::Activity;
use super::crowd::{Crowd, Ready};
use super::disposal::Disposal;
use super::inbox::Inbox;
use super::parking::{Parked, Streams, Tap, TapIo};
use super::service::ConnectionService;
use super::stream::ClientStream;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Nearly every API object fits into one frame of this size, and a connection's window into memory.
const UPLOAD_WINDOW: u32 = 256 * 1024;
/// Of one request, as the reference.
pub(super) const MAX_HEADER_BYTES: u32 = 1 << 20;
/// A front proxy sends each group of a user as one.
pub(super) const MAX_HEADERS: usize = 1000;
/// How often a connection reads, answers and writes until others are let in between.
const TURNS: usize = 4;
/// Per stream: what is made ahead of a slow reader.
const MAX_SEND_BUFFER: usize = 128 * 1024;

pub(super) trait Protocol: Send + 'static {
    type Connection: Send;
    /// The state of a parked connection.
    type Parked: Send + Unpin;

    /// Serves a new connection, or resumes a parked one.
    fn serve(
        stream: ClientStream,
        service: ConnectionService,
        options: &HttpOptions,
        parked: Option<Self::Parked>,
    ) -> Self::Connection;

    /// Ready when the connection has ended, with the stream if it is still ours to close.
    fn poll(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>>;

    /// No new requests; ends when those under way are done.
    fn leave(conn: Pin<&mut Self::Connection>);

    /// The stream without the protocol's state and buffers; `None` if the stream is not ours any more.
    fn into_stream(conn: Pin<Box<Self::Connection>>) -> Option<ClientStream>;

    /// If the protocol lets us send nothing more: how much was sent until now.
    fn sent_before_stop(_: &Self::Connection) -> Option<u64> {
        None
    }

    /// Whether the connection has been idle for long enough to be parked.
    fn is_quiet(activity: &Activity, a_while: Duration) -> bool;

    /// Does what a parked connection does by itself. Ready when it has to be resumed, or with `false` when the client has left.
    fn poll_aside(
        _: &mut Self::Parked,
        stream: &mut ClientStream,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<bool>> {
        stream.poll_first_bytes(cx)
    }

    /// The parked state of an idle connection, if it can be parked now. If not, the client is asked to prepare for it.
    fn poll_park(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Option<Self::Parked>;

    /// As `poll_park`, after the client was asked: asks for nothing more.
    fn park_as_agreed(_: &Self::Connection) -> Option<Self::Parked> {
        None
    }

    /// As `into_stream`, for a connection that is parked.
    fn park_stream(conn: Pin<Box<Self::Connection>>, _: &Arc<Disposal>) -> Option<ClientStream> {
        Self::into_stream(conn)
    }

    /// Whether a connection with requests under way may be parked.
    const PARKS_BUSY: bool;

    /// Whether a client is told that a connection ends, also a parked one.
    const SENDS_GOAWAY: bool;
}

pub(super) struct Http1;

impl Protocol for Http1 {
    type Connection = http1::Connection<TokioIo<ClientStream>, ConnectionService>;
    type Parked = ();
    const SENDS_GOAWAY: bool = false;
    const PARKS_BUSY: bool = false;

    fn serve(
        stream: ClientStream,
        service: ConnectionService,
        _: &HttpOptions,
        _: Option<Self::Parked>,
    ) -> Self::Connection {
        http1::Builder::new()
            .timer(TokioTimer::new())
            // `Activity` tells idle connections from slow ones, which this timeout does not.
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES as usize)
            .max_headers(MAX_HEADERS)
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

    fn is_quiet(activity: &Activity, a_while: Duration) -> bool {
        activity.is_quiet(a_while)
    }

    /// Nothing is left of a request once it was answered.
    fn poll_park(_: &mut Pin<Box<Self::Connection>>, _: &mut Context<'_>) -> Option<()> {
        Some(())
    }
}

pub(super) struct Http2;

/// hyper's connection, and what it reads and writes through.
pub(super) struct Http2Connection {
    conn: http2::Connection<TokioIo<TapIo>, ConnectionService, Inbox>,
    inbox: Inbox,
    tap: Arc<Mutex<Tap>>,
    streams: Arc<Streams>,
    ready: Ready,
    crowd: Crowd,
}

impl Http2Connection {
    fn tap(&self) -> MutexGuard<'_, Tap> {
        self.tap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lets_others_go_first(&mut self) -> bool {
        self.crowd.waits(self.ready.take(), Instant::now)
    }
}

impl Protocol for Http2 {
    type Connection = Http2Connection;
    type Parked = Parked;
    /// Or a request that is on its way might be lost.
    const SENDS_GOAWAY: bool = true;
    const PARKS_BUSY: bool = true;

    fn serve(
        stream: ClientStream,
        service: ConnectionService,
        options: &HttpOptions,
        parked: Option<Parked>,
    ) -> Self::Connection {
        let most = options.max_streams_per_connection;
        let window = UPLOAD_WINDOW.saturating_mul(most).min(i32::MAX as u32);
        let ready = Ready::default();
        let (tap, answers) = match parked {
            Some(parked) => (Tap::resume(stream, &parked, window), parked.into_answers()),
            None => (Tap::new(stream), Vec::new()),
        };
        let (tap, streams) = (Arc::new(Mutex::new(tap)), Arc::new(Streams::resumed(answers, ready.clone())));
        let inbox = Inbox::new(ready.clone());
        let conn = http2::Builder::new(inbox.clone())
            .timer(TokioTimer::new())
            .max_concurrent_streams(most)
            .initial_stream_window_size(UPLOAD_WINDOW)
            .initial_connection_window_size(window)
            .max_frame_size(UPLOAD_WINDOW)
            .max_header_list_size(MAX_HEADER_BYTES)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .serve_connection(TokioIo::new(TapIo(tap.clone())), service.with_streams(streams.clone()));
        Http2Connection { conn, inbox, tap, streams, ready, crowd: Crowd::default() }
    }

    fn poll(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        if conn.lets_others_go_first() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        for _ in 0..TURNS {
            let ended = Pin::new(&mut conn.conn).poll(cx);
            conn.tap().send_written(cx);
            let any = conn.inbox.begin_all();
            if ended.is_ready() || !any {
                return ended;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn leave(mut conn: Pin<&mut Self::Connection>) {
        Pin::new(&mut conn.conn).graceful_shutdown();
    }

    fn into_stream(conn: Pin<Box<Self::Connection>>) -> Option<ClientStream> {
        let Http2Connection { conn, tap, .. } = *Pin::into_inner(conn);
        drop(conn);
        tap.lock().unwrap_or_else(PoisonError::into_inner).take_stream()
    }

    fn poll_park(conn: &mut Pin<Box<Self::Connection>>, cx: &mut Context<'_>) -> Option<Parked> {
        conn.tap().poll_park(cx, &conn.streams)
    }

    fn park_as_agreed(conn: &Self::Connection) -> Option<Parked> {
        conn.tap().park(&conn.streams)
    }

    fn park_stream(conn: Pin<Box<Self::Connection>>, disposal: &Arc<Disposal>) -> Option<ClientStream> {
        let stream = conn.tap().take_stream();
        let remains: Box<Http2Connection> = Pin::into_inner(conn);
        disposal.take(remains);
        stream
    }

    fn is_quiet(activity: &Activity, a_while: Duration) -> bool {
        activity.is_unasked(a_while)
    }

    fn sent_before_stop(conn: &Self::Connection) -> Option<u64> {
        conn.tap().sent_before_stop()
    }

    fn poll_aside(parked: &mut Parked, stream: &mut ClientStream, cx: &mut Context<'_>) -> Poll<std::io::Result<bool>> {
        parked.poll_aside(stream, cx)
    }
}
