//! What is counted of custom resources.

use kubelith_meta::GroupVersion;
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::prometheus::{Histogram, HistogramOpts};
use kubelith_observe::metrics::{Counters, Family, Histograms, counters, histograms};
use std::time::{Duration, Instant};

/// Seconds, from a millisecond to sixteen seconds.
const CONVERSIONS: [f64; 15] =
    [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
/// Seconds that a webhook takes: at most half a minute.
const CALLS: [f64; 15] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// Seconds, from ten microseconds to two and a half seconds.
const RATCHETING: [f64; 10] =
    [0.00001, 0.00004, 0.00016, 0.00064, 0.00256, 0.01024, 0.04096, 0.16384, 0.65536, 2.62144];

pub struct ExtensionsMetrics {
    conversions: Histograms,
    calls: Counters,
    call_durations: Histograms,
    regenerated_v2: Counters,
    regenerated_v3: Counters,
    ratcheting: Family<Histogram>,
    compilation: Family<Histogram>,
    evaluation: Family<Histogram>,
}

/// What a webhook did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Call,
    MalformedResponse,
    PartialResponse,
    InvalidObject,
}

impl Failure {
    fn label(self) -> &'static str {
        match self {
            Failure::Call => "conversion_webhook_call_failure",
            Failure::MalformedResponse => "conversion_webhook_malformed_response_failure",
            Failure::PartialResponse => "conversion_webhook_partial_response_failure",
            Failure::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// Why what is published of a definition is another now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Add,
    Update,
    Remove,
}

impl Reason {
    fn label(self) -> &'static str {
        match self {
            Reason::Add => "add",
            Reason::Update => "update",
            Reason::Remove => "remove",
        }
    }
}

impl ExtensionsMetrics {
    pub fn new(registry: &Registry) -> ExtensionsMetrics {
        let cel = |name: &'static str, help: &'static str| {
            Family::single(registry, move || Histogram::with_opts(HistogramOpts::new(name, help)))
                .shown(registry, |_| ())
        };
        let ratcheting = || {
            let ratcheting = HistogramOpts::new(
                "apiextensions_apiserver_validation_ratcheting_seconds",
                "Time it took to compare an object with what it replaces, so that old errors are not new ones.",
            );
            Histogram::with_opts(ratcheting.buckets(RATCHETING.to_vec()))
        };
        ExtensionsMetrics {
            conversions: histograms(
                registry,
                "apiserver_crd_conversion_webhook_duration_seconds",
                "Time of conversions by webhook, by definition and versions.",
                &CONVERSIONS,
                &["crd_name", "from_version", "to_version", "succeeded"],
            ),
            calls: counters(
                registry,
                "apiserver_conversion_webhook_request_total",
                "Requests to conversion webhooks by outcome.",
                &["result", "failure_type"],
            ),
            call_durations: histograms(
                registry,
                "apiserver_conversion_webhook_duration_seconds",
                "Time of requests to conversion webhooks by outcome.",
                &CALLS,
                &["result", "failure_type"],
            ),
            regenerated_v2: counters(
                registry,
                "apiextensions_openapi_v2_regeneration_count",
                "How often a definition changed the OpenAPI document of version 2.",
                &["crd", "reason"],
            ),
            regenerated_v3: counters(
                registry,
                "apiextensions_openapi_v3_regeneration_count",
                "How often a definition changed the OpenAPI document of version 3 of a group version.",
                &["group", "version", "crd", "reason"],
            ),
            ratcheting: Family::single(registry, ratcheting).shown(registry, |_| ()),
            compilation: cel("apiserver_cel_compilation_duration_seconds", "Time of compiling rules in CEL."),
            evaluation: cel("apiserver_cel_evaluation_duration_seconds", "Time of evaluating rules in CEL."),
        }
    }

    /// One object came through a webhook, or did not.
    pub fn converted(&self, definition: &str, from: &str, to: &str, failure: Option<Failure>, took: Duration) {
        let succeeded = if failure.is_none() { "true" } else { "false" };
        let labels = [definition, from, to, succeeded];
        self.conversions.with_label_values(&labels).observe(took.as_secs_f64());
        let labels = match failure {
            None => ["success", ""],
            Some(failure) => ["failure", failure.label()],
        };
        self.calls.with_label_values(&labels).inc();
        self.call_durations.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub fn published<'a>(
        &self,
        definition: &str,
        reason: Reason,
        versions: impl IntoIterator<Item = &'a GroupVersion>,
    ) {
        self.regenerated_v2.with_label_values(&[definition, reason.label()]).inc();
        for gv in versions {
            let labels = [gv.group.as_str(), &gv.version, definition, reason.label()];
            self.regenerated_v3.with_label_values(&labels).inc();
        }
    }

    /// Takes the time of compiling the rules of a schema, if it has some.
    pub fn compiled<T>(&self, compile: impl FnOnce() -> Option<T>) -> Option<T> {
        let began = Instant::now();
        let compiled = compile()?;
        self.compilation.observe(began.elapsed().as_secs_f64());
        Some(compiled)
    }

    pub fn evaluated(&self, took: Duration) {
        self.evaluation.observe(took.as_secs_f64());
    }

    pub fn ratcheted(&self, took: Duration) {
        self.ratcheting.observe(took.as_secs_f64());
    }
}
