//! Template, claims and updates.

use crate::workload::{Counts, WhenEmpty, check_always, check_collisions, check_counts, check_match, check_selector};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList};
use kubelith_meta::names::name_is_dns_label;
use kubelith_meta::object::{Namespacing, validate_annotations};
use kubelith_meta::selector::{LabelSelector, validate_labels};
use kubelith_pods::claim::check_claim;
use kubelith_pods::template::template;
use kubelith_rules::common::{Fields, SPEC, dns_label, member, meta, meta_update, not_negative};
use kubelith_rules::{Env, Request, Rules, internal};

pub const RULES: Rules =
    Rules { create: |request, object| stateful_set(request.env, object), update: stateful_set_update };

pub const STATEFUL_SET_COUNTS: Counts =
    &["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

fn stateful_set(env: &Env, object: &Value) -> ErrorList {
    // Pods get the name, and a number: it must fit a label.
    let mut errors = meta(object, Namespacing::Required, name_is_dns_label);
    check_stateful_set(env, member(object, "spec"), None, &mut errors);
    errors
}

fn stateful_set_update(request: Request<'_>, new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if request.subresource == "status" {
        check_counts(member(new, "status"), STATEFUL_SET_COUNTS, &mut errors);
        check_collisions(new, old, &mut errors);
        return errors;
    }
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    check_stateful_set(request.env, spec, Some(before), &mut errors);
    if !internal::same("FixedStatefulSetSpec", Some(spec), Some(before)) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
             are forbidden";
        errors.push(Error::forbidden(&SPEC, detail));
    }
    errors
}

fn check_stateful_set(env: &Env, spec: &Value, before: Option<&Value>, errors: &mut ErrorList) {
    let policy = spec.text("podManagementPolicy");
    let path = SPEC.child("podManagementPolicy");
    match policy {
        "" => errors.push(Error::required(&path, "")),
        "OrderedReady" | "Parallel" => {}
        _ => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(Error::invalid(&path, BadValue::json(policy), detail));
        }
    }
    check_stateful_strategy(member(spec, "updateStrategy"), errors);
    if let Some(policy) = spec.some("persistentVolumeClaimRetentionPolicy") {
        let path = SPEC.child("persistentVolumeClaimRetentionPolicy");
        for key in ["whenDeleted", "whenScaled"] {
            let value = policy.text(key);
            if !["Retain", "Delete"].contains(&value) {
                errors.push(Error::not_supported(&path.child(key), BadValue::json(value), ["Retain", "Delete"]));
            }
        }
    }
    if before.is_none() {
        for (i, claim) in spec.list("volumeClaimTemplates").iter().enumerate() {
            let path = SPEC.item("volumeClaimTemplates", i);
            check_claim(member(claim, "spec"), &path.child("spec"), errors);
        }
    }
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    if let Some(ordinals) = spec.some("ordinals") {
        not_negative(ordinals.number("start"), &SPEC.child("ordinals.start"), errors);
    }
    if before.is_none() && !spec.text("serviceName").is_empty() {
        dns_label(spec.text("serviceName"), &SPEC.child("serviceName"), errors);
    }
    check_selector(spec, "statefulset", errors);
    if LabelSelector::from_object(spec.some("selector")).is_err() {
        let shown = internal::shown("LabelSelector", spec.get("selector"));
        errors.push(Error::invalid(&SPEC.child("selector"), shown, ""));
    } else {
        check_match(spec, &SPEC, WhenEmpty::Anything, errors);
        let was_wrong = before.is_some_and(|before| {
            let mut found = ErrorList::new();
            template(env, &with_claims(before), &SPEC.child("template"), &mut found);
            !found.is_empty()
        });
        let own = with_claims(spec);
        let path = SPEC.child("template");
        if !was_wrong {
            template(env, &own, &path, errors);
        }
        // The reference looks at these once more.
        let metadata = member(&own, "metadata");
        if let Some(labels) = metadata.map("labels") {
            errors.extend(validate_labels(labels, &path.child("labels")));
        }
        if let Some(annotations) = metadata.map("annotations") {
            errors.extend(validate_annotations(annotations, &path.child("annotations")));
        }
    }
    check_always(spec, "StatefulSet", errors);
}

/// The template as its pods will be: with a volume for each claim, and names of the controller's choice.
fn with_claims(spec: &Value) -> Value {
    let mut own = member(spec, "template").clone();
    for key in ["subdomain", "hostname"] {
        own.remove_at(&["spec", key]);
    }
    let claims = spec.list("volumeClaimTemplates");
    if claims.is_empty() {
        return own;
    }
    let mut names: Vec<&str> = Vec::with_capacity(claims.len());
    for name in claims.iter().map(|claim| claim.meta().name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| {
            let claim = Value::from([("claimName", Value::from(*name))]);
            Value::from([("name", Value::from(*name)), ("persistentVolumeClaim", claim)])
        })
        .collect();
    let kept = own.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
    volumes.extend(kept.iter().filter(|v| !names.contains(&v.text("name"))).cloned());
    own.set_at(&["spec", "volumes"], Value::Array(volumes));
    own
}

fn check_stateful_strategy(strategy: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("updateStrategy");
    let rolling = strategy.some("rollingUpdate");
    let form = |rolling: &Value| {
        let unavailable = rolling.some("maxUnavailable").map_or("null".into(), kubelith_meta::text::json);
        format!("{{\"Partition\":{},\"MaxUnavailable\":{unavailable}}}", rolling.number("partition"))
    };
    match strategy.text("type") {
        "" => errors.push(Error::required(&path, "")),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(Error::invalid(&path.child("rollingUpdate"), BadValue::text(form(rolling)), detail));
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            let path = path.child("rollingUpdate");
            not_negative(rolling.number("partition"), &path.child("partition"), errors);
        }
        other => {
            let rolling = rolling.map_or("null".to_owned(), form);
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", kubelith_meta::text::quote(other));
            errors.push(Error::invalid(&path, BadValue::text(shown), "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}
