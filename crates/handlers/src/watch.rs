//! WATCH: a stream of events, each built once and shared by all who watch.

mod pieces;

use super::context::Context;
use super::options::{ListOptions, parse_revision};
use super::selection::Selection;
use super::{views, websocket};
use crate::table;
use bytes::Bytes;
use futures::{FutureExt, Stream};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use kubelith_codec::frames;
use kubelith_codec::negotiate::{Format, Output};
use kubelith_http::context::ExpiredWatch;
use kubelith_http::negotiated::encode;
use kubelith_http::{Body, BoxError, Request, Response};
use kubelith_meta::time::turned;
use kubelith_meta::{Status, Time, Value};
use kubelith_observe::metrics::reads::CacheRead;
use kubelith_registry::ReadAt;
use kubelith_store::cache::{CachedObject, Event, EventKind, Form, Interest, TooOld, Watcher};
use pieces::Pieces;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A quiet watch is told this often how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the deadline, so that the client resumes from there.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Events that a watch keeps space for.
const KEPT_EVENTS: usize = 8;
/// Between two tries to convert an object, at first and at most.
const CONVERT_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// Seconds after which a watch is asked for again that had nothing to begin with.
const RETRY_AFTER: i32 = 1;
/// Objects of the start that are read at a time: those that are packed are unpacked only when they are about to be sent.
const HELD_BATCH: usize = 256;
/// Marks the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

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

/// Whether a watch says that its initial events are all there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InitialEnd {
    Told,
    /// The old paths with `watch` in them know nothing of it.
    Untold,
}

enum Start {
    /// All objects as ADDED, in a state as new as this, then the changes.
    Initial(ReadAt, InitialEnd),
    /// The changes from now on.
    Now,
    /// The changes after a revision.
    After(i64),
}

impl Start {
    fn of(options: &ListOptions) -> Result<Start, Status> {
        let version = options.resource_version.as_str();
        let revision = match version {
            "" | "0" => 0,
            text => parse_revision(text).map_err(Status::unknown)?,
        };
        Ok(match (options.send_initial_events, version) {
            (Some(true), "") => Start::Initial(ReadAt::Latest, InitialEnd::Told),
            (Some(true), "0") => Start::Initial(ReadAt::AnyAge, InitialEnd::Told),
            (Some(true), _) => Start::Initial(ReadAt::NotOlderThan(revision), InitialEnd::Told),
            // A path with `watch` in it, and no such parameter.
            (None, "") => Start::Initial(ReadAt::Latest, InitialEnd::Untold),
            (None, "0") => Start::Initial(ReadAt::AnyAge, InitialEnd::Untold),
            (Some(false), "" | "0") => Start::Now,
            // What no store can reach is a future like any other.
            _ => Start::After(i64::try_from(revision).unwrap_or(i64::MAX)),
        })
    }
}

fn timeout(cx: &Context, options: &ListOptions) -> Duration {
    match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds as u64),
        Some(seconds) if seconds < 0 => Duration::ZERO,
        // Spread over twice the minimum, so that watches do not all come back at once.
        _ => cx.endpoint.limits.min_request_timeout.mul_f64(1.0 + kubelith_meta::random::unit()),
    }
}

/// Each minute, and once shortly before the end; then no more.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let regular = now + BOOKMARK_EVERY;
    let next = match deadline.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if last < regular => last,
        _ => regular,
    };
    (next > now).then_some(next)
}

fn too_old(revision: i64, resource: &kubelith_registry::Resource) -> Status {
    Status::expired(format!("too old resource version: {revision} ({})", resource.hub.applied()))
}

/// Nothing of a collection could be converted: a client comes back, as to a cache that is being filled.
fn not_filled(cx: &Context, why: &Status) -> Status {
    let kind = &cx.endpoint.kind;
    let message = format!("storage is (re)initializing: failed to list {kind}: {}", why.message);
    Status::too_many_requests(message, RETRY_AFTER)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Plain,
    InitialEventsEnd,
}

