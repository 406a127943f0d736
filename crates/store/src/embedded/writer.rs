//! The one thread that writes: it takes all that waits, applies it in order, commits once, then answers.

use super::batch::{Answer, Batch};
use super::engine::{Engine, failure, panic_text};
use super::marks::Marks;
use super::queue::{Request, Waiting};
use super::{Shared, Status};
use crate::error::{Result, StoreError};
use crate::limits::now_millis;
use crate::model::{Deleted, Revision};
use crate::watch::WatchError;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Keys that one batch expires at most, and history that it sweeps beyond its own size: both ride on commits
/// that happen anyway and must not delay them.
const EXPIRE_PER_BATCH: usize = 256;
const SWEEP_PER_BATCH: usize = 256;
/// While nothing else happens, history is compacted no more often than this: each time costs a sync.
const IDLE_COMPACTION: Duration = Duration::from_secs(10);
/// How long a store without space waits until it tries again by itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// `None` while the disk has no room to open it again.
    engine: Option<Engine>,
    marks: Marks,
    next_deadline: Option<u64>,
    /// The last commit failed for lack of space: what is due by the clock waits a little.
    short_of_space: bool,
}

/// A request that was applied, with what it is to be told once the commit is durable.
enum Applied {
    Put(oneshot::Sender<Answer<Revision>>, Answer<Revision>),
    Delete(oneshot::Sender<Answer<Deleted>>, Answer<Deleted>),
    Done(oneshot::Sender<Answer<()>>, Answer<()>),
}

impl Applied {
    fn answer(self) {
        // A receiver that left does not mind.
        match self {
            Applied::Put(reply, answer) => drop(reply.send(answer)),
            Applied::Delete(reply, answer) => drop(reply.send(answer)),
            Applied::Done(reply, answer) => drop(reply.send(answer)),
        }
    }

    /// Nothing of the batch was written. What was to be refused for its own reasons is refused for this one, too: the reason may be a
    /// write of the same batch, of which nobody may hear.
    fn refuse(self, error: &StoreError) {
        match self {
            Applied::Put(reply, _) => drop(reply.send(Err(error.clone()))),
            Applied::Delete(reply, _) => drop(reply.send(Err(error.clone()))),
            Applied::Done(reply, _) => drop(reply.send(Err(error.clone()))),
        }
    }
}

impl Request {
    fn refuse(self, error: &StoreError) {
        match self {
            Request::Put { reply, .. } => drop(reply.send(Err(error.clone()))),
            Request::Delete { reply, .. } => drop(reply.send(Err(error.clone()))),
            Request::Compact { reply, .. } | Request::Tick { reply } => drop(reply.send(Err(error.clone()))),
            Request::Close { reply } => {
                let _ = reply.send(());
            }
        }
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, engine: Engine) -> Result<Writer> {
        let marks = Marks::load(&engine.db, shared.limits, now_millis(&*shared.clock), &engine.state)?;
        let mut writer = Writer { shared, engine: Some(engine), marks, next_deadline: None, short_of_space: false };
        writer.next_deadline = writer.read_deadline()?;
        Ok(writer)
    }

    /// Runs until the store is closed or poisoned.
    pub fn run(self) {
        let mut writer = Some(self);
        while let Some(open) = writer {
            let batch = open.shared.queue.take(open.timeout());
            writer = open.round(batch);
        }
    }

