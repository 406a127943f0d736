//! A queue of keys. A key waits in it once, however often it was added; one that is added while a worker has it comes
//! again when that worker is done, so that no two workers ever have the same key.

use kubelith_meta::Str;
use kubelith_observe::metrics::workqueue::QueueMetrics;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Pauses between attempts at a key that fails: doubled each time.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub most: Duration,
}

impl Default for Backoff {
    /// As client-go's default queue.
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(5), most: Duration::from_secs(1000) }
    }
}

impl Backoff {
    fn pause(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(30)).min(self.most)
    }
}

/// Clones are the same queue.
#[derive(Clone, Default)]
pub struct Queue {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<QueueState>,
    /// Rings when `ready` or `later` changed.
    changed: Notify,
    backoff: Backoff,
    metrics: Option<QueueMetrics>,
}

#[derive(Default)]
struct QueueState {
    ready: VecDeque<Str>,
    /// In `ready`, or to go there when its worker is done; since when.
    wanted: HashMap<Str, Instant>,
    /// With a worker, since when.
    taken: HashMap<Str, Instant>,
    /// Keys whose time has not come, by it; a key is in here once.
    later: BTreeSet<(Instant, Str)>,
    /// The time of each key in `later`.
    due: HashMap<Str, Instant>,
    failures: HashMap<Str, u32>,
}

impl QueueState {
    /// False if the key is wanted already.
    fn add(&mut self, key: Str, now: Instant) -> bool {
        if self.wanted.contains_key(&key) {
            return false;
        }
        self.wanted.insert(key.clone(), now);
        if !self.taken.contains_key(&key) {
            self.ready.push_back(key);
        }
        true
    }

    /// The key comes at this time, or earlier if that was said before.
    fn add_at(&mut self, key: Str, when: Instant) {
        match self.due.get(&key) {
            Some(before) if *before <= when => return,
            Some(before) => self.later.remove(&(*before, key.clone())),
            None => false,
        };
        self.due.insert(key.clone(), when);
        self.later.insert((when, key));
    }

    /// Moves keys whose time has come; answers how many, and when the next one's comes.
    fn wake(&mut self, now: Instant) -> (u64, Option<Instant>) {
        let mut moved = 0;
        while let Some(when) = self.later.first().map(|(when, _)| *when) {
            if when > now {
                return (moved, Some(when));
            }
            if let Some((_, key)) = self.later.pop_first() {
                self.due.remove(&key);
                moved += u64::from(self.add(key, now));
            }
        }
        (moved, None)
    }
}

impl Queue {
    pub fn new(backoff: Backoff, metrics: Option<QueueMetrics>) -> Queue {
        Queue { inner: Arc::new(Inner { backoff, metrics, ..Inner::default() }) }
    }

    pub fn add(&self, key: impl Into<Str>) {
        let mut state = self.state();
        let added = state.add(key.into(), Instant::now());
        self.measure(&state, u64::from(added));
        drop(state);
        self.inner.changed.notify_one();
    }

    /// Adds the key when the time is over; earlier if an earlier time was asked for and has not come yet.
    pub fn add_after(&self, key: impl Into<Str>, pause: Duration) {
        self.state().add_at(key.into(), Instant::now() + pause);
        self.inner.changed.notify_one();
    }

    /// The time has come for all keys: a clock was turned. Those with a worker come again, as it may have looked before that.
    pub fn hurry(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        let later = std::mem::take(&mut state.later);
        state.due.clear();
        let taken: Vec<Str> = state.taken.keys().cloned().collect();
        let mut added = 0;
        for key in later.into_iter().map(|(_, key)| key).chain(taken) {
            added += u64::from(state.add(key, now));
        }
        self.measure(&state, added);
        drop(state);
        self.inner.changed.notify_one();
    }

    /// Adds the key after a pause that grows with each failure since the key was last forgotten.
    pub fn retry(&self, key: impl Into<Str>) {
        let key = key.into();
        let mut state = self.state();
        let failures = state.failures.entry(key.clone()).or_default();
        let pause = self.inner.backoff.pause(*failures);
        *failures = failures.saturating_add(1);
        state.add_at(key, Instant::now() + pause);
        drop(state);
        if let Some(metrics) = &self.inner.metrics {
            metrics.retries.inc();
        }
        self.inner.changed.notify_one();
    }

    /// The key's failures are forgiven.
    pub fn forget(&self, key: &Str) {
        self.state().failures.remove(key);
    }

