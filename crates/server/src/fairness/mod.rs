//! API priority and fairness: who gets a seat when not all can have one. The algorithms are in the crate
//! `fairness`; here they meet requests, clocks, the stored configuration and metrics.
//!
//! ```text
//! request ─► classify (no lock: the configuration is swapped whole) ─► estimate its work
//!         ─► its level's lock, for a few hundred nanoseconds ─► runs, waits for its turn, or 429
//! ```

mod collect;
mod config;
mod counts;
mod dump;
mod estimate;
mod follow;
mod in_flight;
mod level;
mod look;
mod metrics;

use arc_swap::{ArcSwap, Guard};
use config::Config;
pub use config::Schema;
pub use counts::ObjectCounts;
pub use dump::install as install_dumps;
pub use follow::{FlowReadings, Followed, Sources, first_status, hooks};
pub use in_flight::InFlight;
use kubelith_auth::User;
use kubelith_fairness::work::Work;
use kubelith_fairness::{Digest, FlowSchema, PriorityLevel};
use kubelith_http::{Request, RequestInfo};
use kubelith_meta::when_asked::WhenAsked;
use kubelith_observe::metrics::Registry;
pub use level::{Clock, Permit, Started, Turn};
pub use look::{LevelNow, RequestNow};
use metrics::FlowMetrics;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// Flow control of one server.
pub struct Fairness {
    /// Seats of the whole server.
    concurrency: u32,
    clock: Clock,
    config: ArcSwap<Config>,
    /// Reads what is stored before the first request is judged by it.
    reading: WhenAsked,
    /// Held while the configuration is replaced or limits are adjusted: one at a time. Taken before a level's lock.
    changing: Mutex<()>,
    /// Differs from server to server, so nobody can choose a name that shares a queue with a victim's.
    seed: u64,
    metrics: Arc<FlowMetrics>,
    pub in_flight: Arc<InFlight>,
    watches: estimate::Watches,
    counts: Arc<ObjectCounts>,
    /// Rings when a level that is no longer wanted has become idle.
    idle: Arc<Notify>,
    /// The revisions of levels and schemas up to which this follows the stored objects.
    followed: watch::Sender<Followed>,
}

impl Fairness {
    /// With the mandatory objects alone, until [`Fairness::configure`] is told of others.
    pub fn new(concurrency: u32, registry: &Registry) -> Arc<Fairness> {
        Fairness::seeded(concurrency, registry, RandomState::new().hash_one(concurrency))
    }

    fn seeded(concurrency: u32, registry: &Registry, seed: u64) -> Arc<Fairness> {
        let clock = Clock::start();
        let metrics = Arc::new(FlowMetrics::new(registry));
        let in_flight = Arc::new(InFlight::new(clock));
        let idle = Arc::new(Notify::new());
        let fairness = Arc::new(Fairness {
            concurrency,
            clock,
            config: ArcSwap::from_pointee(Config::default()),
            reading: WhenAsked::default(),
            changing: Mutex::default(),
            seed,
            metrics,
            in_flight,
            watches: estimate::Watches::default(),
            counts: Arc::new(ObjectCounts::default()),
            idle,
            followed: watch::Sender::default(),
        });
        fairness.configure(Objects::default());
        let shown = Arc::downgrade(&fairness);
        registry.later(move |registry| collect::register(shown, registry));
        fairness
    }

    /// The configuration in force.
    fn config(&self) -> Guard<Arc<Config>> {
        self.reading.asked();
        self.config.load()
    }

    /// Where the sizes of resources are looked up.
    pub fn counts(&self) -> &Arc<ObjectCounts> {
        &self.counts
    }

    /// Finds the request's schema and asks its level for seats.
    pub fn start(&self, request: &Request) -> Started {
        let config = self.config();
        let info = request.info();
        let user = request.user().cloned().unwrap_or_default();
        let digest = digest(&user, info);
        let schema = config.classify(&digest).clone();
        drop(config);
        let work = self.estimate(request, &schema);
        let hash = if schema.has_flows() { self.hash(&schema.spec.name, schema.spec.flow(&digest)) } else { 0 };
        level::start(&schema, &self.in_flight, work, hash, user.clone(), info.clone())
    }

    fn hash(&self, schema: &str, flow: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, schema, flow).hash(&mut hasher);
        hasher.finish()
    }

    fn estimate(&self, request: &Request, schema: &Schema) -> Work {
        let work = estimate::work(request, schema, &self.counts, &self.watches);
        schema.metrics().estimated_seats.observe(work.max_seats().into());
        work
    }

    /// Counts a watch until the guard is dropped.
    pub fn watching(&self, request: &Request) -> estimate::Watching {
        self.watches.register(request)
    }
}

pub(crate) fn digest<'a>(user: &'a User, info: &'a RequestInfo) -> Digest<'a> {
    Digest {
        user: &user.name,
        groups: &user.groups,
        is_resource_request: info.is_resource_request,
        path: &info.path,
        verb: &info.verb,
        group: &info.group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
    }
}

/// What the stored objects say.
#[derive(Debug, Default)]
pub struct Objects {
    pub levels: Vec<PriorityLevel>,
    pub schemas: Vec<FlowSchema>,
}

#[cfg(test)]
mod tests;
