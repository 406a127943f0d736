//! Follows the store and applies what happens to the caches.

use super::directory::{Registered, RegisteredByPrefix};
use super::hub::Hub;
use super::inheritance::{DEFINITIONS, Inheritance};
use super::load;
use super::object::EventKind;
use super::packing::{self, Sweeping};
use super::resource::{Change, ResourceCache};
use crate::layout::MAX_SEGMENTS;
use crate::{
    Event, KeyRange, Previous, ProgressRequests, Result, Revision, StoreError, Watch, WatchBatch, WatchError,
    WatchRequest,
};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Pause before the feed tries again after the store failed.
const RETRY: Duration = Duration::from_millis(250);
/// How often idle caches drop what is over age, and objects that nobody wrote again.
const TRIM: Duration = Duration::from_secs(10);
/// Encodings that nobody asked for are dropped at each so many trims: within a minute.
const TRIMS_PER_FORM: u32 = 3;

/// What a batch changes in one cache.
type Changes = (Arc<ResourceCache>, Vec<Change>);

/// Runs until the hub is dropped. After a gap that the store cannot replay, everything is loaded anew.
pub(super) async fn feed(hub: Weak<Hub>, mut after: Revision) {
    loop {
        let Some((store, root)) = hub.upgrade().map(|h| (h.values.raw.clone(), h.directory.root.clone())) else {
            return;
        };
        // Without progress requests only events tell how far the store is: then every key is watched, so that
        // no revision goes by unseen, and what is not ours is passed over.
        let range = match store.progress_requests() {
            ProgressRequests::Trusted => KeyRange::prefix(root),
            ProgressRequests::Unsupported => KeyRange::all(),
        };
        // The caches hold the previous values.
        let end = match store.watch(WatchRequest::new(range, after).previous(Previous::Omit)).await {
            Ok(watch) => {
                if let Some(hub) = hub.upgrade() {
                    hub.freshness.follow(Some(watch.control()));
                }
                let (reached, end) = follow(&hub, watch, after).await;
                after = reached;
                end
            }
            Err(StoreError::Compacted { .. }) => End::Compacted,
            Err(error) => End::Failed(error.into()),
        };
        match end {
            End::Dropped | End::Failed(WatchError::Closed | WatchError::Store(StoreError::Closed)) => return,
            // The next watch goes on where this one ended.
            End::Failed(error) => {
                tracing::warn!(%error, "cannot watch the store");
                tokio::time::sleep(RETRY).await;
            }
            End::Compacted => {
                let Some(hub) = hub.upgrade() else { return };
                match hub.start_over().await {
                    Ok(revision) => after = revision,
                    // The server is leaving: there is nothing more to follow.
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        tracing::warn!(%error, "cannot list the store");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        }
    }
}

/// Why a watch is over.
enum End {
    /// The hub is gone.
    Dropped,
    /// What came next is no longer in the store: only a list helps.
    Compacted,
    Failed(WatchError),
}

/// Caches with watchers that are still to be woken, and when.
#[derive(Default)]
struct WakeSchedule(Vec<(Instant, Arc<ResourceCache>)>);

impl WakeSchedule {
    fn set(&mut self, cache: Arc<ResourceCache>, due: Option<Instant>) {
        self.0.retain(|(_, known)| !Arc::ptr_eq(known, &cache));
        self.0.extend(due.map(|at| (at, cache)));
    }

    /// Waits until one is due.
    async fn next(&self) {
        match self.0.iter().map(|(at, _)| *at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn wake_due(&mut self) {
        let now = Instant::now();
        for (_, cache) in self.0.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            let due = cache.wake_due(now);
            self.set(cache, due);
        }
    }
}

/// Watchers that are still to be woken must not be forgotten when the feed starts anew.
impl Drop for WakeSchedule {
    fn drop(&mut self) {
        for (_, cache) in &self.0 {
            cache.wake_all();
        }
    }
}

/// Applies batches until the watch ends; answers the last revision applied.
async fn follow(hub: &Weak<Hub>, mut watch: Watch, mut after: Revision) -> (Revision, End) {
    let mut schedule = WakeSchedule::default();
    let mut trim = tokio::time::interval_at(Instant::now() + TRIM, TRIM);
    let mut trims = 0;
    loop {
        let next = tokio::select! {
            // Who is due to be woken does not wait until the store is silent.
            biased;
            () = schedule.next() => {
                schedule.wake_due();
                continue;
            }
            _ = trim.tick() => {
                let Some(hub) = hub.upgrade() else { return (after, End::Dropped) };
                trims += 1;
                let caches: Vec<Arc<ResourceCache>> = {
                    let resources = hub.directory.resources();
                    resources.values().map(|registered| registered.cache.clone()).collect()
                };
                caches.iter().for_each(|cache| cache.trim());
                let sweeping = if trims % TRIMS_PER_FORM == 0 { Sweeping::All } else { Sweeping::Changed };
                // All objects are looked at, for which the feed does not wait.
                drop(hub.offload.call(move || {
                    if sweeping == Sweeping::All {
                        caches.iter().for_each(|cache| cache.drop_unused_forms());
                    }
                    packing::sweep(&caches, sweeping);
                }));
                hub.recent.drop_unused();
                hub.beginnings.replay.lock().expect("no panic under this lock").forget();
                continue;
            }
            next = watch.next() => next,
        };
        let Some(hub) = hub.upgrade() else { return (after, End::Dropped) };
        match next {
            Some(Ok(batch)) => {
                after = after.max(batch.revision);
                let _feeding = hub.feeding.lock().await;
                for (cache, due) in hub.apply(batch).await {
                    schedule.set(cache, due);
                }
            }
            Some(Err(WatchError::Compacted { .. } | WatchError::Store(StoreError::Compacted { .. }))) => {
                return (after, End::Compacted);
            }
            Some(Err(error)) => return (after, End::Failed(error)),
            None => return (after, End::Failed(StoreError::Unavailable("the watch ended".into()).into())),
        }
    }
}

impl Hub {
    /// Applies a batch to the caches it concerns, then moves `applied` on. Answers when watchers of these caches are to
    /// be woken, if that is not done.
    async fn apply(&self, batch: WatchBatch) -> Vec<(Arc<ResourceCache>, Option<Instant>)> {
        self.freshness.notices.fetch_add(u64::from(batch.is_progress()), Ordering::Relaxed);
        let ours: Vec<(String, Registered, Event)> = {
            let resources = self.directory.resources();
            let mut unclaimed = Vec::new();
            let ours = batch.events.into_iter().filter_map(|event| {
                let below = std::str::from_utf8(event.key()).ok()?.strip_prefix(self.directory.root.as_str())?;
                match find(&resources, below) {
                    Some((prefix, registered)) => Some((prefix.to_owned(), registered.clone(), event)),
                    None => {
                        unclaimed.push(below.to_owned());
                        None
                    }
                }
            });
            let ours: Vec<(String, Registered, Event)> = ours.collect();
            if !unclaimed.is_empty() {
                self.beginnings.replay.lock().expect("no panic under this lock").overtaken(&unclaimed);
            }
            let redefines = ours.iter().any(|(prefix, ..)| prefix == DEFINITIONS);
            if redefines || !unclaimed.is_empty() {
                self.beginnings.inheritance.lock().expect("no panic under this lock").overtaken(redefines, &unclaimed);
            }
            ours
        };
        let mut changes: HashMap<String, Changes> = HashMap::new();
        for (prefix, registered, event) in ours {
            let Some(change) = self.change_of(self.directory.root.len() + prefix.len(), &registered, event).await
            else {
                continue;
            };
            match changes.get_mut(&prefix) {
                Some((_, list)) => list.push(change),
                None => drop(changes.insert(prefix, (registered.cache, vec![change]))),
            }
        }
        let applied = changes.into_values().map(|(cache, list)| {
            let due = cache.apply_paced(list);
            (cache, due)
        });
        let applied = applied.collect();
        self.freshness.advance(batch.revision.0);
        applied
    }

    async fn change_of(&self, skip: usize, registered: &Registered, event: Event) -> Option<Change> {
        match &event {
            Event::Put { kv, .. } => {
                let kind = if event.has_previous() { EventKind::Modified } else { EventKind::Added };
                let transformer = self.values.transformers.of(&kv.key);
                let object = load::read_as(&transformer, skip, kv, |key, revision, value| {
                    match self.pending_writes.take(&kv.key, value, kind) {
                        Some(draft) => Ok(draft.written(key, revision)),
                        None => load::render(&*registered.renderer, key, revision, kind, value),
                    }
                });
                let object = object.await?;
                Some(Change::Put(kind, object))
            }
            Event::Delete { key, revision, .. } => {
                Some(Change::Delete(std::str::from_utf8(key).ok()?.get(skip..)?.into(), revision.0))
            }
        }
    }

    /// Fills all caches anew; answers the revision to go on from.
    async fn start_over(&self) -> Result<Revision> {
        let _feeding = self.feeding.lock().await;
        self.pending_writes.clear();
        // What others have kept for caches that are still to come ends before the gap.
        self.beginnings.replay.lock().expect("no panic under this lock").forget();
        *self.beginnings.inheritance.lock().expect("no panic under this lock") = Inheritance::default();
        let revision = self.values.raw.current_revision().await?;
        let all: Vec<_> = {
            let resources = self.directory.resources();
            resources.iter().map(|(p, r)| (p.clone(), r.clone())).collect()
        };
        for (prefix, registered) in all {
            self.load(&prefix, &registered).await?;
        }
        self.freshness.start_over(revision.0);
        Ok(revision)
    }
}

/// The resource whose prefix begins `key`: at most a few segments (`services/specs/`, `group/resource/`).
fn find<'a>(resources: &'a RegisteredByPrefix, key: &str) -> Option<(&'a str, &'a Registered)> {
    let mut end = 0;
    for _ in 0..MAX_SEGMENTS {
        end += key[end..].find('/')? + 1;
        if let Some((prefix, registered)) = resources.get_key_value(&key[..end]) {
            return Some((prefix.as_str(), registered));
        }
    }
    None
}