    /// Writes one batch; `None` once the store is closed or poisoned.
    fn round(mut self, batch: Vec<Waiting>) -> Option<Writer> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.turn(batch))) {
            Ok(None) => {}
            Ok(Some(closed)) => {
                self.close(closed);
                return None;
            }
            // The replies of the batch went down with it; their futures see that and say "poisoned".
            Err(panic) => self.poison(format!("the writer panicked: {}", panic_text(&*panic))),
        }
        if !self.shared.is_open() {
            self.close(Vec::new());
            return None;
        }
        Some(self)
    }

    /// One round of the simulation, with so many of those that wait.
    #[cfg(test)]
    pub fn step(self, requests: usize) -> Option<Writer> {
        let batch = self.shared.queue.take_at_once(requests);
        self.round(batch)
    }

    /// How many wait, and after what time it does something without them.
    #[cfg(test)]
    pub fn waits(&self) -> (usize, Option<Duration>) {
        (self.shared.queue.len(), self.timeout())
    }

    fn timeout(&self) -> Option<Duration> {
        if self.engine.is_none() || self.short_of_space {
            return Some(RETRY_AFTER);
        }
        let now = now_millis(&*self.shared.clock);
        let expiry = self.next_deadline.map(|deadline| Duration::from_millis(deadline.saturating_sub(now)));
        let compaction = self.marks.next_due(now).map(|due| due.max(IDLE_COMPACTION));
        expiry.into_iter().chain(compaction).min()
    }

    /// One batch. Answers whom to tell if the store is to be closed.
    fn turn(&mut self, batch: Vec<Waiting>) -> Option<Vec<oneshot::Sender<()>>> {
        let mut closing = Vec::new();
        let mut requests = Vec::with_capacity(batch.len());
        // The permits go when this function ends: the requests have been answered by then.
        let mut permits = Vec::with_capacity(batch.len());
        for Waiting { request, _permit } in batch {
            permits.push(_permit);
            match request {
                Request::Close { reply } => closing.push(reply),
                request => requests.push(request),
            }
        }
        self.reopen_if_needed();
        let requests = self.refuse_without_space(requests);
        if self.engine.is_some() {
            self.write(requests);
        } else {
            let error = StoreError::NoSpace("the data file could not be opened again".into());
            requests.into_iter().for_each(|request| request.refuse(&error));
        }
        (!closing.is_empty()).then_some(closing)
    }

    /// Writes stop before the disk is full, deletions later than puts: they are the way out.
    fn refuse_without_space(&self, requests: Vec<Request>) -> Vec<Request> {
        let reserve = self.shared.reserve_bytes;
        // Not knowing is no reason to refuse: a full disk will still be noticed by the write itself.
        let available = self.shared.disk.available().unwrap_or(u64::MAX);
        let needed: u64 = requests.iter().map(|request| request.weight() as u64).sum();
        if available >= reserve.saturating_add(needed.saturating_mul(4)) || requests.is_empty() {
            return requests;
        }
        let error =
            StoreError::NoSpace(format!("{available} bytes are free on the disk, {reserve} are kept in reserve"));
        let mut kept = Vec::new();
        for request in requests {
            match request {
                Request::Put { .. } => request.refuse(&error),
                request if available < reserve / 2 => request.refuse(&error),
                request => kept.push(request),
            }
        }
        kept
    }

    fn write(&mut self, requests: Vec<Request>) {
        let mut applied = Vec::with_capacity(requests.len());
        match self.commit(requests, &mut applied) {
            Ok(()) => {
                self.short_of_space = false;
                applied.into_iter().for_each(Applied::answer);
            }
            Err(error) => self.recover(error, applied),
        }
    }

    /// Applies and commits. `applied` grows as requests are applied; the rest of them were not touched.
    fn commit(&mut self, requests: Vec<Request>, applied: &mut Vec<Applied>) -> Result<()> {
        let now = now_millis(&*self.shared.clock);
        let Some(engine) = &mut self.engine else { return Err(StoreError::Closed) };
        let before = engine.state;
        let txn = engine.db.begin_write().map_err(failure)?;
        let mut batch = Batch::begin(&txn, &self.shared.hub, before)?;
        let mut untouched = requests.into_iter();
        let result = untouched.by_ref().try_for_each(|request| {
            let (done, result) = apply(&mut batch, request, now);
            applied.push(done);
            result
        });
        if let Err(error) = result {
            untouched.for_each(|request| request.refuse(&error));
            return Err(error);
        }
        if self.next_deadline.is_some_and(|deadline| deadline <= now) {
            batch.expire(now, EXPIRE_PER_BATCH)?;
        }
        let marks = self.marks.due(now, &batch.state);
        if !marks.is_empty() {
            batch.mark(&marks)?;
        }
        if let Some(revision) = self.marks.compactable(now, &batch.state) {
            batch.compact(revision)?;
        }
        batch.sweep(SWEEP_PER_BATCH + 2 * applied.len())?;
        if batch.state == before && marks.is_empty() {
            return Ok(());
        }
        let next_deadline = batch.next_deadline()?;
        let (state, events) = batch.finish()?;
        txn.commit().map_err(failure)?;

        engine.state = state;
        self.next_deadline = next_deadline;
        self.marks.committed(marks, now, &state);
        if let Err(error) = self.shared.disk.note_acked(state.revision) {
            tracing::warn!(%error, "could not note the acknowledged revision");
        }
        let snapshot = Arc::new(engine.snapshot()?);
        let shared = &self.shared;
        shared.hub.publish(state.revision(), &events, || shared.snapshot.store(Some(snapshot)));
        Ok(())
    }

    /// After a failed commit: a failed sync ends the store; without space the file is opened again, which
    /// shows whether the commit made it.
    fn recover(&mut self, error: StoreError, applied: Vec<Applied>) {
        let sync_failed = self.engine.as_ref().is_some_and(Engine::sync_failed);
        if !matches!(error, StoreError::NoSpace(_)) || sync_failed {
            self.poison(error.to_string());
            let error = self.shared.check().err().unwrap_or(error);
            applied.into_iter().for_each(|done| done.refuse(&error));
            return;
        }
        self.short_of_space = true;
        tracing::error!(%error, "a commit failed; opening the data file again");
        let before = self.engine.take().map(|engine| engine.state);
        self.reopen_if_needed();
        let survived = self.engine.as_ref().is_some_and(|engine| Some(engine.state) != before);
        if survived {
            applied.into_iter().for_each(Applied::answer);
        } else {
            applied.into_iter().for_each(|done| done.refuse(&error));
        }
    }

    fn reopen_if_needed(&mut self) {
        if self.engine.is_some() || !self.shared.is_open() {
            return;
        }
        let engine = match Engine::open(&*self.shared.disk, self.shared.cache_bytes, None) {
            Ok(engine) => engine,
            Err(error @ (StoreError::NoSpace(_) | StoreError::Unavailable(_))) => {
                tracing::error!(%error, "the data file cannot be opened again yet");
                return;
            }
            Err(error) => return self.poison(error.to_string()),
        };
        match engine.snapshot() {
            Ok(snapshot) => {
                // The commit that failed may have made it to the disk after all; nobody was told of its events.
                let shared = &self.shared;
                shared.hub.jump(engine.state.revision(), || shared.snapshot.store(Some(Arc::new(snapshot))));
                shared.reopened.notify_waiters();
                self.engine = Some(engine);
            }
            Err(error) => self.poison(error.to_string()),
        }
    }

    fn read_deadline(&self) -> Result<Option<u64>> {
        let Some(engine) = &self.engine else { return Ok(None) };
        let txn = engine.db.begin_write().map_err(failure)?;
        let deadline = Batch::begin(&txn, &self.shared.hub, engine.state)?.next_deadline()?;
        txn.abort().map_err(failure)?;
        Ok(deadline)
    }

    fn poison(&mut self, reason: String) {
        tracing::error!(reason, "the store is poisoned");
        self.shared.set_status(Status::Poisoned(reason.clone()));
        self.shared.hub.end(WatchError::Store(StoreError::Poisoned(reason)));
    }

    fn close(self, closing: Vec<oneshot::Sender<()>>) {
        let Writer { shared, engine, .. } = self;
        shared.set_status(Status::Closed);
        let error = shared.check().err().unwrap_or(StoreError::Closed);
        shared.queue.abandon().into_iter().for_each(|waiting| waiting.request.refuse(&error));
        shared.hub.end(WatchError::Closed);
        shared.reopened.notify_waiters();
        shared.snapshot.store(None);
        drop(engine);
        for reply in closing {
            let _ = reply.send(());
        }
    }
}

