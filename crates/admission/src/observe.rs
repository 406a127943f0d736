//! What admission tells whoever counts: how long its parts take, and what Pod Security decides.

use kubelith_registry::admission::Operation;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// When something began and ended.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from: Instant,
    pub to: Instant,
}

/// Takes the times of one plugin, or of a whole phase.
pub trait Timer: Send + Sync {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, span: Span);
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

/// Whether a request ends with what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Fatal,
    Passed,
}

/// A call of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    pub name: &'a str,
    pub power: Power,
    pub operation: Operation,
    /// Why the request was refused, if it was.
    pub failure: Option<HookFailure>,
    /// Of the answer, or of what stands for it.
    pub code: u16,
    pub time: Duration,
    /// What went wrong, in words; empty if nothing did.
    pub why: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookFailure {
    /// It was not reached, or made no sense.
    Calling,
    Denied,
    /// Something went wrong here.
    Internal,
}

/// What became of one validation or mutation of a policy.
#[derive(Debug, Clone, Copy)]
pub struct PolicyCheck<'a> {
    pub power: Power,
    pub policy: &'a str,
    pub binding: &'a str,
    pub error: CheckError,
    /// Of validating policies: `allow`, `deny`, `audit` or `warn`.
    pub action: &'static str,
    pub time: Duration,
    /// What was said of the object, or went wrong; empty if nothing was.
    pub why: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckError {
    None,
    Compile,
    OutOfBudget,
    /// Also what was plainly refused.
    Invalid,
}

impl CheckError {
    /// By what is said, as in the reference.
    pub fn of(message: &str) -> CheckError {
        if message.starts_with("compilation") {
            CheckError::Compile
        } else if message.starts_with("validation failed due to running out of cost budget") {
            CheckError::OutOfBudget
        } else {
            CheckError::Invalid
        }
    }
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

    /// Pod Security could not find out what a namespace asks for, or not in full.
    fn pod_security_failed(&self, _: Severity, _operation: Operation, _resource: &'static str, _subresource: &str) {}

    fn webhook_called(&self, _call: HookCall<'_>) {}

    /// A webhook failed, and the request went on.
    fn webhook_failed_open(&self, _name: &str, _power: Power) {}

    /// Conditions of what `kind` says (a webhook or policy) were looked at; some of them failed.
    fn conditions_checked(
        &self,
        _name: &str,
        _kind: &'static str,
        _power: Power,
        _operation: Operation,
        _failures: usize,
        _time: Duration,
    ) {
    }

    fn policy_checked(&self, _check: PolicyCheck<'_>) {}

    /// A plugin's folder of manifests was read. With the hash of what is in force, or without if it could not be used.
    fn manifests_read(&self, _plugin: &'static str, _hash: Option<&str>) {}

    /// Conditions say that a request is not meant.
    fn excluded_by_conditions(&self, _name: &str, _kind: &'static str, _power: Power, _operation: Operation) {}
}

impl Observer for () {}

/// What webhooks of a kind may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    Mutating,
    Validating,
}
