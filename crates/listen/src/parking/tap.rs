//! The tap: reads the frames between the client and hyper, forwards or suppresses them, and adds parking's own.

use super::frames::{self, HEAD, Head};
use super::held::Streams;
use super::hpack::{TableUse, table_use};
use super::ledger::{Action, Ledger};
use super::parked::{Parked, ResumedStream};
use crate::stream::ClientStream;
use bytes::{Buf, BytesMut};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// With less space than this, bytes go through a buffer of our own.
const SMALL_READ: usize = 64;
/// Of a payload that is looked at whole; settings are a few dozen bytes, the first headers after a pause a few
/// hundred.
const MAX_PAYLOAD: usize = 16 * 1024;

/// One direction: the frame that is being read, and how much of it is still to come.
#[derive(Default)]
struct Cursor {
    /// Of a frame head that is not whole.
    partial: Vec<u8>,
    head: Option<Head>,
    left: usize,
    action: Option<Action>,
    /// Of a frame whose payload is parsed.
    payload: Vec<u8>,
    /// A header block continues in the next frame, and no other frame may come between.
    within_headers: bool,
}

impl Cursor {
    fn at_boundary(&self) -> bool {
        self.left == 0 && self.partial.is_empty() && !self.within_headers
    }

    fn begin(&mut self, head: Head, action: Action) {
        (self.head, self.left, self.action) = (Some(head), head.length, Some(action));
        self.payload = Vec::new();
        if matches!(head.kind, frames::HEADERS | frames::CONTINUATION) {
            self.within_headers = !head.has(frames::END_HEADERS);
        }
    }

    /// Takes the head of the next frame off `data`; `None` if it is not whole yet.
    fn take_head(&mut self, data: &mut &[u8]) -> Option<[u8; HEAD]> {
        let (head, rest) = data.split_at((HEAD - self.partial.len()).min(data.len()));
        self.partial.extend_from_slice(head);
        *data = rest;
        let head = self.partial.first_chunk::<HEAD>().copied()?;
        self.partial.clear();
        Some(head)
    }

    /// Takes what comes of a payload.
    fn note(&mut self, bytes: &[u8]) {
        if self.payload.len() + bytes.len() <= MAX_PAYLOAD {
            self.payload.extend_from_slice(bytes);
        }
    }
}

/// First frames of a new state, which the client has seen from the state before.
#[derive(Default)]
struct Suppressed {
    settings: bool,
    ack: bool,
    /// The increment of the connection's receive window.
    window: Option<u32>,
    /// HEADERS and filler of streams that continue.
    streams: Vec<ResumingStream>,
}

struct ResumingStream {
    resumed: ResumedStream,
    head_was_sent: bool,
}

impl ResumingStream {
    /// Whether frames of this stream are forwarded from now on.
    fn is_over(&self) -> bool {
        self.head_was_sent && self.resumed.filler == 0 && !self.resumed.is_over
    }
}

impl Suppressed {
    fn is_over(&self) -> bool {
        !self.settings && !self.ack && self.window.is_none() && self.streams.is_empty()
    }

    /// Whether the frame with this head is suppressed.
    fn covers(&mut self, head: Head) -> bool {
        match head.kind {
            frames::SETTINGS if head.is_ack() => std::mem::take(&mut self.ack),
            frames::SETTINGS => std::mem::take(&mut self.settings),
            frames::WINDOW_UPDATE => head.stream == 0 && self.window.is_some(),
            frames::HEADERS | frames::DATA | frames::RST_STREAM => self.covers_stream(head),
            _ => false,
        }
    }

    fn covers_stream(&mut self, head: Head) -> bool {
        let Some(at) = self.streams.iter().position(|a| a.resumed.stream == head.stream) else { return false };
        let stream = &mut self.streams[at];
        match head.kind {
            frames::HEADERS => stream.head_was_sent = true,
            frames::DATA => stream.resumed.filler = stream.resumed.filler.saturating_sub(head.length as u32),
            _ => {}
        }
        let was_over = stream.resumed.is_over;
        // A response that fails does so for the client, too.
        let failed = head.kind == frames::RST_STREAM;
        if stream.is_over() || failed || (was_over && head.has(frames::END_STREAM)) {
            self.streams.remove(at);
        }
        !failed || was_over
    }
}

