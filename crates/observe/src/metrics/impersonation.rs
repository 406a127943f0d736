//! Counts of who acts as somebody else, by the way in which that was allowed and by outcome.

use super::{Counters, Histograms, Registry, counters, histograms};
use prometheus::exponential_buckets;
use std::time::Duration;

const LABELS: [&str; 2] = ["mode", "decision"];

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    Denied,
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
        }
    }
}

pub struct ImpersonationMetrics {
    attempts: Counted,
    /// Questions to the authorizer, of which an attempt takes several.
    questions: Counted,
}

impl ImpersonationMetrics {
    pub fn new(registry: &Registry) -> ImpersonationMetrics {
        ImpersonationMetrics {
            attempts: Counted::new(registry, "attempts", "Attempts to act as somebody else"),
            questions: Counted::new(
                registry,
                "authorization_attempts",
                "Permissions asked for on behalf of who acts as somebody else",
            ),
        }
    }

    /// `mode` is the one that allowed it, empty if none did.
    pub fn attempted(&self, mode: &str, outcome: Outcome, took: Duration) {
        self.attempts.add(mode, outcome, took);
    }

    pub fn asked(&self, mode: &str, outcome: Outcome, took: Duration) {
        self.questions.add(mode, outcome, took);
    }

    pub fn reset(&self) {
        self.attempts.reset();
        self.questions.reset();
    }
}

struct Counted {
    total: Counters,
    duration: Histograms,
}

impl Counted {
    fn new(registry: &Registry, name: &str, what: &str) -> Counted {
        let buckets = exponential_buckets(0.001, 2.0, 15).expect("a valid series");
        let name = |suffix: &str| format!("apiserver_impersonation_{name}_{suffix}");
        let help = format!("{what}, by mode and decision.");
        Counted {
            total: counters(registry, &name("total"), &help, &LABELS),
            duration: histograms(registry, &name("duration_seconds"), &help, &buckets, &LABELS),
        }
    }

    fn add(&self, mode: &str, outcome: Outcome, took: Duration) {
        let labels = [mode, outcome.label()];
        self.total.with_label_values(&labels).inc();
        self.duration.with_label_values(&labels).observe(took.as_secs_f64());
    }

    fn reset(&self) {
        self.total.reset();
        self.duration.reset();
    }
}
