//! Counters, each of one set of labels.

use super::labelled::Series;
use prometheus::proto::{self, Metric, MetricType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One set of labels. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn inc(&self) {
        self.inc_by(1);
    }

    pub fn inc_by(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Series for Counter {
    const KIND: MetricType = MetricType::COUNTER;
    type Shape = ();

    fn new((): &()) -> Counter {
        Counter::default()
    }

    fn metric(&self, labels: &[(&str, &str)]) -> Metric {
        let mut counter = proto::Counter::default();
        counter.set_value(self.get() as f64);
        let mut metric = super::pulled::labelled(labels.iter().copied());
        metric.set_counter(counter);
        metric
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::labelled::Labelled;
    use prometheus::core::Collector;

    #[test]
    fn series_come_and_go() {
        let vec = Labelled::<Counter>::new("a", "b", (), &["c"]).unwrap();
        vec.with_label_values(&["x"]).inc();
        vec.with_label_values(&["x"]).inc_by(2);
        vec.with_label_values(&["y"]).inc();
        let shown = |vec: &Labelled<Counter>| vec.collect()[0].get_metric().len();
        assert_eq!((vec.with_label_values(&["x"]).get(), shown(&vec)), (3, 2));
        vec.remove_label_values(&["x"]);
        assert_eq!(shown(&vec), 1);
        vec.reset();
        assert_eq!(shown(&vec), 0);
    }
}
