//! Delivery of events to the watches of the local engines.
//!
//! The writer pushes each event into the bounded queue of every watch on its key and never waits. A watch
//! whose queue is full is detached: it drains what it has and reads on from the engine's history, as a watch
//! that starts in the past does, until it has caught up and joins again. So the only way to lose a watch is
//! to fall behind the history window.
//!
//! ```text
//! watch(after 10), store at 40:  history 11..=40 in chunks -> joined, queue gets 41, 42, ...
//! queue overflows at 90:         detached at 89; drain ..=89 -> history 90..=120 -> joined at 120
//! ```

use crate::error::StoreError;
use crate::model::{KeyRange, Revision};
use crate::watch::{Event, Previous, ProgressMode, Watch, WatchBatch, WatchControl, WatchError, WatchRequest};
use futures::StreamExt;
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes of events per chunk of history: what a watch that catches up holds at once.
pub(crate) const HISTORY_CHUNK_BYTES: usize = 1 << 20;
/// How long a watched range is quiet before `ProgressMode::Periodic` tells the revision.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How far a watch may be behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchLimits {
    /// A watch that has this many bytes waiting is detached.
    pub queued_bytes: usize,
    /// Likewise for many small events; also bounds the size of a batch.
    pub queued_events: usize,
    /// A watch this close to the newest revision joins the live queue and reads the rest of the history then.
    pub join_distance: i64,
}

impl Default for WatchLimits {
    fn default() -> WatchLimits {
        // Enough for a burst of 1,000 objects of 8 KB with their previous values.
        WatchLimits { queued_bytes: 16 << 20, queued_events: 10_000, join_distance: 1_000 }
    }
}

/// Events of the past, in order and complete up to `through`.
pub(crate) struct HistoryChunk {
    pub events: Vec<Event>,
    pub through: Revision,
}

/// Where an engine keeps past events.
pub(crate) trait History: Send + Sync + 'static {
    /// Events in the request's range with `after < revision <= until`, or fewer once the chunk is full.
    fn read(&self, request: &WatchRequest, until: Revision) -> BoxFuture<'_, Result<HistoryChunk, WatchError>>;
}

/// The live side of all watches of one engine.
pub(crate) struct WatchHub {
    /// Locked before any slot's queue.
    state: Mutex<HubState>,
    limits: WatchLimits,
}

struct HubState {
    /// Everything up to here was pushed into the queues.
    revision: Revision,
    slots: Vec<Arc<Slot>>,
    ended: Option<WatchError>,
}

/// One watch's place in the hub.
struct Slot {
    range: KeyRange,
    previous: Previous,
    queue: Mutex<Queue>,
    wake: Arc<Wake>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    weight: usize,
    /// Set when the queue overflowed: the last revision that the queue is complete for.
    detached: Option<Revision>,
    ended: Option<WatchError>,
}

/// What can wake a watch apart from its end.
#[derive(Default)]
struct Wake {
    notify: Notify,
    progress_wanted: AtomicBool,
}

impl WatchHub {
    pub fn new(revision: Revision) -> Arc<WatchHub> {
        WatchHub::with(revision, WatchLimits::default())
    }

    pub fn with(revision: Revision, limits: WatchLimits) -> Arc<WatchHub> {
        Arc::new(WatchHub { state: Mutex::new(HubState { revision, slots: Vec::new(), ended: None }), limits })
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().expect("no panic while the hub is locked")
    }

    /// The newest revision that watches can have seen.
    pub fn revision(&self) -> Revision {
        self.lock().revision
    }

    /// Whether a watch wants to see what a write to this key replaces.
    pub fn wants_previous(&self, key: &[u8]) -> bool {
        let state = self.lock();
        state.slots.iter().any(|slot| slot.previous == Previous::Include && slot.range.contains(key))
    }

    /// Pushes events to their watches. `visible` runs under the hub's lock, where the engine makes the same
    /// revision visible to readers: nobody can read a revision that watches would not be told of.
    pub fn publish(&self, revision: Revision, events: &[Event], visible: impl FnOnce()) {
        let mut state = self.lock();
        visible();
        state.revision = revision;
        let mut overflowed = false;
        for event in events {
            for slot in state.slots.iter().filter(|slot| slot.range.contains(event.key())) {
                overflowed |= slot.push(event, &self.limits);
            }
        }
        if overflowed {
            state.slots.retain(|slot| slot.lock().detached.is_none());
        }
    }

    /// Moves on to a revision whose events nobody has at hand: the watches read them from history.
    pub fn jump(&self, revision: Revision, visible: impl FnOnce()) {
        let mut state = self.lock();
        visible();
        if revision == state.revision {
            return;
        }
        for slot in std::mem::take(&mut state.slots) {
            slot.lock().detached.get_or_insert(state.revision);
            slot.wake.notify.notify_one();
        }
        state.revision = revision;
    }

