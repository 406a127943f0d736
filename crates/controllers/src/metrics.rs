//! Figures of single controllers, beside those of their queues. Made once: a second term of leadership counts on.

use kubelith_observe::metrics::Registry;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts};

pub struct ControllerMetrics {
    pub garbage_sync_errors: IntCounter,
    pub root_ca_syncs: IntCounterVec,
    pub root_ca_durations: HistogramVec,
    /// From a job's expiry to its deletion.
    pub expired_jobs: Histogram,
}

impl ControllerMetrics {
    pub fn new(registry: &Registry) -> ControllerMetrics {
        const VALID: &str = "names and labels are valid";
        let metrics = ControllerMetrics {
            garbage_sync_errors: IntCounter::new(
                "garbagecollector_controller_resources_sync_error_total",
                "Number of garbage collector resources sync errors",
            )
            .expect(VALID),
            root_ca_syncs: IntCounterVec::new(
                Opts::new(
                    "root_ca_cert_publisher_sync_total",
                    "Number of namespace syncs happened in root ca cert publisher.",
                ),
                &["code"],
            )
            .expect(VALID),
            root_ca_durations: HistogramVec::new(
                HistogramOpts::new(
                    "root_ca_cert_publisher_sync_duration_seconds",
                    "Number of namespace syncs happened in root ca cert publisher.",
                )
                .buckets(exponential(0.001, 2.0, 15)),
                &["code"],
            )
            .expect(VALID),
            expired_jobs: Histogram::with_opts(
                HistogramOpts::new(
                    "ttl_after_finished_controller_job_deletion_duration_seconds",
                    "The time it took to delete the job since it became eligible for deletion",
                )
                .buckets(exponential(0.1, 2.0, 14)),
            )
            .expect(VALID),
        };
        let all: [Box<dyn prometheus::core::Collector>; 4] = [
            Box::new(metrics.garbage_sync_errors.clone()),
            Box::new(metrics.root_ca_syncs.clone()),
            Box::new(metrics.root_ca_durations.clone()),
            Box::new(metrics.expired_jobs.clone()),
        ];
        for collector in all {
            // Another server of the same process has them already.
            let _ = registry.register(collector);
        }
        metrics
    }
}

fn exponential(first: f64, factor: f64, count: usize) -> Vec<f64> {
    std::iter::successors(Some(first), |last| Some(last * factor)).take(count).collect()
}
