//! Response bodies that outlive hyper's connection state: a watch continues while its connection is parked.

use crate::activity::ActiveRequest;
use crate::crowd::Ready;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use kubelith_http::{Body, BoxError};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, ready};

pub(super) type Next = Option<Result<Frame<Bytes>, BoxError>>;

/// Sent in place of DATA from before parking, so that hyper's windows shrink; the tap suppresses it.
static FILLER: [u8; 16 * 1024] = [0; 16 * 1024];

/// The rest of a response.
pub struct Answer {
    body: Body,
    /// Read while the connection was parked, and not sent.
    next: Option<Next>,
    _active: ActiveRequest,
}

impl Answer {
    pub fn new(body: Body, active: ActiveRequest) -> Answer {
        Answer { body, next: None, _active: active }
    }

    /// What comes next, before anything else that comes.
    pub fn give_back(&mut self, next: Next) {
        self.next = Some(next);
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        match self.next.take() {
            Some(next) => Poll::Ready(next),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }
}

/// The response to a replayed request.
pub struct ResumedAnswer {
    /// `None`: the stream has ended, and only carries filler.
    pub answer: Option<Answer>,
    pub filler: usize,
}

/// A response body that hyper polls, and that can be taken back.
pub struct Held {
    /// The request's number since the connection was last resumed.
    nth: u64,
    inner: Mutex<Inner>,
    ready: Ready,
}

struct Inner {
    filler: usize,
    answer: Option<Answer>,
    /// Bytes that hyper was given of it, without filler.
    given: u64,
    /// hyper has read its end, or an error.
    is_over: bool,
    /// Its HEADERS were sent before the connection was parked.
    is_continued: bool,
}

impl Inner {
    fn new(answer: Option<Answer>) -> Inner {
        Inner { filler: 0, answer, given: 0, is_over: false, is_continued: false }
    }

    /// Whether hyper has sent all that it was given (`sent` bytes), and there is more to come.
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
            Some(Ok(frame)) => {
                inner.given += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.ready.count();
            }
            Some(Err(_)) | None => inner.is_over = true,
        }
        Poll::Ready(next)
    }

    pub fn is_end_stream(&self) -> bool {
        let inner = self.lock();
        // END_STREAM must not come with HEADERS that are suppressed.
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
    /// Its number since the connection was last resumed.
    pub nth: u64,
    /// Bytes of DATA that were sent.
    pub sent: u64,
}

/// The requests of a connection since it was last resumed.
#[derive(Default)]
pub struct Streams(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    begun: u64,
    resumed: VecDeque<ResumedAnswer>,
    held: Vec<Weak<Held>>,
    ready: Ready,
}

pub enum Begun {
    /// Its number.
    New(u64),
    Resumed(Arc<Held>),
}

impl Streams {
    /// The first requests that hyper shows are these replayed ones, in this order.
    pub fn resumed(resumed: impl IntoIterator<Item = ResumedAnswer>, ready: Ready) -> Streams {
        Streams(Mutex::new(Requests { resumed: resumed.into_iter().collect(), ready, ..Requests::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// hyper shows a request.
    pub fn begin(&self) -> Begun {
        let mut requests = self.lock();
        let nth = requests.begun;
        requests.begun += 1;
        let Some(ResumedAnswer { answer, filler }) = requests.resumed.pop_front() else { return Begun::New(nth) };
        Begun::Resumed(requests.hold(nth, Inner { filler, is_continued: true, ..Inner::new(answer) }))
    }

    /// The response to a request does not end at once.
    pub fn hold(&self, nth: u64, answer: Answer) -> Arc<Held> {
        self.lock().hold(nth, Inner::new(Some(answer)))
    }

    /// Whether the responses of all open streams could be taken back from hyper.
    pub fn are_held(&self, begun: u64, open: impl Iterator<Item = OpenStream>) -> bool {
        self.with_held(begun, open, |_| ()).is_some()
    }

    /// Takes the responses of all open streams back, in their order; `None` if one of them cannot be.
    pub fn take(&self, begun: u64, open: impl Iterator<Item = OpenStream>) -> Option<Vec<Answer>> {
        self.with_held(begun, open, |held| held.answer.take()).map(|taken| taken.into_iter().flatten().collect())
    }

    /// `begun`: streams that the client has begun since the connection was resumed. hyper shows requests in their order;
    /// if it has refused one itself, streams and requests cannot be matched.
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
        if requests.begun != begun || !requests.resumed.is_empty() {
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
        let held = Arc::new(Held { nth, inner: Mutex::new(inner), ready: self.ready.clone() });
        self.held.retain(|other| other.strong_count() > 0);
        self.held.push(Arc::downgrade(&held));
        held
    }
}
