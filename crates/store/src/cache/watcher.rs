//! Those who watch a resource: their places in the history or queues of their own, and when they are woken.

use super::object::Event;
use super::resource::{ResourceCache, Scope, TooOld};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Events a filtered watcher may be behind before it is ended; a stuck client holds at most this many.
const QUEUE_EVENTS: usize = 10_000;
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
        scope: Scope,
    },
}

/// When a crowd is woken. To wake many takes a while, and who was woken for each of the events that come meanwhile would
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
pub(super) struct Crowds {
    /// Rings for watchers of everything.
    changed: Notify,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// How many watch everything, and whether there is something that they were not woken for.
    everything: usize,
    stirred: bool,
    pace: Pace,
    scoped: HashMap<Scope, Crowd>,
    /// Scopes with something that was not woken for.
    stirring: Vec<Scope>,
}

/// Watchers of the same scope.
#[derive(Debug, Default)]
struct Crowd {
    queues: Vec<Arc<Queue>>,
    stirred: bool,
    pace: Pace,
}

impl Crowds {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under this lock")
    }

    pub fn join_history(&self) {
        self.lock().everything += 1;
    }

    pub fn join(&self, scope: &Scope, queue: Arc<Queue>) {
        self.lock().scoped.entry(scope.clone()).or_default().queues.push(queue);
    }

    fn leave(&self, source: &Source) {
        let mut inner = self.lock();
        let Source::Queue { queue, scope } = source else {
            inner.everything -= 1;
            return;
        };
        if let Some(crowd) = inner.scoped.get_mut(scope) {
            if let Some(at) = crowd.queues.iter().position(|q| Arc::ptr_eq(q, queue)) {
                crowd.queues.swap_remove(at);
            }
            if crowd.queues.is_empty() {
                inner.scoped.remove(scope);
            }
        }
    }

    /// Puts events where they are seen; nobody is woken yet.
    pub fn deliver<'e, S: Iterator<Item = Scope>>(&self, events: &'e [Arc<Event>], scopes: impl Fn(&'e Event) -> S) {
        let mut inner = self.lock();
        inner.stirred |= !events.is_empty();
        if inner.scoped.is_empty() {
            return;
        }
        let Inner { scoped, stirring, .. } = &mut *inner;
        for event in events {
            for scope in scopes(event) {
                let Some(crowd) = scoped.get_mut(&scope) else { continue };
                for queue in &crowd.queues {
                    queue.push(event.clone());
                }
                if !std::mem::replace(&mut crowd.stirred, true) {
                    stirring.push(scope);
                }
            }
        }
    }

    /// Wakes the crowds whose time has come; answers when that of another comes.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let mut inner = self.lock();
        let Inner { everything, stirred, pace, scoped, stirring, .. } = &mut *inner;
        if *stirred && pace.wakes_now(*everything, now) {
            *stirred = false;
            self.changed.notify_waiters();
        }
        let mut due = pace.due.filter(|_| *stirred);
        stirring.retain(|scope| {
            let Some(crowd) = scoped.get_mut(scope).filter(|crowd| crowd.stirred) else { return false };
            if crowd.pace.wakes_now(crowd.queues.len(), now) {
                crowd.wake();
            }
            due = due.into_iter().chain(crowd.pace.due).min();
            crowd.stirred
        });
        due
    }

    /// Wakes everybody who has something to hear.
    pub fn wake_all(&self) {
        let mut inner = self.lock();
        inner.stirred = false;
        let Inner { scoped, stirring, .. } = &mut *inner;
        for scope in stirring.drain(..) {
            scoped.get_mut(&scope).into_iter().for_each(Crowd::wake);
        }
        self.changed.notify_waiters();
    }

    /// Tells all that what they followed is no more.
    pub fn disperse(&self) {
        for queue in self.lock().scoped.values().flat_map(|crowd| &crowd.queues) {
            queue.overflow();
        }
        self.changed.notify_waiters();
    }
}

impl Crowd {
    fn wake(&mut self) {
        self.stirred = false;
        for queue in &self.queues {
            queue.wake();
        }
    }
}

/// The events of one watcher.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    /// Events before this sequence number are in `events` or were taken.
    next: u64,
    overflown: bool,
}

impl Queue {
    pub fn new(events: VecDeque<Arc<Event>>, next: u64) -> Queue {
        Queue { state: Mutex::new(QueueState { events, next, overflown: false }), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("no panic under this lock")
    }

    fn push(&self, event: Arc<Event>) {
        let mut q = self.lock();
        if event.sequence < q.next {
            return; // was in the backlog
        }
        q.next = event.sequence + 1;
        if q.events.len() >= QUEUE_EVENTS {
            q.overflown = true;
            q.events = VecDeque::new();
        }
        if !q.overflown {
            q.events.push_back(event);
        }
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
                    let changed = cache.crowds.changed.notified();
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
        self.cache.crowds.leave(&self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_crowds_are_woken_together() {
        let start = Instant::now();
        let after = |millis: u64| start + Duration::from_millis(millis);
        // Watchers; when something happens, in milliseconds; whether they are woken then, and when they are if not.
        let cases: [(usize, &[(u64, bool, Option<u64>)]); 3] = [
            (10, &[(0, true, None), (0, true, None), (1, true, None)]),
            (1000, &[(0, true, None), (1, false, Some(5)), (3, false, Some(5)), (5, true, None), (6, false, Some(10))]),
            (1000, &[(0, true, None), (5, true, None), (100, true, None), (104, false, Some(105))]),
        ];
        for (watchers, steps) in cases {
            let mut pace = Pace::default();
            for (at, wakes, due) in steps {
                assert_eq!(pace.wakes_now(watchers, after(*at)), *wakes, "{watchers} at {at}");
                assert_eq!(pace.due, due.map(after), "{watchers} at {at}");
            }
        }
    }
}
