//! Schedule, zone and template.

use crate::batch::cron_job::schedule::{self, time_zone};
use crate::batch::job::validate::check_job_spec;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta, meta_update, not_negative, one_of};
use kubelith_rules::{Env, Rules, internal};

pub const RULES: Rules = Rules {
    create: |request, job| {
        let mut errors = meta(job, Namespacing::Required, name_is_dns_subdomain);
        cron_job(request.env, member(job, "spec"), None, &mut errors);
        let name = job.meta().name();
        if name.len() > MAX_CRON_JOB_NAME {
            let detail = format!("must be no more than {MAX_CRON_JOB_NAME} characters");
            errors.push(Error::invalid(&Path::of(&["metadata", "name"]), name, detail));
        }
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        if request.subresource.is_empty() {
            cron_job(request.env, member(new, "spec"), Some(member(old, "spec")), &mut errors);
        }
        errors
    },
};

const MAX_CRON_JOB_NAME: usize = 52;

fn cron_job(env: &Env, spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    let schedule = spec.text("schedule");
    let path = SPEC.child("schedule");
    if schedule.is_empty() {
        errors.push(Error::required(&path, ""));
    } else {
        if let Err(problem) = schedule::parse(schedule) {
            errors.push(Error::invalid(&path, schedule, problem));
        }
        let may_have_zone = before.is_some_and(|b| b.text("schedule").contains("TZ"));
        if schedule.contains("TZ") {
            if !may_have_zone {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                errors.push(Error::invalid(&path, schedule, detail));
            } else if spec.has("timeZone") {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                errors.push(Error::invalid(&path, schedule, detail));
            }
        }
    }
    if let Some(seconds) = spec.int("startingDeadlineSeconds") {
        not_negative(seconds, &SPEC.child("startingDeadlineSeconds"), errors);
    }
    if !before.is_some_and(|b| b.some("timeZone") == spec.some("timeZone")) {
        check_zone(spec, errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(spec.text("concurrencyPolicy"), &policies, &SPEC.child("concurrencyPolicy"), errors);
    let job = spec.at(&["jobTemplate", "spec"]).unwrap_or(&Value::Null);
    let path = SPEC.children(&["jobTemplate", "spec"]);
    check_job_spec(env, job, &path, errors);
    if let Some(selector) = job.some("selector") {
        let shown = internal::shown("LabelSelector", Some(selector));
        errors.push(Error::invalid(&path.child("selector"), shown, "`selector` will be auto-generated"));
    }
    if job.flag("manualSelector") {
        errors.push(Error::not_supported(&path.child("manualSelector"), true, ["nil", "false"]));
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        if let Some(limit) = spec.int(key) {
            not_negative(limit, &SPEC.child(key), errors);
        }
    }
}

/// Longer ones are in no database.
const MAX_ZONE_PART: usize = 14;

fn check_zone(spec: &Value, errors: &mut ErrorList) {
    let Some(zone) = spec.some("timeZone").and_then(Value::as_str) else { return };
    let path = SPEC.child("timeZone");
    let shown = || BadValue::json(zone);
    if zone.is_empty() {
        return errors.push(Error::invalid(&path, shown(), "timeZone must be nil or non-empty string"));
    }
    let is_part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=MAX_ZONE_PART).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'))
    };
    if !zone.split('/').all(is_part) {
        return errors.push(Error::invalid(&path, shown(), format!("unknown time zone {zone}")));
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(Error::invalid(&path, shown(), detail));
    } else if let Err(why) = time_zone(zone) {
        errors.push(Error::invalid(&path, shown(), why));
    }
}
