//! A client's bytes: TLS, with what was read ahead put back in front, and notes for [`Activity`].

use super::activity::Activity;
use super::socket::Socket;
use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// Boxed, so that it moves between the stages of a connection without leaving holes of its size.
pub struct ClientStream {
    tls: Box<TlsStream<Socket>>,
    ahead: Bytes,
    activity: Arc<Activity>,
    /// Whether whoever writes also flushes, so that writes may be gathered.
    is_flushed: bool,
    /// All that came from the socket was read.
    is_drained: bool,
}

impl ClientStream {
    pub fn new(tls: Box<TlsStream<Socket>>, activity: Arc<Activity>) -> ClientStream {
        ClientStream { tls, ahead: Bytes::new(), activity, is_flushed: false, is_drained: false }
    }

    /// For a protocol that flushes when it has no more to say for now.
    pub fn gathering(self) -> ClientStream {
        ClientStream { is_flushed: true, ..self }
    }

    /// Gives the session something to send. The session takes it, and the socket what is too much to keep.
    fn poll_gather<T>(&mut self, write: impl FnOnce(Pin<&mut TlsStream<Socket>>) -> Poll<T>) -> Poll<T> {
        self.activity.writes();
        self.tls.get_mut().0.gather(self.is_flushed);
        let written = write(Pin::new(&mut *self.tls));
        self.tls.get_mut().0.gather(false);
        written
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

    pub fn has_unread(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Sends what was written and may not be on its way yet.
    pub fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.activity.has_unflushed() { Pin::new(self).poll_flush(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Waits for the client to say something, with no more memory than a few bytes. `false`: it has left.
    pub fn poll_first_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        // Mostly nothing came: whoever waits looks here whatever it is woken for.
        if self.is_drained && self.ahead.is_empty() {
            ready!(self.tls.get_ref().0.poll_read_ready(cx))?;
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
            return Poll::Ready(Ok(()));
        }
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
        self.poll_gather(|tls| tls.poll_write(cx, buf))
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
        self.poll_gather(|tls| tls.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }
}
