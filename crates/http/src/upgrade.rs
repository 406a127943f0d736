//! Taking over a connection: what follows a 101 answer (exec, attach, port-forward, proxied WebSockets).
//!
//! A handler asks for the connection before it answers 101, and gets it once the answer was sent. This replaces
//! hyper's own mechanism, which would bind every connection to its buffers for life; see `listen/driver.rs`.

use crate::message::Request;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// The connection, from the first byte behind our answer on.
pub struct Upgraded {
    stream: Box<dyn Connection>,
}

/// Bytes both ways.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// Resolves when the connection is free; an error if it ended before.
pub struct OnUpgrade {
    receiver: oneshot::Receiver<Upgraded>,
}

#[derive(Debug, thiserror::Error)]
#[error("the connection ended before it was upgraded")]
pub struct NotUpgraded;

/// The way to the connection, in the extensions of requests that ask for an upgrade.
#[derive(Clone, Default)]
pub struct UpgradeSlot {
    sender: Arc<Mutex<Option<oneshot::Sender<Upgraded>>>>,
}

/// Asks for the connection of `request`. `None` if it cannot be had: the client did not ask for an upgrade, or
/// speaks HTTP/2. Answer 101 then await the result in a task of its own.
pub fn on(request: &mut Request) -> Option<OnUpgrade> {
    let slot = request.extensions_mut().remove::<UpgradeSlot>()?;
    let (sender, receiver) = oneshot::channel();
    *slot.lock() = Some(sender);
    Some(OnUpgrade { receiver })
}

impl UpgradeSlot {
    /// Hands over the connection, if somebody asked for it and still waits; else gives it back.
    pub fn fulfil<S>(&self, stream: S) -> Result<(), S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Some(sender) = self.lock().take().filter(|sender| !sender.is_closed()) else { return Err(stream) };
        // Who stops waiting just now drops the connection.
        let _ = sender.send(Upgraded { stream: Box::new(stream) });
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<oneshot::Sender<Upgraded>>> {
        self.sender.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Future for OnUpgrade {
    type Output = Result<Upgraded, NotUpgraded>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map_err(|_| NotUpgraded)
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
