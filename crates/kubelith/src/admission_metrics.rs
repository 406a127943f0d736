//! Metrics of admission: how long plugins and phases take, and what Pod Security decides.

use kubelith_admission::{
    CheckError, Decision, Evaluation, HookCall, HookFailure, Observer, Outcome, Phase, PolicyCheck, Power,
    SecurityMode, Severity, Timer,
};
use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::prometheus::core::{Collector, Desc};
use kubelith_observe::metrics::prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary};
use kubelith_observe::metrics::prometheus::{Histogram, Registry};
use kubelith_observe::metrics::{Counters, FloatGauges, Histograms, counters, float_gauges, histograms, register};
use kubelith_observe::recent::{Recent, Speaker};
use kubelith_registry::admission::Operation;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const STEP: &str = "apiserver_admission_step_admission_duration_seconds";
const CONTROLLER: &str = "apiserver_admission_controller_admission_duration_seconds";
const BUCKETS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const LABELS: &[&str] = &["type", "operation", "rejected"];

pub struct AdmissionMetrics {
    plugins: Histograms,
    steps: Arc<Steps>,
    evaluations: Counters,
    exemptions: Counters,
    security_errors: Counters,
    webhooks: WebhookMetrics,
    policies: PolicyMetrics,
    manifests: ManifestMetrics,
    recent: Arc<Recent>,
}

/// What is counted of policies.
struct PolicyMetrics {
    validating: (Counters, Histograms),
    mutating: (Counters, Histograms),
}

impl PolicyMetrics {
    fn new(registry: &Registry) -> PolicyMetrics {
        let of = |kind: &str, labels: &[&str]| {
            let checks = format!("apiserver_{kind}_admission_policy_check_total");
            let times = format!("apiserver_{kind}_admission_policy_check_duration_seconds");
            (
                counters(registry, &checks, "Expressions of admission policies, by what came of them.", labels),
                histograms(
                    registry,
                    &times,
                    "Time of expressions of admission policies, by what came of them.",
                    &[0.0000005, 0.001, 0.01, 0.1, 1.0],
                    labels,
                ),
            )
        };
        PolicyMetrics {
            validating: of("validating", &["policy", "policy_binding", "error_type", "enforcement_action"]),
            mutating: of("mutating", &["policy", "policy_binding", "error_type"]),
        }
    }

    fn count(&self, check: PolicyCheck<'_>) {
        let error = match check.error {
            CheckError::None => "no_error",
            CheckError::Compile => "compile_error",
            CheckError::OutOfBudget => "out_of_budget",
            CheckError::Invalid => "invalid_error",
        };
        let labels = [check.policy, check.binding, error, check.action];
        let ((checks, times), labels) = match check.power {
            Power::Validating => (&self.validating, &labels[..]),
            Power::Mutating => (&self.mutating, &labels[..3]),
        };
        checks.with_label_values(labels).inc();
        times.with_label_values(labels).observe(check.time.as_secs_f64());
    }
}

/// What is counted of manifests.
struct ManifestMetrics {
    reloads: Counters,
    last: FloatGauges,
    info: FloatGauges,
    /// Which server it is, without saying so.
    server: String,
    /// The hash that is shown of each plugin.
    shown: Mutex<HashMap<&'static str, String>>,
}

impl ManifestMetrics {
    fn new(registry: &Registry, server_id: &str) -> ManifestMetrics {
        let name = |what: &str| format!("apiserver_manifest_admission_config_controller_{what}");
        let gauges = |what: &str, help: &str, labels: &[&str]| float_gauges(registry, &name(what), help, labels);
        let labels = &["status", "plugin", "apiserver_id_hash"];
        ManifestMetrics {
            reloads: counters(registry, &name("automatic_reloads_total"), "Reads of manifests, by outcome.", labels),
            last: gauges(
                "automatic_reload_last_timestamp_seconds",
                "When manifests were last read, by outcome.",
                labels,
            ),
            info: gauges(
                "last_config_info",
                "A hash of the manifests in force.",
                &["plugin", "apiserver_id_hash", "hash"],
            ),
            server: crate::access::metrics::hash(server_id.as_bytes()),
            shown: Mutex::default(),
        }
    }

