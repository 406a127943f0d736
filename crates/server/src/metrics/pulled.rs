//! A counter that lives elsewhere and is read when it is asked for: counting costs its owner nothing more.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, Opts};

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

impl Collector for PulledCounter {
    fn desc(&self) -> Vec<&Desc> {
        self.counter.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.counter.inc_by((self.read)().saturating_sub(self.counter.get()));
        self.counter.collect()
    }
}
