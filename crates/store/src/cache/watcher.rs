//! Those who watch a resource: their places in the history or queues of their own, and when they are woken.

use super::object::Event;
use super::resource::{ResourceCache, Scope, TooOld};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Events a filtered watcher may be behind before it is ended; a stuck client holds at most this many.
pub(super) const QUEUE_EVENTS: usize = 10_000;
/// Events that an empty queue keeps space for.
const KEPT_EVENTS: usize = 8;
/// Events handed to a watcher at a time.
const BATCH: usize = 256;
/// What it takes to wake a watcher and send it something, roughly.
const WAKING: Duration = Duration::from_micros(5);
/// For less than this nobody waits.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// A watcher's place. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watcher {
    pub(super) cache: Arc<ResourceCache>,
    pub(super) source: Source,
}

#[derive(Debug)]
pub(super) enum Source {
    /// The next sequence number to read from the shared history.
    History(u64),
    Queue {
        queue: Arc<Queue>,
        scopes: Vec<Scope>,
    },
}

/// Whether a watcher wants to see an event. Asked by the feed, so it does not wait and takes no lock.
type Filter = Arc<dyn Fn(&Event) -> bool + Send + Sync>;

/// Which events a watcher is woken for: those in one of the scopes that pass the filter. There may be more than it wants.
#[derive(Clone)]
pub struct Interest {
    pub(super) scopes: Vec<Scope>,
    pub(super) filter: Option<Filter>,
}

impl From<Scope> for Interest {
    fn from(scope: Scope) -> Interest {
        Interest { scopes: vec![scope], filter: None }
    }
}

impl Interest {
    pub fn in_any(scopes: Vec<Scope>) -> Interest {
        Interest { scopes, filter: None }
    }

    pub fn filtered(self, filter: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Interest {
        Interest { filter: Some(Arc::new(filter)), ..self }
    }

    pub(super) fn is_everything(&self) -> bool {
        self.filter.is_none() && self.scopes.contains(&Scope::All)
    }

    pub(super) fn covers(&self, event: &Event, indexed_field: Option<usize>) -> bool {
        let mut is_within = false;
        for_scopes(event, indexed_field, Labels::Seen, |scope| is_within |= self.scopes.contains(&scope));
        is_within && self.filter.as_ref().is_none_or(|filter| filter(event))
    }
}

/// Whether somebody follows labels. If nobody does, those of an event are not looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    Seen,
    PassedOver,
}

/// The scopes an event belongs to, before and after the change. One may come twice.
fn for_scopes(event: &Event, indexed_field: Option<usize>, labels: Labels, mut tell: impl FnMut(Scope)) {
    let key = &event.object.key;
    tell(Scope::All);
    tell(Scope::Key(key.as_ref().into()));
    let namespace = key.split_once('/').map(|(namespace, _)| namespace);
    if let Some(namespace) = namespace {
        tell(Scope::Namespace(namespace.into()));
    }
    let before = event.prev.as_deref();
    if let Some(field) = indexed_field {
        let now = event.object.fields.get(field);
        let before = before.and_then(|before| before.fields.get(field)).filter(|before| Some(*before) != now);
        now.into_iter().chain(before).for_each(|value| tell(Scope::Indexed(value.clone())));
    }
    if labels == Labels::PassedOver {
        return;
    }
    let now = &event.object.labels;
    let before = before.map(|before| &before.labels).filter(|before| *before != now);
    for (key, value) in now.iter().chain(before.into_iter().flatten()) {
        for namespace in namespace.into_iter().chain([""]) {
            tell(Scope::Label { namespace: namespace.into(), key: key.clone(), value: value.clone() });
        }
    }
}

/// When a group is woken. To wake many takes a while, and who was woken for each of the events that come meanwhile would
/// pay for each the full price: they are told of together. After a silence as long as that, the first event wakes at once;
/// a few watchers are always woken at once.
#[derive(Debug, Default)]
struct Pace {
    woken: Option<Instant>,
    /// When those who have not heard of everything are to be woken.
    due: Option<Instant>,
}

impl Pace {
    /// There is something to hear for so many: whether to wake them now.
    fn wakes_now(&mut self, watchers: usize, now: Instant) -> bool {
        let pause = WAKING.saturating_mul(watchers.try_into().unwrap_or(u32::MAX));
        let at = match self.woken {
            Some(woken) if pause >= SHORTEST_PAUSE => woken + pause,
            _ => now,
        };
        let is_time = at <= now;
        (self.woken, self.due) = if is_time { (Some(now), None) } else { (self.woken, Some(at)) };
        is_time
    }
}

