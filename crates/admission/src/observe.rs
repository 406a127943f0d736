//! What admission tells whoever counts: how long its parts take, and what Pod Security decides.

use kubelith_registry::admission::Operation;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Admit,
    Validate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Refused,
}

/// Takes the times of one plugin, or of a whole phase.
pub trait Timer: Send + Sync {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, time: Duration);
}

/// A look of Pod Security at a pod or at what makes pods.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a> {
    pub decision: Decision,
    pub mode: SecurityMode,
    pub level: &'a str,
    /// `latest`, `v1.x`, or `future` for a release that is not known yet.
    pub version: &'a str,
    pub operation: Operation,
    /// `pod` or `controller`.
    pub resource: &'static str,
    pub subresource: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityMode {
    Enforce,
    Audit,
    Warn,
}

/// Whoever counts. By default, nobody does.
pub trait Observer: Send + Sync {
    /// For a plugin; asked for once.
    fn plugin(&self, _name: &'static str) -> Option<Arc<dyn Timer>> {
        None
    }

    /// For all plugins together.
    fn steps(&self) -> Option<Arc<dyn Timer>> {
        None
    }

    fn pod_security_evaluated(&self, _evaluation: Evaluation<'_>) {}

    fn pod_security_exempted(&self, _operation: Operation, _resource: &'static str, _subresource: &str) {}
}

impl Observer for () {}
