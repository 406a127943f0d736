//! The objects and the recent events of one resource.
//!
//! Objects are a persistent map: a snapshot is a pointer copy that never changes. The state at an older
//! revision within the window is the newest snapshot with the later events undone, so history costs only
//! the objects that were replaced.
//!
//! A watcher of everything is a position in the shared history. A watcher of one namespace, name, label or indexed
//! field has a queue of its own that only matching events enter, so it pays nothing for other objects. The feed never waits
//! for either: who falls behind the window, or lets its queue overflow, is told so and must list again.

use super::index::Index;
use super::object::{CachedObject, Event, EventKind};
use super::packing::{PackedStats, Packing};
use super::snapshot::{Objects, Oddities, Snapshot};
use super::watcher::{Interest, Queue, Source, Watcher, WatcherGroups};
use kubelith_meta::Str;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// Events are replayable for this long at least, if the bounds below allow it: as long as the embedded store's history.
const WINDOW_AGE: Duration = Duration::from_secs(300);
/// Bytes per resource of what nothing but its events keeps: objects as they were before. 3,000 changes of large pods, 25,000 of
/// leases; creations take next to nothing.
const WINDOW_BYTES: usize = 24 << 20;
/// Watches that are told where they are each minute need no older events to go on. Of those, only so many bytes are kept.
const RESUME_AGE: Duration = Duration::from_secs(60);
const OLD_BYTES: usize = 2 << 20;
/// What an event takes by itself.
const EVENT_BYTES: usize = 128;
/// Events that are kept however old they are: clients of a resource that seldom changes come back from long ago.
const WINDOW_MIN_EVENTS: usize = 100;
/// Events kept per resource, whatever their size.
const WINDOW_EVENTS: usize = 100_000;

/// The revision asked for is no longer in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld;

/// A change of one object.
#[derive(Debug)]
pub enum Change {
    /// It is this now; `Added` or `Modified`.
    Put(EventKind, CachedObject),
    /// It is gone since this revision.
    Delete(Arc<str>, i64),
}

/// A change that happened before a load, with what the object was before it.
#[derive(Debug)]
pub struct PastChange {
    pub kind: EventKind,
    pub object: Arc<CachedObject>,
    pub prev: Option<Arc<CachedObject>>,
}

/// Figures of one cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub objects: usize,
    /// Times that the cache was filled by a list.
    pub loads: u64,
    /// Events that came from the store.
    pub received: u64,
    /// Events that watches began with: objects that were there, and what had happened since the revision they named.
    pub initial: u64,
    /// Watchers that were ended because they were too far behind.
    pub terminated: u64,
    /// Objects that came from the store and could not be decoded.
    pub undecodable: u64,
    /// What the objects take.
    pub object_bytes: usize,
    /// And in the store.
    pub stored_bytes: u64,
    /// Events of the window, and what is kept for them alone.
    pub events: usize,
    pub bytes: usize,
    /// What the index takes, roughly.
    pub index_bytes: usize,
    /// As it was after the last sweep.
    pub packed: PackedStats,
    pub revision: i64,
}

/// What a watcher wants to see, as far as an index helps. Selectors are applied by the reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    All,
    Namespace(Str),
    /// The whole key: `namespace/name`, or `name`.
    Key(Str),
    /// The resource's indexed field has this value.
    Indexed(Str),
    /// A label has this value, in a namespace or, if that is empty, in all.
    Label {
        namespace: Str,
        key: Str,
        value: Str,
    },
}

/// A cache of one resource.
#[derive(Debug)]
pub struct ResourceCache {
    /// Which of `CachedObject::fields` is indexed (a pod's spec.nodeName).
    indexed_field: Option<usize>,
    pub(super) state: RwLock<CacheState>,
    /// Grows with every change of the objects, before anybody can see it.
    changes: AtomicU64,
    /// Held by one sweep.
    pub(super) packing: Mutex<Packing>,
    pub(super) packed: Mutex<PackedStats>,
    pub(super) watcher_groups: WatcherGroups,
}

#[derive(Debug, Default, Clone)]
pub(super) struct CacheState {
    pub(super) objects: Objects,
    /// Their weight, and what they take in the store.
    object_bytes: usize,
    stored_bytes: u64,
    /// Shared with forks until one of them goes on.
    pub(super) events: Arc<VecDeque<(Instant, Arc<Event>)>>,
    /// Sequence number of `events[0]`; grows by one with each event that leaves.
    pub first: u64,
    /// What `first` was when everything was last replaced.
    pub(super) replaced: u64,
    bytes: usize,
    index: Index,
    /// The events after this revision are all in `events`.
    horizon: i64,
    revision: i64,
    odd: Oddities,
    loads: u64,
    received: u64,
    undecodable: u64,
}

