//! What is counted of requests to other servers of the cluster.

use http::StatusCode;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, counters};

pub struct PeerMetrics {
    passed: Counters,
    not_passed: Counters,
    not_asked: Counters,
}

impl PeerMetrics {
    pub fn new(registry: &Registry) -> PeerMetrics {
        PeerMetrics {
            passed: counters(
                registry,
                "apiserver_rerouted_request_total",
                "Requests that were passed on to another server of the cluster; those for discovery have no resource.",
                &["code", "group", "version", "resource"],
            ),
            not_passed: counters(
                registry,
                "apiserver_peer_proxy_errors_total",
                "Requests that could not be passed on to another server of the cluster, and why.",
                &["type", "group", "version", "resource"],
            ),
            not_asked: counters(
                registry,
                "apiserver_peer_discovery_sync_errors_total",
                "Servers of the cluster that could not be asked what they serve, and why.",
                &["type"],
            ),
        }
    }

    /// The group, version and resource that were asked for.
    pub fn passed(&self, code: StatusCode, [group, version, resource]: [&str; 3]) {
        self.passed.with_label_values(&[code.as_str(), group, version, resource]).inc();
    }

    pub fn not_passed(&self, why: &str, [group, version, resource]: [&str; 3]) {
        self.not_passed.with_label_values(&[why, group, version, resource]).inc();
    }

    pub fn not_asked(&self, why: &str) {
        self.not_asked.with_label_values(&[why]).inc();
    }
}