    /// Ends every watch, present and future. The first reason stays the reason.
    pub fn end(&self, error: WatchError) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        for slot in state.slots.drain(..) {
            slot.lock().ended = Some(error.clone());
            slot.wake.notify.notify_one();
        }
        state.ended = Some(error);
    }

    /// Starts a watch that reads the past from `history`.
    pub fn watch(self: &Arc<Self>, history: Arc<dyn History>, request: WatchRequest) -> Result<Watch, StoreError> {
        if request.range.is_empty() {
            return Err(StoreError::Invalid("the range of the watch is empty".into()));
        }
        let wake = Arc::new(Wake::default());
        let control = {
            let wake = wake.clone();
            WatchControl::new(move || {
                wake.progress_wanted.store(true, Ordering::SeqCst);
                wake.notify.notify_one();
            })
        };
        let cursor = Cursor { hub: self.clone(), history, request, wake, stage: Stage::Past };
        let batches = futures::stream::unfold(Some(cursor), |cursor| async move {
            let mut cursor = cursor?;
            match cursor.next().await {
                Ok(batch) => Some((Ok(batch), Some(cursor))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Watch::new(batches.boxed(), control))
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while a queue is locked")
    }

    /// True when the queue overflowed just now.
    fn push(&self, event: &Event, limits: &WatchLimits) -> bool {
        let mut queue = self.lock();
        if queue.detached.is_some() {
            return false;
        }
        let weight = event.weight();
        let full = queue.weight + weight > limits.queued_bytes || queue.events.len() >= limits.queued_events;
        // The watch joined after the writer had asked who wants previous values: history has them.
        let lacks = self.previous == Previous::Include && event.has_previous() && event.prev().is_none();
        if lacks || (full && !queue.events.is_empty()) {
            queue.detached = Some(Revision(event.revision().0 - 1));
        } else {
            queue.weight += weight;
            queue.events.push_back(match self.previous {
                Previous::Include => event.clone(),
                Previous::Omit => event.clone().without_previous(),
            });
        }
        let overflowed = queue.detached.is_some();
        drop(queue);
        self.wake.notify.notify_one();
        overflowed
    }
}

/// One watch, as its stream sees it.
struct Cursor {
    hub: Arc<WatchHub>,
    history: Arc<dyn History>,
    /// `after` moves on with what was delivered.
    request: WatchRequest,
    wake: Arc<Wake>,
    stage: Stage,
}

enum Stage {
    /// Reading history.
    Past,
    /// In the hub, with history up to `joined_at` still to be read.
    Joining {
        slot: Registration,
        joined_at: Revision,
    },
    Live(Registration),
}

/// Takes the slot out of the hub when the watch is dropped.
struct Registration {
    hub: Arc<WatchHub>,
    slot: Arc<Slot>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

/// What a look into the queue found.
enum Found {
    Batch(WatchBatch),
    Detached(Revision),
    Nothing,
}

impl Cursor {
    async fn next(&mut self) -> Result<WatchBatch, WatchError> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Past) {
                Stage::Past => {
                    if let Some(batch) = self.read_past().await? {
                        return Ok(batch);
                    }
                }
                Stage::Joining { slot, joined_at } => {
                    if self.request.after >= joined_at {
                        self.stage = Stage::Live(slot);
                        continue;
                    }
                    let chunk = self.read_history(joined_at).await;
                    self.stage = Stage::Joining { slot, joined_at };
                    if let Some(batch) = chunk? {
                        return Ok(batch);
                    }
                }
                Stage::Live(slot) => {
                    let found = self.look(&slot)?;
                    match found {
                        Found::Batch(batch) => {
                            self.stage = Stage::Live(slot);
                            self.request.after = self.request.after.max(batch.revision);
                            return Ok(batch);
                        }
                        Found::Detached(at) => self.request.after = self.request.after.max(at),
                        Found::Nothing => {
                            self.stage = Stage::Live(slot);
                            self.wait().await;
                        }
                    }
                }
            }
        }
    }

    /// Joins the hub if it is near, else reads a chunk of history.
    async fn read_past(&mut self) -> Result<Option<WatchBatch>, WatchError> {
        let newest = {
            let mut state = self.hub.lock();
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            if state.revision.0 - self.request.after.0 <= self.hub.limits.join_distance {
                let slot = Arc::new(Slot {
                    range: self.request.range.clone(),
                    previous: self.request.previous,
                    queue: Mutex::default(),
                    wake: self.wake.clone(),
                });
                state.slots.push(slot.clone());
                let slot = Registration { hub: self.hub.clone(), slot };
                self.stage = Stage::Joining { slot, joined_at: state.revision };
                return Ok(None);
            }
            state.revision
        };
        self.read_history(newest).await
    }

    async fn read_history(&mut self, until: Revision) -> Result<Option<WatchBatch>, WatchError> {
        let chunk = self.history.read(&self.request, until).await?;
        self.request.after = chunk.through;
        Ok((!chunk.events.is_empty()).then_some(WatchBatch { events: chunk.events, revision: chunk.through }))
    }

    fn look(&self, registration: &Registration) -> Result<Found, WatchError> {
        let hub = self.hub.lock();
        let mut queue = registration.slot.lock();
        let complete = queue.detached.unwrap_or(hub.revision);
        if !queue.events.is_empty() {
            // A watch from the future gets nothing until that future has passed.
            let after = self.request.after;
            let events: Vec<Event> =
                std::mem::take(&mut queue.events).into_iter().filter(|event| event.revision() > after).collect();
            queue.weight = 0;
            if !events.is_empty() {
                self.wake.progress_wanted.store(false, Ordering::SeqCst);
                return Ok(Found::Batch(WatchBatch { events, revision: complete }));
            }
        }
        if let Some(error) = &queue.ended {
            return Err(error.clone());
        }
        if let Some(at) = queue.detached {
            return Ok(Found::Detached(at));
        }
        if self.wake.progress_wanted.swap(false, Ordering::SeqCst) {
            return Ok(Found::Batch(WatchBatch { events: Vec::new(), revision: complete }));
        }
        Ok(Found::Nothing)
    }

    async fn wait(&self) {
        match self.request.progress {
            ProgressMode::OnRequest => self.wake.notify.notified().await,
            ProgressMode::Periodic => {
                if tokio::time::timeout(PROGRESS_INTERVAL, self.wake.notify.notified()).await.is_err() {
                    self.wake.progress_wanted.store(true, Ordering::SeqCst);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
