//! What is counted of configuration files that are followed, of issuers of tokens, and of authorizers.

use super::signer_metrics::SignerMetrics;
use kubelith_auth::authz::metrics::{AuthorizerMetrics, DecisionCounts};
use kubelith_auth::authz::webhook::Outcome;
use kubelith_auth::oidc::IssuerMetrics;
use kubelith_auth::remote::TryOutcome;
use kubelith_auth::traits::Authentication;
use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::prometheus;
use kubelith_observe::metrics::prometheus::proto::MetricFamily;
use kubelith_observe::metrics::pulled::{PulledFamilies, counter_family};
use kubelith_observe::metrics::{Counters, FloatGauges, Histograms, counters, float_gauges, histograms, register};
use kubelith_observe::metrics::{Metrics, Registry};
use kubelith_tls::Flaws;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Seconds.
const CONDITIONS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// Seconds.
const TOKEN_CHECKS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const DECISIONS: &str = "apiserver_authorization_decisions_total";
/// The only authorizers that have conditions.
const WEBHOOK: &str = "Webhook";

/// Reloads of one configuration file.
#[derive(Clone)]
pub struct ReloadMetrics {
    reloads: Counters,
    last: FloatGauges,
    info: FloatGauges,
    /// Which server it is, without saying so.
    server: Arc<str>,
}

impl ReloadMetrics {
    /// `of` is `authentication` or `authorization`.
    fn new(registry: &Registry, of: &str, server_id: &str) -> ReloadMetrics {
        let name = |what: &str| format!("apiserver_{of}_config_controller_{what}");
        let gauges = |what: &str, help: &str, labels: &[&str]| float_gauges(registry, &name(what), help, labels);
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
        let now = unix_time();
        self.last.with_label_values(&labels).set(now.as_secs_f64());
    }
}