    /// Waits for a key. [`Queue::done`] must follow. Dropping the future takes nothing.
    pub async fn next(&self) -> Str {
        loop {
            let changed = self.inner.changed.notified();
            let (key, wake) = {
                let (mut state, now) = (self.state(), Instant::now());
                let (moved, wake) = state.wake(now);
                let key = state.ready.pop_front();
                if let Some(key) = &key {
                    let since = state.wanted.remove(key).unwrap_or(now);
                    state.taken.insert(key.clone(), now);
                    if let Some(metrics) = &self.inner.metrics {
                        metrics.waited.observe((now - since).as_secs_f64());
                    }
                    // One notification wakes one worker; there may be work for more.
                    if !state.ready.is_empty() {
                        self.inner.changed.notify_one();
                    }
                }
                self.measure(&state, moved);
                (key, wake)
            };
            if let Some(key) = key {
                return key;
            }
            match wake {
                Some(when) => {
                    let _ = tokio::time::timeout_at(when, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// The worker is done with the key.
    pub fn done(&self, key: &Str) {
        let mut state = self.state();
        if let (Some(since), Some(metrics)) = (state.taken.remove(key), &self.inner.metrics) {
            metrics.worked.observe(since.elapsed().as_secs_f64());
        }
        let again = state.wanted.contains_key(key);
        if again {
            state.ready.push_back(key.clone());
        }
        self.measure(&state, 0);
        drop(state);
        if again {
            self.inner.changed.notify_one();
        }
    }

    fn measure(&self, state: &QueueState, added: u64) {
        let Some(metrics) = &self.inner.metrics else { return };
        metrics.adds.inc_by(added);
        metrics.depth.set(state.ready.len() as i64);
        let running = || state.taken.values().map(|since| since.elapsed().as_secs_f64());
        metrics.unfinished.set(running().sum());
        metrics.longest.set(running().fold(0.0, f64::max));
    }

    /// Keys that wait for a worker now.
    pub fn len(&self) -> usize {
        self.state().ready.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.inner.state.lock().expect("no panic under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_turned_wakes_all_keys() {
        let queue = Queue::default();
        queue.add("now");
        let now = queue.next().await;
        queue.add_after("later", Duration::from_secs(3600));
        assert!(queue.next().now_or_never().is_none());
        queue.hurry();
        assert_eq!(queue.next().now_or_never().unwrap(), "later");
        assert!(queue.next().now_or_never().is_none(), "the other is with a worker");
        queue.done(&now);
        assert_eq!(queue.next().now_or_never().unwrap(), "now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_is_never_with_two_workers() {
        let queue = Queue::default();
        for key in ["a", "b", "a"] {
            queue.add(key);
        }
        assert_eq!(queue.len(), 2);
        let a = queue.next().await;
        assert_eq!(a, "a");
        queue.add("a");
        assert_eq!(queue.next().await, "b");
        assert!(queue.next().now_or_never().is_none(), "a is with a worker");
        queue.done(&a);
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_forgiven() {
        let queue = Queue::new(Backoff { first: Duration::from_secs(1), most: Duration::from_secs(3) }, None);
        let key = Str::from("a");
        let start = Instant::now();
        let mut pauses = Vec::new();
        for round in 0..5 {
            if round == 4 {
                queue.forget(&key);
            }
            let before = start.elapsed();
            queue.retry(key.clone());
            queue.next().await;
            queue.done(&key);
            pauses.push((start.elapsed() - before).as_millis());
        }
        assert_eq!(pauses, [1000, 2000, 3000, 3000, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_time_cuts_the_wait_for_a_later_one() {
        let queue = Queue::default();
        queue.add_after("late", Duration::from_secs(60));
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await }
        });
        tokio::task::yield_now().await;
        queue.add_after("early", Duration::from_secs(1));
        assert_eq!(waiting.await.unwrap(), "early");
        assert_eq!(queue.next().await, "late");
    }

    /// A controller that asks again and again must not be woken once for each time it asked.
    #[tokio::test(start_paused = true)]
    async fn the_times_of_one_key_become_the_earliest() {
        let queue = Queue::default();
        let start = Instant::now();
        for seconds in [30, 10, 20, 10, 60] {
            queue.add_after("a", Duration::from_secs(seconds));
        }
        let a = queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 10);
        queue.done(&a);
        assert!(queue.next().now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(queue.next().now_or_never().is_none(), "the other times are gone");
        queue.add_after("a", Duration::from_secs(1));
        assert_eq!(queue.next().await, "a", "a new time counts again");
    }
}
