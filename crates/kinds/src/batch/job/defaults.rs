//! Counts and labels.

use crate::workload::labels_from_template;
use kubelith_meta::Map;
use kubelith_rules::defaults::{Defaults, is_absent, set_absent};

pub const RULES: Defaults = &[("io.k8s.api.batch.v1.Job", job)];

/// Of jobs only: the template of a CronJob stays as it was given.
fn job(job: &mut Map) {
    labels_from_template(job);
    let spec = job.entry_or_null("spec").make_object();
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions", 1i64);
    }
    set_absent(spec, "parallelism", 1i64);
    let per_index = !is_absent(spec, "backoffLimitPerIndex");
    set_absent(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
    set_absent(spec, "completionMode", "NonIndexed");
    set_absent(spec, "suspend", false);
    let has_failure_policy = !is_absent(spec, "podFailurePolicy");
    set_absent(spec, "podReplacementPolicy", if has_failure_policy { "Failed" } else { "TerminatingOrFailed" });
    set_absent(spec, "manualSelector", false);
}
