//! What is counted of configuration files that are followed, and of the match conditions of webhooks.

use kubelith_auth::authz::webhook::{ConditionMetrics, Outcome};
use kubelith_observe::metrics::prometheus::{GaugeVec, HistogramVec, IntCounterVec, Opts, Registry};
use kubelith_observe::metrics::{counters, histograms, register};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds.
const CONDITIONS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// The only authorizers that have conditions.
const WEBHOOK: &str = "Webhook";

/// Reloads of one configuration file.
#[derive(Clone)]
pub struct ReloadMetrics {
    reloads: IntCounterVec,
    last: GaugeVec,
    info: GaugeVec,
    /// Which server it is, without saying so.
    server: Arc<str>,
}

impl ReloadMetrics {
    /// `of` is `authentication` or `authorization`.
    fn new(registry: &Registry, of: &str, server_id: &str) -> ReloadMetrics {
        let name = |what: &str| format!("apiserver_{of}_config_controller_{what}");
        let gauges = |what: &str, help: &str, labels: &[&str]| {
            let vec = GaugeVec::new(Opts::new(name(what), help), labels).expect("names and labels are well-formed");
            register(registry, vec.clone());
            vec
        };
        ReloadMetrics {
            reloads: counters(
                registry,
                &name("automatic_reloads_total"),
                "Reloads of the configuration file by outcome.",
                &["status", "apiserver_id_hash"],
            ),
            last: gauges(
                "automatic_reload_last_timestamp_seconds",
                "When the configuration file was last read again, by outcome.",
                &["status", "apiserver_id_hash"],
            ),
            info: gauges("last_config_info", "A hash of the configuration in force.", &["apiserver_id_hash", "hash"]),
            server: hash(server_id.as_bytes()).into(),
        }
    }

    /// A file is in force.
    pub fn in_force(&self, content: &[u8]) {
        // A line feed was put behind the file when it was read.
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        self.info.reset();
        self.info.with_label_values(&[&*self.server, &hash(content)]).set(1.0);
    }

    pub fn reloaded(&self, content: &[u8]) {
        self.count("success");
        self.in_force(content);
    }

    pub fn failed(&self) {
        self.count("failure");
    }

    fn count(&self, status: &str) {
        let labels = [status, &*self.server];
        self.reloads.with_label_values(&labels).inc();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last.with_label_values(&labels).set(now.as_secs_f64());
    }
}

pub fn hash(content: &[u8]) -> String {
    if content.is_empty() {
        return String::new();
    }
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
    digest.as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// All of them.
#[derive(Clone)]
pub struct AccessMetrics {
    pub authentication: ReloadMetrics,
    pub authorization: ReloadMetrics,
    pub conditions: Arc<dyn ConditionMetrics>,
}

impl AccessMetrics {
    pub fn new(registry: &Registry, server_id: &str) -> AccessMetrics {
        let name = |what: &str| format!("apiserver_authorization_match_condition_{what}");
        let labels = ["type", "name"];
        let count = |what: &str, help: &str| counters(registry, &name(what), help, &labels);
        let conditions = Conditions {
            errors: count("evaluation_errors_total", "Match conditions of webhooks that could not be evaluated."),
            exclusions: count("exclusions_total", "Requests that match conditions kept from a webhook."),
            seconds: histograms(
                registry,
                &name("evaluation_seconds"),
                "Time of evaluating the match conditions of a webhook.",
                &CONDITIONS,
                &labels,
            ),
        };
        AccessMetrics {
            authentication: ReloadMetrics::new(registry, "authentication", server_id),
            authorization: ReloadMetrics::new(registry, "authorization", server_id),
            conditions: Arc::new(conditions),
        }
    }
}

struct Conditions {
    errors: IntCounterVec,
    exclusions: IntCounterVec,
    seconds: HistogramVec,
}

impl ConditionMetrics for Conditions {
    fn evaluated(&self, authorizer: &str, outcome: Outcome) {
        let labels = [WEBHOOK, authorizer];
        self.seconds.with_label_values(&labels).observe(outcome.took.as_secs_f64());
        if outcome.failed {
            self.errors.with_label_values(&labels).inc();
        }
        if outcome.excluded {
            self.exclusions.with_label_values(&labels).inc();
        }
    }
}
