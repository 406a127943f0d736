//! Counts of authentication and authorization, by outcome.

use super::Registry;
use super::pulled::{PulledCounter, PulledFamilies, gauge_family, histogram_family};
use super::series::Fixed;
use super::{Counter, Histogram, counters, histograms, register};
use kubelith_auth::stats::{CACHE_BOUNDS, CERTIFICATE_BOUNDS, Count, TokenStats};
use kubelith_auth::{Authentication, Decision, Verdict};
use prometheus::{Opts, exponential_buckets};
use std::sync::Arc;
use std::time::Duration;

pub struct AuthMetrics {
    users: Fixed<Counter, 7>,
    attempts: Fixed<Counter, 3>,
    duration: Fixed<Histogram, 3>,
    decisions: Fixed<Counter, 4>,
    decision_duration: Fixed<Histogram, 4>,
}

/// User names are many and nobody's business; the reference's few classes are kept.
const NAMES: [&str; 7] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default", EMAIL, "other"];
const EMAIL: &str = "email_id";
const OUTCOMES: [&str; 3] = ["success", "failure", "error"];
const DECISIONS: [&str; 4] = ["allowed", "denied", "no-opinion", "error"];

impl AuthMetrics {
    pub fn new(registry: &Registry) -> AuthMetrics {
        let buckets = exponential_buckets(0.001, 2.0, 15).expect("a valid series");
        let count = |name, help, label| counters(registry, name, help, &[label]);
        let spread = |name, help| histograms(registry, name, help, &buckets, &["result"]);
        let users = count("authenticated_user_requests", "Authenticated requests by kind of user name.", "username");
        let attempts = count("authentication_attempts", "Attempts to authenticate by result.", "result");
        let duration = spread("authentication_duration_seconds", "Time to authenticate by result.");
        let decisions = count("authorization_attempts_total", "Authorization decisions by result.", "result");
        let decision_duration = spread("authorization_duration_seconds", "Time to authorize by result.");
        AuthMetrics {
            users: Fixed::counters(users, NAMES),
            attempts: Fixed::counters(attempts, OUTCOMES),
            duration: Fixed::histograms(duration, OUTCOMES),
            decisions: Fixed::counters(decisions, DECISIONS),
            decision_duration: Fixed::histograms(decision_duration, DECISIONS),
        }
    }

    pub fn authenticated(&self, outcome: &Authentication, took: Duration) {
        let result = match outcome {
            Ok(Some(response)) => {
                let name = &response.user.name;
                let is_email = !NAMES.contains(&name.as_str()) && name.contains('@');
                self.users.of(if is_email { EMAIL } else { name }).inc();
                "success"
            }
            Ok(None) => "failure",
            Err(_) => "error",
        };
        self.attempts.of(result).inc();
        self.duration.of(result).observe(took.as_secs_f64());
    }

    pub fn authorized(&self, decision: &Decision, took: Duration) {
        let result = match (decision.verdict, &decision.error) {
            (Verdict::Allow, _) => "allowed",
            (_, Some(_)) => "error",
            (Verdict::Deny, None) => "denied",
            (Verdict::NoOpinion, None) => "no-opinion",
        };
        self.decisions.of(result).inc();
        self.decision_duration.of(result).observe(took.as_secs_f64());
    }
}

type Read = fn(&TokenStats) -> &Count;

/// Counts that the token authenticators keep themselves.
pub fn watch_tokens(registry: &Registry, stats: &Arc<TokenStats>) {
    let cache = |name: &str, help: &str, status: &str, read: Read| {
        add(registry, stats, Opts::new(name, help).const_label("status", status), read);
    };
    let (requests, looked_up) = ("authentication_token_cache_request_total", "authentication_token_cache_fetch_total");
    cache(requests, "Tokens asked of the cache, by whether it knew them.", "hit", |s| &s.cache_hits);
    cache(requests, "Tokens asked of the cache, by whether it knew them.", "miss", |s| &s.cache_misses);
    cache(looked_up, "Tokens looked up by the cache, by outcome.", "ok", |s| &s.lookups);
    cache(looked_up, "Tokens looked up by the cache, by outcome.", "error", |s| &s.failed_lookups);
    spreads(registry, stats);
    let accounts = |name: &str, help: &str, read: Read| {
        add(registry, stats, Opts::new(format!("serviceaccount_{name}_total"), help), read);
    };
    accounts("valid_tokens", "Service account tokens within their time.", |s| &s.valid);
    accounts("stale_tokens", "Service account tokens that should have been refreshed.", |s| &s.stale);
    accounts("legacy_tokens", "Legacy service account tokens.", |s| &s.legacy);
    accounts("legacy_auto_token_uses", "Legacy tokens that were made for every account once.", |s| &s.legacy_auto);
    accounts("legacy_manual_token_uses", "Legacy tokens that were made by hand.", |s| &s.legacy_manual);
    accounts("invalid_legacy_auto_token_uses", "Legacy tokens that are marked as unused.", |s| &s.legacy_invalid);
}

const DURATION: (&str, &str) = (
    "authentication_token_cache_request_duration_seconds",
    "Time until the cache answered, by whether it knew the token.",
);
const ACTIVE: (&str, &str) =
    ("authentication_token_cache_active_fetch_count", "Look-ups of tokens under way, and requests that wait for one.");
const EXPIRATION: (&str, &str) = (
    "apiserver_client_certificate_expiration_seconds",
    "Time that clients' certificates had left when they were used.",
);

fn spreads(registry: &Registry, stats: &Arc<TokenStats>) {
    let stats = stats.clone();
    let read = move || {
        let status = |value: &'static str| Some(("status", value));
        let times = [(status("hit"), stats.hit_seconds.read()), (status("miss"), stats.miss_seconds.read())];
        let active = [("blocked", &stats.waiting_for_lookups), ("in_flight", &stats.lookups_under_way)];
        vec![
            histogram_family(DURATION, &CACHE_BOUNDS, &times),
            gauge_family(ACTIVE, &active.map(|(value, count)| (status(value), count.get() as f64))),
            histogram_family(EXPIRATION, &CERTIFICATE_BOUNDS, &[(None, stats.certificate_seconds.read())]),
        ]
    };
    register(registry, PulledFamilies::new(&[DURATION, ACTIVE, EXPIRATION], read));
}

fn add(registry: &Registry, stats: &Arc<TokenStats>, opts: Opts, read: Read) {
    let stats = stats.clone();
    register(registry, PulledCounter::new(opts, move || read(&stats).get()));
}
