//! The body of a proxied answer.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use kubelith_http::{Body, BoxError};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Frames as they come, trailers too.
struct Passed(Incoming);

pub fn passed(incoming: Incoming) -> Body {
    use http_body::Body as _;
    if incoming.is_end_stream() {
        return Body::empty();
    }
    Body::Frames(Box::pin(Passed(incoming)))
}

impl http_body::Body for Passed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