/// Ends a store whose file turned out to be damaged while it was read already.
pub(super) fn refuse_all(shared: &Shared, error: StoreError) {
    tracing::error!(%error, "the store is not opened");
    shared.set_status(Status::Refused(error.clone()));
    shared.snapshot.store(None);
    shared.settled.send_replace(true);
    shared.queue.abandon().into_iter().for_each(|waiting| waiting.request.refuse(&error));
    shared.hub.end(WatchError::Store(error));
    shared.reopened.notify_waiters();
}

/// Applies one request. The result is an error of the engine below, which fails the batch.
fn apply(batch: &mut Batch<'_>, request: Request, now: u64) -> (Applied, Result<()>) {
    match request {
        Request::Put { key, value, expect, ttl, reply } => {
            let deadline = ttl.map_or(0, |ttl| now.saturating_add(ttl.as_millis() as u64).max(1));
            let (answer, result) = split(batch.put(key, value, expect, deadline));
            (Applied::Put(reply, answer), result)
        }
        Request::Delete { key, expect, reply } => {
            let (answer, result) = split(batch.delete(key, expect));
            (Applied::Delete(reply, answer), result)
        }
        Request::Compact { revision, reply } => {
            let (answer, result) = split(compact(batch, revision));
            (Applied::Done(reply, answer), result)
        }
        Request::Tick { reply } => (Applied::Done(reply, Ok(())), Ok(())),
        // Taken out before; nothing to apply.
        Request::Close { reply } => {
            drop(reply);
            (Applied::Done(oneshot::channel().0, Ok(())), Ok(()))
        }
    }
}

fn compact(batch: &mut Batch<'_>, revision: Revision) -> Result<Answer<()>> {
    let state = batch.state;
    if revision <= state.compacted() {
        return Ok(Err(StoreError::Compacted { compacted: state.compacted() }));
    }
    if revision > state.revision() {
        return Ok(Err(StoreError::FutureRevision { current: state.revision() }));
    }
    batch.compact(revision.0 as u64)?;
    Ok(Ok(()))
}

/// Separates an answer from a failure of the engine; the request is told of the failure, too.
fn split<T>(result: Result<Answer<T>>) -> (Answer<T>, Result<()>) {
    match result {
        Ok(answer) => (answer, Ok(())),
        Err(error) => (Err(error.clone()), Err(error)),
    }
}
