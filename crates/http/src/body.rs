//! Bodies that carry something along: a guard that ends with the answer, a time by which it must be sent, a
//! signal that ends it early.

use crate::message::{Body, BoxError};
use crate::turns::{Turn, Turns};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

impl Body {
    /// True for bodies whose bytes are all here: sending them depends on nothing but the client.
    pub fn is_complete(&self) -> bool {
        match self {
            Body::Full(_) | Body::Chunks(_) => true,
            Body::Stream(_) | Body::Frames(_) => false,
        }
    }

    /// Drops `guard` when the body was sent or given up. A complete body drops it now: what counts requests
    /// in flight does not wait for slow readers of small answers.
    pub fn with_guard<G: Send + Unpin + 'static>(self, guard: G) -> Body {
        if self.is_complete() {
            return self;
        }
        Body::Frames(Box::pin(Guarded { inner: self, _guard: guard }))
    }

    /// The bytes of a body that is complete; copied only where they are in several pieces.
    pub fn complete_bytes(&self) -> Option<Bytes> {
        match self {
            Body::Full(bytes) => bytes.clone(),
            Body::Chunks(chunks) if chunks.len() <= 1 => chunks.front().cloned(),
            Body::Chunks(chunks) => Some(chunks.iter().flatten().copied().collect()),
            Body::Stream(_) | Body::Frames(_) => None,
        }
    }

    /// Shows every piece to `end`, which is dropped when the body was sent or given up.
    pub fn watched_by(self, end: impl BodyEnd) -> Body {
        Body::Frames(Box::pin(Watched { inner: self, end }))
    }

    /// Tells the size of every piece that is sent.
    pub fn observed(self, tell: impl Fn(usize) + Send + Unpin + 'static) -> Body {
        Body::Frames(Box::pin(Observed { inner: self, tell }))
    }

    /// Breaks off, as an error that resets the stream, when the time is up, if there is one. `aborted` hears of that and of
    /// any other error in the middle.
    pub fn with_deadline(
        self,
        deadline: Option<Instant>,
        aborted: impl FnOnce() + Send + Sync + Unpin + 'static,
    ) -> Body {
        if self.is_complete() {
            return self;
        }
        let sleep = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        Body::Frames(Box::pin(Timed { inner: self, sleep, aborted: Some(aborted) }))
    }

    /// Lets others in between after each slice of time or bytes. A list whose client reads as fast as it is sent would else keep a
    /// thread until its end, and whoever comes meanwhile waits for all that come before.
    pub fn taking_turns(self, turns: Arc<Turns>) -> Body {
        if self.is_complete() {
            return self;
        }
        let begun = std::time::Instant::now();
        Body::Frames(Box::pin(TakingTurns { inner: self, turns, next: None, pieces: 0, bytes: 0, begun }))
    }

    /// Ends regularly, after the last whole chunk, when `token` is cancelled.
    pub fn until_cancelled(self, token: CancellationToken) -> Body {
        Body::Frames(Box::pin(Ended { inner: self, signal: Box::pin(token.cancelled_owned()), pieces: 0, done: false }))
    }
}

/// Sees what is sent.
pub trait BodyEnd: Send + Unpin + 'static {
    fn piece(&mut self, data: &[u8]);
}

struct Watched<E> {
    inner: Body,
    end: E,
}

