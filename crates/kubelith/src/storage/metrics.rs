//! Metrics of storage and of the watch caches, under the reference's names. What the caches know is read when
//! it is asked for.

use kubelith_meta::GroupResource;
use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::prometheus::core::{Collector, Desc};
use kubelith_observe::metrics::prometheus::proto::MetricFamily;
use kubelith_observe::metrics::prometheus::{IntCounterVec, IntGaugeVec, Opts};
use kubelith_observe::metrics::{
    Counters, FloatGauges, Gauges, Histograms, counters, float_gauges, gauges, histograms, register,
};
use kubelith_store::KeyLayout;
use kubelith_store::cache::{CacheStats, Hub};
use kubelith_store::encryption::Reloaded;
use kubelith_store::etcd::EtcdCounts;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

const REQUEST_SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
const RESOURCE: &[&str] = &["group", "resource"];
const REQUEST: &[&str] = &["operation", "group", "resource"];

pub struct StorageMetrics {
    durations: Histograms,
    requests: Counters,
    errors: Counters,
    lists: Counters,
    /// Objects of lists, which the store looks at and answers as it reads them.
    listed: [Counters; 3],
    etcd: OnceLock<Arc<EtcdCounts>>,
    size: Gauges,
    reloads: Counters,
    reloaded_at: FloatGauges,
    config: Gauges,
    layout: Arc<KeyLayout>,
    registry: Registry,
    server: String,
}

/// Whether `apiserver_storage_objects` is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountObjects {
    Yes,
    No,
}

impl StorageMetrics {
    /// `server` is a hash of the server's id.
    pub fn new(registry: &Registry, layout: Arc<KeyLayout>, server: &str) -> StorageMetrics {
        const CONTROLLER: &str = "apiserver_encryption_config_controller";
        let counters = |name: &str, help: &str, labels: &[&str]| counters(registry, name, help, labels);
        let gauges = |name: &str, help: &str, labels: &[&str]| gauges(registry, name, help, labels);
        let times = |name: &str, help: &str, labels: &[&str]| float_gauges(registry, name, help, labels);
        StorageMetrics {
            durations: histograms(
                registry,
                "etcd_request_duration_seconds",
                "Time of the store's answers, by operation and resource.",
                REQUEST_SECONDS,
                REQUEST,
            ),
            requests: counters("etcd_requests_total", "Requests to the store, by operation and resource.", REQUEST),
            errors: counters("etcd_request_errors_total", "Requests to the store that failed.", REQUEST),
            lists: counters("apiserver_storage_list_total", "Lists that were read from the store.", RESOURCE),
            listed: ["fetched", "evaluated", "returned"].map(|what| {
                let name = format!("apiserver_storage_list_{what}_objects_total");
                counters(&name, &format!("Objects {what} for lists that were read from the store."), RESOURCE)
            }),
            etcd: OnceLock::new(),
            size: gauges("apiserver_storage_size_bytes", "Bytes that the store takes.", &["storage_cluster_id"]),
            reloads: counters(
                &format!("{CONTROLLER}_automatic_reloads_total"),
                "Times that the encryption configuration was read again.",
                &["status", "apiserver_id_hash"],
            ),
            reloaded_at: times(
                &format!("{CONTROLLER}_automatic_reload_last_timestamp_seconds"),
                "When the encryption configuration was last read again.",
                &["status", "apiserver_id_hash"],
            ),
            config: gauges(
                &format!("{CONTROLLER}_last_config_info"),
                "Hash of the encryption configuration in force.",
                &["apiserver_id_hash", "hash"],
            ),
            layout,
            registry: registry.clone(),
            server: server.to_owned(),
        }
    }

    pub fn request(&self, operation: &str, resource: &GroupResource, took: Duration, failed: bool) {
        let labels = [operation, &resource.group, &resource.resource];
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
        self.requests.with_label_values(&labels).inc();
        if failed {
            self.errors.with_label_values(&labels).inc();
        }
    }

