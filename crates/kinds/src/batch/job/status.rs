//! What a controller may say of a job. Rules about values hold only for what changes, so that a job which broke them
//! before can still be reported on.

use crate::batch::job::indexes::{self, overlap};
use crate::batch::job::validate::is_indexed;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::time::Time;
use kubelith_rules::common::{Fields, IMMUTABLE, member, not_negative, same_member};
use kubelith_rules::internal;

pub const STATUS: Path<'static> = Path::new("status");

/// A job as far as these rules go.
pub struct Job<'a> {
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> Job<'a> {
    fn of(job: &'a Value) -> Job<'a> {
        Job { spec: member(job, "spec"), status: member(job, "status") }
    }

    fn is(&self, kind: &str) -> bool {
        self.has_condition(kind, "True")
    }

    fn has_condition(&self, kind: &str, status: &str) -> bool {
        self.status.list("conditions").iter().any(|c| c.text("type") == kind && c.text("status") == status)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn time(&self, key: &str) -> Option<Time> {
        self.status.some(key).and_then(Value::as_str).and_then(|text| Time::parse(text).ok())
    }
}

pub fn check(new: &Value, old: &Value, errors: &mut ErrorList) {
    let (job, before) = (Job::of(new), Job::of(old));
    check_counts(job.status, errors);
    check_conditions(&job, &before, errors);
    check_finished(&job, &before, errors);
    check_indexes(&job, &before, errors);
    check_pods(&job, &before, errors);
    check_success(&job, errors);
    check_change(&job, &before, errors);
}

pub fn about_conditions(detail: impl Into<String>) -> Error {
    Error::invalid(&STATUS.child("conditions"), BadValue::Omitted, detail)
}

pub fn check_counts(status: &Value, errors: &mut ErrorList) {
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        not_negative(status.number(key), &STATUS.child(key), errors);
    }
    let pods = member(status, "uncountedTerminatedPods");
    let path = STATUS.child("uncountedTerminatedPods");
    let mut seen = Vec::new();
    for key in ["succeeded", "failed"] {
        for (i, uid) in pods.texts(key).into_iter().enumerate() {
            let path = path.item(key, i);
            if uid.is_empty() {
                errors.push(Error::invalid(&path, BadValue::json(uid), "must not be empty"));
            } else if seen.contains(&uid) {
                errors.push(Error::duplicate(&path, BadValue::json(uid)));
            } else {
                seen.push(uid);
            }
        }
    }
}

pub fn check_conditions(job: &Job<'_>, before: &Job<'_>, errors: &mut ErrorList) {
    let changed = |kind: &str| job.is(kind) != before.is(kind);
    let is_complete = job.is("Complete");
    if (changed("Complete") || changed("Failed")) && is_complete && job.is("Failed") {
        errors.push(about_conditions("cannot set Complete=True and Failed=true conditions"));
    }
    if (changed("Complete") || changed("FailureTarget")) && is_complete && job.is("FailureTarget") {
        errors.push(about_conditions("cannot set Complete=True and FailureTarget=true conditions"));
    }
    let path = STATUS.child("completionTime");
    let time_changed = !same_member(job.status, before.status, "completionTime");
    if changed("Complete") || time_changed {
        match job.status.some("completionTime") {
            Some(time) if !is_complete => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(Error::invalid(&path, time, detail));
            }
            None if is_complete => {
                errors.push(Error::required(&path, "completionTime is required for Complete jobs"));
            }
            _ => {}
        }
    }
    if (time_changed || !same_member(job.status, before.status, "startTime"))
        && let (Some(start), Some(end)) = (job.time("startTime"), job.time("completionTime"))
        && end < start
    {
        let time = member(job.status, "completionTime");
        errors.push(Error::invalid(&path, time, "must be equal to or after `startTime`"));
    }
    let failed_changed = changed("Failed") || !same_member(job.status, before.status, "failedIndexes");
    if failed_changed && job.is("Failed") && !job.is("FailureTarget") {
        errors.push(about_conditions("cannot set Failed=True condition without the FailureTarget=true condition"));
    }
    if (changed("Complete") || changed("SuccessCriteriaMet")) && is_complete && !job.is("SuccessCriteriaMet") {
        errors
            .push(about_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"));
    }
}

pub fn check_finished(job: &Job<'_>, before: &Job<'_>, errors: &mut ErrorList) {
    let changed = |key: &str| !same_member(job.status, before.status, key);
    let finish_changed = job.is_finished() != before.is_finished();
    if !job.is_finished() {
        return;
    }
    let active = job.status.number("active");
    if (finish_changed || changed("active")) && active > 0 {
        errors.push(Error::invalid(&STATUS.child("active"), active, "active>0 is invalid for finished job"));
    }
    let has_nothing_to_do = job.spec.flag("suspend") && job.spec.int("completions") == Some(0);
    if (finish_changed || changed("startTime")) && !has_nothing_to_do && !job.status.has("startTime") {
        errors.push(Error::required(&STATUS.child("startTime"), "startTime is required for finished job"));
    }
    let pods = job.status.some("uncountedTerminatedPods");
    let is_counted = pods.is_none_or(|p| p.list("succeeded").is_empty() && p.list("failed").is_empty());
    let pods_changed = !internal::same(
        "*UncountedTerminatedPods",
        job.status.get("uncountedTerminatedPods"),
        before.status.get("uncountedTerminatedPods"),
    );
    if (finish_changed || pods_changed) && !is_counted {
        let shown = internal::shown("*UncountedTerminatedPods", pods);
        errors.push(Error::invalid(&STATUS.child("uncountedTerminatedPods"), shown, "must be empty for finished job"));
    }
}

