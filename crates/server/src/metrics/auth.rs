//! Counts of authentication and authorization, by outcome.

use super::{counters, histograms};
use kubelith_auth::{Authentication, Decision, Verdict};
use prometheus::{HistogramVec, IntCounterVec, Registry, exponential_buckets};
use std::time::Duration;

pub struct AuthMetrics {
    users: IntCounterVec,
    attempts: IntCounterVec,
    duration: HistogramVec,
    decisions: IntCounterVec,
    decision_duration: HistogramVec,
}

impl AuthMetrics {
    pub fn new(registry: &Registry) -> AuthMetrics {
        let buckets = exponential_buckets(0.001, 2.0, 15).expect("a valid series");
        AuthMetrics {
            users: counters(
                registry,
                "authenticated_user_requests",
                "Authenticated requests by kind of user name.",
                &["username"],
            ),
            attempts: counters(registry, "authentication_attempts", "Attempts to authenticate by result.", &["result"]),
            duration: histograms(
                registry,
                "authentication_duration_seconds",
                "Time to authenticate by result.",
                &buckets,
                &["result"],
            ),
            decisions: counters(
                registry,
                "authorization_attempts_total",
                "Authorization decisions by result.",
                &["result"],
            ),
            decision_duration: histograms(
                registry,
                "authorization_duration_seconds",
                "Time to authorize by result.",
                &buckets,
                &["result"],
            ),
        }
    }

    pub fn authenticated(&self, outcome: &Authentication, took: Duration) {
        let result = match outcome {
            Ok(Some(response)) => {
                self.users.with_label_values(&[kind_of_name(&response.user.name)]).inc();
                "success"
            }
            Ok(None) => "failure",
            Err(_) => "error",
        };
        self.attempts.with_label_values(&[result]).inc();
        self.duration.with_label_values(&[result]).observe(took.as_secs_f64());
    }

    pub fn authorized(&self, decision: &Decision, took: Duration) {
        let result = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => "allowed",
            (_, Some(_)) => "error",
            (Verdict::Deny, None) => "denied",
            (Verdict::NoOpinion, None) => "no-opinion",
        };
        self.decisions.with_label_values(&[result]).inc();
        self.decision_duration.with_label_values(&[result]).observe(took.as_secs_f64());
    }
}

/// User names are many and nobody's business; the reference's few classes are kept.
fn kind_of_name(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        name if name.contains('@') => "email_id",
        _ => "other",
    }
}