    /// The store was read for a list.
    pub fn listed(&self, resource: &GroupResource, objects: usize) {
        let labels: [&str; 2] = [&resource.group, &resource.resource];
        self.lists.with_label_values(&labels).inc();
        for count in &self.listed {
            count.with_label_values(&labels).inc_by(objects as u64);
        }
    }

    /// Where clients of etcd count what they do, which is shown once there is one.
    pub fn etcd(&self) -> &Arc<EtcdCounts> {
        self.etcd.get_or_init(|| {
            let counts = Arc::new(EtcdCounts::default());
            super::etcd_metrics::show(&self.registry, counts.clone());
            counts
        })
    }

    /// The size of the store with this number.
    pub fn size(&self, store: usize, bytes: u64) {
        self.size.with_label_values(&[&format!("etcd-{store}")]).set(bytes as i64);
    }

    pub fn encryption_loaded(&self, hash: &str) {
        self.config.reset();
        self.config.with_label_values(&[&*self.server, hash]).set(1);
    }

    pub fn encryption_reloaded(&self, outcome: &Result<Reloaded, String>, hash: &str) {
        let status = if outcome.is_ok() { "success" } else { "failure" };
        self.reloads.with_label_values(&[status, &self.server]).inc();
        let now = unix_time();
        self.reloaded_at.with_label_values(&[status, &self.server]).set(now.as_secs_f64());
        if outcome.is_ok() {
            self.encryption_loaded(hash);
        }
    }

    /// Serves what the caches of these hubs know of themselves.
    pub fn follow(&self, hubs: &[Arc<Hub>], count: CountObjects) {
        let hubs = hubs.iter().map(Arc::downgrade).collect();
        let layout = self.layout.clone();
        self.registry.later(move |registry| register(registry, CacheMetrics::new(hubs, layout, count)));
    }
}

/// One of a cache's figures.
type Figure = fn(&CacheStats) -> u64;

/// Figures of the caches, read at each scrape.
struct CacheMetrics {
    /// They meter their stores by what holds this.
    hubs: Vec<Weak<Hub>>,
    layout: Arc<KeyLayout>,
    count: CountObjects,
    objects: IntGaugeVec,
    resources: IntGaugeVec,
    stored: IntGaugeVec,
    capacity: IntGaugeVec,
    revision: IntGaugeVec,
    /// Bytes of objects, of what is kept of the past, and of indexes.
    bytes: IntGaugeVec,
    counters: Vec<(IntCounterVec, Figure)>,
    /// Of the watch on the store, which is one for all resources.
    notices: IntCounterVec,
    /// Those that have a series once there is something to count.
    rare: Vec<(IntCounterVec, Figure)>,
    /// One scrape at a time: counters move by differences.
    scraping: Mutex<()>,
}