pub fn hash(content: &[u8]) -> String {
    if content.is_empty() {
        return String::new();
    }
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity("sha256:".len() + 2 * digest.as_ref().len());
    text.push_str("sha256:");
    for byte in digest.as_ref() {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
    text
}

/// Issuers of tokens, which are told apart by a hash of their address.
#[derive(Clone)]
pub struct IssuerCounters {
    checks: Histograms,
    asked_for_keys: FloatGauges,
    keys: FloatGauges,
    /// The issuers whose keys are in force, with those of each.
    in_force: Arc<Mutex<BTreeMap<String, String>>>,
    server: Arc<str>,
}

impl IssuerCounters {
    fn new(registry: &Registry, server_id: &str) -> IssuerCounters {
        let name = |what: &str| format!("apiserver_authentication_jwt_authenticator_{what}");
        let gauges = |what: &str, help: &str, labels: &[&str]| float_gauges(registry, &name(what), help, labels);
        IssuerCounters {
            checks: histograms(
                registry,
                &name("latency_seconds"),
                "Time of checking tokens that no cache knew.",
                &TOKEN_CHECKS,
                &["result", "jwt_issuer_hash"],
            ),
            asked_for_keys: gauges(
                "jwks_fetch_last_timestamp_seconds",
                "When an issuer was last asked for its keys, by outcome.",
                &["result", "jwt_issuer_hash", "apiserver_id_hash"],
            ),
            keys: gauges(
                "jwks_fetch_last_key_set_info",
                "A hash of the keys that an issuer gave last.",
                &["jwt_issuer_hash", "apiserver_id_hash", "hash"],
            ),
            in_force: Arc::default(),
            server: hash(server_id.as_bytes()).into(),
        }
    }

    /// Nobody trusts the issuer any more. Removing what is not there is no failure.
    pub fn forget(&self, issuer: &str) {
        let issuer = hash(issuer.as_bytes());
        for result in ["success", "failure"] {
            let _ = self.asked_for_keys.remove_label_values(&[result, &issuer, &self.server]);
        }
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = in_force.remove(&issuer) {
            let _ = self.keys.remove_label_values(&[&*issuer, &self.server, &keys]);
        }
    }
}

impl IssuerMetrics for IssuerCounters {
    fn checked(&self, issuer: &str, outcome: &Authentication, took: Duration) {
        let result = if outcome.is_ok() { "success" } else { "failure" };
        self.checks.with_label_values(&[result, &hash(issuer.as_bytes())]).observe(took.as_secs_f64());
    }

    fn asked_for_keys(&self, issuer: &str, keys: Option<&[u8]>) {
        let issuer = hash(issuer.as_bytes());
        let result = if keys.is_some() { "success" } else { "failure" };
        self.asked_for_keys.with_label_values(&[result, &*issuer, &self.server]).set(unix_time().as_secs_f64());
        let Some(keys) = keys.map(hash) else { return };
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = in_force.insert(issuer.clone(), keys.clone()) {
            let _ = self.keys.remove_label_values(&[&*issuer, &self.server, &older]);
        }
        self.keys.with_label_values(&[&*issuer, &self.server, &keys]).set(1.0);
    }
}

/// All of them.
#[derive(Clone)]
pub struct AccessMetrics {
    pub authentication: ReloadMetrics,
    pub issuers: IssuerCounters,
    pub signer: SignerMetrics,
    pub authorization: ReloadMetrics,
    pub authorizers: Arc<dyn AuthorizerMetrics>,
    /// Old-fashioned certificates of webhooks.
    pub webhooks: Arc<Flaws>,
}

impl AccessMetrics {
    pub fn new(metrics: &Metrics, server_id: &str) -> AccessMetrics {
        let registry = &metrics.registry;
        AccessMetrics {
            webhooks: metrics.webhooks.clone(),
            authentication: ReloadMetrics::new(registry, "authentication", server_id),
            issuers: IssuerCounters::new(registry, server_id),
            signer: SignerMetrics::new(registry),
            authorization: ReloadMetrics::new(registry, "authorization", server_id),
            authorizers: Arc::new(Authorizers::new(registry)),
        }
    }
}

/// An authorizer's type and name.
type Name = (String, String);

struct Authorizers {
    condition_errors: Counters,
    exclusions: Counters,
    condition_seconds: Histograms,
    asked: Counters,
    asked_seconds: Histograms,
    failed_open: Counters,
    /// Of every authorizer there was, read when metrics are.
    decisions: Arc<Mutex<BTreeMap<Name, Arc<DecisionCounts>>>>,
}

impl Authorizers {
    fn new(registry: &Registry) -> Authorizers {
        let name = |what: &str| format!("apiserver_authorization_{what}");
        let count = |what: &str, help: &str, labels: [&str; 2]| counters(registry, &name(what), help, &labels);
        let spread = |what: &str, help: &str, bounds: &[f64], labels: [&str; 2]| {
            histograms(registry, &name(what), help, bounds, &labels)
        };
        let (member, ended) = (["type", "name"], ["name", "result"]);
        let decisions = Arc::<Mutex<BTreeMap<Name, Arc<DecisionCounts>>>>::default();
        let shown = decisions.clone();
        let family = (DECISIONS, "Decisions of authorizers that ended the search for one.");
        registry.later(move |registry| {
            let read = move || decision_family(family, &shown).into_iter().collect();
            register(registry, PulledFamilies::new(&[family], read));
        });
        Authorizers {
            condition_errors: count(
                "match_condition_evaluation_errors_total",
                "Match conditions of webhooks that could not be evaluated.",
                member,
            ),
            exclusions: count(
                "match_condition_exclusions_total",
                "Requests that match conditions kept from a webhook.",
                member,
            ),
            condition_seconds: spread(
                "match_condition_evaluation_seconds",
                "Time of evaluating the match conditions of a webhook.",
                &CONDITIONS,
                member,
            ),
            asked: count("webhook_evaluations_total", "Reviews sent to authorization webhooks.", ended),
            asked_seconds: spread(
                "webhook_duration_seconds",
                "Time until authorization webhooks answered.",
                prometheus::DEFAULT_BUCKETS,
                ended,
            ),
            failed_open: count(
                "webhook_evaluations_fail_open_total",
                "Authorization webhooks that were passed over because they could not be asked.",
                ended,
            ),
            decisions,
        }
    }
}

/// What has been decided; nothing if nothing was.
fn decision_family(
    family: (&str, &str),
    decisions: &Mutex<BTreeMap<Name, Arc<DecisionCounts>>>,
) -> Option<MetricFamily> {
    let decisions = decisions.lock().unwrap_or_else(PoisonError::into_inner);
    let series = decisions.iter().flat_map(|((kind, name), counts)| {
        let counts = [("allowed", counts.allowed.get()), ("denied", counts.denied.get())];
        let made = counts.into_iter().filter(|(_, count)| *count > 0);
        made.map(move |(decision, count)| {
            (vec![("decision", decision), ("name", name.as_str()), ("type", kind.as_str())], count)
        })
    });
    let series: Vec<_> = series.collect();
    (!series.is_empty()).then(|| counter_family(family, &series))
}

impl AuthorizerMetrics for Authorizers {
    fn conditions_evaluated(&self, authorizer: &str, outcome: Outcome) {
        let labels = [WEBHOOK, authorizer];
        self.condition_seconds.with_label_values(&labels).observe(outcome.took.as_secs_f64());
        if outcome.failed {
            self.condition_errors.with_label_values(&labels).inc();
        }
        if outcome.excluded {
            self.exclusions.with_label_values(&labels).inc();
        }
    }

    fn asked(&self, authorizer: &str, outcome: TryOutcome, took: Duration) {
        let labels = [authorizer, outcome.name()];
        self.asked.with_label_values(&labels).inc();
        self.asked_seconds.with_label_values(&labels).observe(took.as_secs_f64());
    }

    fn failed_open(&self, authorizer: &str, outcome: TryOutcome) {
        self.failed_open.with_label_values(&[authorizer, outcome.name()]).inc();
    }

    fn decisions(&self, kind: &str, name: &str) -> Arc<DecisionCounts> {
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.entry((kind.to_owned(), name.to_owned())).or_default().clone()
    }
}
