//! Rules of jobs.

use crate::batch::job::policy::{check_failure, check_success};
use crate::batch::job::{status, update};
use crate::workload::{WhenEmpty, check_match};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_label, name_is_dns_subdomain, validate_domain_prefixed_path};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{Map, Value};
use kubelith_pods::template::template;
use kubelith_rules::common::{Fields, SPEC, label_selector, member, meta, meta_update, not_negative, supported};
use kubelith_rules::{Env, Rules, internal};

pub const RULES: Rules = Rules {
    create: |request, job| validate(request.env, job, Labels::All),
    update: |request, new, old| match request.subresource {
        "status" => {
            let mut errors = meta_update(new, old);
            status::check(new, old, &mut errors);
            errors
        }
        _ => update::check(request.env, new, old),
    },
};

const MAX_MANAGER: usize = 63;

const MAX_INDEXED_PARALLELISM: i64 = 100_000;

const MAX_FAILED_INDEXES: i64 = 100_000;

const MANY_COMPLETIONS: i64 = 100_000;

const LIMIT_WITH_MANY: i64 = 10_000;

pub fn is_indexed(spec: &Value) -> bool {
    spec.text("completionMode") == "Indexed"
}

/// Which labels the template of a job has: jobs of old servers lack those with a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    All,
    Legacy,
}

pub fn validate(env: &Env, job: &Value, labels: Labels) -> ErrorList {
    let mut errors = meta(job, Namespacing::Required, name_is_dns_subdomain);
    let spec = member(job, "spec");
    check_generated_selector(job, spec, labels, &mut errors);
    check_job(env, spec, &mut errors);
    if let Some(count) = spec.int("completions").filter(|count| is_indexed(spec) && *count > 0) {
        let name = job.meta().name();
        let last = format!("{name}-{}", count - 1);
        if !is_dns1123_label(&last).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {last}");
            errors.push(Error::invalid(&Path::of(&["metadata", "name"]), name, detail));
        }
    }
    errors
}

/// The selector that the server makes says which pods are the job's, and no others.
fn check_generated_selector(job: &Value, spec: &Value, labels: Labels, errors: &mut ErrorList) {
    if spec.flag("manualSelector") {
        return;
    }
    let Some(selector) = spec.some("selector") else { return };
    let (name, uid) = (job.meta().name(), job.meta().uid());
    if uid.is_empty() {
        errors.push(Error::required(&Path::of(&["metadata", "uid"]), ""));
    }
    let own = spec.at(&["template", "metadata", "labels"]).unwrap_or(&Value::Null);
    let path = SPEC.children(&["template", "metadata", "labels"]);
    let all = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let wanted = if labels == Labels::All { &all[..] } else { &all[..2] };
    for (key, value) in wanted {
        let detail = format!("must be '{value}'");
        match own.get(key).and_then(Value::as_str) {
            None => errors.push(Error::required(&path.key(key), detail)),
            Some(other) if other != *value => errors.push(Error::invalid(&path.key(key), own, detail)),
            Some(_) => {}
        }
    }
    let made: Map = wanted.iter().copied().collect();
    if LabelSelector::from_object(Some(selector)).is_ok_and(|selector| !selector.matches(&made)) {
        let shown = internal::shown("LabelSelector", Some(selector));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, "`selector` not auto-generated"));
    }
}

pub fn check_job(env: &Env, spec: &Value, errors: &mut ErrorList) {
    check_job_spec(env, spec, &SPEC, errors);
    if spec.has("selector") {
        label_selector(spec.get("selector"), &SPEC.child("selector"), errors);
    } else {
        errors.push(Error::required(&SPEC.child("selector"), ""));
    }
    check_match(spec, &SPEC, WhenEmpty::AsIs, errors);
}

