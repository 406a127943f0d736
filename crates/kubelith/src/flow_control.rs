//! Who is served when not all can be: service quality, and priority and fairness or plain limits, put together from
//! the options.

use crate::options::Options;
use kubelith_kube::Resources;
use kubelith_server::Delegate;
use kubelith_server::fairness::{self, Fairness, ObjectCounts, Sources};
use kubelith_server::filters::{Layer, priority_and_fairness, service_quality};
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::metrics::Metrics;
use kubelith_server::quality::{self, Quality};
use kubelith_server::routes::Routes;
use std::sync::Arc;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// What the filters and the server chain need of flow control.
#[derive(Clone)]
pub struct FlowControl {
    /// `None`: `--enable-priority-and-fairness=false`.
    fairness: Option<Arc<Fairness>>,
    /// With `--enable-service-quality`.
    quality: Option<Arc<Quality>>,
    metrics: Metrics,
}

impl FlowControl {
    pub fn new(options: &Options, metrics: &Metrics) -> FlowControl {
        let generic = &options.generic;
        let seats = generic.max_reads_in_flight.saturating_add(generic.max_writes_in_flight);
        let seats = u32::try_from(seats).unwrap_or(u32::MAX);
        let fairness = generic.priority_and_fairness.then(|| Fairness::new(seats, &metrics.registry));
        let quality = generic.service_quality.then(|| Quality::new(&metrics.registry));
        FlowControl { fairness, quality, metrics: metrics.clone() }
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
            (Some(quality), Some(stored)) => next.post_start_hook(quality::hook(quality, stored.cache.clone())),
            _ => next,
        }
    }

    fn fairness_hooks(&self, resources: &Resources, next: Delegate) -> Delegate {
        let cache = |resource: &str| Some(resources.get(&(GROUP.into(), resource.into()))?.cache.clone());
        let Some(fairness) = &self.fairness else {
            return next.post_start_hook(PostStartHook::new("max-in-flight-filter", |_| async { Ok(()) }));
        };
        for ((group, resource), stored) in resources {
            fairness.counts().track(group.clone(), resource.clone(), Arc::downgrade(&stored.cache));
        }
        let (Some(levels), Some(schemas)) = (cache("prioritylevelconfigurations"), cache("flowschemas")) else {
            tracing::warn!("{GROUP} is not served: priority and fairness goes by its mandatory objects alone");
            return next;
        };
        let sources = Sources { levels, schemas, metrics: self.metrics.requests.clone() };
        next.post_start_hooks(fairness::hooks(fairness, sources))
    }
}