impl CacheMetrics {
    fn new(hubs: Vec<Weak<Hub>>, layout: Arc<KeyLayout>, count: CountObjects) -> CacheMetrics {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            IntGaugeVec::new(Opts::new(name, help), labels).expect("names and labels are well-formed")
        };
        let counter = |name: &str, help: &str| {
            IntCounterVec::new(Opts::new(name, help), RESOURCE).expect("names and labels are well-formed")
        };
        let received = |stats: &CacheStats| stats.received;
        let counters: Vec<(IntCounterVec, Figure)> = vec![
            (counter("apiserver_storage_events_received_total", "Events that came from the store."), received),
            (counter("apiserver_watch_cache_events_received_total", "Events that watch caches received."), received),
            (counter("apiserver_watch_cache_events_dispatched_total", "Events that watch caches passed on."), received),
            (counter("apiserver_watch_cache_initializations_total", "Times that a watch cache was filled."), |s| {
                s.loads
            }),
        ];
        let rare: Vec<(IntCounterVec, Figure)> = vec![
            (counter("apiserver_init_events_total", "Events that watches began with."), |s| s.initial),
            (
                counter("apiserver_terminated_watchers_total", "Watches that were ended because they were too slow."),
                |s| s.terminated,
            ),
            (counter("apiserver_storage_decode_errors_total", "Stored objects that could not be decoded."), |s| {
                s.undecodable
            }),
        ];
        CacheMetrics {
            hubs,
            layout,
            count,
            objects: gauge("apiserver_storage_objects", "Stored objects, by resource.", &["resource"]),
            resources: gauge("apiserver_resource_objects", "Stored objects, by group and resource.", RESOURCE),
            stored: gauge(
                "apiserver_resource_size_estimate_bytes",
                "What the objects of a resource take in the store, without what that needs around them.",
                RESOURCE,
            ),
            capacity: gauge("watch_cache_capacity", "Events that a watch cache holds now.", RESOURCE),
            revision: gauge("apiserver_watch_cache_resource_version", "How far a watch cache has come.", RESOURCE),
            bytes: gauge(
                "kubelith_watch_cache_bytes",
                "Memory that a watch cache takes: objects, their past that watches can begin in, what of both is packed, and the index.",
                &["group", "resource", "part"],
            ),
            counters,
            notices: counter("etcd_bookmark_total", "Times that the store said how far it is, with nothing new."),
            rare,
            scraping: Mutex::default(),
        }
    }
}

impl CacheMetrics {
    fn gauges(&self) -> [&IntGaugeVec; 6] {
        [&self.objects, &self.resources, &self.stored, &self.capacity, &self.revision, &self.bytes]
    }

    fn all_counters(&self) -> impl Iterator<Item = &IntCounterVec> {
        self.counters.iter().chain(&self.rare).map(|(counter, _)| counter).chain([&self.notices])
    }
}

impl Collector for CacheMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = self.gauges().into_iter().flat_map(Collector::desc);
        gauges.chain(self.all_counters().flat_map(Collector::desc)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _scraping = self.scraping.lock().expect("no panic under this lock");
        for gauge in self.gauges() {
            gauge.reset(); // resources come and go
        }
        for hub in self.hubs.iter().filter_map(Weak::upgrade) {
            for (prefix, cache) in hub.caches() {
                let Some(resource) = self.layout.resource(prefix.as_bytes()) else { continue };
                let stats = cache.stats();
                let labels: [&str; 2] = [&resource.group, &resource.resource];
                if self.count == CountObjects::Yes {
                    self.objects.with_label_values(&[&resource.to_string()]).set(stats.objects as i64);
                    self.resources.with_label_values(&labels).set(stats.objects as i64);
                    self.stored.with_label_values(&labels).set(stats.stored_bytes as i64);
                }
                let notices = self.notices.with_label_values(&labels);
                notices.inc_by(hub.notices().saturating_sub(notices.get()));
                self.capacity.with_label_values(&labels).set(stats.events as i64);
                self.revision.with_label_values(&labels).set(hub.applied());
                // Most resources have no objects: they need no series.
                let parts = [
                    ("objects", stats.object_bytes.saturating_sub(stats.packed.objects)),
                    ("history", stats.bytes.saturating_sub(stats.packed.past)),
                    ("packed", stats.packed.bytes),
                    ("index", stats.index_bytes),
                ];
                for (part, bytes) in parts.into_iter().filter(|(_, bytes)| *bytes > 0) {
                    self.bytes.with_label_values(&[labels[0], labels[1], part]).set(bytes as i64);
                }
                let rare = self.rare.iter().filter(|(_, read)| read(&stats) > 0);
                for (counter, read) in self.counters.iter().chain(rare) {
                    let counter = counter.with_label_values(&labels);
                    counter.inc_by(read(&stats).saturating_sub(counter.get()));
                }
            }
        }
        let gauges = self.gauges().into_iter().flat_map(Collector::collect);
        gauges.chain(self.all_counters().flat_map(Collector::collect)).collect()
    }
}