pub struct Tap {
    stream: Option<ClientStream>,
    ledger: Ledger,
    reading: Cursor,
    writing: Cursor,
    /// For hyper, before the client's bytes.
    feed: BytesMut,
    /// For the client, before hyper's bytes.
    out: BytesMut,
    /// As `out`, once the frame that is being written is whole.
    then: Vec<u8>,
    suppressed: Suppressed,
    /// Wakes hyper's reading, which waits until all first frames were suppressed.
    reader: Option<Waker>,
    /// The first header block after resuming is checked for uses of the emptied HPACK table.
    check_headers: bool,
    /// The client used its old HPACK table or an ended stream: it gets a GOAWAY, and hyper the end of the stream.
    refused: bool,
    /// Why what hyper has written could not be sent. It shows when hyper next reads or flushes.
    failure: Option<io::ErrorKind>,
}

impl Tap {
    /// Without a stream only for tests, which pass frames by hand.
    pub fn new(stream: impl Into<Option<ClientStream>>) -> Tap {
        Tap {
            stream: stream.into(),
            ledger: Ledger::new(),
            // The preface is no frame.
            reading: Cursor { left: frames::PREFACE.len(), ..Cursor::default() },
            writing: Cursor::default(),
            feed: BytesMut::new(),
            out: BytesMut::new(),
            then: Vec::new(),
            suppressed: Suppressed::default(),
            reader: None,
            check_headers: false,
            refused: false,
            failure: None,
        }
    }

    /// A parked connection that is resumed with a receive window of `window` bytes.
    pub fn resume(stream: impl Into<Option<ClientStream>>, parked: &Parked, window: u32) -> Tap {
        let window = i64::from(window);
        let (replay, streams) = parked.replay();
        Tap {
            ledger: Ledger::resumed(parked, &streams, window),
            reading: Cursor::default(),
            feed: BytesMut::from(replay.as_slice()),
            out: BytesMut::from(parked.resume_frames(window).as_slice()),
            suppressed: Suppressed {
                settings: true,
                ack: true,
                window: u32::try_from(window - frames::FIRST_WINDOW).ok().filter(|more| *more > 0),
                streams: streams.into_iter().map(|resumed| ResumingStream { resumed, head_was_sent: false }).collect(),
            },
            check_headers: true,
            ..Tap::new(stream)
        }
    }

    /// The parked state, if the connection can be parked now; otherwise the client is asked to empty its HPACK table.
    pub fn poll_park(&mut self, cx: &mut Context<'_>, streams: &Streams) -> Option<Parked> {
        if !self.is_at_boundary() || !self.ledger.may_park(streams) {
            return None;
        }
        if let Some(settings) = self.ledger.request_empty_table() {
            self.out.extend_from_slice(&settings);
        }
        // A failure shows at hyper's next read.
        if self.poll_flush(cx).is_pending() {
            return None;
        }
        self.ledger.park(streams)
    }

    /// The parked state, if the connection can be parked now and nothing is left to flush.
    pub fn park(&self, streams: &Streams) -> Option<Parked> {
        if self.is_at_boundary() && self.out.is_empty() { self.ledger.park(streams) } else { None }
    }

    /// Whether both directions are between two frames.
    fn is_at_boundary(&self) -> bool {
        let pending = !self.feed.is_empty() || !self.has_suppressed_all() || !self.then.is_empty();
        !pending && self.reading.at_boundary() && self.writing.at_boundary()
    }

    /// The bytes sent so far, if a send window is used up.
    pub fn sent_before_stop(&self) -> Option<u64> {
        self.ledger.sent_before_stop()
    }

    pub fn take_stream(&mut self) -> Option<ClientStream> {
        self.stream.take()
    }

    /// Whether all first frames of a new state have gone by.
    fn has_suppressed_all(&self) -> bool {
        let within_known = self.writing.action == Some(Action::Suppress) && self.writing.left > 0;
        self.suppressed.is_over() && !within_known
    }

    /// Reads frames of the client, compacts what is forwarded to the front of `data`, and returns its length.
    fn inbound(&mut self, data: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while from < data.len() && !self.refused {
            let reading = &mut self.reading;
            let (n, action) = if reading.left > 0 {
                let n = reading.left.min(data.len() - from);
                self.client_payload(&data[from..from + n]);
                if self.refused {
                    break;
                }
                (n, self.reading.action.unwrap_or(Action::Forward))
            } else if let Some(head) = data[from..].first_chunk::<HEAD>() {
                let head = Head::read(*head);
                let last = self.ledger.last_stream();
                reading.begin(head, self.ledger.client_frame(head));
                if let Some(settings) = self.ledger.restore_table() {
                    self.then.extend(settings);
                }
                self.refused = head.kind == frames::DATA && reading.action == Some(Action::Suppress);
                if self.refused {
                    self.refuse(last);
                    break;
                }
                (HEAD, reading.action.unwrap_or(Action::Forward))
            } else {
                reading.partial = data[from..].to_vec();
                break;
            };
            if action == Action::Forward {
                if from != to {
                    data.copy_within(from..from + n, to);
                }
                to += n;
            }
            from += n;
        }
        to
    }