/// Only the first table of a watch has column definitions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    Due,
    Sent,
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

    /// Takes the objects that the watch begins with. Once a webhook fails, those that it had not converted before are held
    /// back, and it is not asked for each of them. If there are no others, the watch is refused, as in the reference, where
    /// a cache that was never filled is asked.
    async fn begin(&mut self, objects: Vec<Arc<CachedObject>>) -> Result<(), Status> {
        let shown = self.selection.judges_shown(&self.cx);
        let rewrites = self.cx.endpoint.resource.conversion.rewrites();
        let mut failure = None;
        let mut sent: u64 = 0;
        for object in objects {
            if !shown && !self.selection.matches(&object) {
                continue;
            }
            sent += 1;
            if !rewrites && sent > HELD_BATCH as u64 {
                self.held.push_back(object);
                continue;
            }
            if self.is_unconverted(&object) {
                if failure.is_none() {
                    failure = views::json_of(&self.cx, &object).await.err();
                }
                if failure.is_some() {
                    self.held.push_back(object);
                    continue;
                }
            }
            self.push_initial(&object).await;
        }
        self.cx.endpoint.resource.cache.count_initial(sent);
        match failure {
            Some(status) if self.held.len() as u64 == sent => Err(not_filled(&self.cx, &status)),
            Some(_) => Ok(()),
            None => {
                if self.held.is_empty() {
                    self.end_initial().await;
                }
                Ok(())
            }
        }
    }

    async fn push_initial(&mut self, object: &CachedObject) {
        match self.selection.judges_shown(&self.cx) {
            true => self.push_if_shown(object).await,
            false => self.push(EventKind::Added, object).await,
        }
    }

    async fn end_initial(&mut self) {
        if std::mem::take(&mut self.end_due) {
            self.push_bookmark(Mark::InitialEventsEnd).await;
        }
    }

    /// Sends an object that was held back, as soon as it can be converted, and others that need not wait.
    async fn advance_held(&mut self, object: &CachedObject) {
        if !self.converted(object).await {
            self.ended = true;
            return;
        }
        self.push_initial(object).await;
        for _ in 1..HELD_BATCH {
            if self.ended || self.held.front().is_none_or(|next| self.is_unconverted(next)) {
                break;
            }
            let Some(next) = self.held.pop_front() else { break };
            self.push_initial(&next).await;
        }
        if self.held.is_empty() && !self.ended {
            self.end_initial().await;
        }
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

    async fn mark(&mut self) {
        self.catch_up().await;
        // What has not been delivered is covered by no bookmark.
        if self.ended {
            return;
        }
        self.push_bookmark(Mark::Plain).await;
        self.bookmark_at = next_bookmark(Instant::now(), self.deadline);
    }

    /// Moves `revision` as far as this watch has certainly seen everything. What the cache had applied is read first:
    /// an event applied after that is not covered by the bookmark, one applied before it is waiting in the watcher.
    async fn catch_up(&mut self) {
        let applied = self.cx.endpoint.resource.hub.applied();
        while let Some(watcher) = &mut self.watcher {
            match watcher.next(&mut self.events).now_or_never() {
                Some(Ok(())) => self.push_events().await,
                Some(Err(_)) => return self.lose(),
                None => break,
            }
            if self.ended {
                return;
            }
        }
        self.revision = self.revision.max(applied);
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

    /// Takes over what the watcher has brought.
    async fn push_events(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            if !self.push_as_cached(&event) {
                Box::pin(self.push_event(&event)).await;
            }
            if self.ended {
                return;
            }
        }
        // The space serves again, unless it is large.
        if events.capacity() <= KEPT_EVENTS {
            self.events = events;
        }
    }

    /// Whether a webhook has to be asked before the object can be shown.
    fn is_unconverted(&self, object: &CachedObject) -> bool {
        let endpoint = &self.cx.endpoint;
        object.broken.is_none()
            && endpoint.resource.conversion.rewrites()
            && !views::is_native(&self.cx, object)
            && object.form(Form::Json, &endpoint.kind, endpoint.resource.conversion.generation()).is_none()
    }

    /// Waits until the webhook that converts an object has done so: as in the reference, a watch goes on when it can, and
    /// nobody has to begin anew. What was converted is kept with the object. `false` if the watch is over before.
    async fn converted(&self, object: &CachedObject) -> bool {
        if !self.is_unconverted(object) {
            return true;
        }
        let mut pause = CONVERT_AGAIN.0;
        while views::json_of(&self.cx, object).await.is_err() {
            if Instant::now() + pause >= self.deadline {
                sleep_until(self.deadline).await;
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CONVERT_AGAIN.1);
        }
        true
    }

    /// An object that there is at the start, if it matches as it is shown.
    async fn push_if_shown(&mut self, object: &CachedObject) {
        match self.selection.matches_shown(&self.cx, object).await {
            Ok(true) => self.push(EventKind::Added, object).await,
            Ok(false) => {}
            Err(status) => self.push_error(&status),
        }
    }

    /// Whether an object matched before an event, and whether it does after it.
    async fn matched(&self, event: &Event) -> Result<(bool, bool), Status> {
        let matches = async |object: &CachedObject| self.selection.matches_shown(&self.cx, object).await;
        let now = event.kind != EventKind::Deleted && matches(&event.object).await?;
        let before = match &event.prev {
            Some(prev) => matches(prev).await?,
            None => false,
        };
        Ok((before, now))
    }

    /// Takes over an event that is sent as it is in the cache, which is most of them. False if it may have to be converted or
    /// written in another form: that is a long way, whose state no watch has with it while it waits.
    fn push_as_cached(&mut self, event: &Event) -> bool {
        let is_cached = |object: &CachedObject| !object.is_foreign && object.broken.is_none();
        let before = event.prev.as_deref();
        if !self.sends_cached || !is_cached(&event.object) || !before.is_none_or(is_cached) {
            return false;
        }
        if event.revision <= self.after {
            return true;
        }
        let selection = &self.selection;
        let kind = if selection.is_everything() && selection.prefix.is_empty() {
            Some(event.kind)
        } else {
            let before = before.is_some_and(|before| selection.matches(before));
            let now = event.kind != EventKind::Deleted && selection.matches(&event.object);
            match (before, now) {
                (false, false) => None,
                (false, true) => Some(EventKind::Added),
                (true, true) => Some(EventKind::Modified),
                (true, false) if event.kind == EventKind::Deleted => Some(EventKind::Deleted),
                (true, false) => return false,
            }
        };
        self.revision = event.revision;
        if let Some(kind) = kind {
            self.pieces.push(event.object.json_frame(kind));
        }
        true
    }

    async fn push_event(&mut self, event: &Event) {
        if event.revision <= self.after {
            return;
        }
        let in_range = event.object.key.starts_with(&self.selection.prefix);
        let before = event.prev.as_deref().filter(|_| !self.selection.is_everything());
        for object in before.into_iter().chain([&*event.object]).filter(|_| in_range) {
            if !self.converted(object).await {
                self.ended = true;
                return;
            }
        }
        self.revision = event.revision;
        let everything = self.selection.is_everything() && self.selection.prefix.is_empty();
        if everything {
            return self.push(event.kind, &event.object).await;
        }
        let (before, now) = match self.matched(event).await {
            Ok(matched) => matched,
            Err(status) => return self.push_error(&status),
        };
        match (before, now) {
            (false, false) => {}
            (false, true) => self.push(EventKind::Added, &event.object).await,
            (true, true) => self.push(EventKind::Modified, &event.object).await,
            (true, false) if event.kind == EventKind::Deleted => self.push(EventKind::Deleted, &event.object).await,
            (true, false) => {
                // It left the selection: the client gets the last state it could see, at the new revision.
                let Some(prev) = &event.prev else { return };
                match views::value_of(&self.cx, prev).await {
                    Ok(mut object) => {
                        kubelith_registry::set_resource_version(&mut object, event.revision);
                        self.push_value(EventKind::Deleted.as_str(), object);
                    }
                    Err(status) => self.push_error(&status),
                }
            }
        }
    }

    async fn push(&mut self, kind: EventKind, object: &CachedObject) {
        let made = match (&self.negotiated.convert, self.negotiated.format) {
            (None, Format::Json) if object.broken.is_none() && views::is_native(&self.cx, object) => {
                Ok(object.json_frame(kind))
            }
            (None, Format::Protobuf) => match views::protobuf_of(&self.cx, object).await {
                Ok(object) => Ok(frames::proto_event(kind.as_str(), object.len()).with(&object).into()),
                Err(status) => Err(status),
            },
            _ => match views::value_of(&self.cx, object).await {
                Ok(value) => return self.push_value(kind.as_str(), value),
                Err(status) => Err(status),
            },
        };
        match made {
            Ok(frame) => self.pieces.push(frame),
            Err(status) => self.push_error(&status),
        }
    }

    fn push_value(&mut self, kind: &str, object: Value) {
        let Some(object) = self.event_value(object).transpose() else {
            self.watcher = None;
            return;
        };
        let encoded = object.and_then(|object| match self.negotiated.format {
            Format::Protobuf => {
                let object = match self.negotiated.convert {
                    None => views::protobuf_value(&self.cx, &object)?,
                    Some(_) => encode(Format::Protobuf, &object, false)?,
                };
                Ok(frames::proto_event(kind, object.len()).with(&object))
            }
            _ => Ok(frames::json_event(kind).with(&views::object_json(&object))),
        });
        match encoded {
            Ok(frame) => self.pieces.push(frame.into()),
            Err(status) => self.push_error(&status),
        }
    }

    /// The object as the kind the client asked for; `None` if an object cannot be that, which ends the watch.
    fn event_value(&mut self, object: Value) -> Result<Option<Value>, Status> {
        let Some(target) = &self.negotiated.convert else { return Ok(Some(object)) };
        match target.kind.as_str() {
            "Table" => {
                let mut table = table::of_object(&self.cx, &object, &target.version)?;
                if std::mem::replace(&mut self.columns, Columns::Sent) == Columns::Sent {
                    table.set_at(&["columnDefinitions"], Value::Null);
                }
                Ok(Some(table))
            }
            "PartialObjectMetadata" => Ok(Some(views::partial_metadata(&self.cx, &object, &target.version))),
            _ => Ok(None),
        }
    }

    async fn push_bookmark(&mut self, mark: Mark) {
        let kind = &self.cx.endpoint.kind;
        let mut object =
            Value::from([("kind", Value::String(kind.kind.clone())), ("apiVersion", Value::from(kind.api_version()))]);
        kubelith_registry::set_resource_version(&mut object, self.revision);
        if mark == Mark::InitialEventsEnd {
            object.set_at(&["metadata", "annotations", INITIAL_EVENTS_END], "true".into());
        }
        self.cx.endpoint.resource.strategy.complete_blank(&mut object);
        self.cx.canonicalize(&mut object);
        self.push_value("BOOKMARK", object);
    }

    /// An error ends the watch, as its last event.
    fn push_error(&mut self, status: &Status) {
        let value = status.to_value();
        let frame = match self.negotiated.format {
            Format::Protobuf => match encode(Format::Protobuf, &value, false) {
                Ok(object) => frames::proto_event("ERROR", object.len()).with(&object),
                Err(_) => Vec::new(),
            },
            _ => frames::json_event("ERROR").with(&views::object_json(&value)),
        };
        self.pieces.push(frame.into());
        self.watcher = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_each_minute_and_before_the_end() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        // Now and the deadline, in seconds from the start, and when the next bookmark is due.
        let cases = [
            (0, 1800, Some(60)),
            (60, 1800, Some(120)),
            (1750, 1800, Some(1798)),
            (1798, 1800, None),
            (0, 30, Some(28)),
            (0, 2, None),
            (0, 0, None),
        ];
        for (now, deadline, want) in cases {
            assert_eq!(next_bookmark(after(now), after(deadline)), want.map(after), "{now} of {deadline}");
        }
    }
}
