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
/// How often a busy connection is looked at.
const BUSY_CHECK: Duration = Duration::from_secs(16);

/// For a client to take some of an answer that is all there: as long as the reference lets a request take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// To take some of a watch or a log, which people read at leisure.
const STREAM_PATIENCE: Duration = Duration::from_secs(600);

/// `Never` in `head_since` and `blocked_since`.
const NOT_BEGUN: u64 = u64::MAX;

#[derive(Debug)]
pub struct Activity {
    /// All times are milliseconds after this.
    epoch: Instant,
    requests: AtomicU32,
    idle_since: AtomicU64,
    /// When the first byte of a head that is not whole yet came.
    head_since: AtomicU64,
    /// When the last request came.
    asked_at: AtomicU64,
    /// Something was written that may not be on its way yet.
    unflushed: AtomicBool,
    /// Bytes between requests say nothing: they may be pings and window updates of HTTP/2.
    multiplexed: AtomicBool,
    /// When the socket began to take nothing more of what is sent.
    blocked_since: AtomicU64,
    /// Requests whose answers may take as long as they like.
    streaming: AtomicU32,
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
    is_streaming: bool,
}

impl ActiveRequest {
    /// The answer is not all there: a client may read it as it comes.
    pub fn streams(mut self) -> ActiveRequest {
        if !self.is_streaming {
            self.activity.asked_at.store(self.activity.now(), Ordering::Release);
            self.activity.streaming.fetch_add(1, Ordering::AcqRel);
        }
        self.is_streaming = true;
        self
    }
}

/// Of a connection that begins now.
impl Default for Activity {
    fn default() -> Activity {
        Activity {
            epoch: Instant::now(),
            requests: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(NOT_BEGUN),
            asked_at: AtomicU64::new(0),
            unflushed: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            blocked_since: AtomicU64::new(NOT_BEGUN),
            streaming: AtomicU32::new(0),
        }
    }
}

impl Activity {
    /// It is an HTTP/2 connection.
    pub fn multiplex(&self) {
        self.multiplexed.store(true, Ordering::Release);
    }

    pub fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(NOT_BEGUN, Ordering::Release);
        self.asked_at.store(self.now(), Ordering::Release);
        ActiveRequest { activity: self.clone(), is_streaming: false }
    }

    /// What to do with the connection. `leaving_since`: when we said goodbye.
    pub fn judge(&self, leaving_since: Option<Instant>) -> Verdict {
        let now = Instant::now();
        if self.is_stalled(now) {
            return Verdict::TooSlow;
        }
        if self.requests.load(Ordering::Acquire) > 0 {
            return Verdict::LookAgainAt(now + if leaving_since.is_some() { FAREWELL } else { BUSY_CHECK });
        }
        let idle_since = self.epoch + Duration::from_millis(self.idle_since.load(Ordering::Acquire));
        if let Some(leaving) = leaving_since {
            let end = leaving.max(idle_since) + FAREWELL;
            return if end <= now { Verdict::TooSlow } else { Verdict::LookAgainAt(end) };
        }
        let (end, verdict) = match self.head_since.load(Ordering::Acquire) {
            NOT_BEGUN if self.has_asked_nothing() => (self.epoch + HEAD_TIMEOUT, Verdict::Idle),
            NOT_BEGUN => (idle_since + IDLE_TIMEOUT, Verdict::Idle),
            begun => (self.epoch + Duration::from_millis(begun) + HEAD_TIMEOUT, Verdict::TooSlow),
        };
        // A head may begin while we wait for the idle time to pass.
        if end <= now { verdict } else { Verdict::LookAgainAt(end.min(now + HEAD_TIMEOUT)) }
    }

    /// True until the first request of an HTTP/1 connection: that has no more time than its head.
    fn has_asked_nothing(&self) -> bool {
        self.idle_since.load(Ordering::Acquire) == 0 && !self.multiplexed.load(Ordering::Acquire)
    }

    /// How long a client may take nothing of what is sent to it.
    pub fn patience(&self) -> Duration {
        if self.streaming.load(Ordering::Acquire) > 0 { STREAM_PATIENCE } else { ANSWER_PATIENCE }
    }

    fn is_stalled(&self, now: Instant) -> bool {
        match self.blocked_since.load(Ordering::Acquire) {
            NOT_BEGUN => false,
            since => self.epoch + Duration::from_millis(since) + self.patience() <= now,
        }
    }

    /// The socket takes nothing more.
    pub fn is_blocked(&self) {
        let _ = self.blocked_since.compare_exchange(NOT_BEGUN, self.now(), Ordering::AcqRel, Ordering::Acquire);
    }

    /// The socket takes something.
    pub fn is_unblocked(&self) {
        self.blocked_since.store(NOT_BEGUN, Ordering::Release);
    }

    /// True if a request is under way.
    pub fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    /// True if no request is under way or arriving, none has been for a while, and every answer was sent.
    pub fn is_quiet(&self, a_while: Duration) -> bool {
        self.requests.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == NOT_BEGUN
            && !self.has_unflushed()
            && self.now() >= self.idle_since.load(Ordering::Acquire) + a_while.as_millis() as u64
    }

    /// True if nothing was asked and nothing was answered at once for a while, and all that was sent is on its way. Answers
    /// that go on for long may be under way.
    pub fn is_unasked(&self, a_while: Duration) -> bool {
        let last = self.asked_at.load(Ordering::Acquire).max(self.idle_since.load(Ordering::Acquire));
        self.requests.load(Ordering::Acquire) == self.streaming.load(Ordering::Acquire)
            && !self.has_unflushed()
            && self.now() >= last + a_while.as_millis() as u64
    }

    pub fn has_unflushed(&self) -> bool {
        self.unflushed.load(Ordering::Acquire)
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
        if !self.multiplexed.load(Ordering::Acquire) && self.requests.load(Ordering::Acquire) == 0 {
            let _ = self.head_since.compare_exchange(NOT_BEGUN, self.now(), Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.streaming.fetch_sub(u32::from(self.is_streaming), Ordering::AcqRel);
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
        advance(HEAD_TIMEOUT - Duration::from_secs(1)).await;
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)), "it has not asked yet");
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
    async fn the_first_request_must_come_soon() {
        let (plain, multiplexed) = (Activity::default(), Activity::default());
        multiplexed.multiplex();
        advance(HEAD_TIMEOUT).await;
        assert_eq!(plain.judge(None), Verdict::Idle);
        assert!(matches!(multiplexed.judge(None), Verdict::LookAgainAt(_)), "as long as between requests");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_must_take_what_is_sent() {
        let activity = Arc::new(Activity::default());
        let request = activity.begin_request();
        for _ in 0..3 {
            activity.is_blocked();
            advance(ANSWER_PATIENCE - Duration::from_secs(1)).await;
            activity.is_blocked();
            assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)));
            activity.is_unblocked();
        }
        activity.is_blocked();
        advance(ANSWER_PATIENCE).await;
        assert_eq!(activity.judge(None), Verdict::TooSlow);
        let request = request.streams();
        assert!(matches!(activity.judge(None), Verdict::LookAgainAt(_)), "it is read at leisure");
        advance(STREAM_PATIENCE).await;
        assert_eq!(activity.judge(None), Verdict::TooSlow);
        drop(request);
        assert_eq!(activity.patience(), ANSWER_PATIENCE);
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
