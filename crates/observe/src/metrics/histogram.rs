//! Histograms, each of one set of labels.

use super::labelled::Series;
use super::pulled::histogram_metric;
use prometheus::proto::{Metric, MetricType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to so many bounds several values are counted apart, and then added at once.
const FEW: usize = 31;

/// One set of labels. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Histogram(Arc<Counts>);

struct Counts {
    bounds: Arc<[f64]>,
    /// Values up to each bound and above the one before it; the last ones are above all.
    buckets: Box<[AtomicU64]>,
    /// Bits of a float.
    sum: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, value: f64) {
        self.0.buckets[self.bucket(value)].fetch_add(1, Ordering::Relaxed);
        self.add(value);
    }

    /// All of these, with one look at each place that others count in, too. Answers how many they were.
    pub fn observe_all(&self, values: impl IntoIterator<Item = f64>) -> u64 {
        let (mut counts, mut count, mut sum) = ([0; FEW + 1], 0, 0.0);
        for value in values {
            count += 1;
            sum += value;
            match counts.get_mut(self.bucket(value)).filter(|_| self.0.bounds.len() <= FEW) {
                Some(apart) => *apart += 1,
                None => drop(self.0.buckets[self.bucket(value)].fetch_add(1, Ordering::Relaxed)),
            }
        }
        for (bucket, apart) in self.0.buckets.iter().zip(counts).filter(|(_, apart)| *apart > 0) {
            bucket.fetch_add(apart, Ordering::Relaxed);
        }
        if count > 0 {
            self.add(sum);
        }
        count
    }

    pub fn get_sample_count(&self) -> u64 {
        self.0.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    fn bucket(&self, value: f64) -> usize {
        self.0.bounds.partition_point(|bound| *bound < value)
    }

    fn add(&self, value: f64) {
        let more = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // It always answers with something.
        let _ = self.0.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

impl Series for Histogram {
    const KIND: MetricType = MetricType::HISTOGRAM;
    /// The bounds.
    type Shape = Arc<[f64]>;

    fn new(bounds: &Arc<[f64]>) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram(Arc::new(Counts { bounds: bounds.clone(), buckets, sum: AtomicU64::new(0f64.to_bits()) }))
    }

    fn metric(&self, labels: &[(&str, &str)]) -> Metric {
        let mut all = 0;
        let upto: Vec<u64> = self
            .0
            .buckets
            .iter()
            .map(|bucket| {
                all += bucket.load(Ordering::Relaxed);
                all
            })
            .collect();
        let sum = f64::from_bits(self.0.sum.load(Ordering::Relaxed));
        histogram_metric(labels.iter().copied(), &self.0.bounds, &upto[..self.0.bounds.len()], (all, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::labelled::Labelled;
    use prometheus::core::Collector;

    #[test]
    fn values_are_counted_up_to_each_bound() {
        let vec = Labelled::<Histogram>::new("a", "b", [1.0, 2.0].into(), &["z", "c"]).unwrap();
        let one = vec.with_label_values(&["x", "y"]);
        [0.5, 1.0, 1.5, 2.5].into_iter().for_each(|value| one.observe(value));
        assert_eq!(vec.with_label_values(&["x", "y"]).observe_all([2.0, 9.0]), 2);
        vec.with_label_values(&["y", "x"]).observe(7.0);
        assert_eq!((one.get_sample_count(), vec.with_label_values(&["n", "n"]).get_sample_count()), (6, 0));
        let mut shown = String::new();
        prometheus::TextEncoder::new().encode_utf8(&vec.collect(), &mut shown).unwrap();
        let mut lines: Vec<&str> = shown.lines().filter(|line| line.contains("c=\"y\"")).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                r#"a_bucket{c="y",z="x",le="+Inf"} 6"#,
                r#"a_bucket{c="y",z="x",le="1"} 2"#,
                r#"a_bucket{c="y",z="x",le="2"} 4"#,
                r#"a_count{c="y",z="x"} 6"#,
                r#"a_sum{c="y",z="x"} 16.5"#,
            ]
        );
    }

    #[test]
    fn many_values_at_once_are_the_same_as_one_by_one() {
        let bounds: Vec<f64> = (0..40).map(f64::from).collect();
        for bounds in [&bounds[..5], &bounds[..FEW], &bounds[..]] {
            let vec = Labelled::<Histogram>::new("a", "b", bounds.into(), &["c"]).unwrap();
            let (one, all) = (vec.with_label_values(&["one"]), vec.with_label_values(&["all"]));
            let values = (0..500).map(|i| f64::from(i * 37 % 101) / 2.0);
            values.clone().for_each(|value| one.observe(value));
            assert_eq!(all.observe_all(values), 500);
            assert_eq!(one.metric(&[]), all.metric(&[]));
        }
    }
}
