//! Where the time comes from. Everything that needs it is handed a clock, so that tests can turn it.

use super::{Duration, Time};
use std::sync::Mutex;
use std::time::SystemTime;

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        SystemTime::now().into()
    }
}

/// A clock that stands still until it is turned.
#[derive(Debug)]
pub struct TestClock(Mutex<Time>);

impl TestClock {
    pub fn new(now: Time) -> TestClock {
        TestClock(Mutex::new(now))
    }

    pub fn set(&self, now: Time) {
        *self.lock() = now;
    }

    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        *now = *now + by;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Time> {
        // A time is never half written: what a panicking holder left behind is good.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        *self.lock()
    }
}
