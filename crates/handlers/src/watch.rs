//! WATCH: a stream of events, each built once and shared by all who watch.

mod bookmarks;
mod changes;
mod forms;
mod initial;
mod pieces;
mod start;
mod unconverted;

use super::context::Context;
use super::options::ListOptions;
use super::selection::Selection;
use super::{views, websocket};
use crate::table;
use bookmarks::{BOOKMARK_EVERY, next_bookmark};
use bytes::Bytes;
use forms::Columns;
use futures::Stream;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use kubelith_codec::negotiate::{Format, Output};
use kubelith_http::context::ExpiredWatch;
use kubelith_http::{Body, BoxError, Request, Response};
use kubelith_meta::time::turned;
use kubelith_meta::{Status, Time};
use kubelith_observe::metrics::reads::CacheRead;
use kubelith_registry::ReadAt;
use kubelith_store::cache::{CachedObject, Event, Interest, TooOld, Watcher};
use pieces::Pieces;
use start::{InitialEnd, Start};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

pub async fn watch(cx: Arc<Context>, options: ListOptions, request: Request) -> Result<Response, Status> {
    let selection = Selection::new(&cx, &options)?;
    let start = Start::of(&options)?;
    let timeout = timeout(&cx, &options);
    let resource = cx.endpoint.resource.clone();
    let negotiated = cx.negotiate_stream()?;
    if negotiated.convert.as_ref().is_some_and(|target| target.kind == "Table") {
        table::check_options(&cx)?;
    }
    let cx = cx.without_headers();
    let selection = Arc::new(selection);
    let indexed = resource.cache.indexed_field();
    let shown = selection.judges_shown(&cx);
    // What a webhook makes of objects is known only when it is asked.
    let interest = if shown { selection.range_interest() } else { selection.interest(indexed) };

    let now = Instant::now();
    let sends_cached =
        negotiated.convert.is_none() && negotiated.format == Format::Json && views::has_native_cache(&cx);
    let mut state = Box::new(WatchState {
        negotiated,
        sends_cached,
        selection,
        watcher: None,
        loads: cx.endpoint.resource.cache.loads(),
        pieces: Pieces::default(),
        events: Vec::new(),
        bookmark_at: None,
        turns: 0,
        marked: resource.clock.now(),
        deadline: now + timeout,
        timer: Box::pin(sleep_until(now + timeout)),
        columns: Columns::Due,
        held: VecDeque::new(),
        end_due: false,
        revision: 0,
        after: 0,
        ended: false,
        cx,
    });
    if options.bookmarks {
        state.bookmark_at = next_bookmark(Instant::now(), state.deadline);
    }
    let mut first_events = None;
    match start {
        _ if request.extensions().get::<ExpiredWatch>().is_some() => state.push_error(&too_old(0, &resource)),
        Start::Initial(at, end) => {
            let began = Instant::now();
            // Waits for the state that was asked for; list and watch are then taken together.
            let reached = resource.snapshot(at).await?.revision;
            let (snapshot, watcher) = resource.cache.list_and_watch(interest);
            state.revision = snapshot.revision.max(reached);
            state.watcher = Some(watcher);
            let candidates = match shown || state.selection.is_everything() {
                true => None,
                false => state.selection.candidates(&snapshot, indexed, None),
            };
            let in_range = || snapshot.range(&state.selection.prefix, None).cloned().collect();
            state.end_due = end == InitialEnd::Told && options.bookmarks;
            state.begin(candidates.unwrap_or_else(in_range)).await?;
            if end == InitialEnd::Told && (state.held.is_empty() || !resource.conversion.rewrites()) {
                first_events = Some(CacheRead::FirstEvents { took: began.elapsed() });
            }
        }
        Start::Now => {
            resource.snapshot(ReadAt::Latest).await?;
            let (snapshot, watcher) = resource.cache.list_and_watch(interest);
            state.revision = snapshot.revision;
            state.watcher = Some(watcher);
        }
        Start::After(revision) => match changes_after(&state.cx, interest, revision).await? {
            Ok(watcher) => {
                (state.revision, state.after) = (revision, revision);
                state.watcher = Some(watcher);
            }
            Err(TooOld) => state.push_error(&too_old(revision, &resource)),
        },
    }
    if websocket::is_requested(request.headers()) {
        return Ok(websocket::serve(request, state.negotiated.format, state.into_stream(Pieces::next_event)));
    }
    let content_type = state.negotiated.format.watch_content_type().unwrap_or("application/json");
    let counter = state.pieces.counter.clone();
    let mut response = Response::new(Body::stream(state.into_stream(Pieces::next_piece)));
    response.extensions_mut().insert(counter);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().remove(TRANSFER_ENCODING);
    if let Some(read) = first_events {
        response.extensions_mut().insert(read);
    }
    Ok(response)
}