/// The watchers of a resource, by what they want to see.
#[derive(Debug, Default)]
pub(super) struct WatcherGroups {
    /// Rings for watchers of everything.
    changed: Notify,
    inner: Mutex<Inner>,
    /// See [`super::resource::CacheStats`].
    pub(super) initial: AtomicU64,
    pub(super) terminated: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// How many watch everything, and whether there is something that they were not woken for.
    everything: usize,
    has_pending: bool,
    pace: Pace,
    scoped: HashMap<Scope, WatcherGroup>,
    /// How many of the scopes are labels.
    labels: usize,
    /// Scopes with something that was not woken for.
    pending_scopes: Vec<Scope>,
}

/// Watchers of the same scope.
#[derive(Debug, Default)]
struct WatcherGroup {
    queues: Vec<Arc<Queue>>,
    has_pending: bool,
    pace: Pace,
}

impl WatcherGroups {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under this lock")
    }

    pub fn join_history(&self) {
        self.lock().everything += 1;
    }

    pub fn join(&self, scopes: &[Scope], queue: &Arc<Queue>) {
        let mut inner = self.lock();
        for scope in scopes {
            inner.labels += usize::from(matches!(scope, Scope::Label { .. }));
            inner.scoped.entry(scope.clone()).or_default().queues.push(queue.clone());
        }
    }

    fn leave(&self, source: &Source) {
        let mut inner = self.lock();
        let Source::Queue { queue, scopes } = source else {
            inner.everything -= 1;
            return;
        };
        for scope in scopes {
            inner.labels -= usize::from(matches!(scope, Scope::Label { .. }));
            let Some(group) = inner.scoped.get_mut(scope) else { continue };
            if let Some(at) = group.queues.iter().position(|q| Arc::ptr_eq(q, queue)) {
                group.queues.swap_remove(at);
            }
            if group.queues.is_empty() {
                inner.scoped.remove(scope);
            }
        }
    }

    /// Puts events where they are seen; nobody is woken yet.
    pub fn deliver(&self, events: &[Arc<Event>], indexed_field: Option<usize>) {
        let mut inner = self.lock();
        inner.has_pending |= !events.is_empty();
        if inner.scoped.is_empty() {
            return;
        }
        let Inner { scoped, pending_scopes, labels, .. } = &mut *inner;
        let labels = if *labels > 0 { Labels::Seen } else { Labels::PassedOver };
        for event in events {
            for_scopes(event, indexed_field, labels, |scope| {
                let Some(group) = scoped.get_mut(&scope) else { return };
                let mut news = false;
                for queue in &group.queues {
                    news |= queue.push(event, &self.terminated);
                }
                if news && !std::mem::replace(&mut group.has_pending, true) {
                    pending_scopes.push(scope);
                }
            });
        }
    }

    /// Wakes the groups that are due; returns when the next one is.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let mut inner = self.lock();
        let Inner { everything, has_pending, pace, scoped, pending_scopes, .. } = &mut *inner;
        if *has_pending && pace.wakes_now(*everything, now) {
            *has_pending = false;
            self.changed.notify_waiters();
        }
        let mut due = pace.due.filter(|_| *has_pending);
        pending_scopes.retain(|scope| {
            let Some(group) = scoped.get_mut(scope).filter(|group| group.has_pending) else { return false };
            if group.pace.wakes_now(group.queues.len(), now) {
                group.wake();
            }
            due = due.into_iter().chain(group.pace.due).min();
            group.has_pending
        });
        due
    }

    /// Wakes everybody who has something to hear.
    pub fn wake_all(&self) {
        let mut inner = self.lock();
        inner.has_pending = false;
        let Inner { scoped, pending_scopes, .. } = &mut *inner;
        for scope in pending_scopes.drain(..) {
            scoped.get_mut(&scope).into_iter().for_each(WatcherGroup::wake);
        }
        self.changed.notify_waiters();
    }

    /// Tells all that what they followed is no more.
    pub fn overflow_all(&self) {
        for queue in self.lock().scoped.values().flat_map(|group| &group.queues) {
            queue.overflow();
        }
        self.changed.notify_waiters();
    }
}

impl WatcherGroup {
    fn wake(&mut self) {
        self.has_pending = false;
        for queue in &self.queues {
            queue.wake();
        }
    }
}

/// The events of one watcher.
pub(super) struct Queue {
    filter: Option<Filter>,
    state: Mutex<QueueState>,
    changed: Notify,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    /// Events before this sequence number are in `events` or were taken.
    next: u64,
    overflown: bool,
}