    fn read(&self, plugin: &'static str, hash: Option<&str>) {
        let labels = [if hash.is_some() { "success" } else { "failure" }, plugin, &self.server];
        self.reloads.with_label_values(&labels).inc();
        let now = unix_time();
        self.last.with_label_values(&labels).set(now.as_secs_f64());
        let Some(hash) = hash else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = shown.insert(plugin, hash.to_owned()) {
            // It may be the same one.
            let _ = self.info.remove_label_values(&[plugin, &self.server, &before]);
        }
        self.info.with_label_values(&[plugin, &self.server, hash]).set(1.0);
    }
}

/// What is counted of webhooks, and of the conditions under which they are asked.
struct WebhookMetrics {
    times: Histograms,
    requests: Counters,
    rejections: Counters,
    failed_open: Counters,
    condition_errors: Counters,
    condition_exclusions: Counters,
    condition_times: Histograms,
}

impl WebhookMetrics {
    fn new(registry: &Registry) -> WebhookMetrics {
        let named = |name: &str| format!("apiserver_admission_{name}");
        let conditions = &["name", "kind", "type", "operation"];
        WebhookMetrics {
            times: histograms(
                registry,
                &named("webhook_admission_duration_seconds"),
                "Time of calls of admission webhooks, by operation and by whether they refused.",
                &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0],
                &["name", "type", "operation", "rejected"],
            ),
            requests: counters(
                registry,
                &named("webhook_request_total"),
                "Calls of admission webhooks, by the code of the answer and by whether they refused.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            rejections: counters(
                registry,
                &named("webhook_rejection_count"),
                "Requests that admission webhooks refused, or that were refused because one failed.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            failed_open: counters(
                registry,
                &named("webhook_fail_open_count"),
                "Failures of admission webhooks that were passed over.",
                &["name", "type"],
            ),
            condition_errors: counters(
                registry,
                &named("match_condition_evaluation_errors_total"),
                "Match conditions that failed.",
                conditions,
            ),
            condition_exclusions: counters(
                registry,
                &named("match_condition_exclusions_total"),
                "Requests that match conditions keep from webhooks and policies.",
                conditions,
            ),
            condition_times: histograms(
                registry,
                &named("match_condition_evaluation_seconds"),
                "Time that match conditions take.",
                &[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25],
                conditions,
            ),
        }
    }
}

/// As webhooks are counted.
fn hook_type(power: Power) -> &'static str {
    match power {
        Power::Mutating => "admit",
        Power::Validating => "validating",
    }
}

/// As conditions are counted.
fn condition_type(power: Power) -> &'static str {
    match power {
        Power::Mutating => "admit",
        Power::Validating => "validate",
    }
}

/// Codes that no answer should have are counted as one.
const MAX_CODE: u16 = 600;

impl AdmissionMetrics {
    /// `server_id` tells servers apart that share a store.
    pub fn new(registry: &Registry, server_id: &str, recent: Arc<Recent>) -> AdmissionMetrics {
        let times = histograms(
            registry,
            STEP,
            "Time of a phase of admission, by operation and by whether it was refused.",
            BUCKETS,
            LABELS,
        );
        let quantiles = Quantiles::default();
        register(registry, quantiles.clone());
        let metrics = AdmissionMetrics {
            plugins: histograms(
                registry,
                CONTROLLER,
                "Time of an admission plugin, by phase and operation and by whether it refused.",
                BUCKETS,
                &["name", "type", "operation", "rejected"],
            ),
            steps: Arc::new(Steps { times: Times::new(move |labels| times.with_label_values(&labels)), quantiles }),
            evaluations: counters(
                registry,
                "pod_security_evaluations_total",
                "Looks of Pod Security at pods and at what makes them, without those that are exempt.",
                &["decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"],
            ),
            exemptions: counters(
                registry,
                "pod_security_exemptions_total",
                "Requests that are exempt from Pod Security.",
                &["request_operation", "resource", "subresource"],
            ),
            security_errors: counters(
                registry,
                "pod_security_errors_total",
                "Requests for which Pod Security could not find out what holds, by whether they ended so.",
                &["fatal", "request_operation", "resource", "subresource"],
            ),
            webhooks: WebhookMetrics::new(registry),
            policies: PolicyMetrics::new(registry),
            manifests: ManifestMetrics::new(registry, server_id),
            recent,
        };
        // The usual ones are there from the start.
        for operation in ["create", "update"] {
            let usual = ["allow", "privileged", "latest", "enforce", operation, "pod", ""];
            metrics.evaluations.with_label_values(&usual);
            for resource in ["pod", "controller"] {
                metrics.exemptions.with_label_values(&[operation, resource, ""]);
            }
        }
        metrics
    }
}

