//! Where the time comes from. Everything that needs it is handed a clock, so that tests can turn it.

use super::{Duration, Time};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::SystemTime;

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;

    /// Where turns of a clock that stands still are told; `None` for one that goes by itself.
    fn turns(&self) -> Option<&Turns> {
        None
    }
}

/// The time of the machine: for logs, metrics, traces and HTTP dates, which tell when something really happened. What is written into objects, and what
/// expires by them, takes its time from a [`Clock`].
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
pub fn wall_time() -> SystemTime {
    SystemTime::now()
}

/// Seconds since 1970, by [`wall_time`].
pub fn unix_time() -> std::time::Duration {
    wall_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        wall_time().into()
    }
}

/// Counts the turns of a clock, and wakes those who wait for one.
#[derive(Debug, Default)]
pub struct Turns {
    count: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Turns {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn ring(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Waits until a clock has been turned by hand more often than `seen`, which begins with 0; for ever with one that goes by itself.
/// Who waits for a time waits for this as well, and looks at the clock again.
pub async fn turned(clock: &dyn Clock, seen: &mut u64) {
    let Some(turns) = clock.turns() else { return std::future::pending().await };
    std::future::poll_fn(|cx| {
        let mut waiting = turns.waiting();
        let count = turns.count.load(Ordering::Acquire);
        if count != *seen {
            *seen = count;
            return Poll::Ready(());
        }
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// A clock that stands still until it is turned.
#[derive(Debug)]
pub struct TestClock {
    now: Mutex<Time>,
    turns: Turns,
}

impl TestClock {
    pub fn new(now: Time) -> TestClock {
        TestClock { now: Mutex::new(now), turns: Turns::default() }
    }

    pub fn set(&self, now: Time) {
        *self.lock() = now;
        self.turns.ring();
    }

    pub fn advance(&self, by: Duration) {
        {
            let mut now = self.lock();
            *now = *now + by;
        }
        self.turns.ring();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Time> {
        // A time is never half written: what a panicking holder left behind is good.
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        *self.lock()
    }

    fn turns(&self) -> Option<&Turns> {
        Some(&self.turns)
    }
}
