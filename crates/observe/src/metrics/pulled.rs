//! A counter that lives elsewhere and is read when it is asked for: counting costs its owner nothing more.

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, Opts};
use std::collections::HashMap;

pub struct PulledCounter {
    counter: IntCounter,
    read: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl PulledCounter {
    pub fn new(opts: Opts, read: impl Fn() -> u64 + Send + Sync + 'static) -> PulledCounter {
        let counter = IntCounter::with_opts(opts).expect("a well-formed name");
        PulledCounter { counter, read: Box::new(read) }
    }
}

/// Figures that live elsewhere, made into families when they are asked for.
pub struct PulledFamilies {
    desc: Vec<Desc>,
    read: Box<dyn Fn() -> Vec<MetricFamily> + Send + Sync>,
}

impl PulledFamilies {
    /// `names` are those of the families that `read` answers with.
    pub fn new(names: &[(&str, &str)], read: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static) -> PulledFamilies {
        let desc = |(name, help): &(&str, &str)| {
            let desc = Desc::new((*name).to_owned(), (*help).to_owned(), Vec::new(), HashMap::new());
            desc.expect("a well-formed name")
        };
        PulledFamilies { desc: names.iter().map(desc).collect(), read: Box::new(read) }
    }
}

impl Collector for PulledFamilies {
    fn desc(&self) -> Vec<&Desc> {
        self.desc.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        (self.read)()
    }
}

/// Name and value.
type Label<'a> = (&'a str, &'a str);
/// Values up to each bound, all values, and their sum.
type Counted<const BUCKETS: usize> = ([u64; BUCKETS], u64, f64);

/// A family of histograms: for each set of labels (in the order of their names) the values up to each bound, all values, and
/// their sum.
pub fn histogram_family<'a, const BUCKETS: usize, L: IntoIterator<Item = Label<'a>> + Clone>(
    (name, help): (&str, &str),
    bounds: &[f64; BUCKETS],
    series: &[(L, Counted<BUCKETS>)],
) -> MetricFamily {
    let metric = |(labels, (counts, all, sum)): &(L, Counted<BUCKETS>)| {
        histogram_metric(labels.clone(), bounds, counts, (*all, *sum))
    };
    family((name, help), MetricType::HISTOGRAM, series.iter().map(metric).collect())
}

/// One histogram: the values up to each bound, all values, and their sum.
pub(super) fn histogram_metric<'a>(
    labels: impl IntoIterator<Item = Label<'a>>,
    bounds: &[f64],
    counts: &[u64],
    (all, sum): (u64, f64),
) -> Metric {
    let buckets = bounds.iter().zip(counts).map(|(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*count);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(all);
    histogram.set_sample_sum(sum);
    let mut metric = labelled(labels);
    metric.set_histogram(histogram);
    metric
}

/// A family of gauges, one for each label's value.
pub fn gauge_family((name, help): (&str, &str), series: &[(Option<(&str, &str)>, f64)]) -> MetricFamily {
    let metric = |(label, value): &(Option<(&str, &str)>, f64)| {
        let mut gauge = Gauge::default();
        gauge.set_value(*value);
        let mut metric = labelled(*label);
        metric.set_gauge(gauge);
        metric
    };
    family((name, help), MetricType::GAUGE, series.iter().map(metric).collect())
}

/// A family of gauges, one for each set of labels; labels in the order of their names.
pub fn labelled_gauges((name, help): (&str, &str), series: &[(Vec<Label<'_>>, f64)]) -> MetricFamily {
    let metric = |(labels, value): &(Vec<Label<'_>>, f64)| {
        let mut gauge = Gauge::default();
        gauge.set_value(*value);
        let mut metric = labelled(labels.iter().copied());
        metric.set_gauge(gauge);
        metric
    };
    family((name, help), MetricType::GAUGE, series.iter().map(metric).collect())
}

/// A family of counters, one for each set of labels; labels in the order of their names.
pub fn counter_family((name, help): (&str, &str), series: &[(Vec<Label<'_>>, u64)]) -> MetricFamily {
    let metric = |(labels, value): &(Vec<Label<'_>>, u64)| {
        let mut counter = Counter::default();
        counter.set_value(*value as f64);
        let mut metric = labelled(labels.iter().copied());
        metric.set_counter(counter);
        metric
    };
    family((name, help), MetricType::COUNTER, series.iter().map(metric).collect())
}

pub(super) fn labelled<'a>(labels: impl IntoIterator<Item = Label<'a>>) -> Metric {
    let mut metric = Metric::default();
    let pairs = labels.into_iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    });
    metric.set_label(pairs.collect());
    metric
}

pub(super) fn family((name, help): (&str, &str), kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

impl Collector for PulledCounter {
    fn desc(&self) -> Vec<&Desc> {
        self.counter.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.counter.inc_by((self.read)().saturating_sub(self.counter.get()));
        self.counter.collect()
    }
}