impl Queue {
    pub fn new(events: VecDeque<Arc<Event>>, next: u64, filter: Option<Filter>) -> Queue {
        Queue { filter, state: Mutex::new(QueueState { events, next, overflown: false }), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("no panic under this lock")
    }

    /// Whether there is something new for the watcher. If that is more than it can be behind, it is counted.
    fn push(&self, event: &Arc<Event>, terminated: &AtomicU64) -> bool {
        if self.filter.as_ref().is_some_and(|filter| !filter(event)) {
            return false;
        }
        let mut q = self.lock();
        if event.sequence < q.next {
            return false; // it was in the backlog, or came by another scope
        }
        q.next = event.sequence + 1;
        if q.events.len() >= QUEUE_EVENTS {
            q.overflown = true;
            q.events = VecDeque::new();
            terminated.fetch_add(1, Ordering::Relaxed);
        }
        if !q.overflown {
            q.events.push_back(event.clone());
        }
        true
    }

    /// Wakes the watcher, unless it has seen everything meanwhile.
    fn wake(&self) {
        let q = self.lock();
        let news = q.overflown || !q.events.is_empty();
        drop(q);
        if news {
            self.changed.notify_one();
        }
    }

    fn overflow(&self) {
        let mut q = self.lock();
        q.overflown = true;
        q.events = VecDeque::new();
        drop(q);
        self.changed.notify_one();
    }

    fn take(&self, out: &mut Vec<Arc<Event>>) -> Result<(), TooOld> {
        let mut q = self.lock();
        if q.overflown {
            return Err(TooOld);
        }
        let n = q.events.len().min(BATCH);
        out.extend(q.events.drain(..n));
        // Most watchers hear of little: what a crowd of events took does not stay with each.
        if q.events.is_empty() && q.events.capacity() > KEPT_EVENTS {
            q.events = VecDeque::new();
        }
        Ok(())
    }
}

impl Watcher {
    /// Waits for the next events and appends them to `out`, in order, none missing.
    ///
    /// Cancel safe: events are taken only when it returns.
    pub async fn next(&mut self, out: &mut Vec<Arc<Event>>) -> Result<(), TooOld> {
        let before = out.len();
        let Watcher { cache, source } = self;
        loop {
            source.take(cache, out)?;
            if out.len() > before {
                return Ok(());
            }
            match source {
                Source::History(_) => {
                    let changed = cache.watcher_groups.changed.notified();
                    tokio::pin!(changed);
                    changed.as_mut().enable(); // from here on a change is not missed
                    source.take(cache, out)?;
                    if out.len() == before {
                        changed.await;
                    }
                }
                // notify_one leaves a permit, so a push between the check and here is not missed.
                Source::Queue { queue, .. } => queue.changed.notified().await,
            }
        }
    }
}

impl Source {
    /// What there is by now.
    fn take(&mut self, cache: &ResourceCache, out: &mut Vec<Arc<Event>>) -> Result<(), TooOld> {
        match self {
            Source::History(next) => {
                let state = cache.state.read().expect("no panic under this lock");
                if *next < state.first {
                    if *next >= state.replaced {
                        cache.watcher_groups.terminated.fetch_add(1, Ordering::Relaxed);
                    }
                    return Err(TooOld);
                }
                let before = out.len();
                out.extend(state.since(*next).take(BATCH).cloned());
                *next += (out.len() - before) as u64;
                Ok(())
            }
            Source::Queue { queue, .. } => queue.take(out),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.cache.watcher_groups.leave(&self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_crowds_are_woken_together() {
        let start = Instant::now();
        let after = |millis: u64| start + Duration::from_millis(millis);
        // Watchers; when something happens and when they are woken for it, in milliseconds.
        let cases: [(usize, &[(u64, u64)]); 3] = [
            (10, &[(0, 0), (0, 0), (1, 1)]),
            (1000, &[(0, 0), (1, 5), (3, 5), (5, 5), (6, 10)]),
            (1000, &[(0, 0), (5, 5), (100, 100), (104, 105)]),
        ];
        for (watchers, steps) in cases {
            let mut pace = Pace::default();
            for (at, woken) in steps {
                assert_eq!(pace.wakes_now(watchers, after(*at)), at == woken, "{watchers} at {at}");
                assert_eq!(pace.due, (at != woken).then_some(after(*woken)), "{watchers} at {at}");
            }
        }
    }
}
