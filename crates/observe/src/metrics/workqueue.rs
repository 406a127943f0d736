//! Queues of controllers.

use super::Registry;
use super::{
    Counter, Counters, FloatGauges, Gauges, Histogram, Histograms, counters, float_gauges, gauges, histograms,
};
use prometheus::exponential_buckets;
use prometheus::{Gauge, IntGauge};

pub struct WorkqueueMetrics {
    depth: Gauges,
    adds: Counters,
    waited: Histograms,
    worked: Histograms,
    retries: Counters,
    unfinished: FloatGauges,
    longest: FloatGauges,
}

/// The metrics of one queue.
#[derive(Clone)]
pub struct QueueMetrics {
    pub depth: IntGauge,
    pub adds: Counter,
    /// From its first addition to a worker's hands.
    pub waited: Histogram,
    pub worked: Histogram,
    pub retries: Counter,
    /// Of keys with a worker now: their time together, and the longest one.
    pub unfinished: Gauge,
    pub longest: Gauge,
}

impl WorkqueueMetrics {
    pub fn new(registry: &Registry) -> WorkqueueMetrics {
        let buckets = exponential_buckets(10e-9, 10.0, 10).expect("a valid series");
        let seconds = |name: &str, help: &str| float_gauges(registry, name, help, &["name"]);
        let histogram = |name: &str, help: &str| histograms(registry, name, help, &buckets, &["name"]);
        WorkqueueMetrics {
            depth: gauges(registry, "workqueue_depth", "Keys waiting for a worker.", &["name"]),
            adds: counters(registry, "workqueue_adds_total", "Keys added.", &["name"]),
            waited: histogram("workqueue_queue_duration_seconds", "Time that keys waited."),
            worked: histogram("workqueue_work_duration_seconds", "Time that keys took."),
            retries: counters(registry, "workqueue_retries_total", "Keys added again after a failure.", &["name"]),
            unfinished: seconds("workqueue_unfinished_work_seconds", "Time that keys under way have taken so far."),
            longest: seconds(
                "workqueue_longest_running_processor_seconds",
                "Time that the longest of the keys under way has taken so far.",
            ),
        }
    }

    pub fn of(&self, name: &str) -> QueueMetrics {
        QueueMetrics {
            depth: self.depth.with_label_values(&[name]),
            adds: self.adds.with_label_values(&[name]),
            waited: self.waited.with_label_values(&[name]),
            worked: self.worked.with_label_values(&[name]),
            retries: self.retries.with_label_values(&[name]),
            unfinished: self.unfinished.with_label_values(&[name]),
            longest: self.longest.with_label_values(&[name]),
        }
    }
}
