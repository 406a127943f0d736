//! What a scrape reads off the levels: limits, demand, and how full they were over time.

use super::Fairness;
use super::in_flight::{InFlightKind, Phase};
use kubelith_fairness::timing::Observed;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::register as register_collector;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::HashMap;
use std::sync::Weak;

const LEVEL: &[&str] = &["priority_level"];
const LEVEL_PHASE: &[&str] = &["priority_level", "phase"];
const PHASE_KIND: &[&str] = &["phase", "request_kind"];

/// The families, in the order in which [`Families::all`] keeps them.
const FAMILIES: [(&str, &str, &[&str], MetricType); 15] = [
    ("nominal_limit_seats", "Seats that a level is entitled to.", LEVEL, MetricType::GAUGE),
    ("lower_limit_seats", "Seats that a level has when it lends all that it may.", LEVEL, MetricType::GAUGE),
    ("upper_limit_seats", "Seats that a level has when it borrows all that it may.", LEVEL, MetricType::GAUGE),
    ("current_limit_seats", "Seats that a level has now.", LEVEL, MetricType::GAUGE),
    ("current_r", "Virtual time of a level.", LEVEL, MetricType::GAUGE),
    ("demand_seats_high_watermark", "Most seats that a level could use in the last period.", LEVEL, MetricType::GAUGE),
    ("demand_seats_average", "Average of the seats that a level could use.", LEVEL, MetricType::GAUGE),
    ("demand_seats_stdev", "Standard deviation of the seats that a level could use.", LEVEL, MetricType::GAUGE),
    ("demand_seats_smoothed", "Smoothed demand of a level for seats.", LEVEL, MetricType::GAUGE),
    ("target_seats", "Seats that a level should have.", LEVEL, MetricType::GAUGE),
    ("seat_fair_frac", "Seats per seat of demand, where no bound stops it.", &[], MetricType::GAUGE),
    ("demand_seats", "Demand for seats over time, as a part of those there are.", LEVEL, MetricType::HISTOGRAM),
    (
        "priority_level_request_utilization",
        "Requests over time, as a part of those that fit.",
        LEVEL_PHASE,
        MetricType::HISTOGRAM,
    ),
    (
        "priority_level_seat_utilization",
        "Seats in use over time, as a part of those there are.",
        LEVEL_PHASE,
        MetricType::HISTOGRAM,
    ),
    (
        "read_vs_write_current_requests",
        "Reads and writes over time, as a part of those that fit.",
        PHASE_KIND,
        MetricType::HISTOGRAM,
    ),
];

struct LevelCollector {
    fairness: Weak<Fairness>,
    descriptions: Vec<Desc>,
}

pub fn register(fairness: Weak<Fairness>, registry: &Registry) {
    let describe = |(name, help, labels, _): &(&str, &str, &[&str], MetricType)| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Desc::new(full(name), (*help).to_owned(), labels, HashMap::new()).expect("names and labels are well-formed")
    };
    let descriptions = FAMILIES.iter().map(describe).collect();
    register_collector(registry, LevelCollector { fairness, descriptions });
}

fn full(name: &str) -> String {
    format!("apiserver_flowcontrol_{name}")
}

impl Collector for LevelCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(fairness) = self.fairness.upgrade() else { return Vec::new() };
        let mut families = Families::default();
        // What is asked for while metrics are gathered must not make any.
        let config = fairness.config.load_full();
        for (name, entry) in &config.levels {
            let level = [("priority_level", name.as_str())];
            let phase = |phase| [("phase", phase), ("priority_level", name.as_str())];
            let (demand, target, limit, meter, utilization) = entry.level.with(|state, now| {
                let queues = &mut state.queues;
                let utilization = queues.utilization(now);
                (state.demand, state.target, queues.limit(), queues.meter(), utilization)
            });
            families.gauge(0, &level, entry.limits.nominal.into());
            families.gauge(1, &level, entry.limits.min.into());
            families.gauge(2, &level, entry.limits.max.into());
            families.gauge(3, &level, limit.into());
            families.gauge(4, &level, meter.as_f64());
            families.gauge(5, &level, demand.high_watermark.into());
            families.gauge(6, &level, demand.average);
            families.gauge(7, &level, demand.deviation);
            families.gauge(8, &level, demand.smoothed);
            families.gauge(9, &level, target);
            // A level that no request came to has nothing to tell.
            if utilization.demand.sum + utilization.waiting.sum + utilization.executing.sum > 0.0 {
                families.histogram(11, &level, utilization.demand);
                families.histogram(12, &phase("waiting"), utilization.waiting);
                families.histogram(12, &phase("executing"), utilization.executing);
                families.histogram(13, &phase("executing"), utilization.seats);
            }
        }
        families.gauge(10, &[], config.fair_fraction);
        for (kind, kind_name) in InFlightKind::ALL {
            for (phase, phase_name) in Phase::ALL {
                let labels = [("phase", phase_name), ("request_kind", kind_name)];
                let observed = fairness.in_flight.observe(kind, phase);
                if observed.sum > 0.0 {
                    families.histogram(14, &labels, observed);
                }
            }
        }
        families.finish()
    }
}

#[derive(Default)]
struct Families {
    all: [Vec<Metric>; FAMILIES.len()],
}

impl Families {
    fn gauge(&mut self, family: usize, labels: &[(&str, &str)], value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = labelled(labels);
        metric.set_gauge(gauge);
        self.all[family].push(metric);
    }

    fn histogram(&mut self, family: usize, labels: &[(&str, &str)], observed: Observed) {
        let mut histogram = Histogram::default();
        histogram.set_sample_count(observed.count);
        histogram.set_sample_sum(observed.sum);
        let bucket = |(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        };
        histogram.set_bucket(observed.buckets.into_iter().map(bucket).collect());
        let mut metric = labelled(labels);
        metric.set_histogram(histogram);
        self.all[family].push(metric);
    }

    fn finish(self) -> Vec<MetricFamily> {
        let family = |((name, help, _, kind), metrics): (_, Vec<Metric>)| {
            let (name, help): (&str, &str) = (name, help);
            let mut family = MetricFamily::default();
            family.set_name(full(name));
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            family.set_metric(metrics);
            family
        };
        FAMILIES.into_iter().zip(self.all).filter(|(_, metrics)| !metrics.is_empty()).map(family).collect()
    }
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}
