//! A client's socket, with notes for [`Activity`] of whether it takes what is sent.
//!
//! Answers that are ready together go out together: a small write is put off until it is flushed or enough has come.

use super::activity::Activity;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Put off no longer; with the next record of TLS it is still less than the session keeps (64 KB).
const ENOUGH: usize = 48 * 1024;

pub struct Socket {
    tcp: TcpStream,
    activity: Arc<Activity>,
    /// Whether writes may be put off now.
    gathers: bool,
}

impl Socket {
    pub fn new(tcp: TcpStream, activity: Arc<Activity>) -> Socket {
        Socket { tcp, activity, gathers: false }
    }

    /// While it gathers, small writes are left with the caller, who must flush in the end.
    pub fn gather(&mut self, gathers: bool) {
        self.gathers = gathers;
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_read_ready(cx)
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.activity.is_blocked(),
            Poll::Ready(_) => self.activity.is_unblocked(),
        }
        written
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, data);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.gathers && data.iter().map(|piece| piece.len()).sum::<usize>() < ENOUGH {
            return Poll::Pending;
        }
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, data);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