/// Without a watch cache (`--watch-cache=false`) watches can begin wherever the store can.
async fn changes_after(cx: &Context, interest: Interest, revision: i64) -> Result<Result<Watcher, TooOld>, Status> {
    let resource = &cx.endpoint.resource;
    let watcher = resource.cache.watch(interest.clone(), revision);
    if watcher.is_ok() || !cx.endpoint.limits.pages_any_age {
        return Ok(watcher);
    }
    resource.recall(revision).await?;
    Ok(resource.cache.watch(interest, revision))
}

fn timeout(cx: &Context, options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds as u64),
        Some(seconds) if seconds < 0 => Duration::ZERO,
        // Spread over twice the minimum, so that watches do not all come back at once.
        _ => cx.endpoint.limits.min_request_timeout.mul_f64(1.0 + kubelith_meta::random::unit()),
    }
}

fn too_old(revision: i64, resource: &kubelith_registry::Resource) -> Status {
    Status::expired(format!("too old resource version: {revision} ({})", resource.hub.applied()))
}

struct WatchState {
    cx: Arc<Context>,
    negotiated: Output,
    /// Clients get objects as they are cached, unless one of them was written in another version.
    sends_cached: bool,
    selection: Arc<Selection>,
    watcher: Option<Watcher>,
    /// How often the cache was filled anew before.
    loads: u64,
    pieces: Pieces,
    events: Vec<Arc<Event>>,
    /// When the next bookmark is due; `None` if the client wants none, or the end is too near for another.
    bookmark_at: Option<Instant>,
    /// How often the clock was turned by hand, if that is a way to turn it, and when it showed which time at the last bookmark.
    turns: u64,
    marked: Time,
    deadline: Instant,
    /// Rings at the next bookmark or at the end. Kept, so that a batch of events sets no timer.
    timer: Pin<Box<Sleep>>,
    columns: Columns,
    /// Objects of the start that are still to be read, or that a webhook has not converted yet. Nothing else is sent before
    /// them but what it had.
    held: VecDeque<Arc<CachedObject>>,
    /// Whether the bookmark after the initial events is still to be sent.
    end_due: bool,
    /// How far this watch has come.
    revision: i64,
    /// What the client has seen already. The cache may get there later than the client.
    after: i64,
    ended: bool,
}

impl WatchState {
    /// `next` takes from the pieces what is sent at a time.
    fn into_stream(
        self: Box<Self>,
        next: fn(&mut Pieces) -> Option<Bytes>,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
        futures::stream::unfold(self, move |mut state| async move {
            loop {
                if let Some(piece) = next(&mut state.pieces) {
                    return Some((Ok(piece), state));
                }
                if state.ended {
                    return None;
                }
                state.advance().await;
            }
        })
    }

    /// Waits for whatever comes first: events, the time for a bookmark, the end.
    async fn advance(&mut self) {
        if let Some(object) = self.held.pop_front() {
            return Box::pin(self.advance_held(&object)).await;
        }
        let Some(watcher) = &mut self.watcher else {
            self.ended = true;
            return;
        };
        let due = self.bookmark_at.map_or(self.deadline, |at| at.min(self.deadline));
        if self.timer.deadline() != due {
            self.timer.as_mut().reset(due);
        }
        let is_turned = self.bookmark_at.is_some() && self.cx.endpoint.resource.clock.turns().is_some();
        tokio::select! {
            biased;
            next = watcher.next(&mut self.events) => match next {
                Ok(()) => self.push_events().await,
                Err(_) => self.lose(),
            },
            () = self.timer.as_mut() => {
                if due >= self.deadline {
                    self.ended = true;
                    return;
                }
                Box::pin(self.mark()).await;
            }
            () = turned(&*self.cx.endpoint.resource.clock, &mut self.turns), if is_turned => {
                let now = self.cx.endpoint.resource.clock.now();
                if Duration::from(now.since(self.marked)) >= BOOKMARK_EVERY {
                    self.marked = now;
                    Box::pin(self.mark()).await;
                }
            }
        }
    }

    /// The watcher has nothing more to bring. If the cache was filled anew, as when the schema of a custom resource
    /// changes, the stream just ends: clients go on from where they are.
    fn lose(&mut self) {
        if self.cx.endpoint.resource.cache.loads() == self.loads {
            return self.push_error(&too_old(self.revision, &self.cx.endpoint.resource));
        }
        self.watcher = None;
        self.ended = true;
    }
}
