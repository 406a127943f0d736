//! Counts of the audit log.

use super::{Counters, Family, Registry, counters};
use prometheus::IntCounter;

pub struct AuditMetrics {
    pub events: Family<IntCounter>,
    pub errors: Counters,
    pub levels: Counters,
    pub rejected: Family<IntCounter>,
}

impl AuditMetrics {
    pub fn new(registry: &Registry) -> AuditMetrics {
        let one = |name: &'static str, help: &'static str| {
            Family::single(registry, move || IntCounter::new(name, help)).shown(registry, |_| ())
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