pub fn check_job_spec(env: &Env, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        if let Some(number) = spec.int(key) {
            not_negative(number, &path.child(key), errors);
        }
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        errors.push(Error::required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    if let Some(manager) = spec.some("managedBy").and_then(Value::as_str) {
        errors.extend(validate_domain_prefixed_path(manager, &path.child("managedBy")));
        if manager.len() > MAX_MANAGER {
            errors.push(Error::too_long(&path.child("managedBy"), MAX_MANAGER));
        }
    }
    if let Some(mode) = spec.some("completionMode").and_then(Value::as_str) {
        supported(mode, &["NonIndexed", "Indexed"], &path.child("completionMode"), errors);
        if mode == "Indexed" {
            check_indexed(spec, path, errors);
        }
    }
    if spec.some("completionMode").is_none_or(|mode| mode.as_str() == Some("NonIndexed")) {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec.int(key) {
                errors.push(Error::invalid(&path.child(key), number, "requires indexed completion mode"));
            }
        }
    }
    if let Some(policy) = spec.some("podFailurePolicy") {
        check_failure(policy, spec, &path.child("podFailurePolicy"), errors);
    }
    if let Some(policy) = spec.some("successPolicy") {
        let path = path.child("successPolicy");
        if is_indexed(spec) {
            check_success(policy, spec, &path, errors);
        } else {
            let shown = internal::shown("*SuccessPolicy", Some(policy));
            errors.push(Error::invalid(&path, shown, "requires indexed completion mode"));
        }
    }
    if let Some(policy) = spec.some("podReplacementPolicy").and_then(Value::as_str) {
        let known: &[&str] =
            if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        supported(policy, known, &path.child("podReplacementPolicy"), errors);
    }
    template(env, member(spec, "template"), &path.child("template"), errors);
    check_restart(spec, &path.children(&["template", "spec", "restartPolicy"]), errors);
}

fn check_indexed(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (completions, parallelism) = (spec.int("completions"), spec.int("parallelism"));
    let failed = spec.int("maxFailedIndexes");
    let (parallel_path, failed_path) = (path.child("parallelism"), path.child("maxFailedIndexes"));
    if completions.is_none() {
        errors.push(Error::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    if let Some(number) = parallelism.filter(|n| *n > MAX_INDEXED_PARALLELISM) {
        let detail = format!("must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed");
        errors.push(Error::invalid(&parallel_path, number, detail));
    }
    if let Some(number) = failed.filter(|n| completions.is_some_and(|all| *n > all)) {
        errors.push(Error::invalid(&failed_path, number, "must be less than or equal to completions"));
    }
    if let Some(number) = failed.filter(|n| *n > MAX_FAILED_INDEXES) {
        let detail = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
        errors.push(Error::invalid(&failed_path, number, detail));
    }
    if completions.is_some_and(|n| n > MANY_COMPLETIONS) && spec.has("backoffLimitPerIndex") {
        if failed.is_none() {
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.push(Error::required(&failed_path, detail));
        }
        for (number, path) in [(parallelism, &parallel_path), (failed, &failed_path)] {
            if let Some(number) = number.filter(|n| *n > LIMIT_WITH_MANY) {
                let detail = format!(
                    "must be less than or equal to {LIMIT_WITH_MANY} when completions are above {MANY_COMPLETIONS} and \
                     used with backoff limit per index"
                );
                errors.push(Error::invalid(path, number, detail));
            }
        }
    }
}

fn check_restart(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match spec.at(&["template", "spec", "restartPolicy"]).and_then(Value::as_str).unwrap_or_default() {
        "" | "Always" => errors.push(Error::required(path, "valid values: \"OnFailure\", \"Never\"")),
        policy @ ("OnFailure" | "Never") => {
            if spec.has("podFailurePolicy") && policy != "Never" {
                let detail = "only \"Never\" is supported when podFailurePolicy is specified";
                errors.push(Error::invalid(path, BadValue::json(policy), detail));
            }
        }
        other => errors.push(Error::not_supported(path, BadValue::json(other), ["OnFailure", "Never"])),
    }
}
