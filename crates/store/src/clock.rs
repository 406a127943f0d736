//! Wall-clock time behind a seam, so that expiry and history windows are tested without waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch.
    fn now_millis(&self) -> u64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn at(millis: u64) -> ManualClock {
        ManualClock(AtomicU64::new(millis))
    }

    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// How much of the past an engine keeps for watches and for reads at old revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Changes younger than this are kept: five minutes, as long as kube-apiserver leaves them in etcd.
    pub age: Duration,
    /// But never more than this many bytes of superseded values.
    pub bytes: u64,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        HistoryLimits { age: Duration::from_secs(300), bytes: 256 << 20 }
    }
}
