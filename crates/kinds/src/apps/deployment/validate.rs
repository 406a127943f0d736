//! Selector, template and strategy.

use crate::workload::{Counts, check_lasting_template, check_selector, invalid_selector, on_update};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta, not_negative};
use kubelith_rules::values::{int_or_percent, int_or_string, not_over_100_percent, positive_int_or_percent};
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        deployment(request.env, member(object, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| on_update(request, new, old, deployment, DEPLOYMENT_COUNTS),
};

pub const DEPLOYMENT_COUNTS: Counts =
    &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];

fn deployment(env: &Env, spec: &Value, errors: &mut ErrorList) {
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    check_selector(spec, "deployment", errors);
    if !invalid_selector(spec, errors) {
        check_lasting_template(env, spec, "ReplicaSet", errors);
    }
    check_deployment_strategy(member(spec, "strategy"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    if let Some(limit) = spec.int("revisionHistoryLimit") {
        not_negative(limit, &SPEC.child("revisionHistoryLimit"), errors);
    }
    if let Some(seconds) = spec.int("progressDeadlineSeconds") {
        let path = SPEC.child("progressDeadlineSeconds");
        not_negative(seconds, &path, errors);
        if seconds <= spec.number("minReadySeconds") {
            errors.push(Error::invalid(&path, seconds, "must be greater than minReadySeconds"));
        }
    }
}

fn check_deployment_strategy(strategy: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("strategy");
    let rolling = strategy.some("rollingUpdate");
    match strategy.text("type") {
        "Recreate" if rolling.is_some() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(Error::forbidden(&path.child("rollingUpdate"), detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let Some(rolling) = rolling else {
                return errors.push(Error::required(&path, "this should be defaulted and never be nil"));
            };
            let (unavailable, surge) = (member(rolling, "maxUnavailable"), member(rolling, "maxSurge"));
            positive_int_or_percent(unavailable, &path.child("maxUnavailable"), errors);
            positive_int_or_percent(surge, &path.child("maxSurge"), errors);
            if int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(Error::invalid(&path.child("maxUnavailable"), int_or_string(unavailable), detail));
            }
            not_over_100_percent(unavailable, &path.child("maxUnavailable"), errors);
        }
        _ => {
            let shown = strategy_form(strategy);
            errors.push(Error::not_supported(&path, shown, ["Recreate", "RollingUpdate"]));
        }
    }
}

/// How the reference prints a strategy: by the names of its fields in Go.
pub fn strategy_form(strategy: &Value) -> BadValue {
    let kind = kubelith_meta::text::quote(strategy.text("type"));
    let rolling = match strategy.some("rollingUpdate") {
        None => "null".to_owned(),
        Some(rolling) => {
            let value = |key: &str| kubelith_meta::text::json(rolling.some(key).unwrap_or(&Value::Int(0)));
            format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", value("maxUnavailable"), value("maxSurge"))
        }
    };
    BadValue::text(format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"))
}
