//! `GET /kubelith/v1/extensions`: how webhooks, policies and conversions fare, by name.

use super::figures::{Distribution, Figures, label};
use super::{Sources, millis};
use kubelith_observe::metrics::prometheus::proto::Metric;
use kubelith_observe::recent::Speaker;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct Extensions {
    webhooks: Vec<Webhook>,
    policies: Vec<Policy>,
    conversions: Vec<Conversion>,
    failures: Vec<Failure>,
}

/// Milliseconds.
#[derive(Serialize)]
struct Times {
    calls: u64,
    p50: f64,
    p90: f64,
    p99: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    r#type: String,
    #[serde(flatten)]
    times: Times,
    rejected: f64,
    failed: f64,
    failed_open: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    policy: String,
    binding: String,
    r#type: &'static str,
    #[serde(flatten)]
    times: Times,
    denied: f64,
    /// Expressions that cost more than they may.
    over_budget: f64,
    /// Other failures than an object that breaks the policy.
    errors: f64,
}

#[derive(Serialize)]
struct Conversion {
    definition: String,
    #[serde(flatten)]
    times: Times,
    failed: f64,
}

#[derive(Serialize)]
struct Failure {
    /// `webhook` or `policy`.
    kind: &'static str,
    name: String,
    why: String,
    last: u64,
    count: u64,
}

impl From<&Distribution> for Times {
    fn from(of: &Distribution) -> Times {
        let at = |part| of.quantile(part) * 1e3;
        Times { calls: of.count, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

pub fn look(sources: &Sources) -> Extensions {
    let figures = Figures::of(&sources.metrics);
    let lists = sources.metrics.requests.recent.lists();
    let failures = lists.failures.iter().rev().map(|problem| Failure {
        kind: match problem.speaker {
            Speaker::Webhook => "webhook",
            Speaker::Policy => "policy",
        },
        name: problem.name.clone(),
        why: problem.why.clone(),
        last: millis(problem.last),
        count: problem.count,
    });
    Extensions {
        webhooks: webhooks(&figures),
        policies: [("validating", "Validating"), ("mutating", "Mutating")]
            .into_iter()
            .flat_map(|(kind, name)| policies(&figures, kind, name))
            .collect(),
        conversions: conversions(&figures),
        failures: failures.collect(),
    }
}

/// The distributions of a metric by some of its labels.
fn by<'f, const N: usize>(
    figures: &'f Figures,
    metric: &str,
    labels: [&str; N],
) -> BTreeMap<[&'f str; N], Distribution> {
    let mut found = BTreeMap::<[&str; N], Distribution>::new();
    for series in figures.series(metric) {
        found.entry(labels.map(|name| label(series, name))).or_default().add(series);
    }
    found
}

fn count(figures: &Figures, metric: &str, wanted: impl Fn(&Metric) -> bool) -> f64 {
    figures.series(metric).filter(|series| wanted(series)).map(|series| series.get_counter().get_value()).sum()
}

fn webhooks(figures: &Figures) -> Vec<Webhook> {
    let times = by(figures, "apiserver_admission_webhook_admission_duration_seconds", ["name", "type"]);
    let shown = times.iter().map(|([name, kind], times)| {
        let is_it = |series: &Metric| label(series, "name") == *name && label(series, "type") == *kind;
        let refused = |why: fn(&str) -> bool| {
            let wanted = |series: &Metric| is_it(series) && why(label(series, "error_type"));
            count(figures, "apiserver_admission_webhook_rejection_count", wanted)
        };
        Webhook {
            name: (*name).into(),
            r#type: (*kind).into(),
            times: times.into(),
            rejected: refused(|why| why == "no_error"),
            failed: refused(|why| why != "no_error"),
            failed_open: count(figures, "apiserver_admission_webhook_fail_open_count", is_it),
        }
    });
    shown.collect()
}

fn policies(figures: &Figures, kind: &str, name: &'static str) -> Vec<Policy> {
    let times =
        by(figures, &format!("apiserver_{kind}_admission_policy_check_duration_seconds"), ["policy", "policy_binding"]);
    let total = format!("apiserver_{kind}_admission_policy_check_total");
    let shown = times.iter().map(|([policy, binding], times)| {
        let is_it = |s: &Metric| label(s, "policy") == *policy && label(s, "policy_binding") == *binding;
        Policy {
            policy: (*policy).into(),
            binding: (*binding).into(),
            r#type: name,
            times: times.into(),
            denied: count(figures, &total, |s| is_it(s) && label(s, "enforcement_action") == "deny"),
            over_budget: count(figures, &total, |s| is_it(s) && label(s, "error_type") == "out_of_budget"),
            errors: count(figures, &total, |s| is_it(s) && label(s, "error_type") == "compile_error"),
        }
    });
    shown.collect()
}

fn conversions(figures: &Figures) -> Vec<Conversion> {
    const TIMES: &str = "apiserver_crd_conversion_webhook_duration_seconds";
    let times = by(figures, TIMES, ["crd_name"]);
    let shown = times.iter().map(|([definition], times)| {
        let failed = figures.distribution(TIMES, |series| {
            label(series, "crd_name") == *definition && label(series, "succeeded") == "false"
        });
        Conversion { definition: (*definition).into(), times: times.into(), failed: failed.count as f64 }
    });
    shown.collect()
}