impl Observer for AdmissionMetrics {
    fn plugin(&self, name: &'static str) -> Option<Arc<dyn Timer>> {
        let plugins = self.plugins.clone();
        let times = move |[phase, operation, rejected]: [&str; 3]| {
            plugins.with_label_values(&[name, phase, operation, rejected])
        };
        Some(Arc::new(Times::new(times)))
    }

    fn steps(&self) -> Option<Arc<dyn Timer>> {
        Some(self.steps.clone())
    }

    fn pod_security_evaluated(&self, e: Evaluation<'_>) {
        let decision = match e.decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        let mode = match e.mode {
            SecurityMode::Enforce => "enforce",
            SecurityMode::Audit => "audit",
            SecurityMode::Warn => "warn",
        };
        let operation = lower(e.operation);
        let labels = [decision, e.level, e.version, mode, operation, e.resource, e.subresource];
        self.evaluations.with_label_values(&labels).inc();
    }

    fn pod_security_exempted(&self, operation: Operation, resource: &'static str, subresource: &str) {
        self.exemptions.with_label_values(&[lower(operation), resource, subresource]).inc();
    }

    fn pod_security_failed(&self, severity: Severity, operation: Operation, resource: &'static str, part: &str) {
        let fatal = if severity == Severity::Fatal { "true" } else { "false" };
        self.security_errors.with_label_values(&[fatal, lower(operation), resource, part]).inc();
    }

    fn webhook_called(&self, call: HookCall<'_>) {
        let (kind, operation) = (hook_type(call.power), upper(call.operation));
        let code = call.code.min(MAX_CODE).to_string();
        let rejected = if call.failure.is_some() { "true" } else { "false" };
        let labels = [call.name, kind, operation, &code, rejected];
        self.webhooks.requests.with_label_values(&labels).inc();
        let labels = [call.name, kind, operation, rejected];
        self.webhooks.times.with_label_values(&labels).observe(call.time.as_secs_f64());
        if !call.why.is_empty() {
            self.recent.said_no(Speaker::Webhook, call.name, call.why);
        }
        let why = match call.failure {
            None => return,
            Some(HookFailure::Calling) => "calling_webhook_error",
            Some(HookFailure::Denied) => "no_error",
            Some(HookFailure::Internal) => "apiserver_internal_error",
        };
        self.webhooks.rejections.with_label_values(&[call.name, kind, operation, why, &code]).inc();
    }

    fn webhook_failed_open(&self, name: &str, power: Power) {
        self.webhooks.failed_open.with_label_values(&[name, hook_type(power)]).inc();
    }

    fn conditions_checked(
        &self,
        name: &str,
        kind: &'static str,
        power: Power,
        operation: Operation,
        failures: usize,
        time: Duration,
    ) {
        let labels = [name, kind, condition_type(power), upper(operation)];
        self.webhooks.condition_times.with_label_values(&labels).observe(time.as_secs_f64());
        if failures > 0 {
            self.webhooks.condition_errors.with_label_values(&labels).inc_by(failures as u64);
        }
    }

    fn policy_checked(&self, check: PolicyCheck<'_>) {
        if !check.why.is_empty() {
            self.recent.said_no(Speaker::Policy, check.policy, check.why);
        }
        self.policies.count(check);
    }

    fn manifests_read(&self, plugin: &'static str, hash: Option<&str>) {
        self.manifests.read(plugin, hash);
    }

    fn excluded_by_conditions(&self, name: &str, kind: &'static str, power: Power, operation: Operation) {
        let labels = [name, kind, condition_type(power), upper(operation)];
        self.webhooks.condition_exclusions.with_label_values(&labels).inc();
    }
}

