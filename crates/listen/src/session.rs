//! A client's TLS session over its socket: rustls has the protocol and the keys, this has the bytes.
//!
//! rustls has buffers of its own for whoever wants them: 4 KB for records that come in, as long as the connection lives. Most
//! connections are silent most of the time, so here a buffer is there while something is in it. What is said is gathered
//! as it is and encrypted when it goes: answers that are ready together share a record.
//!
//! What keeps this safe is rustls' part: what may come when, alerts, key updates, limits of keys. Ours is to hand it each byte once and
//! in order, to send what it wants sent before anything else, to go no further after an error, and to hold no more than is bounded here.

use bytes::{Buf, BytesMut};
use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// What a read has space for, when no longer record is known to come.
const READ_BYTES: usize = 4096;
/// Of a record, before its content.
const RECORD_HEAD: usize = 5;
/// Content of a full record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 * 1024;
/// What a record has beside its content, in any of the suites.
const RECORD_OVERHEAD: usize = 64;
/// A handshake message may come in many records, which are held until it is whole; the longest are certificates of clients. rustls has the same
/// limit where it holds them itself.
const MAX_INCOMING: usize = 0xffff;
/// Records that wait for the socket: beyond this nothing more is taken.
const MAX_OUTGOING: usize = 32 * 1024;
/// What is gathered before it is encrypted and sent: two records, which take one call.
const MAX_SAID: usize = 2 * RECORD_BYTES;

/// Whether what is said may wait for more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// Until it is flushed, or enough.
    More,
    Nothing,
}

pub struct Session<S> {
    socket: S,
    tls: UnbufferedServerConnection,
    /// Came from the socket: the beginning of a record, or records of a handshake message that is not whole.
    incoming: BytesMut,
    /// Was in records and was not read yet.
    heard: BytesMut,
    /// Was said and is in no record yet.
    said: Vec<u8>,
    /// Records for the socket.
    outgoing: BytesMut,
    /// The client has said that it will say nothing more.
    client_is_done: bool,
    we_are_done: bool,
    /// What came makes no sense, so nothing more is read, and nothing said.
    is_broken: bool,
}

/// What rustls is asked for.
enum Task<'a, 'b> {
    /// What is in records goes to whoever reads, or is kept.
    Hear(Option<&'a mut ReadBuf<'b>>),
    /// All that was said becomes records, and they go to the socket at once, as far as it takes them.
    Send(&'a mut Context<'b>),
    Close,
}

/// A socket that can tell whether it has something without being read.
pub trait Readiness {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

thread_local! {
    /// Records between rustls and a socket, which mostly takes them as they are.
    static RECORDS: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_SAID + 2 * RECORD_OVERHEAD]);
}

impl<S: AsyncRead + AsyncWrite + Readiness + Unpin> Session<S> {
    /// Shakes hands.
    pub async fn accept(config: Arc<ServerConfig>, socket: S) -> io::Result<Session<S>> {
        let mut session = Session::new(config, socket)?;
        std::future::poll_fn(|cx| session.poll_handshake(cx)).await?;
        Ok(session)
    }

