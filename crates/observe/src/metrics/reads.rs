//! Reads of the watch caches: how long they waited, what they looked at and what they gave.

use super::Registry;
use super::{Counters, Histograms, counters, histograms};
use kubelith_http::RequestInfo;
use prometheus::exponential_buckets;
use std::time::Duration;

const RESOURCE: [&str; 2] = ["group", "resource"];
const WATCH_LIST_BUCKETS: &[f64] = &[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0];

/// In the extensions of an answer that was read from a watch cache.
#[derive(Debug, Clone, Copy)]
pub enum CacheRead {
    List {
        /// Until the cache was as new as it had to be.
        waited: Duration,
        is_consistent: bool,
        /// Objects that were looked at, and those of them that are in the answer.
        fetched: usize,
        returned: usize,
    },
    /// The first events of a watch, which stand for a list.
    FirstEvents { took: Duration },
}

pub struct ReadMetrics {
    lists: Counters,
    fetched: Counters,
    returned: Counters,
    consistent: Counters,
    waited: Histograms,
    first_events: Histograms,
}

impl ReadMetrics {
    pub fn new(registry: &Registry) -> ReadMetrics {
        let indexed = ["group", "resource", "index"];
        let waits = exponential_buckets(0.005, 2.0, 10).expect("a valid series");
        ReadMetrics {
            lists: counters(registry, "apiserver_cache_list_total", "Lists from watch caches.", &indexed),
            fetched: counters(
                registry,
                "apiserver_cache_list_fetched_objects_total",
                "Objects that lists looked at in watch caches.",
                &indexed,
            ),
            returned: counters(
                registry,
                "apiserver_cache_list_returned_objects_total",
                "Objects that lists from watch caches gave.",
                &RESOURCE,
            ),
            consistent: counters(
                registry,
                "apiserver_watch_cache_consistent_read_total",
                "Lists of the newest state from watch caches.",
                &["group", "resource", "success", "fallback"],
            ),
            waited: histograms(
                registry,
                "apiserver_watch_cache_read_wait_seconds",
                "Time that reads waited for a watch cache to be new enough.",
                &waits,
                &RESOURCE,
            ),
            first_events: histograms(
                registry,
                "apiserver_watch_list_duration_seconds",
                "Time until the first events of a watch, which stand for a list, were there.",
                WATCH_LIST_BUCKETS,
                &["group", "version", "resource", "scope"],
            ),
        }
    }

    /// Notes a read by a request for a resource that is known to be counted.
    pub fn note(&self, info: &RequestInfo, scope: &str, read: CacheRead) {
        let (group, resource) = (info.group.as_str(), info.resource.as_str());
        match read {
            CacheRead::List { waited, is_consistent, fetched, returned } => {
                // Lists look at one object, or at all of a namespace; no other index helps them.
                self.lists.with_label_values(&[group, resource, ""]).inc();
                self.fetched.with_label_values(&[group, resource, ""]).inc_by(fetched as u64);
                self.returned.with_label_values(&[group, resource]).inc_by(returned as u64);
                self.waited.with_label_values(&[group, resource]).observe(waited.as_secs_f64());
                if is_consistent {
                    self.consistent.with_label_values(&[group, resource, "true", "false"]).inc();
                }
            }
            CacheRead::FirstEvents { took } => {
                let labels = [group, &info.version, resource, scope];
                self.first_events.with_label_values(&labels).observe(took.as_secs_f64());
            }
        }
    }
}
