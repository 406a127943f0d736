//! The in-memory engine: the semantics of the others without a disk, for tests and throw-away servers.

mod state;

use crate::error::{Result, StoreError};
use crate::hub::{HISTORY_CHUNK_BYTES, History, HistoryChunk, Hub};
use crate::limits::{HistoryLimits, now_millis};
use crate::model::{Deleted, Expect, GetResponse, RangeRequest, RangeResponse, Revision, StoreStats};
use crate::traits::Store;
use crate::watch::{Event, Watch, WatchError, WatchRequest};
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_meta::Clock;
use kubelith_meta::time::SystemClock;
use state::State;
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

struct Inner {
    /// Locked before the hub, so that events are published in the order of their revisions.
    state: Mutex<State>,
    hub: Arc<Hub>,
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
        let state = State::new(limits);
        let hub = Hub::new(state.revision());
        let inner = Inner { state: Mutex::new(state), hub, clock, expiring: AtomicBool::new(false) };
        MemoryStore { inner: Arc::new(inner) }
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
            loop {
                tokio::time::sleep(EXPIRY_INTERVAL).await;
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