    fn new(config: Arc<ServerConfig>, socket: S) -> io::Result<Session<S>> {
        Ok(Session {
            socket,
            tls: UnbufferedServerConnection::new(config).map_err(io::Error::other)?,
            incoming: BytesMut::new(),
            heard: BytesMut::new(),
            said: Vec::new(),
            outgoing: BytesMut::new(),
            client_is_done: false,
            we_are_done: false,
            is_broken: false,
        })
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(cx))?;
            if !self.tls.is_handshaking() {
                return Pin::new(&mut self.socket).poll_flush(cx);
            }
            if !ready!(self.poll_hear(cx, None))? {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof")));
            }
        }
    }

    /// Reads from the socket and takes what it says apart. `false`: it says nothing more.
    fn poll_hear(&mut self, cx: &mut Context<'_>, reader: Option<&mut ReadBuf<'_>>) -> Poll<io::Result<bool>> {
        if self.is_broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.incoming.len() >= MAX_INCOMING {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "message buffer full")));
        }
        // Nothing is held for a client that says nothing.
        ready!(self.socket.poll_read_ready(cx))?;
        self.incoming.reserve(space_for(&self.incoming));
        let came = poll_read_buf(Pin::new(&mut self.socket), cx, &mut self.incoming);
        if self.incoming.is_empty() {
            self.incoming = BytesMut::new();
        }
        if ready!(came)? == 0 {
            return Poll::Ready(Ok(false));
        }
        let before = self.outgoing.len();
        let outcome = self.work(Task::Hear(reader));
        if self.outgoing.len() > before && (before == 0 || outcome.is_err()) {
            // Alerts and the like. What the socket does not take goes with what is sent next; a failure shows there. If something waits
            // already, so does somebody to be woken for it, who may be another task than this one.
            let _ = self.poll_send(cx);
        }
        Poll::Ready(outcome.map(|()| true))
    }

    /// Lets rustls see what came, and does what it wants done.
    fn work(&mut self, task: Task<'_, '_>) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let outcome = self.try_work(task);
        if outcome.is_err() {
            // What rustls has read of the wrong record is not there any more, and it must not see the rest. An alert for the client is
            // all that it has left to say.
            self.is_broken = true;
            while self.tls.wants_write()
                && let Ok(ConnectionState::EncodeTlsData(mut alert)) =
                    self.tls.process_tls_records(&mut self.incoming).state
                && append(&mut self.outgoing, |to| alert.encode(to)).is_ok()
            {}
            (self.incoming, self.said) = Default::default();
        }
        outcome.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    fn try_work(&mut self, mut task: Task<'_, '_>) -> Result<(), rustls::Error> {
        loop {
            let UnbufferedStatus { mut discard, state } = self.tls.process_tls_records(&mut self.incoming);
            let (mut is_done, mut has_read) = (false, false);
            match (state?, &mut task) {
                (ConnectionState::ReadTraffic(mut traffic), task) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        let mut later = record.payload;
                        if let Task::Hear(Some(reader)) = task {
                            let (now, rest) = later.split_at(reader.remaining().min(later.len()));
                            reader.put_slice(now);
                            later = rest;
                        }
                        self.heard.extend_from_slice(later);
                    }
                    has_read = matches!(task, Task::Hear(_));
                }
                // It goes before anything that is encrypted later, for that is put behind it.
                (ConnectionState::EncodeTlsData(mut data), _) => append(&mut self.outgoing, |to| data.encode(to))?,
                (ConnectionState::TransmitTlsData(data), _) => data.done(),
                (ConnectionState::PeerClosed, _) => self.client_is_done = true,
                (ConnectionState::WriteTraffic(_), Task::Hear(_)) => is_done = true,
                (ConnectionState::WriteTraffic(mut traffic), Task::Send(cx)) => {
                    let said = std::mem::take(&mut self.said);
                    RECORDS.with_borrow_mut(|records| {
                        let length = fill(records, |to| traffic.encrypt(&said, to))?;
                        let mut sent = 0;
                        // A failure shows again when the rest is sent.
                        if self.outgoing.is_empty()
                            && let Poll::Ready(Ok(n)) = Pin::new(&mut self.socket).poll_write(cx, &records[..length])
                        {
                            sent = n;
                        }
                        self.outgoing.extend_from_slice(&records[sent..length]);
                        Ok::<_, rustls::Error>(())
                    })?;
                    is_done = true;
                }
                (ConnectionState::WriteTraffic(mut traffic), Task::Close) => {
                    append(&mut self.outgoing, |to| traffic.queue_close_notify(to))?;
                    is_done = true;
                }
                (ConnectionState::BlockedHandshake | ConnectionState::Closed, Task::Hear(_) | Task::Close) => {
                    is_done = true;
                }
                // Nothing can be said any more; or it is early data, to which we never agree: whoever recorded it could repeat it.
                (state, _) => {
                    return Err(rustls::Error::General(format!("unexpected state of the session: {state:?}")));
                }
            }
            if discard > 0 {
                self.incoming.advance(discard);
            }
            if discard > 0 && self.incoming.is_empty() {
                self.incoming = BytesMut::new();
                // There is nothing more to find.
                is_done |= has_read && !self.tls.wants_write();
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Sends records.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.outgoing))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.advance(sent);
        }
        self.outgoing = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    /// Takes what is said, as far as there is space for it. What is to wait for more must be flushed in the end.
    pub fn poll_say(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
        gather: Gather,
    ) -> Poll<io::Result<usize>> {
        if self.is_broken || self.we_are_done {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.outgoing.len() >= MAX_OUTGOING {
            ready!(self.poll_send(cx))?;
        }
        let mut taken = 0;
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        // Behind a second frame there are mostly more.
        let expected = if self.said.is_empty() { all } else { MAX_SAID };
        self.said.reserve(expected.min(MAX_SAID - self.said.len()));
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() && self.outgoing.len() < MAX_OUTGOING {
                let (now, later) = rest.split_at(rest.len().min(MAX_SAID - self.said.len()));
                self.said.extend_from_slice(now);
                taken += now.len();
                rest = later;
                if self.said.len() == MAX_SAID {
                    if let Poll::Ready(sent) = self.poll_send(cx) {
                        sent?;
                    }
                    self.encrypt(cx)?;
                }
            }
        }
        if gather == Gather::Nothing {
            self.encrypt(cx)?;
        }
        if gather == Gather::Nothing || self.outgoing.len() >= MAX_OUTGOING {
            // What the socket does not take is sent with what comes next, or when it is flushed.
            if let Poll::Ready(sent) = self.poll_send(cx) {
                sent?;
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn encrypt(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.said.is_empty() { Ok(()) } else { self.work(Task::Send(cx)) }
    }
}

impl<S> Session<S> {
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// What was agreed on, and who the client is.
    pub fn agreed(&self) -> &rustls::CommonState {
        &self.tls
    }
}

/// What a read should have space for: the rest of the record that has begun, but no more than what came of it, or whoever says that it
/// is long would have all the space for it.
fn space_for(incoming: &[u8]) -> usize {
    let [_, _, _, a, b, ..] = incoming else { return READ_BYTES };
    let record = RECORD_HEAD + usize::from(u16::from_be_bytes([*a, *b]));
    record.saturating_sub(incoming.len()).min(incoming.len()).max(READ_BYTES)
}

/// Appends what is written, which is short or a record.
fn append<E: Wanting>(
    to: &mut BytesMut,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), rustls::Error> {
    RECORDS.with_borrow_mut(|records| {
        let length = fill(records, &mut write)?;
        to.extend_from_slice(&records[..length]);
        Ok(())
    })
}

/// Fills the space with what is written, and makes it larger if that takes more.
fn fill<E: Wanting>(
    space: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<usize, rustls::Error> {
    match write(space) {
        Err(e) if e.wanted().is_some_and(|wanted| wanted > space.len()) => {
            space.resize(e.wanted().unwrap_or_default(), 0);
            write(space).map_err(|e| rustls::Error::General(e.to_string()))
        }
        written => written.map_err(|e| rustls::Error::General(e.to_string())),
    }
}

/// An error that may say how much space there should have been.
trait Wanting: std::fmt::Display {
    fn wanted(&self) -> Option<usize>;
}

impl Wanting for EncodeError {
    fn wanted(&self) -> Option<usize> {
        if let EncodeError::InsufficientSize(e) = self { Some(e.required_size) } else { None }
    }
}

impl Wanting for EncryptError {
    fn wanted(&self) -> Option<usize> {
        if let EncryptError::InsufficientSize(e) = self { Some(e.required_size) } else { None }
    }
}

impl<S: AsyncRead + AsyncWrite + Readiness + Unpin> AsyncRead for Session<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        while buf.filled().len() == before && buf.remaining() > 0 {
            if !self.heard.is_empty() {
                let length = self.heard.len().min(buf.remaining());
                buf.put_slice(&self.heard.split_to(length));
                if self.heard.is_empty() {
                    self.heard = BytesMut::new();
                }
                break;
            }
            if self.client_is_done {
                break;
            }
            if !ready!(self.poll_hear(cx, Some(buf)))? {
                // Somebody in between could have cut off the rest.
                let why = "the client closed the connection without saying so in TLS";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Readiness + Unpin> AsyncWrite for Session<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_say(cx, &[io::IoSlice::new(buf)], Gather::Nothing)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.encrypt(cx)?;
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.we_are_done, true) && !self.is_broken {
            self.encrypt(cx)?;
            self.work(Task::Close)?;
        }
        ready!(self.poll_send(cx))?;
        match ready!(Pin::new(&mut self.socket).poll_shutdown(cx)) {
            // The client was faster.
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            shut => Poll::Ready(shut),
        }
    }
}

#[cfg(test)]
mod tests;
