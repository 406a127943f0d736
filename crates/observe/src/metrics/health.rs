//! Outcomes of health checks.

use super::Registry;
use super::{Counters, Gauges, counters, gauges};

pub struct HealthMetrics {
    last: Gauges,
    total: Counters,
}

impl HealthMetrics {
    pub fn new(registry: &Registry) -> HealthMetrics {
        HealthMetrics {
            last: gauges(
                registry,
                "kubernetes_healthcheck",
                "The last outcome of a check: 1 passed.",
                &["name", "type"],
            ),
            total: counters(
                registry,
                "kubernetes_healthchecks_total",
                "Outcomes of checks.",
                &["name", "type", "status"],
            ),
        }
    }

    /// Forgets what was counted.
    pub fn reset(&self) {
        self.last.reset();
        self.total.reset();
    }

    pub fn passed(&self, check: &str, endpoint: &str) {
        self.last.with_label_values(&[check, endpoint]).set(1);
        self.total.with_label_values(&[check, endpoint, "success"]).inc();
    }

    pub fn failed(&self, check: &str, endpoint: &str) {
        self.last.with_label_values(&[check, endpoint]).set(0);
        self.total.with_label_values(&[check, endpoint, "error"]).inc();
    }
}
