//! A client's bytes: TLS, with what was read ahead put back in front, and notes for [`Activity`].

use super::activity::Activity;
use super::session::{Gather, Readiness, Session};
use super::socket::Socket;
use bytes::{Buf, Bytes};
use kubelith_http::askers::Asker;
use kubelith_http::connection::ConnectionInfo;
use kubelith_http::turns::Turn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Boxed, so that it moves between the stages of a connection without leaving holes of its size.
pub struct ClientStream {
    tls: Box<Session<Socket>>,
    ahead: Bytes,
    activity: Arc<Activity>,
    connection: Arc<ConnectionInfo>,
    /// Is waited for before more is read.
    turn: Option<Turn>,
    /// Whether whoever writes also flushes, so that writes may be gathered.
    is_flushed: bool,
    /// All that came from the socket was read.
    is_drained: bool,
}

impl ClientStream {
    pub fn new(tls: Box<Session<Socket>>, activity: Arc<Activity>, connection: Arc<ConnectionInfo>) -> ClientStream {
        let ahead = Bytes::new();
        ClientStream { tls, ahead, activity, connection, turn: None, is_flushed: false, is_drained: false }
    }

    /// For a protocol that flushes when it has no more to say for now.
    pub fn gathering(self) -> ClientStream {
        ClientStream { is_flushed: true, ..self }
    }

    fn poll_say(&mut self, cx: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.activity.writes();
        self.tls.poll_say(cx, pieces, if self.is_flushed { Gather::More } else { Gather::Nothing })
    }

    /// For what is not HTTP: its bytes are no requests.
    pub fn without_turns(mut self) -> ClientStream {
        self.connection.askers.ask(Asker::Unlimited);
        self.turn = None;
        self
    }

    /// Ready when what comes may be read: at once, or in a turn of those who ask here. A turn lasts until all that came was read.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.turn.is_none() {
            if !self.is_drained {
                return Poll::Ready(Ok(()));
            }
            let Some(turns) = self.connection.askers.turns() else { return Poll::Ready(Ok(())) };
            // Who says nothing needs no turn.
            ready!(self.tls.socket().poll_read_ready(cx))?;
            self.turn = turns.take();
        }
        if let Some(turn) = &mut self.turn {
            ready!(Pin::new(turn).poll(cx));
            self.turn = None;
        }
        self.connection.askers.reads_in_turn();
        Poll::Ready(Ok(()))
    }

    /// Puts bytes back that were read and not used.
    pub fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.ahead.is_empty());
        self.ahead = bytes;
    }

    /// What was put back.
    pub fn unread_bytes(&mut self) -> &mut Bytes {
        &mut self.ahead
    }

    /// Gives up the memory of what was put back and taken again.
    pub fn forget_read(&mut self) {
        if self.ahead.is_empty() {
            self.ahead = Bytes::new();
        }
    }

    pub fn has_unread(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether something that was written may not be on its way yet.
    pub fn has_unflushed(&self) -> bool {
        self.activity.has_unflushed()
    }

    /// Sends what was written and may not be on its way yet.
    pub fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_unflushed() { Pin::new(self).poll_flush(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Waits for the client to say something, with no more memory than a few bytes. `false`: it has left.
    pub fn poll_first_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        // Mostly nothing came: whoever waits looks here whatever it is woken for.
        if self.is_drained && self.ahead.is_empty() {
            ready!(self.tls.socket().poll_read_ready(cx))?;
        }
        let mut space = [0; 64];
        let mut buf = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut *self).poll_read(cx, &mut buf))?;
        if buf.filled().is_empty() {
            return Poll::Ready(Ok(false));
        }
        let bytes = Bytes::copy_from_slice(buf.filled());
        self.unread(bytes);
        Poll::Ready(Ok(true))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let len = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..len]);
            self.ahead.advance(len);
            self.forget_read();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_turn(cx))?;
        let before = buf.filled().len();
        let result = Pin::new(&mut *self.tls).poll_read(cx, buf);
        self.is_drained = result.is_pending();
        if buf.filled().len() > before {
            self.activity.saw_bytes();
        }
        result
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_say(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self.tls).poll_flush(cx))?;
        self.activity.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.tls).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_say(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
