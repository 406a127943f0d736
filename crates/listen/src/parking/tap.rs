//! A connection's bytes on their way between the client and hyper, watched frame by frame.

use super::frames::{self, HEAD, Head};
use super::held::Streams;
use super::hpack::{TableUse, table_use};
use super::ledger::{Fate, Ledger, Parked, Told};
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

/// One direction: which frame goes by, and how much of it is still to come.
#[derive(Default)]
struct Cursor {
    /// Of a head that is not whole.
    partial: Vec<u8>,
    head: Option<Head>,
    left: usize,
    fate: Option<Fate>,
    /// Of a frame that is looked at.
    payload: Vec<u8>,
    /// Headers go on in the next frame, and nothing may come between.
    within_headers: bool,
}

impl Cursor {
    fn at_boundary(&self) -> bool {
        self.left == 0 && self.partial.is_empty() && !self.within_headers
    }

    fn begin(&mut self, head: Head, fate: Fate) {
        (self.head, self.left, self.fate) = (Some(head), head.length, Some(fate));
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

/// What a new state says first, which the client has heard from an earlier one.
#[derive(Default)]
struct Repeated {
    settings: bool,
    ack: bool,
    /// The window that it opens beyond the first one.
    window: Option<u32>,
    /// Of answers that go on: their heads, and filler.
    streams: Vec<Again>,
}

struct Again {
    told: Told,
    head_was_said: bool,
}

impl Again {
    /// Whether the client hears what is said from now on.
    fn is_over(&self) -> bool {
        self.head_was_said && self.told.filler == 0 && !self.told.is_over
    }
}

impl Repeated {
    fn is_over(&self) -> bool {
        !self.settings && !self.ack && self.window.is_none() && self.streams.is_empty()
    }

    /// Whether the client knows of the frame that begins.
    fn knows(&mut self, head: Head) -> bool {
        match head.kind {
            frames::SETTINGS if head.is_ack() => std::mem::take(&mut self.ack),
            frames::SETTINGS => std::mem::take(&mut self.settings),
            frames::WINDOW_UPDATE => head.stream == 0 && self.window.is_some(),
            frames::HEADERS | frames::DATA | frames::RST_STREAM => self.knows_of_stream(head),
            _ => false,
        }
    }

    fn knows_of_stream(&mut self, head: Head) -> bool {
        let Some(at) = self.streams.iter().position(|a| a.told.stream == head.stream) else { return false };
        let again = &mut self.streams[at];
        match head.kind {
            frames::HEADERS => again.head_was_said = true,
            frames::DATA => again.told.filler = again.told.filler.saturating_sub(head.length as u32),
            _ => {}
        }
        let was_over = again.told.is_over;
        // An answer that fails does so before the client, too.
        let failed = head.kind == frames::RST_STREAM;
        if again.is_over() || failed || (was_over && head.has(frames::END_STREAM)) {
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
    /// For hyper, before anything else.
    feed: BytesMut,
    /// For the client, before anything else.
    out: BytesMut,
    /// As `out`, as soon as the frame that is on its way is whole.
    then: Vec<u8>,
    repeated: Repeated,
    /// hyper, while it hears nothing new because it has not said all that.
    reader: Option<Waker>,
    /// The first headers after a pause are looked at.
    check_headers: bool,
    /// The client relied on what is gone: it hears so, and hyper that the connection has ended.
    refused: bool,
}

impl Tap {
    pub fn new(stream: ClientStream) -> Tap {
        Tap {
            stream: Some(stream),
            ledger: Ledger::new(),
            // The preface is no frame.
            reading: Cursor { left: frames::PREFACE.len(), ..Cursor::default() },
            writing: Cursor::default(),
            feed: BytesMut::new(),
            out: BytesMut::new(),
            then: Vec::new(),
            repeated: Repeated::default(),
            reader: None,
            check_headers: false,
            refused: false,
        }
    }

    /// A connection taken up again by a state that lets the client send `window` bytes.
    pub fn resume(stream: ClientStream, parked: &Parked, window: u32) -> Tap {
        let window = i64::from(window);
        let (introduction, told) = parked.introduction();
        Tap {
            ledger: Ledger::resumed(parked, &told, window),
            reading: Cursor::default(),
            feed: BytesMut::from(introduction.as_slice()),
            out: BytesMut::from(parked.greeting(window).as_slice()),
            repeated: Repeated {
                settings: true,
                ack: true,
                window: u32::try_from(window - frames::FIRST_WINDOW).ok().filter(|more| *more > 0),
                streams: told.into_iter().map(|told| Again { told, head_was_said: false }).collect(),
            },
            check_headers: true,
            ..Tap::new(stream)
        }
    }

    /// What to keep, if the connection can be put aside now; otherwise what is missing is asked for.
    pub fn poll_park(&mut self, cx: &mut Context<'_>, streams: &Streams) -> Option<Parked> {
        if !self.is_between_words() || !self.ledger.may_park(streams) {
            return None;
        }
        if let Some(settings) = self.ledger.ask() {
            self.out.extend_from_slice(&settings);
        }
        // A failure shows at hyper's next read.
        if self.poll_flush(cx).is_pending() {
            return None;
        }
        self.ledger.park(streams)
    }

    /// What to keep, if the connection can be put aside now and all that was sent is on its way.
    pub fn park(&self, streams: &Streams) -> Option<Parked> {
        if self.is_between_words() && self.out.is_empty() { self.ledger.park(streams) } else { None }
    }

    /// Whether nobody is in the middle of saying something.
    fn is_between_words(&self) -> bool {
        let pending = !self.feed.is_empty() || !self.has_repeated() || !self.then.is_empty();
        !pending && self.reading.at_boundary() && self.writing.at_boundary()
    }

    /// If the client lets us send nothing more, on the connection or on a stream: how much was sent until now.
    pub fn sent_before_stop(&self) -> Option<u64> {
        self.ledger.sent_before_stop()
    }

    pub fn take_stream(&mut self) -> Option<ClientStream> {
        self.stream.take()
    }

    /// Whether a new state has said all that the client knows.
    fn has_repeated(&self) -> bool {
        let within_known = self.writing.fate == Some(Fate::Kept) && self.writing.left > 0;
        self.repeated.is_over() && !within_known
    }

    /// Looks at what the client sent and moves together what is for hyper; answers how much that is.
    fn inbound(&mut self, data: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while from < data.len() && !self.refused {
            let reading = &mut self.reading;
            let (n, fate) = if reading.left > 0 {
                let n = reading.left.min(data.len() - from);
                self.client_payload(&data[from..from + n]);
                if self.refused {
                    break;
                }
                (n, self.reading.fate.unwrap_or(Fate::Passes))
            } else if let Some(head) = data[from..].first_chunk::<HEAD>() {
                let head = Head::read(*head);
                let last = self.ledger.last_stream();
                reading.begin(head, self.ledger.client_begins(head));
                if let Some(settings) = self.ledger.unask() {
                    self.then.extend(settings);
                }
                self.refused = head.kind == frames::DATA && reading.fate == Some(Fate::Kept);
                if self.refused {
                    self.refuse(last);
                    break;
                }
                (HEAD, reading.fate.unwrap_or(Fate::Passes))
            } else {
                reading.partial = data[from..].to_vec();
                break;
            };
            if fate == Fate::Passes {
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
                    self.ledger.client_said(head, &std::mem::take(&mut reading.payload));
                }
            }
            frames::HEADERS if self.check_headers => {
                reading.note(bytes);
                let whole = reading.left == 0;
                match table_use(block_of(head, &reading.payload, whole)) {
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

    /// Looks at what hyper sent.
    fn outbound(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let writing = &mut self.writing;
            if writing.left == 0 {
                let Some(head) = writing.take_head(&mut data) else { return };
                let head = Head::read(head);
                writing.begin(head, Fate::Passes);
                self.ledger.server_begins(head);
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
                    self.ledger.server_allows(more);
                }
            }
            data = &data[n..];
        }
    }

    /// Takes what a new state says, keeps back what the client knows, and passes on the rest.
    fn first_words(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let writing = &mut self.writing;
            if writing.left == 0 {
                let Some(bytes) = writing.take_head(&mut data) else { return };
                let head = Head::read(bytes);
                let known = self.repeated.knows(head);
                writing.begin(head, if known { Fate::Kept } else { Fate::Passes });
                if !known {
                    self.ledger.server_begins(head);
                    self.out.extend_from_slice(&bytes);
                }
                continue;
            }
            let n = writing.left.min(data.len());
            writing.left -= n;
            if writing.fate == Some(Fate::Passes) {
                self.out.extend_from_slice(&data[..n]);
            } else if writing.head.is_some_and(|h| h.kind == frames::HEADERS) {
                // Nothing that later heads could refer to.
                debug_assert!(matches!(table_use(&data[..n]), TableUse::None | TableUse::Resized));
            }
            if writing.head.is_some_and(|h| h.kind == frames::WINDOW_UPDATE && h.stream == 0) {
                writing.note(&data[..n]);
                if writing.left == 0 {
                    let more = frames::read_window(&std::mem::take(&mut writing.payload)).unwrap_or(0);
                    // The client has been given this much; what is beyond it is news.
                    let news = more.saturating_sub(self.repeated.window.take().unwrap_or(0));
                    if writing.fate == Some(Fate::Kept) && news > 0 {
                        self.out.extend_from_slice(&frames::window_update(0, news));
                    }
                    self.ledger.server_allows(news);
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
            // Before it has opened its window, a new state would take what the client sends for too much.
            if !self.has_repeated() {
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
        if !self.has_repeated() {
            let Some(first) = data.iter().find(|d| !d.is_empty()) else { return Poll::Ready(Ok(0)) };
            self.first_words(first);
            if self.has_repeated()
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
}

/// The headers within a frame's payload.
fn block_of(head: Head, payload: &[u8], whole: bool) -> &[u8] {
    let mut block = payload;
    let mut padding = 0;
    if head.has(frames::PADDED)
        && let Some((&length, rest)) = block.split_first()
    {
        (block, padding) = (rest, usize::from(length));
    }
    if head.has(frames::PRIORITY) {
        block = block.get(5..).unwrap_or_default();
    }
    if whole { block.get(..block.len().saturating_sub(padding)).unwrap_or_default() } else { block }
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
        self.tap().poll_read(cx, buf)
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

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tap().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut tap = self.tap();
        ready!(tap.poll_own(cx))?;
        let stream = tap.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Pin::new(stream).poll_shutdown(cx)
    }
}
