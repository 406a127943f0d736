//! How many short requests run and wait, reads and writes apart: for metrics alone.

use super::level::Clock;
use kubelith_fairness::Nanos;
use kubelith_fairness::timing::{Observed, TimedRatio};
use kubelith_http::RequestInfo;
use kubelith_observe::metrics::prometheus::IntGauge;
use kubelith_observe::metrics::requests::RequestMetrics;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

const BOUNDS: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlightKind {
    ReadOnly,
    Mutating,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Executing,
}

impl InFlightKind {
    pub const ALL: [(InFlightKind, &str); 2] =
        [(InFlightKind::ReadOnly, "readOnly"), (InFlightKind::Mutating, "mutating")];

    pub fn of(info: &RequestInfo) -> InFlightKind {
        if info.is_read_only() { InFlightKind::ReadOnly } else { InFlightKind::Mutating }
    }
}

impl Phase {
    pub const ALL: [(Phase, &str); 2] = [(Phase::Waiting, "waiting"), (Phase::Executing, "executing")];
}

pub struct InFlight {
    clock: Clock,
    counts: [[Count; 2]; 2],
}

struct Count {
    now: AtomicI64,
    /// The most since it was last asked for.
    most: AtomicI64,
    /// Brought up to date by whoever finds it free: no request waits for another here.
    over_time: Mutex<TimedRatio>,
}

impl InFlight {
    pub fn new(clock: Clock) -> InFlight {
        let count = || Count {
            now: AtomicI64::new(0),
            most: AtomicI64::new(0),
            over_time: Mutex::new(TimedRatio::new(clock.now(), BOUNDS)),
        };
        InFlight { clock, counts: [[count(), count()], [count(), count()]] }
    }

    pub fn add(&self, kind: InFlightKind, phase: Phase, change: i64, at: Nanos) {
        let count = self.count(kind, phase);
        let now = count.now.fetch_add(change, Ordering::Relaxed) + change;
        if change > 0 {
            count.most.fetch_max(now, Ordering::Relaxed);
        }
        if let Ok(mut over_time) = count.over_time.try_lock() {
            over_time.set(at, now as f64);
        }
    }

    /// What the counts are measured against.
    pub fn set_limits(&self, waiting: f64, executing: f64) {
        for (kind, _) in InFlightKind::ALL {
            for (phase, limit) in [(Phase::Waiting, waiting), (Phase::Executing, executing)] {
                let mut over_time = self.count(kind, phase).over_time.lock().unwrap_or_else(|e| e.into_inner());
                over_time.set_denominator(self.clock.now(), limit.max(1.0));
            }
        }
    }

    pub fn observe(&self, kind: InFlightKind, phase: Phase) -> Observed {
        let mut over_time = self.count(kind, phase).over_time.lock().unwrap_or_else(|e| e.into_inner());
        over_time.observe(self.clock.now())
    }

    /// Shows the most since the last time. Short peaks would be missed by a look now and then.
    pub fn show(&self, metrics: &RequestMetrics) {
        for (kind, name) in InFlightKind::ALL {
            let show = |phase, gauge: IntGauge| {
                let count = self.count(kind, phase);
                gauge.set(count.most.swap(count.now.load(Ordering::Relaxed), Ordering::Relaxed));
            };
            show(Phase::Waiting, metrics.in_queue(name));
            show(Phase::Executing, metrics.in_flight(name));
        }
    }

    fn count(&self, kind: InFlightKind, phase: Phase) -> &Count {
        &self.counts[kind as usize][phase as usize]
    }
}
