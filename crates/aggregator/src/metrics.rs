//! What the aggregator counts.

use crate::api_service::Condition;
use kubelith_observe::metrics::prometheus::IntCounter;
use kubelith_observe::metrics::{Counters, Family, Gauges, Registry, counters, gauges};

pub struct AggregatorMetrics {
    unavailable: Gauges,
    became_unavailable: Counters,
    pub discovery_aggregations: Family<IntCounter>,
}

impl AggregatorMetrics {
    pub fn new(registry: &Registry) -> AggregatorMetrics {
        let aggregations = || {
            IntCounter::new(
                "aggregator_discovery_aggregation_count_total",
                "How often the aggregated discovery document was made anew.",
            )
        };
        AggregatorMetrics {
            unavailable: gauges(
                registry,
                "aggregator_unavailable_apiservice",
                "APIServices by name: 1 if unavailable.",
                &["name"],
            ),
            became_unavailable: counters(
                registry,
                "aggregator_unavailable_apiservice_total",
                "How often an APIService became unavailable, and why.",
                &["name", "reason"],
            ),
            discovery_aggregations: Family::single(registry, aggregations).shown(registry, |_| ()),
        }
    }

    pub fn set(&self, name: &str, available: bool) {
        self.unavailable.with_label_values(&[name]).set(i64::from(!available));
    }

    pub fn changed(&self, name: &str, before: Option<&Condition>, now: &Condition) {
        let was = before.is_some_and(|c| c.status == "True");
        if was && now.status != "True" {
            self.became_unavailable.with_label_values(&[name, &now.reason]).inc();
        }
    }

    pub fn forget(&self, name: &str) {
        // An error means that there was none.
        let _ = self.unavailable.remove_label_values(&[name]);
    }
}
