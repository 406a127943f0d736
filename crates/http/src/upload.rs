//! Bodies of requests that are answered before they are read: what is left of one is taken all the same, up to a point.
//! Clients that are still sending then often do not see the answer (curl), or lose it with the connection.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// What is taken of a body that nobody wants: several times what a request may have.
const MAX_UNWANTED_BYTES: usize = 16 << 20;
/// For how long; a client that sends this slowly is let down.
const MAX_UNWANTED_TIME: Duration = Duration::from_secs(10);

/// The body of a request as it comes.
#[derive(Debug)]
pub struct Upload {
    incoming: Option<Incoming>,
    unread: Unread,
}

/// What becomes of what nobody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    Taken,
    /// The client waits to be told to send it, and need not.
    Left,
}

impl Upload {
    pub fn new(incoming: Incoming, unread: Unread) -> Upload {
        Upload { incoming: Some(incoming), unread }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(incoming) = self.incoming.take().filter(|body| !body.is_end_stream()) else { return };
        if self.unread == Unread::Taken
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(MAX_UNWANTED_TIME, take(incoming)));
        }
    }
}

async fn take(mut body: Incoming) {
    let mut left = MAX_UNWANTED_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
        left = rest;
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(incoming).poll_frame(cx));
        // Nothing is left to take behind the end, or an error.
        if !matches!(frame, Some(Ok(_))) {
            self.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
