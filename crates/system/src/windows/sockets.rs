//! Unix sockets, which are not supported here: types that have no values, and errors (see `require_sockets`). And what can be
//! asked of sockets of TCP.

use crate::{NO_PORT_SHARING, NO_SOCKETS};
use std::io::{self, Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpSocket;

pub const SUPPORTED: bool = false;

pub const PORT_SHARING: bool = false;

#[derive(Debug)]
pub enum UnixListener {}

#[derive(Debug)]
pub enum UnixStream {}

#[derive(Debug)]
pub enum BlockingStream {}

fn unsupported<T>(what: &'static str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}

pub fn bind_private(_path: &Path) -> io::Result<UnixListener> {
    unsupported(NO_SOCKETS)
}

impl UnixListener {
    pub fn bind(_path: impl AsRef<Path>) -> io::Result<UnixListener> {
        unsupported(NO_SOCKETS)
    }

    pub async fn accept(&self) -> io::Result<(UnixStream, ())> {
        match *self {}
    }
}

impl UnixStream {
    pub async fn connect(_path: impl AsRef<Path>) -> io::Result<UnixStream> {
        unsupported(NO_SOCKETS)
    }
}

impl BlockingStream {
    pub fn connect(_path: impl AsRef<Path>) -> io::Result<BlockingStream> {
        unsupported(NO_SOCKETS)
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self.get_mut() {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }
}

impl Read for BlockingStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Write for BlockingStream {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

/// A port is free when its process has ended. SO_REUSEADDR would let anybody else take it away.
pub fn take_over_port(_socket: &TcpSocket) -> io::Result<()> {
    Ok(())
}

pub fn share_port(_socket: &TcpSocket) -> io::Result<()> {
    unsupported(NO_PORT_SHARING)
}
