//! Counts, durations and sizes of requests, by verb and resource.

use super::Registry;
use super::reads::{CacheRead, ReadMetrics};
use super::series::{ByCode, Fixed, Later};
use super::{Counter, Counters, Gauges, Histogram, Histograms, MAX_SERIES, counters, gauges, histograms};
use crate::recent::Recent;
use kubelith_http::labels::Labels;
use kubelith_http::late::{Late, LateWrites};
use kubelith_http::latency::Latency;
use kubelith_http::{Request, RequestInfo};
use kubelith_meta::Str;
use kubelith_meta::quick_hash::QuickHash;
use prometheus::{IntGauge, IntGaugeVec, exponential_buckets};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

const COMPONENT: &str = "apiserver";

const DURATION_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
const SLI_BUCKETS: &[f64] =
    &[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];
const FILTER_BUCKETS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];

/// Those that are measured.
const FILTERS: [&str; 2] = ["authentication", "authorization"];

const GVR: [&str; 3] = ["group", "version", "resource"];
const ROUTE: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "component"];

/// Both kinds are shown before there is any of them.
fn both_kinds(gauges: &IntGaugeVec) {
    for kind in ["readOnly", "mutating"] {
        gauges.with_label_values(&[kind]);
    }
}

pub struct RequestMetrics {
    total: Counters,
    duration: Histograms,
    sli_duration: Histograms,
    response_sizes: Histograms,
    long_running: Gauges,
    terminations: Counters,
    aborts: Counters,
    post_timeout: Counters,
    self_requests: Counters,
    filter_duration: Fixed<Histogram, 2>,
    body_sizes: Histograms,
    in_flight: Gauges,
    in_queue: Gauges,
    field_validation: Histograms,
    deprecated: Gauges,
    watch_events: Counters,
    watch_event_sizes: Histograms,
    reads: ReadMetrics,
    /// What was out of the ordinary lately.
    pub recent: Arc<Recent>,
    /// Resources that have series already.
    known: RwLock<HashSet<[Str; 4]>>,
    /// What is served. Names come from URLs: those that nobody serves have no series, so that no client makes any.
    served: OnceLock<Box<WhatIsServed>>,
    routes: RwLock<HashMap<Route, Arc<Series>, QuickHash>>,
}

/// For how long a resource is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    Always,
    /// Custom resources: any number may come.
    UntilRemoved,
}

/// Whether the resource of a request is served here.
type WhatIsServed = dyn Fn(&RequestInfo) -> Option<Lasting> + Send + Sync;

/// In an answer's extensions if the API that was asked is deprecated: the release that no longer has it.
#[derive(Debug, Clone)]
pub struct DeprecatedApi {
    pub removed_release: Str,
}

/// What answers are counted by, besides their code.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Route {
    verb: &'static str,
    dry_run: &'static str,
    scope: &'static str,
    /// Group, version, resource, subresource.
    resource: [Str; 4],
}

/// The series of a route.
#[derive(Default)]
struct Series {
    total: ByCode,
    duration: Later,
    sli_duration: Later,
    response_sizes: Later,
}

/// Counts the events of one watch.
pub struct WatchEvents {
    count: Counter,
    sizes: Histogram,
}

impl WatchEvents {
    /// Events of these sizes are sent.
    pub fn note(&self, sizes: impl IntoIterator<Item = usize>) {
        let mut sizes = sizes.into_iter().map(|size| size as f64);
        let Some(first) = sizes.next() else { return };
        let Some(second) = sizes.next() else {
            self.count.inc();
            return self.sizes.observe(first);
        };
        // All watches count in the same place: go there once.
        self.count.inc_by(self.sizes.observe_all([first, second].into_iter().chain(sizes)));
    }
}

/// What counts the events of a watch; in its answer's extensions, for whoever knows the metrics.
#[derive(Clone, Default)]
pub struct WatchCounter(Arc<OnceLock<WatchEvents>>);

impl WatchCounter {
    pub fn set(&self, events: WatchEvents) {
        // Only one layer counts.
        let _ = self.0.set(events);
    }

    /// Events of these sizes are sent.
    pub fn note(&self, sizes: impl IntoIterator<Item = usize>) {
        if let Some(events) = self.0.get() {
            events.note(sizes);
        }
    }
}

