//! /healthz, /livez and /readyz: named checks, one by one or together.

mod check;
mod routes;

pub use check::{Check, Outcome};
pub use routes::{SingleChecks, health_routes};

use std::time::Duration;
use tokio::time::Instant;

/// The checks of the three endpoints, each in the order they were added.
#[derive(Default)]
pub struct HealthChecks {
    pub healthz: Vec<Check>,
    pub livez: Vec<Check>,
    pub readyz: Vec<Check>,
}

impl HealthChecks {
    /// With the checks that every server has.
    pub fn new() -> HealthChecks {
        let mut checks = HealthChecks::default();
        checks.add(Check::passing("ping"));
        checks.add(Check::passing("log"));
        checks
    }

    /// A check of all three endpoints.
    pub fn add(&mut self, check: Check) {
        self.add_boot(check, Duration::ZERO);
    }

    /// A check of the start: /livez believes in it for `grace`, so that a slow start is not killed.
    pub fn add_boot(&mut self, check: Check, grace: Duration) {
        self.healthz.push(check.clone());
        self.readyz.push(check.clone());
        self.livez.push(if grace.is_zero() { check } else { check.passing_until(Instant::now() + grace) });
    }

    pub fn add_readyz(&mut self, check: Check) {
        self.readyz.push(check);
    }

    /// Not part of /readyz: what a restart would mend, but turning traffic away would not.
    pub fn add_liveness(&mut self, check: Check) {
        self.healthz.push(check.clone());
        self.livez.push(check);
    }
}
