//! Requests that this server sends: to itself, over the loopback client; and how it shares transports to others.

use super::pulled::{PulledFamilies, counter_family, gauge_family};
use super::{Counters, Histograms, Registry, counters, histograms, register};
use kubelith_outbound::proxy::TransportCounts;
use std::sync::Arc;
use std::time::Duration;

const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const BYTES: &[f64] =
    &[64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0];
/// The host in labels; there is no socket.
const HOST: &str = "loopback";

pub struct RestClientMetrics {
    requests: Counters,
    durations: Histograms,
    request_sizes: Histograms,
    response_sizes: Histograms,
}

impl RestClientMetrics {
    pub fn new(registry: &Registry) -> RestClientMetrics {
        let histogram =
            |name: &str, help: &str, buckets: &[f64]| histograms(registry, name, help, buckets, &["verb", "host"]);
        RestClientMetrics {
            requests: counters(
                registry,
                "rest_client_requests_total",
                "Requests that this server sent, by answer, method and host.",
                &["code", "method", "host"],
            ),
            durations: histogram("rest_client_request_duration_seconds", "Time until the answer began.", SECONDS),
            request_sizes: histogram("rest_client_request_size_bytes", "Bytes of requests' bodies.", BYTES),
            response_sizes: histogram("rest_client_response_size_bytes", "Bytes of answers, where known.", BYTES),
        }
    }

    /// A request to this server itself was answered. `received` is not known of streams.
    pub fn loopback(&self, method: &http::Method, code: u16, took: Duration, sent: usize, received: Option<u64>) {
        let (method, code) = (name_of(method), code.to_string());
        self.requests.with_label_values(&[&code, method, HOST]).inc();
        self.durations.with_label_values(&[method, HOST]).observe(took.as_secs_f64());
        self.request_sizes.with_label_values(&[method, HOST]).observe(sent as f64);
        if let Some(received) = received {
            self.response_sizes.with_label_values(&[method, HOST]).observe(received as f64);
        }
    }
}

/// How transports to webhooks and extension servers are shared.
pub(super) fn transports(registry: &Registry) -> Arc<TransportCounts> {
    const KEPT: (&str, &str) = ("rest_client_transport_cache_entries", "Transports that are kept.");
    const CALLS: (&str, &str) =
        ("rest_client_transport_create_calls_total", "Transports that were needed: a kept one did, or one was made.");
    let counts = Arc::<TransportCounts>::default();
    let shown = counts.clone();
    registry.later(move |registry| {
        let read = move || {
            let calls = [("hit", shown.hits()), ("miss", shown.misses())];
            let calls = calls.map(|(result, count)| (vec![("result", result)], count));
            vec![gauge_family(KEPT, &[(None, shown.kept() as f64)]), counter_family(CALLS, &calls)]
        };
        register(registry, PulledFamilies::new(&[KEPT, CALLS], read));
    });
    counts
}

/// Methods that nobody uses are one.
fn name_of(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        _ => "other",
    }
}