impl RequestMetrics {
    /// Forgets what was counted. What is under way goes on being shown.
    pub fn reset(&self) {
        // Series are kept here by their routes: those are let go first.
        self.routes.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
        for counters in [&self.total, &self.terminations, &self.aborts, &self.post_timeout] {
            counters.reset();
        }
        for counters in [&self.self_requests, &self.watch_events] {
            counters.reset();
        }
        for histograms in [&self.duration, &self.sli_duration, &self.response_sizes, &self.watch_event_sizes] {
            histograms.reset();
        }
        self.deprecated.reset();
    }

    pub fn new(registry: &Registry) -> RequestMetrics {
        let with_dry_run = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];
        let total = [with_dry_run.as_slice(), &["code"]].concat();
        let terminations = [ROUTE.as_slice(), &["code"]].concat();
        let sizes = exponential_buckets(1000.0, 10.0, 7).expect("a valid series");
        let body_sizes = prometheus::linear_buckets(50_000.0, 100_000.0, 31).expect("a valid series");
        RequestMetrics {
            total: counters(
                registry,
                "apiserver_request_total",
                "Requests by verb, resource and response code.",
                &total,
            ),
            duration: histograms(
                registry,
                "apiserver_request_duration_seconds",
                "Time to answer by verb and resource.",
                DURATION_BUCKETS,
                &with_dry_run,
            ),
            sli_duration: histograms(
                registry,
                "apiserver_request_sli_duration_seconds",
                "Time to answer without webhooks and queueing, by verb and resource.",
                SLI_BUCKETS,
                &ROUTE,
            ),
            response_sizes: histograms(
                registry,
                "apiserver_response_sizes",
                "Sizes of answers in bytes, by verb and resource.",
                &sizes,
                &ROUTE,
            ),
            long_running: gauges(
                registry,
                "apiserver_longrunning_requests",
                "Long-running requests under way, by verb and resource.",
                &ROUTE,
            ),
            terminations: counters(
                registry,
                "apiserver_request_terminations_total",
                "Requests refused or cut in self-defence.",
                &terminations,
            ),
            aborts: counters(
                registry,
                "apiserver_request_aborts_total",
                "Requests whose answer was broken off, by verb and resource.",
                &ROUTE[..6],
            ),
            post_timeout: counters(
                registry,
                "apiserver_request_post_timeout_total",
                "What became of requests after their time was up or their client had left.",
                &["source", "status"],
            ),
            self_requests: counters(
                registry,
                "apiserver_selfrequest_total",
                "Requests of the server to itself.",
                &["verb", "group", "resource", "subresource"],
            ),
            filter_duration: Fixed::histograms(
                histograms(
                    registry,
                    "apiserver_request_filter_duration_seconds",
                    "Time spent in filters.",
                    FILTER_BUCKETS,
                    &["filter"],
                ),
                FILTERS,
            ),
            body_sizes: histograms(
                registry,
                "apiserver_request_body_size_bytes",
                "Sizes of request bodies in bytes.",
                &body_sizes,
                &["resource", "verb", "group"],
            ),
            in_flight: gauges(
                registry,
                "apiserver_current_inflight_requests",
                "Short requests being executed.",
                &["request_kind"],
            )
            .shown(registry, both_kinds),
            in_queue: gauges(
                registry,
                "apiserver_current_inqueue_requests",
                "Short requests waiting.",
                &["request_kind"],
            )
            .shown(registry, both_kinds),
            field_validation: histograms(
                registry,
                "field_validation_request_duration_seconds",
                "Time to answer by field validation mode.",
                SLI_BUCKETS,
                &["field_validation"],
            ),
            deprecated: gauges(
                registry,
                "apiserver_requested_deprecated_apis",
                "Deprecated APIs that were asked for.",
                &["group", "version", "resource", "subresource", "removed_release"],
            ),
            watch_events: counters(registry, "apiserver_watch_events_total", "Events sent to watches.", &GVR),
            watch_event_sizes: histograms(
                registry,
                "apiserver_watch_events_sizes",
                "Sizes of events sent to watches, in bytes.",
                &exponential_buckets(1024.0, 2.0, 8).expect("a valid series"),
                &GVR,
            ),
            recent: Arc::default(),
            reads: ReadMetrics::new(registry),
            known: RwLock::default(),
            served: OnceLock::new(),
            routes: RwLock::default(),
        }
    }

    /// Counts only what is served, from now on.
    pub fn count_what_is_served(&self, served: impl Fn(&RequestInfo) -> Option<Lasting> + Send + Sync + 'static) {
        let _ = self.served.set(Box::new(served));
    }

    /// A read from a watch cache.
    pub fn read(&self, labels: &Labels, read: CacheRead) {
        if self.is_countable(&labels.info) {
            self.reads.note(&labels.info, labels.scope, read);
        }
    }

    /// An answered request.
    pub fn answered(&self, labels: &Labels, code: u16, took: Duration, latency: Option<&Latency>, size: Option<u64>) {
        let Some(series) = self.series(labels) else { return };
        let Labels { info, verb, scope, dry_run, is_self } = labels;
        let (group, version, resource, subresource) = route(info);
        let with_dry_run = [verb, dry_run, group, version, resource, subresource, scope, COMPONENT];
        series.total.inc(code, &self.total, &with_dry_run);
        series.duration.observe(&self.duration, &with_dry_run, took.as_secs_f64());
        let labels = [verb, group, version, resource, subresource, scope, COMPONENT];
        if dry_run.is_empty() {
            let own = took.saturating_sub(latency.map(Latency::external).unwrap_or_default());
            series.sli_duration.observe(&self.sli_duration, &labels, own.as_secs_f64());
        }
        if let Some(size) = size.filter(|_| matches!(*verb, "GET" | "LIST")) {
            series.response_sizes.observe(&self.response_sizes, &labels, size as f64);
        }
        if *is_self {
            self.self_requests.with_label_values(&[verb, group, resource, subresource]).inc();
        }
    }

    /// The series that an answer counts in; `None` if there are too many.
    fn series(&self, labels: &Labels) -> Option<Arc<Series>> {
        let Labels { info, verb, scope, dry_run, .. } = labels;
        let (group, version, resource, subresource) = route(info);
        let resource = [group, version, resource, subresource].map(Str::from);
        let route = Route { verb, dry_run, scope, resource };
        if let Some(series) = self.routes.read().unwrap_or_else(|e| e.into_inner()).get(&route) {
            return Some(series.clone());
        }
        if !self.is_countable(info) {
            return None;
        }
        let mut routes = self.routes.write().unwrap_or_else(|e| e.into_inner());
        Some(routes.entry(route).or_default().clone())
    }

    /// What counts the events of a watch; `None` if it is not counted.
    pub fn watch_events(&self, labels: &Labels) -> Option<WatchEvents> {
        if labels.verb != "WATCH" || !self.is_countable(&labels.info) {
            return None;
        }
        let (group, version, resource, _) = route(&labels.info);
        let count = self.watch_events.with_label_values(&[group, version, resource]);
        let sizes = self.watch_event_sizes.with_label_values(&[group, version, resource]);
        Some(WatchEvents { count, sizes })
    }

    /// Counts a long-running request until the guard is dropped.
    pub fn long_running(&self, labels: &Labels) -> LongRunning {
        if !self.is_countable(&labels.info) {
            return LongRunning(None);
        }
        let (group, version, resource, subresource) = route(&labels.info);
        let gauge = self.long_running.with_label_values(&[
            labels.verb,
            group,
            version,
            resource,
            subresource,
            labels.scope,
            COMPONENT,
        ]);
        gauge.inc();
        LongRunning(Some(gauge))
    }

    /// A request that was refused because too many run.
    pub fn dropped(&self, request: &Request) {
        let labels = Labels::of(request);
        self.recent.refused(request.user(), &labels.info);
        if self.is_countable(&labels.info) {
            let Labels { info, verb, scope, dry_run, .. } = &labels;
            let (group, version, resource, subresource) = route(info);
            self.total
                .with_label_values(&[verb, dry_run, group, version, resource, subresource, scope, COMPONENT, "429"])
                .inc();
            self.terminated(&labels, 429);
        }
    }

    /// A request that was refused or cut off: 429, 504.
    pub fn terminated(&self, labels: &Labels, code: u16) {
        if !self.is_countable(&labels.info) {
            return;
        }
        let (group, version, resource, subresource) = route(&labels.info);
        let code = code.to_string();
        self.terminations
            .with_label_values(&[labels.verb, group, version, resource, subresource, labels.scope, COMPONENT, &code])
            .inc();
    }

    /// An answer was broken off.
    pub fn aborted(&self, labels: &Labels) {
        if !self.is_countable(&labels.info) {
            return;
        }
        let (group, version, resource, subresource) = route(&labels.info);
        self.aborts.with_label_values(&[labels.verb, group, version, resource, subresource, labels.scope]).inc();
    }

    /// A request's time is up, or its client has left, and what it did has ended.
    pub fn left(&self, labels: &Labels) {
        self.terminated(labels, 504);
        self.post_timeout.with_label_values(&["timeout-handler", "ok"]).inc();
    }

    pub fn filter_took(&self, filter: &str, took: Duration) {
        self.filter_duration.of(filter).observe(took.as_secs_f64());
    }

    pub fn body_size(&self, info: &RequestInfo, size: usize) {
        if self.is_countable(info) {
            self.body_sizes.with_label_values(&[&info.resource, &info.verb, &info.group]).observe(size as f64);
        }
    }

    /// The gauge of running requests of a kind: `readOnly` or `mutating`.
    pub fn in_flight(&self, kind: &str) -> IntGauge {
        self.in_flight.with_label_values(&[kind])
    }

    /// The gauge of waiting requests of a kind.
    pub fn in_queue(&self, kind: &str) -> IntGauge {
        self.in_queue.with_label_values(&[kind])
    }

    pub fn field_validation(&self, mode: &str, took: Duration) {
        let mode = match mode {
            "" | "Ignore" | "Warn" | "Strict" => mode,
            _ => "invalid",
        };
        self.field_validation.with_label_values(&[mode]).observe(took.as_secs_f64());
    }

    /// A deprecated API was asked for; `removed` is the release that no longer has it.
    pub fn deprecated(&self, info: &RequestInfo, removed: &str) {
        if self.is_countable(info) {
            let labels = [&info.group, &info.version, &info.resource, &info.subresource].map(Str::as_str);
            self.deprecated.with_label_values(&[labels[0], labels[1], labels[2], labels[3], removed]).set(1);
        }
    }

    fn is_countable(&self, info: &RequestInfo) -> bool {
        if !info.is_resource_request {
            return true;
        }
        let key = [&info.group, &info.version, &info.resource, &info.subresource].map(Str::clone);
        if self.known.read().unwrap_or_else(|e| e.into_inner()).contains(&key) {
            return true;
        }
        let lasting = match self.served.get() {
            Some(served) => served(info),
            None => Some(Lasting::UntilRemoved),
        };
        let Some(lasting) = lasting else { return false };
        let mut known = self.known.write().unwrap_or_else(|e| e.into_inner());
        // Custom resources come and go, their series stay.
        let has_room = lasting == Lasting::Always || known.len() < MAX_SERIES;
        has_room && (known.insert(key), true).1
    }
}

impl LateWrites for RequestMetrics {
    fn ended(&self, how: Late) {
        let status = match how {
            Late::Done => "ok",
            Late::Failed => "error",
            Late::Panicked => "panic",
            Late::Pending => "pending",
        };
        self.post_timeout.with_label_values(&["rest-handler", status]).inc();
    }
}

pub struct LongRunning(Option<IntGauge>);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.iter().for_each(IntGauge::dec);
    }
}

/// Paths that are no resources are counted by their first segment only: clients can invent the rest.
fn route(info: &RequestInfo) -> (&str, &str, &str, &str) {
    if info.is_resource_request {
        return (&info.group, &info.version, &info.resource, &info.subresource);
    }
    let known =
        ["/healthz", "/livez", "/readyz", "/metrics", "/version", "/openapi/v2", "/openapi/v3", "/api", "/apis"];
    let path = info.path.trim_end_matches('/');
    ("", "", "", known.into_iter().find(|k| *k == path).unwrap_or(""))
}