impl From<(EventKind, CachedObject)> for Change {
    fn from((kind, object): (EventKind, CachedObject)) -> Change {
        match kind {
            EventKind::Deleted => Change::Delete(object.key, object.revision),
            kind => Change::Put(kind, object),
        }
    }
}

impl Change {
    fn is_delete(&self) -> bool {
        matches!(self, Change::Delete(..))
    }
}

impl ResourceCache {
    pub fn new(indexed_field: Option<usize>) -> ResourceCache {
        ResourceCache::with(indexed_field, CacheState { index: Index::new(indexed_field), ..CacheState::default() })
    }

    fn with(indexed_field: Option<usize>, state: CacheState) -> ResourceCache {
        let (changes, packing, packed, watcher_groups) = Default::default();
        ResourceCache { indexed_field, state: RwLock::new(state), changes, packing, packed, watcher_groups }
    }

    /// A cache with the same objects and the same past, which goes its own way from here on.
    pub fn fork(&self) -> ResourceCache {
        let state = self.state.read().expect("no panic under this lock").clone();
        ResourceCache::with(self.indexed_field, state)
    }

    /// This cache if it is nobody else's, or else a fork of it.
    pub(super) fn own(self: Arc<Self>) -> Arc<ResourceCache> {
        if Arc::strong_count(&self) == 1 { self } else { Arc::new(self.fork()) }
    }

    /// Replaces everything by what a list at `revision` gave. Watchers that were there end.
    pub fn load(&self, objects: Objects, revision: i64) {
        self.load_with_past(objects, revision, Vec::new(), revision);
    }

    /// The same, with the changes between `horizon` and `revision`, so that watches can begin there.
    pub fn load_with_past(&self, objects: Objects, revision: i64, past: Vec<PastChange>, horizon: i64) {
        let mut odd = Oddities::default();
        let (mut object_bytes, mut stored_bytes) = (0, 0);
        let mut unread = 0;
        for object in objects.values() {
            odd.add(object);
            unread += u64::from(object.is_undecodable());
            object_bytes += object.weight();
            stored_bytes += u64::from(object.stored);
        }
        let index = Index::new(self.indexed_field).filled(objects.values());
        let mut state = self.state.write().expect("no panic under this lock");
        // Numbers are left out, so that a past that is remembered later has some of its own.
        let first = state.first + state.events.len() as u64 + WINDOW_EVENTS as u64 + 1;
        let (loads, received, undecodable) = (state.loads + 1, state.received, state.undecodable + unread);
        let now = CacheState {
            objects,
            object_bytes,
            stored_bytes,
            index,
            first,
            replaced: first,
            horizon,
            revision,
            odd,
            loads,
            received,
            undecodable,
            ..CacheState::default()
        };
        *state = now;
        for (i, PastChange { kind, object, prev }) in past.into_iter().enumerate() {
            let event = Event { sequence: first + i as u64, kind, revision: object.revision, object, prev };
            state.bytes += kept_for(&event);
            Arc::make_mut(&mut state.events).push_back((Instant::now(), Arc::new(event)));
        }
        state.trim();
        self.changes.fetch_add(1, Ordering::Release);
        drop(state);
        self.watcher_groups.overflow_all();
    }

    /// Watches can begin after this revision.
    pub(super) fn horizon(&self) -> i64 {
        self.state.read().expect("no panic under this lock").horizon
    }

    /// Takes what happened between `after` and `until`, so that watches can begin there, as far as there is room for it. `until` is
    /// where they could begin: if they cannot any more, nothing is taken.
    pub(super) fn remember(&self, past: Vec<PastChange>, after: i64, until: i64) {
        let mut state = self.state.write().expect("no panic under this lock");
        let has_room = past.len() + state.events.len() <= WINDOW_EVENTS;
        let Some(first) = state.first.checked_sub(past.len() as u64).filter(|_| has_room && state.horizon == until)
        else {
            return;
        };
        for (i, PastChange { kind, object, prev }) in past.into_iter().enumerate().rev() {
            let event = Event { sequence: first + i as u64, kind, revision: object.revision, object, prev };
            state.bytes += kept_for(&event);
            Arc::make_mut(&mut state.events).push_front((Instant::now(), Arc::new(event)));
        }
        state.first = first;
        state.replaced = state.replaced.min(first);
        state.horizon = after;
        state.trim();
    }