pub fn check_indexes(job: &Job<'_>, before: &Job<'_>, errors: &mut ErrorList) {
    let completed_changed = job.status.text("completedIndexes") != before.status.text("completedIndexes");
    let failed_changed = job.status.some("failedIndexes") != before.status.some("failedIndexes");
    let completions = job.spec.int("completions");
    let completed = job.status.text("completedIndexes");
    let failed = job.status.some("failedIndexes").and_then(Value::as_str);
    let (completed_path, failed_path) = (STATUS.child("completedIndexes"), STATUS.child("failedIndexes"));
    if let Some(Err(why)) = completions.filter(|_| completed_changed).map(|n| indexes::count(completed, n)) {
        errors.push(Error::invalid(&completed_path, completed, format!("error parsing completedIndexes: {why}")));
    }
    let counts_per_index = job.spec.has("backoffLimitPerIndex");
    if let (Some(completions), Some(failed), true, true) = (completions, failed, counts_per_index, failed_changed)
        && let Err(why) = indexes::count(failed, completions)
    {
        let detail = format!("error parsing failedIndexes: {why}");
        errors.push(Error::invalid(&failed_path, BadValue::json(failed), detail));
    }
    if completed_changed && !completed.is_empty() && !is_indexed(job.spec) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(Error::invalid(&completed_path, completed, detail));
    }
    let Some(failed) = failed else { return };
    if failed_changed && !counts_per_index {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(Error::invalid(&failed_path, failed, detail));
    }
    if failed_changed || completed_changed {
        let index = completions.and_then(|completions| overlap(completed, failed, completions));
        errors.extend(index.map(|index| {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            Error::invalid(&failed_path, failed, detail)
        }));
    }
}

pub fn check_pods(job: &Job<'_>, before: &Job<'_>, errors: &mut ErrorList) {
    let changed = |key: &str| job.status.some(key) != before.status.some(key);
    let finish_changed = job.is_finished() != before.is_finished();
    let terminating = job.status.number("terminating");
    if (finish_changed || changed("terminating")) && terminating > 0 && job.is_finished() {
        let detail = "terminating>0 is invalid for finished job";
        errors.push(Error::invalid(&STATUS.child("terminating"), terminating, detail));
    }
    let active_changed = job.status.number("active") != before.status.number("active");
    if let Some(ready) = job.status.int("ready").filter(|ready| *ready > job.status.number("active"))
        && (changed("ready") || active_changed)
    {
        errors.push(Error::invalid(&STATUS.child("ready"), ready, "cannot set more ready pods than active"));
    }
}

pub fn check_success(job: &Job<'_>, errors: &mut ErrorList) {
    let is_met = job.is("SuccessCriteriaMet");
    if is_met && job.is("Failed") {
        errors.push(about_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
    }
    if is_met && job.is("FailureTarget") {
        errors.push(about_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"));
    }
    if job.spec.has("successPolicy") && !is_met && job.is("Complete") {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        errors.push(about_conditions(detail));
    }
}

/// What must not be taken back.
pub fn check_change(job: &Job<'_>, before: &Job<'_>, errors: &mut ErrorList) {
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if before.is(kind) && !job.is(kind) {
            errors.push(about_conditions(format!("cannot disable the terminal {kind}=True condition")));
        }
    }
    // A job of as many indexes as pods at a time can be made smaller.
    let may_shrink = is_indexed(job.spec) && job.spec.some("completions") == job.spec.some("parallelism");
    for (key, may_decrease) in [("failed", false), ("succeeded", may_shrink)] {
        let number = job.status.number(key);
        if number < before.status.number(key) && !may_decrease {
            errors.push(Error::invalid(&STATUS.child(key), number, format!("cannot decrease the {key} counter")));
        }
    }
    if let (Some(time), Some(old)) = (job.status.some("completionTime"), before.status.some("completionTime"))
        && time != old
    {
        errors.push(Error::invalid(&STATUS.child("completionTime"), time, IMMUTABLE));
    }
    let is_resuming = before.is("Suspended") && job.has_condition("Suspended", "False");
    let (start, start_before) = (job.status.some("startTime"), before.status.some("startTime"));
    if start_before.is_some() && start != start_before && !is_resuming && !job.spec.flag("suspend") {
        let shown = BadValue::from(start.unwrap_or(&Value::Null));
        let detail = "field is immutable for unsuspended job once set";
        errors.push(Error::invalid(&STATUS.child("startTime"), shown, detail));
    }
    if before.is("SuccessCriteriaMet") && !job.is("SuccessCriteriaMet") {
        errors.push(about_conditions("cannot disable the SuccessCriteriaMet=True condition"));
    }
    if before.is("Complete") && !before.is("SuccessCriteriaMet") && job.is("SuccessCriteriaMet") {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.push(about_conditions(detail));
    }
}
