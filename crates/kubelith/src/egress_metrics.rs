//! Connections that are made through the proxies of `--egress-selector-config-file`.

use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, Histograms, counters, histograms};
use kubelith_outbound::egress::{DialObserver, Egress, Stage, Way};
use std::sync::Arc;
use std::time::Duration;

const BUCKETS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 2.5, 12.5];
const WAY: &[&str] = &["protocol", "transport"];

/// Counts all of them from now on.
pub fn watch(egress: &Egress, registry: &Registry) {
    let observer: Arc<dyn DialObserver> = Arc::new(EgressMetrics::new(registry));
    egress.observe(&observer);
}

#[derive(Debug)]
struct EgressMetrics {
    starts: Counters,
    durations: Histograms,
    failures: Counters,
}

impl EgressMetrics {
    fn new(registry: &Registry) -> EgressMetrics {
        let name = |rest: &str| format!("apiserver_egress_dialer_dial_{rest}");
        EgressMetrics {
            starts: counters(registry, &name("start_total"), "Connections that were begun through proxies.", WAY),
            durations: histograms(
                registry,
                &name("duration_seconds"),
                "Time until a connection through a proxy was made.",
                BUCKETS,
                WAY,
            ),
            failures: counters(
                registry,
                &name("failure_count"),
                "Connections through proxies that failed, by what failed: to reach the proxy, or what it was asked for.",
                &["protocol", "transport", "stage"],
            ),
        }
    }
}

impl DialObserver for EgressMetrics {
    fn started(&self, way: Way) {
        self.starts.with_label_values(&[way.protocol, way.transport]).inc();
    }

    fn done(&self, way: Way, after: Duration) {
        self.durations.with_label_values(&[way.protocol, way.transport]).observe(after.as_secs_f64());
    }

    fn failed(&self, way: Way, stage: Stage) {
        let stage = match stage {
            Stage::Connect => "connect",
            Stage::Proxy => "proxy",
        };
        self.failures.with_label_values(&[way.protocol, way.transport, stage]).inc();
    }
}
