//! What flow control counts per request, under the reference's names. What can be read off the levels when it is
//! asked for is in `collect`.

use kubelith_fairness::queue_set::Reason;
use kubelith_meta::Str;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::series::OnUse;
use kubelith_observe::metrics::{Counter, Counters, Gauges, Histogram, Histograms, counters, gauges, histograms};
use prometheus::IntGauge;

const QUEUE_LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const WATCHES: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const BY: [&str; 2] = ["priority_level", "flow_schema"];

pub struct FlowMetrics {
    rejected: Counters,
    dispatched: Counters,
    waiting_requests: Gauges,
    waiting_seats: Gauges,
    executing_requests: Gauges,
    executing_seats: Gauges,
    queue_length: Histograms,
    waited: Histograms,
    executed: Histograms,
    watch_counts: Histograms,
    estimated_seats: Histograms,
}

/// The series of one schema, found once. Those of what need not happen to a request exist when it does.
pub struct SchemaMetrics {
    level: Str,
    schema: Str,
    rejected: Counters,
    pub dispatched: Counter,
    pub waiting_requests: OnUse<IntGauge>,
    pub waiting_seats: OnUse<IntGauge>,
    pub executing_requests: IntGauge,
    pub executing_seats: IntGauge,
    pub queue_length: OnUse<Histogram>,
    pub waited: OnUse<Histogram>,
    pub waited_in_vain: OnUse<Histogram>,
    pub executed: OnUse<Histogram>,
    pub watch_executed: OnUse<Histogram>,
    pub watch_counts: OnUse<Histogram>,
    pub estimated_seats: OnUse<Histogram>,
}

impl FlowMetrics {
    pub fn new(registry: &Registry) -> FlowMetrics {
        let name = |name: &str| format!("apiserver_flowcontrol_{name}");
        let counter = |of: &str, help, labels: &[&str]| counters(registry, &name(of), help, labels);
        let gauge = |of: &str, help| gauges(registry, &name(of), help, &BY);
        let histogram =
            |of: &str, help, buckets, labels: &[&str]| histograms(registry, &name(of), help, buckets, labels);
        let with = |label| [BY[0], BY[1], label];
        FlowMetrics {
            rejected: counter("rejected_requests_total", "Requests that were refused.", &with("reason")),
            dispatched: counter("dispatched_requests_total", "Requests that were let run.", &BY),
            waiting_requests: gauge("current_inqueue_requests", "Requests that wait in queues."),
            waiting_seats: gauge("current_inqueue_seats", "Seats that requests wait for in queues."),
            executing_requests: gauge("current_executing_requests", "Requests that run; watches while they begin."),
            executing_seats: gauge("current_executing_seats", "Seats of requests that run."),
            queue_length: histogram(
                "request_queue_length_after_enqueue",
                "Lengths of queues as each request saw its own after it came.",
                QUEUE_LENGTHS,
                &BY,
            ),
            waited: histogram(
                "request_wait_duration_seconds",
                "Time that requests waited in queues.",
                SECONDS,
                &with("execute"),
            ),
            executed: histogram(
                "request_execution_seconds",
                "Time that requests ran; watches until they had begun.",
                SECONDS,
                &with("type"),
            ),
            watch_counts: histogram("watch_count_samples", "Watches that a write concerned.", WATCHES, &BY),
            estimated_seats: histogram("work_estimated_seats", "Seats that requests were taken to need.", SEATS, &BY),
        }
    }

    pub fn of(&self, level: &str, schema: &str) -> SchemaMetrics {
        let by = [level, schema];
        let (level, schema): (Str, Str) = (level.into(), schema.into());
        let gauge = |of: &Gauges| {
            let (of, level, schema) = (of.clone(), level.clone(), schema.clone());
            OnUse::new(move || of.with_label_values(&[level.as_str(), schema.as_str()]))
        };
        let histogram = |of: &Histograms, more: Option<&'static str>| {
            let (of, level, schema) = (of.clone(), level.clone(), schema.clone());
            OnUse::new(move || {
                let labels: Vec<&str> = [level.as_str(), schema.as_str()].into_iter().chain(more).collect();
                of.with_label_values(&labels)
            })
        };
        SchemaMetrics {
            rejected: self.rejected.clone(),
            dispatched: self.dispatched.with_label_values(&by),
            waiting_requests: gauge(&self.waiting_requests),
            waiting_seats: gauge(&self.waiting_seats),
            executing_requests: self.executing_requests.with_label_values(&by),
            executing_seats: self.executing_seats.with_label_values(&by),
            queue_length: histogram(&self.queue_length, None),
            waited: histogram(&self.waited, Some("true")),
            waited_in_vain: histogram(&self.waited, Some("false")),
            executed: histogram(&self.executed, Some("regular")),
            watch_executed: histogram(&self.executed, Some("watch")),
            watch_counts: histogram(&self.watch_counts, None),
            estimated_seats: histogram(&self.estimated_seats, None),
            level: level.clone(),
            schema: schema.clone(),
        }
    }
}

impl SchemaMetrics {
    pub fn refused(&self, reason: Reason) {
        self.rejected.with_label_values(&[self.level.as_str(), self.schema.as_str(), reason.as_str()]).inc();
    }
}
