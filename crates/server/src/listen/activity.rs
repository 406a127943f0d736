//! What a connection is doing, so that idle and slow ones can be ended: one that sends a request's head byte
//! by byte, or nothing at all, holds its place for a bounded time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// From a request's first byte to the end of its headers; as the reference.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
/// Between requests; as the reference and as clients' own keep-alive.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// For a client to answer a GOAWAY once its requests are done.
const FAREWELL: Duration = Duration::from_secs(2);
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
        }
    }
}

impl Activity {
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

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    fn saw_bytes(&self) {
        if self.requests.load(Ordering::Acquire) == 0 {
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

/// A stream that notes when a request begins to arrive. For HTTP/1.1 only: on HTTP/2 bytes between requests
/// may be pings and window updates.
pub struct Watched<S> {
    inner: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    pub fn new(inner: S, activity: Arc<Activity>) -> Watched<S> {
        Watched { inner, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.saw_bytes();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
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
