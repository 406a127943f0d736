//! What is counted per class. Classes are few and chosen by administrators, so each has series of its own.

use kubelith_fairness::quality::{Asks, Refusal};
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counter, Counters, Gauges, counters, gauges};
use prometheus::IntGauge;

pub struct QualityMetrics {
    requests: Counters,
    refused: Counters,
    list_bytes: Counters,
    watches: Gauges,
    valid: Gauges,
}

/// The series of one class.
pub struct ClassMetrics {
    name: String,
    requests: Counter,
    refused: Counters,
    pub list_bytes: Counter,
    pub watches: IntGauge,
}

impl QualityMetrics {
    pub fn new(registry: &Registry) -> QualityMetrics {
        let name = |name: &str| format!("kubelith_service_quality_{name}");
        let class = ["class"];
        QualityMetrics {
            requests: counters(registry, &name("requests_total"), "Requests within the budgets of a class.", &class),
            refused: counters(
                registry,
                &name("refused_requests_total"),
                "Requests over a budget of a class.",
                &["class", "budget"],
            ),
            list_bytes: counters(registry, &name("list_bytes_total"), "Bytes of lists answered to a class.", &class),
            watches: gauges(registry, &name("watches"), "Open watches of a class.", &class),
            valid: gauges(
                registry,
                &name("class_valid"),
                "1 for a class in force, 0 for one whose declaration is ignored.",
                &class,
            ),
        }
    }

    pub fn of(&self, class: &str) -> ClassMetrics {
        ClassMetrics {
            name: class.to_owned(),
            requests: self.requests.with_label_values(&[class]),
            refused: self.refused.clone(),
            list_bytes: self.list_bytes.with_label_values(&[class]),
            watches: self.watches.with_label_values(&[class]),
        }
    }

    pub fn valid(&self, class: &str) {
        self.valid.with_label_values(&[class]).set(1);
    }

    pub fn invalid(&self, class: &str) {
        self.valid.with_label_values(&[class]).set(0);
    }

    pub fn gone(&self, class: &str) {
        let _ = self.valid.remove_label_values(&[class]);
    }
}

impl ClassMetrics {
    pub fn let_in(&self, asks: Asks) {
        self.requests.inc();
        if asks == Asks::ForWatch {
            self.watches.inc();
        }
    }

    pub fn refused(&self, refusal: Refusal) {
        self.refused.with_label_values(&[self.name.as_str(), refusal.budget()]).inc();
    }
}
