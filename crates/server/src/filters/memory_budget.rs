//! Refuses requests with 429 while the process has used up its memory (`--memory-budget`, or the limit of its cgroup):
//! clients come again, a process that is killed for memory takes all of them with it.
//!
//! What frees memory or keeps a cluster together always passes: deletions, leases, health, administrators, our own loops.

use super::Layer;
use super::max_in_flight::too_many_requests;
use crate::loopback::LoopbackUser;
use http::HeaderValue;
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_http::Request;
use kubelith_observe::metrics::requests::RequestMetrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// From here on what takes much memory is refused: lists, and watches that begin with one.
const HIGH_PERCENT: u64 = 80;
/// From here on everything that is not exempt.
const FULL_PERCENT: u64 = 90;
/// How old a look at the memory may be. A look takes some microseconds.
const LOOK: Duration = Duration::from_millis(20);
/// What memory is given back takes about as long.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

/// Of the platforms that the server is built for.
const PAGE: u64 = 4096;

/// Says how many bytes the process holds.
pub type Usage = fn() -> Option<u64>;

struct Budget {
    bytes: u64,
    usage: Usage,
    begin: Instant,
    /// Milliseconds since the beginning.
    looked_at: AtomicU64,
    percent: AtomicU64,
}

impl Budget {
    /// How much of the budget is used. One of those who ask looks again when it is time to; the others need not wait.
    fn percent(&self) -> u64 {
        let now = self.begin.elapsed().as_millis() as u64;
        let last = self.looked_at.load(Ordering::Relaxed);
        let due = last == 0 || now.saturating_sub(last) >= LOOK.as_millis() as u64;
        let mine =
            due && self.looked_at.compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if mine {
            let used = (self.usage)().unwrap_or(0);
            self.percent.store(used.saturating_mul(100) / self.bytes.max(1), Ordering::Relaxed);
        }
        self.percent.load(Ordering::Relaxed)
    }
}

pub fn layer(bytes: u64, usage: Usage, metrics: Arc<RequestMetrics>) -> Layer {
    let (looked_at, percent) = (AtomicU64::new(0), AtomicU64::new(0));
    let budget = Budget { bytes, usage, begin: Instant::now(), looked_at, percent };
    Layer::from_fn("memory-budget", move |request, next| {
        let percent = budget.percent();
        let is_refused =
            percent >= HIGH_PERCENT && (percent >= FULL_PERCENT || takes_much(&request)) && !is_exempt(&request);
        if !is_refused {
            return next.handle(request);
        }
        metrics.dropped(&request);
        kubelith_http::Reply::Ready(too_many_requests(RETRY_AFTER))
    })
}

/// Lists, and watches that begin with all there is.
fn takes_much(request: &Request) -> bool {
    let info = request.info();
    match info.verb.as_str() {
        "list" => true,
        "watch" => {
            let query = request.uri().query().unwrap_or_default();
            let version = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
            matches!(version, None | Some("" | "0")) || query.contains("sendInitialEvents=")
        }
        _ => false,
    }
}

fn is_exempt(request: &Request) -> bool {
    let info = request.info();
    !info.is_resource_request
        || matches!(info.verb.as_str(), "delete" | "deletecollection")
        || (info.group == "coordination.k8s.io" && info.resource == "leases")
        || request.extensions().get::<LoopbackUser>().is_some()
        || request.user().is_some_and(|user| user.in_group(GROUP_MASTERS))
}

/// Memory of this process that nothing but the process itself can give back.
pub fn anonymous_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_known() {
        assert!(anonymous_memory().is_some_and(|bytes| bytes > 100_000));
    }

    #[test]
    fn a_look_is_not_taken_for_each_request() {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        let usage: Usage = || {
            LOOKS.fetch_add(1, Ordering::Relaxed);
            Some(85)
        };
        let (looked_at, percent) = (AtomicU64::new(0), AtomicU64::new(0));
        // The beginning lies in the past: a first look at 0 would look like none.
        let begin = Instant::now() - Duration::from_secs(1);
        let budget = Budget { bytes: 100, usage, begin, looked_at, percent };
        for _ in 0..1000 {
            assert_eq!(budget.percent(), 85);
        }
        assert!(LOOKS.load(Ordering::Relaxed) < 100);
    }
}
