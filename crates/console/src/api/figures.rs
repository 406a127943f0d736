//! Numbers out of the metrics that the server keeps anyway: sums over labels, and what distributions say.

use kubelith_observe::metrics::Metrics;
use kubelith_observe::metrics::prometheus::proto::{Metric, MetricFamily};
use serde::Serialize;

/// All metrics as they were at one moment.
pub struct Figures(Vec<MetricFamily>);

/// A histogram, or several with the same bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Distribution {
    pub count: u64,
    /// In seconds.
    pub sum: f64,
    pub bounds: Vec<f64>,
    /// Up to each bound.
    pub counts: Vec<u64>,
}

impl Figures {
    pub fn of(metrics: &Metrics) -> Figures {
        Figures(metrics.registry.gather())
    }

    /// The series of a metric; none if there is no such metric.
    pub fn series(&self, name: &str) -> impl Iterator<Item = &Metric> {
        // Sorted by name, as the registry gathers them.
        let found = self.0.binary_search_by(|family| family.name().cmp(name)).ok();
        found.into_iter().flat_map(|place| self.0[place].get_metric())
    }

    /// The sum over all series of a histogram that `wanted` accepts.
    pub fn distribution(&self, name: &str, wanted: impl Fn(&Metric) -> bool) -> Distribution {
        let mut sum = Distribution::default();
        self.series(name).filter(|metric| wanted(metric)).for_each(|metric| sum.add(metric));
        sum
    }

    pub fn gauge(&self, name: &str) -> f64 {
        self.series(name).map(|metric| metric.get_gauge().get_value()).sum()
    }

    pub fn counter(&self, name: &str) -> f64 {
        self.series(name).map(|metric| metric.get_counter().get_value()).sum()
    }
}

/// The value of a label; empty if the series does not have it.
pub fn label<'m>(metric: &'m Metric, name: &str) -> &'m str {
    metric.get_label().iter().find(|pair| pair.name() == name).map_or("", |pair| pair.value())
}

impl Distribution {
    pub fn add(&mut self, metric: &Metric) {
        let histogram = metric.get_histogram();
        self.count += histogram.get_sample_count();
        self.sum += histogram.get_sample_sum();
        let buckets = histogram.get_bucket();
        if self.counts.is_empty() {
            self.bounds = buckets.iter().map(|bucket| bucket.upper_bound()).collect();
            self.counts = vec![0; buckets.len()];
        }
        for (count, bucket) in self.counts.iter_mut().zip(buckets) {
            *count += bucket.cumulative_count();
        }
    }

    /// The value that `part` of all are below, between the bounds by their share. In seconds.
    pub fn quantile(&self, part: f64) -> f64 {
        let wanted = part * self.count as f64;
        let (mut below, mut from) = (0, 0.0);
        for (count, to) in self.counts.iter().zip(&self.bounds) {
            if *count as f64 >= wanted && *count > below {
                if to.is_infinite() {
                    return from;
                }
                return from + (to - from) * (wanted - below as f64).max(0.0) / (count - below) as f64;
            }
            (below, from) = (*count, *to);
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_observe::metrics::{counters, histograms};

    #[test]
    fn sums_and_quantiles() {
        let metrics = Metrics::new();
        let times = histograms(&metrics.registry, "zz_seconds", "T.", &[1.0, 2.0, 4.0], &["verb"]);
        for (verb, values) in [("a", [0.5, 0.5, 1.5, 1.5]), ("b", [3.0, 3.0, 3.0, 9.0])] {
            values.into_iter().for_each(|value| times.with_label_values(&[verb]).observe(value));
        }
        counters(&metrics.registry, "zz_total", "C.", &["code"]).with_label_values(&["200"]).inc_by(7);
        let figures = Figures::of(&metrics);
        let all = figures.distribution("zz_seconds", |_| true);
        assert_eq!((all.count, all.sum, all.counts.as_slice()), (8, 22.0, &[2, 4, 7][..]));
        assert_eq!((all.quantile(0.25), all.quantile(0.5), all.quantile(1.0)), (1.0, 2.0, 4.0));
        let a = figures.distribution("zz_seconds", |metric| label(metric, "verb") == "a");
        assert_eq!((a.count, a.quantile(0.75)), (4, 1.5));
        assert_eq!(figures.counter("zz_total"), 7.0);
        assert_eq!(figures.distribution("absent", |_| true).quantile(0.5), 0.0);
    }
}