    fn client_payload(&mut self, bytes: &[u8]) {
        let reading = &mut self.reading;
        reading.left -= bytes.len();
        let Some(head) = reading.head else { return };
        match head.kind {
            frames::SETTINGS | frames::WINDOW_UPDATE => {
                reading.note(bytes);
                if reading.left == 0 {
                    self.ledger.client_payload_ends(head, &std::mem::take(&mut reading.payload));
                }
            }
            frames::HEADERS if self.check_headers => {
                reading.note(bytes);
                let whole = reading.left == 0;
                match table_use(block_of(head, &reading.payload)) {
                    TableUse::Resized => self.check_headers = false,
                    TableUse::Unfinished if !whole && reading.payload.len() < MAX_PAYLOAD / 2 => {}
                    TableUse::None => {}
                    TableUse::Relied | TableUse::Unfinished => self.refuse(head.stream.saturating_sub(1)),
                }
            }
            _ => {}
        }
    }

    /// Streams up to `last` were served.
    fn refuse(&mut self, last: u32) {
        self.refused = true;
        self.then.extend(frames::goaway(last));
    }

    /// Reads frames that hyper sends.
    fn outbound(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let writing = &mut self.writing;
            if writing.left == 0 {
                let Some(head) = writing.take_head(&mut data) else { return };
                let head = Head::read(head);
                writing.begin(head, Action::Forward);
                self.ledger.server_frame(head);
                continue;
            }
            let n = writing.left.min(data.len());
            writing.left -= n;
            if let Some(head) = writing.head
                && head.kind == frames::WINDOW_UPDATE
                && head.stream == 0
            {
                writing.note(&data[..n]);
                if writing.left == 0 {
                    let more = frames::read_window(&std::mem::take(&mut writing.payload)).unwrap_or(0);
                    self.ledger.server_window_update(more);
                }
            }
            data = &data[n..];
        }
    }

    /// As `outbound` while a connection is resumed: suppresses what the client has seen, and forwards the rest.
    fn outbound_resuming(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let writing = &mut self.writing;
            if writing.left == 0 {
                let Some(bytes) = writing.take_head(&mut data) else {
                    // Nothing more is suppressed: the rest of this head is written to the socket itself.
                    if self.suppressed.is_over() {
                        self.out.extend_from_slice(&writing.partial);
                    }
                    return;
                };
                let head = Head::read(bytes);
                let known = self.suppressed.covers(head);
                writing.begin(head, if known { Action::Suppress } else { Action::Forward });
                if !known {
                    self.ledger.server_frame(head);
                    self.out.extend_from_slice(&bytes);
                }
                continue;
            }
            let n = writing.left.min(data.len());
            writing.left -= n;
            if writing.action == Some(Action::Forward) {
                self.out.extend_from_slice(&data[..n]);
            } else if writing.head.is_some_and(|h| h.kind == frames::HEADERS) {
                // Nothing that later header blocks could refer to.
                debug_assert!(matches!(table_use(&data[..n]), TableUse::None | TableUse::Resized));
            }
            if writing.head.is_some_and(|h| h.kind == frames::WINDOW_UPDATE && h.stream == 0) {
                writing.note(&data[..n]);
                if writing.left == 0 {
                    let more = frames::read_window(&std::mem::take(&mut writing.payload)).unwrap_or(0);
                    // The client has been given this much before; only the rest is forwarded.
                    let rest = more.saturating_sub(self.suppressed.window.take().unwrap_or(0));
                    if writing.action == Some(Action::Suppress) && rest > 0 {
                        self.out.extend_from_slice(&frames::window_update(0, rest));
                    }
                    self.ledger.server_window_update(rest);
                }
            }
            data = &data[n..];
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.feed.is_empty() {
                let n = self.feed.len().min(buf.remaining());
                buf.put_slice(&self.feed[..n]);
                self.feed.advance(n);
                if self.feed.is_empty() {
                    self.feed = BytesMut::new();
                }
                return Poll::Ready(Ok(()));
            }
            if self.refused {
                return self.poll_flush(cx);
            }
            // Until it has opened its window, a new state would take the client's DATA for a flow-control error.
            if !self.has_suppressed_all() {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if buf.remaining() < SMALL_READ {
                let mut space = [0; SMALL_READ];
                let mut small = ReadBuf::new(&mut space);
                ready!(self.poll_read_into(cx, &mut small))?;
                self.feed.extend_from_slice(small.filled());
                if self.feed.is_empty() && !self.refused {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            let before = buf.filled().len();
            ready!(self.poll_read_into(cx, buf))?;
            if buf.filled().len() > before || !self.refused {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Reads until there is something for hyper, or the end. `buf` has some space.
    fn poll_read_into(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        while !self.refused {
            let held = self.reading.partial.len();
            buf.put_slice(&self.reading.partial);
            let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let outcome = Pin::new(stream).poll_read(cx, buf);
            let came = buf.filled().len() - before - held;
            if !matches!(outcome, Poll::Ready(Ok(()))) || came == 0 {
                buf.set_filled(before);
                return outcome;
            }
            self.reading.partial = Vec::new();
            let kept = self.inbound(&mut buf.filled_mut()[before..]);
            buf.set_filled(before + kept);
            if kept > 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, data: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(cx))?;
        if !self.has_suppressed_all() {
            let Some(first) = data.iter().find(|d| !d.is_empty()) else { return Poll::Ready(Ok(0)) };
            self.outbound_resuming(first);
            if self.has_suppressed_all()
                && let Some(reader) = self.reader.take()
            {
                reader.wake();
            }
            return Poll::Ready(Ok(first.len()));
        }
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let written = match data {
            [one] => ready!(Pin::new(stream).poll_write(cx, one))?,
            several => ready!(Pin::new(stream).poll_write_vectored(cx, several))?,
        };
        let mut left = written;
        for piece in data {
            let n = left.min(piece.len());
            self.outbound(&piece[..n]);
            left -= n;
        }
        Poll::Ready(Ok(written))
    }

    /// Sends what is not hyper's.
    fn poll_own(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.then.is_empty() && self.writing.at_boundary() {
            self.out.extend_from_slice(&std::mem::take(&mut self.then));
        }
        while !self.out.is_empty() {
            let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let n = ready!(Pin::new(stream).poll_write(cx, &self.out))?;
            self.out.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_own(cx))?;
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Pin::new(stream).poll_flush(cx)
    }

    /// Sends what hyper has written, as far as the socket takes it; `cx` is woken when it takes more.
    pub fn send_written(&mut self, cx: &mut Context<'_>) {
        let has_own = !self.out.is_empty() || !self.then.is_empty();
        if !has_own && self.stream.as_ref().is_none_or(|stream| !stream.has_unflushed()) {
            return;
        }
        if let Poll::Ready(Err(e)) = self.poll_flush(cx) {
            self.failure = Some(e.kind());
            cx.waker().wake_by_ref();
        }
    }

    fn check(&self) -> io::Result<()> {
        self.failure.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

/// For tests without a socket.
#[cfg(test)]
impl Tap {
    /// Bytes of the client; returns those for hyper.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut data = std::mem::take(&mut self.reading.partial);
        data.extend_from_slice(bytes);
        let kept = self.inbound(&mut data);
        data.truncate(kept);
        data
    }

    /// Bytes of hyper; returns those for the client, with what is not hyper's.
    pub fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut sent = self.out.split().to_vec();
        if self.has_suppressed_all() {
            self.outbound(bytes);
            sent.extend_from_slice(bytes);
        } else {
            self.outbound_resuming(bytes);
            sent.extend_from_slice(&self.out.split());
        }
        sent
    }

    pub fn is_refused(&self) -> bool {
        self.refused
    }

    pub fn begin_parking(&mut self) {
        self.ledger.request_empty_table();
    }

    /// Bytes for the client that are not hyper's.
    pub fn own(&self) -> Vec<u8> {
        [&self.out[..], &self.then].concat()
    }
}

/// The header block within what has come of a HEADERS frame's payload.
fn block_of(head: Head, payload: &[u8]) -> &[u8] {
    let padding = if head.has(frames::PADDED) { payload.first().map_or(0, |length| usize::from(*length)) } else { 0 };
    let start = usize::from(head.has(frames::PADDED)) + if head.has(frames::PRIORITY) { 5 } else { 0 };
    let end = head.length.saturating_sub(padding).min(payload.len());
    payload.get(start..end).unwrap_or_default()
}

/// hyper's end of a tap.
pub struct TapIo(pub Arc<Mutex<Tap>>);

impl TapIo {
    fn tap(&self) -> MutexGuard<'_, Tap> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl AsyncRead for TapIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut tap = self.tap();
        tap.check()?;
        tap.poll_read(cx, buf)
    }
}

impl AsyncWrite for TapIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.tap().poll_write(cx, &[io::IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.tap().poll_write(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.tap().stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    /// hyper flushes after each frame of data. What it writes is sent when it has nothing more to write for now
    /// ([`Tap::send_written`]), or when there is much of it: frames that are ready together share records and calls.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.tap().check())
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut tap = self.tap();
        ready!(tap.poll_own(cx))?;
        let stream = tap.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Pin::new(stream).poll_shutdown(cx)
    }
}
