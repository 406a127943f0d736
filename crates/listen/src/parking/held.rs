//! Answers that outlive the state of their connection: a watch goes on while hyper's state is put aside.

use crate::activity::ActiveRequest;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use kubelith_http::{Body, BoxError};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, ready};

type Next = Option<Result<Frame<Bytes>, BoxError>>;

/// Sent in place of what was sent in an earlier life, so that hyper counts it; the client does not see it.
static FILLER: [u8; 16 * 1024] = [0; 16 * 1024];

/// What is left to send of an answer.
pub struct Answer {
    body: Body,
    /// What came while there was no hyper to send it.
    next: Option<Next>,
    _active: ActiveRequest,
}

impl Answer {
    pub fn new(body: Body, active: ActiveRequest) -> Answer {
        Answer { body, next: None, _active: active }
    }

    /// Ready when there is something to send, or the end.
    pub fn poll_stirs(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.next.is_none() {
            self.next = Some(ready!(Pin::new(&mut self.body).poll_frame(cx)));
        }
        Poll::Ready(())
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        match self.next.take() {
            Some(next) => Poll::Ready(next),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }
}

/// A request that a new state is told of because its answer goes on.
pub struct Again {
    /// `None`: it was over long ago, and only what was sent of it counts.
    pub answer: Option<Answer>,
    pub filler: usize,
}

/// An answer in hyper's hands, that can be taken out of them.
pub struct Held {
    /// Which request of this life it answers.
    nth: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    filler: usize,
    answer: Option<Answer>,
    /// Bytes that hyper was given of it, without filler.
    given: u64,
    /// hyper was given its end, or an error.
    is_over: bool,
    /// The client has seen its head.
    is_continued: bool,
}

impl Inner {
    fn new(answer: Option<Answer>) -> Inner {
        Inner { filler: 0, answer, given: 0, is_over: false, is_continued: false }
    }

    /// Whether hyper has it all on its way, and there is more to come: of a stream on which so much was sent.
    fn is_waiting(&self, sent: u64) -> bool {
        self.filler == 0 && self.given == sent && self.answer.is_some() && !self.is_over
    }
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut inner = self.lock();
        if inner.filler > 0 {
            let piece = &FILLER[..inner.filler.min(FILLER.len())];
            inner.filler -= piece.len();
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece)))));
        }
        let Some(answer) = &mut inner.answer else { return Poll::Ready(None) };
        let next = ready!(answer.poll_frame(cx));
        match &next {
            Some(Ok(frame)) => inner.given += frame.data_ref().map_or(0, |data| data.len() as u64),
            Some(Err(_)) | None => inner.is_over = true,
        }
        Poll::Ready(next)
    }

    pub fn is_end_stream(&self) -> bool {
        let inner = self.lock();
        // The end must not be told with a head that the client has seen already.
        !inner.is_continued && inner.answer.as_ref().is_none_or(|answer| answer.body.is_end_stream())
    }

    pub fn size_hint(&self) -> SizeHint {
        let inner = self.lock();
        match &inner.answer {
            Some(answer) if !inner.is_continued => answer.body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

/// A stream that is open, as the wire shows it.
#[derive(Debug, Clone, Copy)]
pub struct OpenStream {
    /// Which one of this life it is.
    pub nth: u64,
    /// Bytes of its answer that were sent.
    pub sent: u64,
}

/// The requests of one life of a connection.
#[derive(Default)]
pub struct Streams(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    begun: u64,
    again: VecDeque<Again>,
    held: Vec<Weak<Held>>,
}

pub enum Begun {
    /// Its number.
    New(u64),
    Again(Arc<Held>),
}

impl Streams {
    /// hyper will hear of these first, in this order.
    pub fn again(again: impl IntoIterator<Item = Again>) -> Streams {
        Streams(Mutex::new(Requests { again: again.into_iter().collect(), ..Requests::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// hyper shows a request.
    pub fn begin(&self) -> Begun {
        let mut requests = self.lock();
        let nth = requests.begun;
        requests.begun += 1;
        let Some(Again { answer, filler }) = requests.again.pop_front() else { return Begun::New(nth) };
        Begun::Again(requests.hold(nth, Inner { filler, is_continued: true, ..Inner::new(answer) }))
    }

    /// The answer to a request takes its time.
    pub fn hold(&self, nth: u64, answer: Answer) -> Arc<Held> {
        self.lock().hold(nth, Inner::new(Some(answer)))
    }

    /// Whether all open streams could do without hyper.
    pub fn are_held(&self, begun: u64, open: impl Iterator<Item = OpenStream>) -> bool {
        self.with_held(begun, open, |_| ()).is_some()
    }

    /// Takes the answers of all open streams, in their order; `None` if one of them cannot do without hyper.
    pub fn take(&self, begun: u64, open: impl Iterator<Item = OpenStream>) -> Option<Vec<Answer>> {
        self.with_held(begun, open, |held| held.answer.take()).map(|taken| taken.into_iter().flatten().collect())
    }

    /// `begun`: streams that the client has begun in this life. hyper shows requests in their order; if it kept one to
    /// itself, nobody knows which stream is whose.
    fn with_held<T>(
        &self,
        begun: u64,
        open: impl Iterator<Item = OpenStream>,
        mut each: impl FnMut(&mut Inner) -> T,
    ) -> Option<Vec<T>> {
        let mut open = open.peekable();
        if open.peek().is_none() {
            return Some(Vec::new());
        }
        let requests = self.lock();
        if requests.begun != begun || !requests.again.is_empty() {
            return None;
        }
        let held: Vec<_> = requests.held.iter().filter_map(Weak::upgrade).collect();
        let mut found = Vec::new();
        for stream in open {
            let inner = held.iter().find(|held| held.nth == stream.nth)?.lock();
            found.push(Some(inner).filter(|inner| inner.is_waiting(stream.sent))?);
        }
        Some(found.iter_mut().map(|inner| each(inner)).collect())
    }
}

impl Requests {
    fn hold(&mut self, nth: u64, inner: Inner) -> Arc<Held> {
        let held = Arc::new(Held { nth, inner: Mutex::new(inner) });
        self.held.retain(|other| other.strong_count() > 0);
        self.held.push(Arc::downgrade(&held));
        held
    }
}