impl<E: BodyEnd> http_body::Body for Watched<E> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.end.piece(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct Guarded<G> {
    inner: Body,
    _guard: G,
}

impl<G: Send + Unpin> http_body::Body for Guarded<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct Observed<F> {
    inner: Body,
    tell: F,
}

impl<F: Fn(usize) + Send + Unpin> http_body::Body for Observed<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            (self.tell)(data.len());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct TakingTurns {
    inner: Body,
    turns: Arc<Turns>,
    /// Is waited for.
    next: Option<Turn>,
    /// Sent in this turn, since the time was looked at.
    pieces: u8,
    /// Sent in this turn.
    bytes: usize,
    begun: std::time::Instant,
}

impl TakingTurns {
    /// The time is looked at after so many: most are small, and looking is not free.
    const PIECES: u8 = 16;
    /// Of a turn.
    const SLICE: std::time::Duration = std::time::Duration::from_micros(300);
    /// Of a turn, too: pieces are handed over faster than they are encrypted and written, which for so many bytes takes some
    /// 200 µs.
    const BYTES: usize = 128 * 1024;

    fn is_over(&mut self) -> bool {
        if self.bytes >= TakingTurns::BYTES {
            return true;
        }
        if self.pieces < TakingTurns::PIECES {
            return false;
        }
        self.pieces = 1;
        self.begun.elapsed() >= TakingTurns::SLICE
    }
}

impl http_body::Body for TakingTurns {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_over() {
            (self.pieces, self.bytes) = (0, 0);
            self.next = self.turns.again();
        }
        if let Some(next) = &mut self.next {
            ready!(Pin::new(next).poll(cx));
            self.next = None;
        }
        if self.pieces == 0 {
            self.begun = std::time::Instant::now();
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(frame) = &polled {
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            self.pieces += 1;
            self.bytes += data.map_or(0, Bytes::len);
        } else {
            (self.pieces, self.bytes) = (0, 0);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct Timed<F> {
    inner: Body,
    sleep: Option<Pin<Box<Sleep>>>,
    aborted: Option<F>,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was not sent within the request's time")]
struct DeadlineExceeded;

impl<F: FnOnce() + Send + Unpin> http_body::Body for Timed<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let is_over = self.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
        let frame = match is_over {
            true => Poll::Ready(Some(Err(DeadlineExceeded.into()))),
            false => Pin::new(&mut self.inner).poll_frame(cx),
        };
        if let Poll::Ready(Some(Err(_))) = &frame
            && let Some(aborted) = self.aborted.take()
        {
            aborted();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct Ended {
    inner: Body,
    signal: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Sent since the signal was looked at.
    pieces: u8,
    done: bool,
}

impl Ended {
    /// A stream that always has more is asked this often whether it is to end; others when they have no more.
    const PIECES: u8 = 8;
}

impl http_body::Body for Ended {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let is_asked_first = self.pieces >= Ended::PIECES;
        if !is_asked_first && let Poll::Ready(next) = Pin::new(&mut self.inner).poll_frame(cx) {
            self.pieces += 1;
            return Poll::Ready(next);
        }
        self.pieces = 0;
        if self.signal.as_mut().poll(cx).is_ready() {
            self.done = true;
            // What the stream holds (a watcher, its slot in the cache) is of no more use.
            self.inner = Body::empty();
            return Poll::Ready(None);
        }
        if is_asked_first { Pin::new(&mut self.inner).poll_frame(cx) } else { Poll::Pending }
    }

    fn is_end_stream(&self) -> bool {
        self.done || self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{StreamExt, stream};
    use http_body_util::BodyExt;
    use std::sync::Arc;

    fn endless() -> Body {
        Body::stream(stream::iter([Ok(Bytes::from_static(b"a"))]).chain_pending())
    }

    trait ChainPending: futures::Stream + Sized {
        fn chain_pending(self) -> futures::stream::Chain<Self, futures::stream::Pending<Self::Item>> {
            futures::StreamExt::chain(self, stream::pending())
        }
    }
    impl<S: futures::Stream + Sized> ChainPending for S {}

    #[tokio::test]
    async fn a_guard_lives_as_long_as_a_stream() {
        let guard = Arc::new(());
        let mut body = endless().with_guard(guard.clone());
        assert!(body.frame().await.is_some());
        assert_eq!(Arc::strong_count(&guard), 2);
        drop(body);
        assert_eq!(Arc::strong_count(&guard), 1);
        let _small = Body::from("x").with_guard(guard.clone());
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_breaks_a_stream() {
        let (aborted, told) =
            (Arc::new(std::sync::atomic::AtomicBool::default()), std::sync::atomic::Ordering::Relaxed);
        let tell = aborted.clone();
        let deadline = Instant::now() + std::time::Duration::from_secs(1);
        let mut body = endless().with_deadline(Some(deadline), move || tell.store(true, told));
        assert!(body.frame().await.unwrap().is_ok());
        assert!(!aborted.load(told));
        assert!(body.frame().await.unwrap().is_err());
        assert!(aborted.load(told));
    }

    /// On one thread: others have turns before a body is sent that is always ready.
    async fn turns_of_others(body: Body) -> usize {
        let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        body.taking_turns(Arc::default()).collect().await.unwrap();
        other.abort();
        turns.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[tokio::test]
    async fn others_have_turns_while_a_long_body_is_sent() {
        let slow = stream::iter(0..1000).map(|_| {
            std::thread::sleep(std::time::Duration::from_micros(20));
            Ok(Bytes::from_static(b"a"))
        });
        assert!(turns_of_others(Body::stream(slow)).await > 10);
        let piece = Bytes::from(vec![0; TakingTurns::BYTES]);
        let large = stream::iter(0..15).map(move |_| Ok(piece.clone()));
        assert!(turns_of_others(Body::stream(large)).await > 10, "it takes long to write these");
    }

    #[tokio::test]
    async fn a_signal_ends_a_stream() {
        let token = CancellationToken::new();
        let mut body = endless().until_cancelled(token.clone());
        assert!(body.frame().await.unwrap().is_ok());
        token.cancel();
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_signal_ends_a_stream_that_never_waits() {
        let token = CancellationToken::new();
        let always = stream::repeat_with(|| Ok(Bytes::from_static(b"a")));
        let mut body = Body::stream(always).until_cancelled(token.clone());
        for _ in 0..100 {
            assert!(body.frame().await.unwrap().is_ok());
        }
        token.cancel();
        for _ in 0..=Ended::PIECES {
            if body.frame().await.is_none() {
                return;
            }
        }
        panic!("it goes on");
    }
}