fn lower(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

fn upper(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

/// Phase, operation, and whether it was refused.
fn labels(phase: Phase, operation: Operation, outcome: Outcome) -> [&'static str; 3] {
    let phase = match phase {
        Phase::Admit => "admit",
        Phase::Validate => "validate",
    };
    let rejected = match outcome {
        Outcome::Passed => "false",
        Outcome::Refused => "true",
    };
    [phase, upper(operation), rejected]
}

/// Two phases, four operations, two outcomes.
const SERIES: usize = 16;

/// The place of a series among them.
fn number(phase: Phase, operation: Operation, outcome: Outcome) -> usize {
    phase as usize * 8 + operation as usize * 2 + outcome as usize
}

/// The histograms of one plugin, found by number once they are there.
struct Times {
    series: [OnceLock<Histogram>; SERIES],
    make: Box<dyn Fn([&'static str; 3]) -> Histogram + Send + Sync>,
}

impl Times {
    fn new(make: impl Fn([&'static str; 3]) -> Histogram + Send + Sync + 'static) -> Times {
        Times { series: Default::default(), make: Box::new(make) }
    }
}

impl Timer for Times {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, time: Duration) {
        let number = number(phase, operation, outcome);
        let histogram = self.series[number].get_or_init(|| (self.make)(labels(phase, operation, outcome)));
        histogram.observe(time.as_secs_f64());
    }
}

struct Steps {
    times: Times,
    quantiles: Quantiles,
}

impl Timer for Steps {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, time: Duration) {
        self.times.took(phase, operation, outcome, time);
        self.quantiles.add(phase, operation, outcome, time);
    }
}

/// Times of which quantiles are shown: the last ones, up to this age.
const KEPT: usize = 500;
const MAX_AGE: Duration = Duration::from_secs(5 * 3600);
const SHOWN: [f64; 3] = [0.5, 0.9, 0.99];

/// A summary: the library has none.
#[derive(Clone)]
struct Quantiles {
    series: Arc<Mutex<[Option<Series>; SERIES]>>,
    desc: Arc<Desc>,
}

#[derive(Default)]
struct Series {
    labels: [&'static str; 3],
    count: u64,
    sum: f64,
    recent: VecDeque<(Instant, f64)>,
}

impl Default for Quantiles {
    fn default() -> Quantiles {
        let names = LABELS.iter().map(|name| (*name).to_owned()).collect();
        let desc = Desc::new(
            format!("{STEP}_summary"),
            "Time of a phase of admission, as quantiles.".to_owned(),
            names,
            HashMap::new(),
        );
        Quantiles { series: Arc::default(), desc: Arc::new(desc.expect("names and labels are well-formed")) }
    }
}

impl Quantiles {
    fn add(&self, phase: Phase, operation: Operation, outcome: Outcome, time: Duration) {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Series { labels: labels(phase, operation, outcome), ..Series::default() };
        let series = all[number(phase, operation, outcome)].get_or_insert_with(made);
        series.count += 1;
        series.sum += time.as_secs_f64();
        if series.recent.len() == KEPT {
            series.recent.pop_front();
        }
        series.recent.push_back((Instant::now(), time.as_secs_f64()));
    }
}

impl Series {
    fn summary(&self) -> Summary {
        let fresh = self.recent.iter().filter(|(at, _)| at.elapsed() < MAX_AGE);
        let mut times: Vec<f64> = fresh.map(|(_, time)| *time).collect();
        times.sort_by(f64::total_cmp);
        let mut summary = Summary::default();
        summary.set_sample_count(self.count);
        summary.set_sample_sum(self.sum);
        let quantiles = SHOWN.map(|quantile| {
            let place = ((times.len() as f64 * quantile).ceil() as usize).clamp(1, times.len().max(1)) - 1;
            let mut shown = Quantile::default();
            shown.set_quantile(quantile);
            shown.set_value(times.get(place).copied().unwrap_or(f64::NAN));
            shown
        });
        summary.set_quantile(quantiles.to_vec());
        summary
    }
}

impl Collector for Quantiles {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = all.iter().flatten().map(|series| {
            let mut metric = Metric::default();
            let pairs = LABELS.iter().zip(series.labels).map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value.to_owned());
                pair
            });
            // The library sorts the labels of its own kinds of metrics only.
            let mut pairs: Vec<LabelPair> = pairs.collect();
            pairs.sort_by(|a, b| a.name().cmp(b.name()));
            metric.set_label(pairs);
            metric.set_summary(series.summary());
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(metrics.collect());
        vec![family]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_times() {
        let mut series = Series::default();
        for n in 1..=100u32 {
            series.recent.push_back((Instant::now(), f64::from(n)));
        }
        series.count = 7;
        let summary = series.summary();
        let values: Vec<f64> = summary.get_quantile().iter().map(Quantile::value).collect();
        assert_eq!((values, summary.sample_count()), (vec![50.0, 90.0, 99.0], 7));
        assert!(Series::default().summary().get_quantile()[0].value().is_nan());
    }
}
