//! How much of the past a local engine keeps, and the time that it counts in.

use kubelith_meta::Clock;
use std::time::Duration;

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

/// Milliseconds since 1970: deadlines and the ages of history are kept in them.
pub(crate) fn now_millis(clock: &dyn Clock) -> u64 {
    let now = clock.now();
    (now.unix_seconds().max(0) as u64).saturating_mul(1000).saturating_add(u64::from(now.subsec_nanos()) / 1_000_000)
}