    /// Takes over which of its objects can be read, from a list of the same objects.
    pub(super) fn reread(&self, list: &Objects) {
        let mut state = self.state.write().expect("no panic under this lock");
        for object in list.values() {
            let known = state.objects.get(&*object.key);
            // What was written meanwhile was read with what is there now.
            if known.is_some_and(|k| k.revision == object.revision && k.broken.is_some() != object.broken.is_some()) {
                state.exchange(object.clone());
            }
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How often everything was replaced.
    pub fn loads(&self) -> u64 {
        self.state.read().expect("no panic under this lock").loads
    }

    pub fn stats(&self) -> CacheStats {
        let state = self.state.read().expect("no panic under this lock");
        CacheStats {
            objects: state.objects.len(),
            object_bytes: state.object_bytes,
            stored_bytes: state.stored_bytes,
            loads: state.loads,
            received: state.received,
            undecodable: state.undecodable,
            initial: self.watcher_groups.initial.load(Ordering::Relaxed),
            terminated: self.watcher_groups.terminated.load(Ordering::Relaxed),
            events: state.events.len(),
            bytes: state.bytes,
            index_bytes: state.index.bytes(),
            packed: *self.packed.lock().expect("no panic under this lock"),
            revision: state.revision,
        }
    }

    /// A figure that is another one after any change of the objects: what was made of them when it was the same, is
    /// still right.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Which of `CachedObject::fields` has an index.
    pub fn indexed_field(&self) -> Option<usize> {
        self.indexed_field
    }

    pub fn get(&self, key: &str) -> Option<Arc<CachedObject>> {
        self.state.read().expect("no panic under this lock").objects.get(key).cloned()
    }

    pub fn len(&self) -> usize {
        self.state.read().expect("no panic under this lock").objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest state. Its revision is that of the resource's last change; the caller may know a later one
    /// up to which nothing changed.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.state.read().expect("no panic under this lock");
        Snapshot { index: Some(state.index.clone()), ..Snapshot::new(state.objects.clone(), state.revision, state.odd) }
    }

    /// The state as it was at `revision`.
    pub fn snapshot_at(&self, revision: i64) -> Result<Snapshot, TooOld> {
        let state = self.state.read().expect("no panic under this lock");
        if revision < state.horizon {
            return Err(TooOld);
        }
        let mut objects = state.objects.clone();
        let mut odd = state.odd;
        let mut changed = Vec::new();
        for (_, event) in state.events.iter().rev().take_while(|(_, e)| e.revision > revision) {
            match &event.prev {
                Some(prev) => {
                    odd.add(prev);
                    objects.insert(event.object.key.clone(), prev.clone())
                }
                None => objects.remove(&*event.object.key),
            };
            changed.push(event.object.key.clone());
        }
        Ok(Snapshot { index: Some(state.index.clone()), changed, ..Snapshot::new(objects, revision, odd) })
    }

    /// Applies changes in order of their revisions, all or none visible: a lease that expires deletes many
    /// keys in one revision, and no reader may see half of a revision. What was applied before is skipped: a
    /// list and a watch may overlap. Watchers are woken.
    pub fn apply(&self, changes: impl IntoIterator<Item = impl Into<Change>>) {
        let events = self.change(changes);
        self.watcher_groups.deliver(&events, self.indexed_field);
        self.watcher_groups.wake_all();
    }

    /// The same, but large watcher_groups of watchers are not woken for each change. If some are still to be woken: when.
    pub(super) fn apply_paced(
        &self,
        changes: impl IntoIterator<Item = impl Into<Change>>,
    ) -> Option<tokio::time::Instant> {
        let events = self.change(changes);
        self.watcher_groups.deliver(&events, self.indexed_field);
        self.watcher_groups.wake(tokio::time::Instant::now())
    }

    /// Wakes the watchers whose time has come; answers when that of others comes.
    pub(super) fn wake_due(&self, now: tokio::time::Instant) -> Option<tokio::time::Instant> {
        self.watcher_groups.wake(now)
    }

    pub(super) fn wake_all(&self) {
        self.watcher_groups.wake_all();
    }

    fn change(&self, changes: impl IntoIterator<Item = impl Into<Change>>) -> Vec<Arc<Event>> {
        let mut state = self.state.write().expect("no panic under this lock");
        let events = changes.into_iter().filter_map(|change| state.apply(change.into())).collect();
        self.changes.fetch_add(1, Ordering::Release);
        events
    }

    /// Drops events that are over age: called now and then, so that an idle resource shrinks.
    pub fn trim(&self) {
        self.state.write().expect("no panic under this lock").trim();
    }

    /// Drops encodings that nobody asked for since the last call.
    pub fn drop_unused_forms(&self) {
        // On a snapshot, so that nobody waits.
        for object in self.snapshot().objects.values() {
            object.drop_unused_forms();
        }
    }

    /// Watches the changes after `revision`.
    pub fn watch(self: &Arc<Self>, interest: impl Into<Interest>, revision: i64) -> Result<Watcher, TooOld> {
        let interest = interest.into();
        // Lock order: state, then watcher_groups. Under the read lock nothing is applied; what was applied but is not
        // delivered yet is in the backlog, and its delivery is skipped by its sequence number.
        let state = self.state.read().expect("no panic under this lock");
        let from = state.first_after(revision)?;
        let next = state.first + state.events.len() as u64;
        let source = if interest.is_everything() {
            self.watcher_groups.join_history();
            self.count_initial(next - from);
            Source::History(from)
        } else {
            let covered = state.since(from).filter(|e| interest.covers(e, self.indexed_field));
            let backlog: VecDeque<Arc<Event>> = covered.cloned().collect();
            self.count_initial(backlog.len() as u64);
            let queue = Arc::new(Queue::new(backlog, next, interest.filter));
            self.watcher_groups.join(&interest.scopes, &queue);
            Source::Queue { queue, scopes: interest.scopes }
        };
        Ok(Watcher { cache: self.clone(), source })
    }

    /// A watch begins with so many events.
    pub fn count_initial(&self, events: u64) {
        self.watcher_groups.initial.fetch_add(events, Ordering::Relaxed);
    }

    /// A snapshot and a watch of exactly the changes after it.
    pub fn list_and_watch(self: &Arc<Self>, interest: impl Into<Interest>) -> (Snapshot, Watcher) {
        let interest = interest.into();
        loop {
            let snapshot = self.snapshot();
            if let Ok(watcher) = self.watch(interest.clone(), snapshot.revision) {
                return (snapshot, watcher);
            }
        }
    }
}

impl CacheState {
    /// Puts an object in the place of itself.
    fn exchange(&mut self, object: Arc<CachedObject>) {
        let prev = self.objects.insert(object.key.clone(), object.clone());
        self.index.follow(&object.key, prev.as_deref(), Some(&object));
        self.odd.add(&object);
        self.object_bytes += object.weight();
        self.stored_bytes += u64::from(object.stored);
        if let Some(prev) = &prev {
            self.odd.remove(prev);
            self.object_bytes -= prev.weight();
            self.stored_bytes -= u64::from(prev.stored);
        }
    }

    fn apply(&mut self, change: Change) -> Option<Arc<Event>> {
        self.received += 1;
        let (key, revision) = match &change {
            Change::Put(_, object) => (&object.key, object.revision),
            Change::Delete(key, revision) => (key, *revision),
        };
        let place = self.objects.get_key_value(&**key);
        let known = place.map(|(_, object)| object.revision);
        let seen = match change {
            Change::Put(..) => known.is_some_and(|known| known >= revision),
            Change::Delete(..) => known.is_none(),
        };
        // A deletion of what the cache does not have has nothing to tell.
        if revision < self.revision || (revision == self.revision && seen) || (known.is_none() && change.is_delete()) {
            return None;
        }
        let (kind, object, prev) = match change {
            Change::Put(kind, mut object) => {
                // The text of a key is there once, however often its object changes.
                if let Some((key, _)) = place {
                    object.key = key.clone();
                }
                let object = Arc::new(object);
                let prev = self.objects.insert(object.key.clone(), object.clone());
                self.index.follow(&object.key, prev.as_deref(), Some(&object));
                (kind, object, prev)
            }
            Change::Delete(key, revision) => {
                let prev = self.objects.remove(&*key)?;
                self.index.follow(&key, Some(&prev), None);
                (EventKind::Deleted, Arc::new(prev.deleted_at(revision)), Some(prev))
            }
        };
        if kind != EventKind::Deleted {
            self.odd.add(&object);
            self.undecodable += u64::from(object.is_undecodable());
            self.object_bytes += object.weight();
            self.stored_bytes += u64::from(object.stored);
        }
        if let Some(prev) = &prev {
            self.odd.remove(prev);
            self.object_bytes -= prev.weight();
            self.stored_bytes -= u64::from(prev.stored);
        }
        self.revision = revision;
        let sequence = self.first + self.events.len() as u64;
        let event = Arc::new(Event { sequence, kind, revision, object, prev });
        self.push(event.clone());
        Some(event)
    }

    fn push(&mut self, event: Arc<Event>) {
        self.bytes += kept_for(&event);
        Arc::make_mut(&mut self.events).push_back((Instant::now(), event));
        self.trim();
    }

    fn trim(&mut self) {
        self.trim_at(Instant::now());
    }

    fn trim_at(&mut self, now: Instant) {
        while let Some((at, event)) = self.events.front() {
            let over = self.bytes > WINDOW_BYTES || self.events.len() > WINDOW_EVENTS;
            let age = now.duration_since(*at);
            let is_old = age >= WINDOW_AGE || (age >= RESUME_AGE && self.bytes > OLD_BYTES);
            let is_due = is_old && self.events.len() > WINDOW_MIN_EVENTS;
            if !over && !is_due {
                break;
            }
            self.bytes -= kept_for(event);
            self.horizon = event.revision;
            self.first += 1;
            Arc::make_mut(&mut self.events).pop_front();
        }
        if self.events.len() < self.events.capacity() / 4 {
            let events = Arc::make_mut(&mut self.events);
            events.shrink_to(2 * events.len());
        }
    }

    /// Sequence number of the first event after `revision`.
    fn first_after(&self, revision: i64) -> Result<u64, TooOld> {
        if revision < self.horizon {
            return Err(TooOld);
        }
        Ok(self.first + self.events.partition_point(|(_, e)| e.revision <= revision) as u64)
    }

    pub fn since(&self, seq: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().skip(seq.saturating_sub(self.first) as usize).map(|(_, e)| e)
    }
}

/// What an event keeps in memory that nothing else does: the object before, and the last state of one that is gone.
fn kept_for(event: &Event) -> usize {
    let last = if event.kind == EventKind::Deleted { event.object.weight() } else { 0 };
    EVENT_BYTES + last + event.prev.as_ref().map_or(0, |prev| prev.weight())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Rendered;

    #[test]
    fn what_is_kept_of_the_past_shrinks_when_it_is_quiet() {
        let cache = ResourceCache::new(None);
        let rendered = || Rendered { json: vec![b' '; 8 << 10], ..Rendered::default() };
        let put = |revision: i64| {
            let kind = if revision <= 1000 { EventKind::Added } else { EventKind::Modified };
            let key = format!("n/{}", revision % 1000);
            (kind, CachedObject::new(key.as_str().into(), revision, kind, rendered()))
        };
        cache.apply((1..=1000).map(put));
        let created = cache.stats();
        assert_eq!((created.events, created.bytes), (1000, 1000 * EVENT_BYTES), "the cache has them anyway");
        cache.apply((1001..=20_000).map(put));
        let changed = cache.stats();
        // Frames of changes are three letters longer.
        assert_eq!(changed.object_bytes, created.object_bytes + 3 * 1000);
        assert!(changed.bytes <= WINDOW_BYTES && changed.bytes > WINDOW_BYTES - (16 << 10), "{changed:?}");
        let mut state = cache.state.write().unwrap();
        state.trim_at(Instant::now() + RESUME_AGE);
        assert!(state.bytes <= OLD_BYTES && state.events.len() > WINDOW_MIN_EVENTS, "{}", state.bytes);
        assert!(state.events.capacity() < 1000, "{}", state.events.capacity());
    }

    #[test]
    fn the_last_events_stay_however_old_they_are() {
        let cache = ResourceCache::new(None);
        let put = |revision: i64| {
            (EventKind::Modified, CachedObject::new("a".into(), revision, EventKind::Modified, Rendered::default()))
        };
        cache.apply((1..=150).map(put));
        let mut state = cache.state.write().unwrap();
        let now = Instant::now();
        state.trim_at(now + WINDOW_AGE / 2);
        assert_eq!((state.events.len(), state.horizon), (150, 0));
        state.trim_at(now + 100 * WINDOW_AGE);
        assert_eq!((state.events.len(), state.horizon), (WINDOW_MIN_EVENTS, 50));
        state.bytes += WINDOW_BYTES;
        state.trim_at(now);
        assert!(state.events.is_empty(), "unless they are too large");
    }
}
