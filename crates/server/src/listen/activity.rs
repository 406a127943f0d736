//! What a connection is doing, so that idle and slow ones can be ended: one that sends a request's head byte
//! by byte, or nothing at all, holds its place for a bounded time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// From a request's first byte to the end of its headers; as the reference.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
/// Between requests; as the reference and as clients' own keep-alive.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// For a client to answer a GOAWAY once its requests are done.
const FAREWELL: Duration = Duration::from_secs(2);
/// After the last request, before a connection counts as silent.
const QUIET_AFTER: Duration = Duration::from_secs(2);
/// How often a busy connection is looked at.
const BUSY_CHECK: Duration = Duration::from_secs(16);

/// `Never` in `head_since`.
const NOT_BEGUN: u64 = u64::MAX;

#[derive(Debug)]
pub struct Activity {
    /// All times are milliseconds after this.
    epoch: Instant,
    requests: AtomicU32,
    idle_since: AtomicU64,
    /// When the first byte of a head that is not whole yet came.
    head_since: AtomicU64,
    /// Something was written that may not be on its way yet.
    unflushed: AtomicBool,
    /// Bytes between requests say nothing: they may be pings and window updates of HTTP/2.
    multiplexed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    LookAgainAt(Instant),
    /// Nothing has been asked for a while: say goodbye.
    Idle,
    /// Takes too long: drop it.
    TooSlow,
}

/// A request under way.
#[derive(Debug)]
pub struct ActiveRequest {
    activity: Arc<Activity>,
}

/// Of a connection that begins now.
impl Default for Activity {
    fn default() -> Activity {
        Activity {
            epoch: Instant::now(),
            requests: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(NOT_BEGUN),
            unflushed: AtomicBool::new(false),
            multiplexed: false,
        }
    }
}

impl Activity {
    /// Of an HTTP/2 connection.
    pub fn multiplexed() -> Activity {
        Activity { multiplexed: true, ..Activity::default() }
    }

    pub fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(NOT_BEGUN, Ordering::Release);
        ActiveRequest { activity: self.clone() }
    }

    /// What to do with the connection. `leaving_since`: when we said goodbye.
    pub fn judge(&self, leaving_since: Option<Instant>) -> Verdict {
        let now = Instant::now();
        if self.requests.load(Ordering::Acquire) > 0 {
            return Verdict::LookAgainAt(now + if leaving_since.is_some() { FAREWELL } else { BUSY_CHECK });
        }
        let idle_since = self.epoch + Duration::from_millis(self.idle_since.load(Ordering::Acquire));
        if let Some(leaving) = leaving_since {
            let end = leaving.max(idle_since) + FAREWELL;
            return if end <= now { Verdict::TooSlow } else { Verdict::LookAgainAt(end) };
        }
        let (end, verdict) = match self.head_since.load(Ordering::Acquire) {
            NOT_BEGUN => (idle_since + IDLE_TIMEOUT, Verdict::Idle),
            begun => (self.epoch + Duration::from_millis(begun) + HEAD_TIMEOUT, Verdict::TooSlow),
        };
        // A head may begin while we wait for the idle time to pass.
        if end <= now { verdict } else { Verdict::LookAgainAt(end.min(now + HEAD_TIMEOUT)) }
    }

    /// True if a request is under way.
    pub fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    /// True if no request is under way or arriving, none has been for a moment, and every answer was sent.
    pub fn is_quiet(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == NOT_BEGUN
            && !self.unflushed.load(Ordering::Acquire)
            && self.now() >= self.idle_since.load(Ordering::Acquire) + QUIET_AFTER.as_millis() as u64
    }

    /// Bytes are handed to the socket.
    pub fn writes(&self) {
        self.unflushed.store(true, Ordering::Release);
    }

    /// All bytes are on their way.
    pub fn flushed(&self) {
        self.unflushed.store(false, Ordering::Release);
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    /// Bytes came from the client.
    pub fn saw_bytes(&self) {
        if !self.multiplexed && self.requests.load(Ordering::Acquire) == 0 {
            let _ = self.head_since.compare_exchange(NOT_BEGUN, self.now(), Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.idle_since.store(activity.now(), Ordering::Release);
        activity.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_bid_goodbye() {
        let activity = Arc::new(Activity::default());
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)));
        advance(Duration::from_secs(80)).await;
        let request = activity.begin_request();
        advance(Duration::from_secs(80)).await;
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)), "busy");
        drop(request);
        advance(IDLE_TIMEOUT - Duration::from_secs(1)).await;
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)), "idle since the last request");
        advance(Duration::from_secs(1)).await;
        assert_eq!(activity.judge(None), Verdict::Idle);
        let leaving = Instant::now();
        assert!(matches!(activity.judge(Some(leaving)), Verdict::LookAgainAt(_)));
        advance(FAREWELL).await;
        assert_eq!(activity.judge(Some(leaving)), Verdict::TooSlow);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_must_arrive_in_time() {
        let activity = Arc::new(Activity::default());
        activity.saw_bytes();
        advance(HEAD_TIMEOUT / 2).await;
        activity.saw_bytes();
        advance(HEAD_TIMEOUT / 2).await;
        assert_eq!(activity.judge(None), Verdict::TooSlow);
        drop(activity.begin_request());
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)));
    }
}
