//! The time as authenticators see it, so that expiry is tested without waiting.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync {
    /// What the calendar says: for expiry dates.
    fn now(&self) -> SystemTime;

    /// What never steps back: for cache lifetimes.
    fn instant(&self) -> Instant;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }
}

/// Seconds since 1970; times before it count as 0.
pub fn unix_seconds(t: SystemTime) -> i64 {
    t.duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

pub fn from_unix_seconds(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// A clock that stands still until told otherwise.
    #[derive(Debug)]
    pub struct ManualClock {
        start: i64,
        start_instant: Instant,
        now: AtomicI64,
    }

    impl ManualClock {
        pub fn at(unix_seconds: i64) -> ManualClock {
            ManualClock { start: unix_seconds, start_instant: Instant::now(), now: AtomicI64::new(unix_seconds) }
        }

        pub fn advance(&self, seconds: i64) {
            self.now.fetch_add(seconds, Ordering::SeqCst);
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> SystemTime {
            from_unix_seconds(self.now.load(Ordering::SeqCst))
        }

        fn instant(&self) -> Instant {
            let passed = self.now.load(Ordering::SeqCst) - self.start;
            self.start_instant + Duration::from_secs(u64::try_from(passed).unwrap_or(0))
        }
    }
}
