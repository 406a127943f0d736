//! Bounds how many short requests run at once, reads and writes apart
//! (`--max-requests-inflight`, `--max-mutating-requests-inflight`). Used when priority and fairness is off.

use super::Layer;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_http::{Reply, Response, respond};
use kubelith_observe::metrics::prometheus::IntGauge;
use kubelith_observe::metrics::requests::RequestMetrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Limit {
    /// 0: none.
    max: usize,
    running: AtomicUsize,
    gauge: IntGauge,
}

struct Running(Arc<Limit>);

impl Limit {
    fn new(max: usize, gauge: IntGauge) -> Arc<Limit> {
        Arc::new(Limit { max, running: AtomicUsize::new(0), gauge })
    }

    fn enter(self: &Arc<Self>) -> Option<Running> {
        if self.running.fetch_add(1, Ordering::AcqRel) < self.max {
            self.gauge.inc();
            return Some(Running(self.clone()));
        }
        self.running.fetch_sub(1, Ordering::AcqRel);
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.gauge.dec();
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// `None` if neither is bounded.
pub fn layer(max_reads: usize, max_writes: usize, metrics: Arc<RequestMetrics>) -> Option<Layer> {
    if max_reads == 0 && max_writes == 0 {
        return None;
    }
    let reads = Limit::new(max_reads, metrics.in_flight("readOnly"));
    let writes = Limit::new(max_writes, metrics.in_flight("mutating"));
    Some(Layer::from_fn("max-in-flight", move |request, next| {
        let info = request.info();
        if info.is_long_running() {
            return next.handle(request);
        }
        let limit = if info.is_read_only() { &reads } else { &writes };
        if limit.max == 0 {
            return next.handle(request);
        }
        match limit.enter() {
            Some(running) => next.handle(request).map(|response| response.map(|body| body.with_guard(running))),
            // Administrators and our own loops must get an answer, or nobody could mend an overload.
            None if request.user().is_some_and(|u| u.in_group(GROUP_MASTERS)) => next.handle(request),
            None => {
                metrics.dropped(&request);
                Reply::Ready(too_many_requests(HeaderValue::from_static("1")))
            }
        }
    }))
}

pub fn too_many_requests(retry_after: HeaderValue) -> Response {
    let message = "Too many requests, please try again later.";
    let mut response = respond::error_text(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(RETRY_AFTER, retry_after);
    response
}
