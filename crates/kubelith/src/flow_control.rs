//! Who is served when not all can be: service quality, and priority and fairness or plain limits, put together from
//! the options.

use crate::options::Options;
use http::Method;
use kubelith_http::{BoxHandler, Handler, Reply, Request};
use kubelith_kube::Resources;
use kubelith_meta::time::Clock;
use kubelith_observe::metrics::Metrics;
use kubelith_server::Delegate;
use kubelith_server::fairness::{self, Fairness, FlowReadings, Followed, ObjectCounts, Sources};
use kubelith_server::filters::{Layer, memory_budget, priority_and_fairness, service_quality};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::quality::{self, Quality};
use kubelith_server::routes::Routes;
use kubelith_store::cache::{Hub, ResourceCache};
use std::sync::Arc;
use std::time::Duration;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Longer than it takes to follow a change; a server that is that slow answers without.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the filters and the server chain need of flow control.
#[derive(Clone)]
pub struct FlowControl {
    /// `None`: `--enable-priority-and-fairness=false`.
    fairness: Option<Arc<Fairness>>,
    /// With `--enable-service-quality`.
    quality: Option<Arc<Quality>>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    readings: Arc<FlowReadings>,
}

impl FlowControl {
    pub fn new(
        options: &Options,
        metrics: &Metrics,
        clock: Arc<dyn Clock>,
        readings: Arc<FlowReadings>,
    ) -> FlowControl {
        let generic = &options.generic;
        let seats = generic.max_reads_in_flight.saturating_add(generic.max_writes_in_flight);
        let seats = u32::try_from(seats).unwrap_or(u32::MAX);
        let seats = generic.memory_budget.map_or(seats, |bytes| seats.min(seats_within(bytes)));
        let fairness = generic.priority_and_fairness.then(|| Fairness::new(seats, &metrics.registry));
        let quality = generic.service_quality.then(|| Quality::new(&metrics.registry));
        FlowControl { fairness, quality, metrics: metrics.clone(), clock, readings }
    }

    /// `None`: neither a flag nor the system sets one.
    pub fn memory_budget(&self, options: &Options) -> Option<Layer> {
        let bytes = options.generic.memory_budget?;
        Some(memory_budget::layer(bytes, memory_budget::anonymous_memory, self.metrics.requests.clone()))
    }

    /// Who is served and who waits; `None` where plain limits apply.
    pub fn fairness(&self) -> Option<Arc<Fairness>> {
        self.fairness.clone()
    }

    pub fn service_quality(&self) -> Option<Layer> {
        Some(service_quality::layer(self.quality.clone()?, self.metrics.requests.clone()))
    }

    /// `None`: the plain limits apply.
    pub fn layer(&self, options: &Options) -> Option<Layer> {
        let fairness = self.fairness.clone()?;
        let timeout = options.generic.request_timeout;
        Some(priority_and_fairness::layer(fairness, timeout, self.metrics.requests.clone()))
    }

    /// How many objects there are of each resource, if anybody wants to know.
    pub fn counts(&self) -> Option<Arc<ObjectCounts>> {
        self.fairness.as_ref().map(|fairness| fairness.counts().clone())
    }

    pub fn install(&self, routes: &mut Routes) {
        if let Some(fairness) = &self.fairness {
            fairness::install_dumps(fairness, routes);
        }
    }

    /// Reads the configuration and adds the hooks that follow it.
    pub fn hooks(&self, resources: &Resources, next: Delegate) -> Delegate {
        let next = self.fairness_hooks(resources, next);
        let config_maps = resources.get(&("".into(), "configmaps".into()));
        match (&self.quality, config_maps) {
            (Some(quality), Some(stored)) => {
                next.post_start_hook(quality::hook(quality, stored.cache.clone(), self.clock.clone()))
            }
            _ => next,
        }
    }

    /// Puts a wait in front of `next`: whoever changes a level or a schema sees it count with the next request, and the
    /// schema say what becomes of it.
    pub fn before(&self, next: BoxHandler, resources: &Resources, hub: Arc<Hub>) -> BoxHandler {
        let cache = |resource: &str| Some(resources.get(&(GROUP.into(), resource.into()))?.cache.clone());
        match (&self.fairness, cache("prioritylevelconfigurations"), cache("flowschemas")) {
            (Some(fairness), Some(levels), Some(schemas)) => {
                Arc::new(Barrier { next, fairness: fairness.clone(), levels, schemas, hub })
            }
            _ => next,
        }
    }

    fn fairness_hooks(&self, resources: &Resources, next: Delegate) -> Delegate {
        let cache = |resource: &str| Some(resources.get(&(GROUP.into(), resource.into()))?.cache.clone());
        let Some(fairness) = &self.fairness else {
            return next.post_start_hook(PostStartHook::new("max-in-flight-filter", |_| async { Ok(()) }));
        };
        fairness.counts().track_all(resources.iter().map(|(name, stored)| (name, Arc::downgrade(&stored.cache))));
        let (Some(levels), Some(schemas)) = (cache("prioritylevelconfigurations"), cache("flowschemas")) else {
            tracing::warn!("{GROUP} is not served: priority and fairness goes by its mandatory objects alone");
            return next;
        };
        let (metrics, clock) = (self.metrics.requests.clone(), self.clock.clone());
        let sources = Sources { levels, schemas, metrics, clock, readings: self.readings.clone() };
        next.post_start_hooks(fairness::hooks(fairness, sources))
    }
}

/// What all requests that run may hold of the memory: a quarter, at what fairness reckons for a seat.
fn seats_within(budget: u64) -> u32 {
    const PART: u64 = 4;
    const BYTES_PER_SEAT: u64 = 100_000;
    /// Fewer would keep the levels from having one each.
    const LEAST: u64 = 30;
    u32::try_from((budget / PART / BYTES_PER_SEAT).max(LEAST)).unwrap_or(u32::MAX)
}

struct Barrier {
    next: BoxHandler,
    fairness: Arc<Fairness>,
    levels: Arc<ResourceCache>,
    schemas: Arc<ResourceCache>,
    hub: Arc<Hub>,
}

impl Handler for Barrier {
    fn handle(&self, request: Request) -> Reply {
        let info = request.info();
        let reads = request.method() == Method::GET;
        // What we write ourselves, as the condition, nobody waits for.
        let own = request.connection().is_none();
        if info.group != GROUP || !info.is_resource_request || reads || own {
            return self.next.handle(request);
        }
        let (fairness, hub) = (self.fairness.clone(), self.hub.clone());
        let (levels, schemas) = (self.levels.clone(), self.schemas.clone());
        let response = self.next.handle(request);
        Reply::pending(async move {
            let response = response.await;
            if response.status().is_success() {
                let followed = async {
                    if hub.fresh().await.is_ok() {
                        fairness.caught_up(Followed::of(&levels, &schemas)).await;
                    }
                };
                let _ = tokio::time::timeout(PATIENCE, followed).await;
            }
            response
        })
    }
}
