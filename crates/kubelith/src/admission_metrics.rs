//! Metrics of admission: how long plugins and phases take, what webhooks and policies say, and what Pod Security decides.

mod times;

use kubelith_admission::{
    CheckError, Decision, Evaluation, HookCall, HookFailure, Observer, PolicyCheck, Power, SecurityMode, Severity,
    Timer,
};
use kubelith_meta::time::unix_time;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::{Counters, FloatGauges, Histograms, counters, float_gauges, histograms};
use kubelith_observe::recent::{Recent, Speaker};
use kubelith_registry::admission::Operation;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use times::Times;

pub struct AdmissionMetrics {
    times: Times,
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
        // The usual ones show from the start.
        const USUAL: [&str; 2] = ["create", "update"];
        AdmissionMetrics {
            times: Times::new(registry),
            evaluations: counters(
                registry,
                "pod_security_evaluations_total",
                "Looks of Pod Security at pods and at what makes them, without those that are exempt.",
                &["decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"],
            )
            .shown(registry, |evaluations| {
                for operation in USUAL {
                    let usual = ["allow", "privileged", "latest", "enforce", operation, "pod", ""];
                    evaluations.with_label_values(&usual);
                }
            }),
            exemptions: counters(
                registry,
                "pod_security_exemptions_total",
                "Requests that are exempt from Pod Security.",
                &["request_operation", "resource", "subresource"],
            )
            .shown(registry, |exemptions| {
                for (operation, resource) in USUAL.iter().flat_map(|o| ["pod", "controller"].map(|r| (o, r))) {
                    exemptions.with_label_values(&[operation, resource, ""]);
                }
            }),
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
        }
    }
}

impl Observer for AdmissionMetrics {
    fn plugin(&self, name: &'static str) -> Option<Arc<dyn Timer>> {
        Some(self.times.of_plugin(name))
    }

    fn steps(&self) -> Option<Arc<dyn Timer>> {
        Some(self.times.of_phases())
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
