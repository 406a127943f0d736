//! The in-memory engine: the semantics of the others without a disk, for tests and throw-away servers.

mod state;

use crate::error::{Result, StoreError};
use crate::hub::{HISTORY_CHUNK_BYTES, History, HistoryChunk, WatchHub};
use crate::limits::{HistoryLimits, now_millis};
use crate::model::{Deleted, Expect, GetResponse, KeyRange, RangeRequest, RangeResponse, Revision, StoreStats};
use crate::traits::Store;
use crate::watch::{Event, Watch, WatchError, WatchRequest};
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_meta::Clock;
use kubelith_meta::time::{SystemClock, turned};
use state::State;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How often keys with a TTL are looked at, while there are any.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(500);

/// Cloning shares the store.
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

/// Everything that a store held at one time. Shares its memory with the store, as far as that has not changed since.
#[derive(Clone)]
pub struct MemorySnapshot {
    state: State,
}

impl MemorySnapshot {
    /// What another engine holds now, without its past.
    pub async fn read(store: &dyn Store) -> Result<MemorySnapshot> {
        let all = store.range(RangeRequest::new(KeyRange::all())).await?;
        Ok(MemorySnapshot { state: State::of(all.items, all.revision, HistoryLimits::default()) })
    }

    pub fn revision(&self) -> Revision {
        self.state.revision()
    }

    /// A store of its own that begins with all of this, revisions and past included.
    pub fn open(&self, clock: Arc<dyn Clock>) -> MemoryStore {
        let store = MemoryStore::over(self.state.clone().open(), clock);
        if self.state.has_expiring() {
            store.start_expiry();
        }
        store
    }

    /// Makes another engine hold this again, one write after the other. Times to live are not restored.
    pub async fn write_to(&self, store: &dyn Store) -> Result<()> {
        let now = store.range(RangeRequest::new(KeyRange::all())).await?;
        let then = self.state.range(&RangeRequest::new(KeyRange::all()))?;
        let found: HashMap<&Bytes, Revision> = now.items.iter().map(|kv| (&kv.key, kv.mod_revision)).collect();
        let kept: HashSet<&Bytes> = then.items.iter().map(|kv| &kv.key).collect();
        for kv in now.items.iter().filter(|kv| !kept.contains(&kv.key)) {
            unless_gone(store.delete(kv.key.clone(), Expect::Any).await.map(drop))?;
        }
        for kv in then.items.iter().filter(|kv| found.get(&kv.key) != Some(&kv.mod_revision)) {
            store.put(kv.key.clone(), kv.value.clone(), Expect::Any, None).await?;
        }
        Ok(())
    }
}

/// What somebody else deleted meanwhile is as it should be.
fn unless_gone(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(StoreError::Conflict { .. }) => Ok(()),
        outcome => outcome,
    }
}

struct Inner {
    /// Locked before the hub, so that events are published in the order of their revisions.
    state: Mutex<State>,
    hub: Arc<WatchHub>,
    clock: Arc<dyn Clock>,
    expiring: AtomicBool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new(HistoryLimits::default())
    }
}

impl MemoryStore {
    pub fn new(limits: HistoryLimits) -> MemoryStore {
        MemoryStore::with_clock(limits, Arc::new(SystemClock))
    }

    pub fn with_clock(limits: HistoryLimits, clock: Arc<dyn Clock>) -> MemoryStore {
        MemoryStore::over(State::new(limits), clock)
    }

    fn over(state: State, clock: Arc<dyn Clock>) -> MemoryStore {
        let hub = WatchHub::new(state.revision());
        let inner = Inner { state: Mutex::new(state), hub, clock, expiring: AtomicBool::new(false) };
        MemoryStore { inner: Arc::new(inner) }
    }

    /// Everything as it is now. Costs the same however much that is.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot { state: self.inner.lock().clone() }
    }

    /// Makes everything as it was, all or nothing visible. Revisions go on: watches see what changes by it.
    pub fn reset(&self, then: &MemorySnapshot) -> Result<Revision> {
        let now = now_millis(&*self.inner.clock);
        let (revision, expires) = {
            let mut state = self.inner.open()?;
            let events = state.reset_to(&then.state, now);
            self.inner.hub.publish(state.revision(), &events, || ());
            state.trim(now);
            (state.revision(), state.has_expiring())
        };
        if expires {
            self.start_expiry();
        }
        Ok(revision)
    }

    /// Deletes the keys whose time has passed and forgets history that is too old. Runs by itself while
    /// there are keys with a TTL; tests with a clock of their own call it.
    pub fn tick(&self) {
        self.inner.tick();
    }

    /// Starts the task that expires keys, unless it runs.
    fn start_expiry(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.inner.expiring.swap(true, Ordering::SeqCst) {
            return;
        }
        let weak = Arc::downgrade(&self.inner);
        runtime.spawn(async move {
            let mut seen = 0;
            loop {
                let Some(clock) = weak.upgrade().map(|inner| inner.clock.clone()) else { return };
                let _ = tokio::time::timeout(EXPIRY_INTERVAL, turned(&*clock, &mut seen)).await;
                let Some(inner) = weak.upgrade() else { return };
                inner.tick();
                let state = inner.lock();
                if state.is_closed() || !state.has_expiring() {
                    inner.expiring.store(false, Ordering::SeqCst);
                    return;
                }
            }
        });
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the state is locked")
    }

    fn tick(&self) {
        let now = now_millis(&*self.clock);
        let mut state = self.lock();
        while let Some(event) = state.expire_one(now) {
            self.publish(&state, event);
        }
        state.trim(now);
    }

    fn publish(&self, state: &State, event: Event) {
        self.hub.publish(state.revision(), &[event], || ());
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.is_closed() { Err(StoreError::Closed) } else { Ok(state) }
    }
}

impl Store for MemoryStore {
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
        Box::pin(async move {
            let state = self.inner.open()?;
            let item = state.get(&key, at)?;
            Ok(GetResponse { revision: state.revision(), item })
        })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
        Box::pin(async move { self.inner.open()?.range(&request) })
    }

    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move {
            let now = now_millis(&*self.inner.clock);
            let revision = {
                let mut state = self.inner.open()?;
                let event = state.put(key, value, expect, ttl, now)?;
                self.inner.publish(&state, event);
                state.trim(now);
                state.revision()
            };
            if ttl.is_some() {
                self.start_expiry();
            }
            Ok(revision)
        })
    }

    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
        Box::pin(async move {
            let now = now_millis(&*self.inner.clock);
            let mut state = self.inner.open()?;
            let (event, previous) = state.delete(key, expect, now)?;
            self.inner.publish(&state, event);
            state.trim(now);
            Ok(Deleted { revision: state.revision(), previous })
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(async move {
            drop(self.inner.open()?);
            let history: Arc<dyn History> = self.inner.clone();
            self.inner.hub.watch(history, request)
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move { Ok(self.inner.open()?.revision()) })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.inner.open()?.compact(revision) })
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats>> {
        Box::pin(async move { Ok(self.inner.open()?.stats()) })
    }

    fn health(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.inner.open().map(drop) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.lock().close();
            self.inner.hub.end(WatchError::Closed);
        })
    }
}

impl History for Inner {
    fn read(&self, request: &WatchRequest, until: Revision) -> BoxFuture<'_, Result<HistoryChunk, WatchError>> {
        let chunk = self.lock().history(request, until, HISTORY_CHUNK_BYTES);
        Box::pin(async move { chunk })
    }
}

#[cfg(test)]
mod tests;
