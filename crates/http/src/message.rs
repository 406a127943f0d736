//! The types that flow through the chains: requests, responses, handlers, bodies.

use crate::context::RequestContext;
use crate::upload::Upload;
use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub type Response = http::Response<Body>;
/// A response that is here already, as to most requests, or comes later.
pub type Reply = kubelith_auth::Answer<'static, Response>;

/// A request, and what filters leave with it for those behind them.
pub struct Request {
    http: http::Request<RequestBody>,
    context: Box<RequestContext>,
}

impl Request {
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    pub fn context_mut(&mut self) -> &mut RequestContext {
        &mut self.context
    }

    pub fn into_parts(self) -> (http::request::Parts, RequestBody) {
        self.http.into_parts()
    }

    pub fn into_body(self) -> RequestBody {
        self.http.into_body()
    }
}

impl From<http::Request<RequestBody>> for Request {
    fn from(http: http::Request<RequestBody>) -> Request {
        Request { http, context: Box::default() }
    }
}

impl Deref for Request {
    type Target = http::Request<RequestBody>;

    fn deref(&self) -> &Self::Target {
        &self.http
    }
}

impl DerefMut for Request {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.http
    }
}

/// One link of the chain: a filter, a server, a verb. Links are erased here so that a chain is a list of
/// constructor calls and not a type.
///
/// Dropping the future ends a read. A write that passed admission runs to its end.
pub trait Handler: Send + Sync + 'static {
    fn handle(&self, request: Request) -> Reply;
}

pub type BoxHandler = Arc<dyn Handler>;

impl<F> Handler for F
where
    F: Fn(Request) -> Reply + Send + Sync + 'static,
{
    fn handle(&self, request: Request) -> Reply {
        self(request)
    }
}

/// What a client sends: a connection's stream, or bytes from the loopback client.
#[derive(Debug)]
pub enum RequestBody {
    Incoming(Upload),
    Full(Option<Bytes>),
}

/// What we answer. `Chunks` are shared pieces that are never joined: a short list of cached objects.
pub enum Body {
    Full(Option<Bytes>),
    Chunks(VecDeque<Bytes>),
    /// Pieces made while they are sent: long lists, watches, proxied bodies.
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>),
    /// Frames with trailers kept, as a proxy needs them.
    Frames(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl Body {
    pub fn empty() -> Body {
        Body::Full(None)
    }

    pub fn stream(s: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Body {
        Body::Stream(Box::pin(s))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(b: T) -> Body {
        let b = b.into();
        Body::Full(if b.is_empty() { None } else { Some(b) })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Body::Full(b) => Poll::Ready(b.take().map(|b| Ok(Frame::data(b)))),
            Body::Chunks(q) => Poll::Ready(q.pop_front().map(|b| Ok(Frame::data(b)))),
            Body::Stream(s) => {
                let next = ready!(s.as_mut().poll_next(cx));
                Poll::Ready(next.map(|r| r.map(Frame::data)))
            }
            Body::Frames(b) => b.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(b) => b.is_none(),
            Body::Chunks(q) => q.is_empty(),
            Body::Stream(_) => false,
            Body::Frames(b) => b.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(b) => SizeHint::with_exact(b.as_ref().map_or(0, |b| b.len() as u64)),
            Body::Chunks(q) => SizeHint::with_exact(q.iter().map(|b| b.len() as u64).sum()),
            Body::Stream(_) => SizeHint::default(),
            Body::Frames(b) => b.size_hint(),
        }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            RequestBody::Incoming(b) => Pin::new(b).poll_frame(cx).map_err(Into::into),
            RequestBody::Full(b) => Poll::Ready(b.take().map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Incoming(b) => b.is_end_stream(),
            RequestBody::Full(b) => b.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Incoming(b) => b.size_hint(),
            RequestBody::Full(b) => SizeHint::with_exact(b.as_ref().map_or(0, |b| b.len() as u64)),
        }
    }
}
