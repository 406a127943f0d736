//! Selector, template and updates.

use crate::apps::deployment::validate::strategy_form;
use crate::workload::{WhenEmpty, check_always, check_collisions, check_match, is_empty_selector};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_pods::template::template;
use kubelith_rules::common::{Fields, SPEC, label_selector, member, meta, meta_update, not_negative};
use kubelith_rules::values::{int_or_percent, int_or_string, not_over_100_percent, positive_int_or_percent};
use kubelith_rules::{Env, Request, Rules, internal};

pub const RULES: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        daemon_set(request.env, member(object, "spec"), &mut errors);
        errors
    },
    update: daemon_set_update,
};

fn daemon_set(env: &Env, spec: &Value, errors: &mut ErrorList) {
    label_selector(spec.get("selector"), &SPEC.child("selector"), errors);
    check_match(spec, &SPEC, WhenEmpty::AsIs, errors);
    if let Some(selector) = spec.some("selector").filter(|s| is_empty_selector(s)) {
        let shown = internal::shown("*LabelSelector", Some(selector));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, "empty selector is invalid for daemonset"));
    }
    template(env, member(spec, "template"), &SPEC.child("template"), errors);
    check_always(spec, "DaemonSet", errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    let strategy = member(spec, "updateStrategy");
    let path = SPEC.child("updateStrategy");
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => check_daemon_rolling(strategy, &path.child("rollingUpdate"), errors),
        _ => {
            errors.push(Error::not_supported(&path, strategy_form(strategy), ["RollingUpdate", "OnDelete"]));
        }
    }
    if let Some(limit) = spec.int("revisionHistoryLimit") {
        not_negative(limit, &SPEC.child("revisionHistoryLimit"), errors);
    }
}

fn check_daemon_rolling(strategy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(rolling) = strategy.some("rollingUpdate") else {
        return errors.push(Error::required(path, ""));
    };
    let (unavailable, surge) = (member(rolling, "maxUnavailable"), member(rolling, "maxSurge"));
    for (value, key) in [(unavailable, "maxUnavailable"), (surge, "maxSurge")] {
        positive_int_or_percent(value, &path.child(key), errors);
    }
    for (value, key) in [(unavailable, "maxUnavailable"), (surge, "maxSurge")] {
        not_over_100_percent(value, &path.child(key), errors);
    }
    match (int_or_percent(unavailable) != 0, int_or_percent(surge) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(Error::invalid(&path.child("maxSurge"), int_or_string(surge), detail));
        }
        (false, false) => {
            errors.push(Error::required(&path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

fn daemon_set_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        const COUNTS: [&str; 7] = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let (path, status) = (Path::new("status"), member(new, "status"));
        for key in COUNTS.iter().chain(&["numberUnavailable", "collisionCount"]) {
            not_negative(status.number(key), &path.child(key), &mut errors);
        }
        check_collisions(new, old, &mut errors);
        return errors;
    }
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    let selectors = (spec.get("selector"), before.get("selector"));
    internal::immutable("*LabelSelector", selectors.0, selectors.1, &SPEC.child("selector"), &mut errors);
    daemon_set(request.env, spec, &mut errors);
    errors
}
