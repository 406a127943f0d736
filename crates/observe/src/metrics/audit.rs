//! Counts of the audit log.

use super::{Counters, counters, register};
use prometheus::{IntCounter, Registry};

pub struct AuditMetrics {
    pub events: IntCounter,
    pub errors: Counters,
    pub levels: Counters,
    pub rejected: IntCounter,
}

impl AuditMetrics {
    pub fn new(registry: &Registry) -> AuditMetrics {
        let one = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help).expect("a well-formed name");
            register(registry, counter.clone());
            counter
        };
        AuditMetrics {
            events: one("apiserver_audit_event_total", "Audit events made and handed to the backends."),
            errors: counters(
                registry,
                "apiserver_audit_error_total",
                "Audit events that were lost or damaged, by plugin.",
                &["plugin"],
            ),
            levels: counters(
                registry,
                "apiserver_audit_level_total",
                "Levels that the audit policy decided on, one per request.",
                &["level"],
            ),
            rejected: one(
                "apiserver_audit_requests_rejected_total",
                "Requests that were refused because the audit log could not take them.",
            ),
        }
    }
}
