//! Selector and template.

use crate::workload::{REPLICA_SET_COUNTS, check_always, check_counts};
use kubelith_meta::field::{BadValue, Error, ErrorList};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{Map, Value};
use kubelith_pods::template::template;
use kubelith_rules::common::{Fields, SPEC, declared_long_name, member, meta, meta_update, not_negative};
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, controller| {
        let mut errors = meta(controller, Namespacing::Required, declared_long_name);
        check(request.env, member(controller, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        match request.subresource {
            "status" => check_counts(member(new, "status"), REPLICA_SET_COUNTS, &mut errors),
            _ => check(request.env, member(new, "spec"), &mut errors),
        }
        errors
    },
};

fn check(env: &Env, spec: &Value, errors: &mut ErrorList) {
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    let selector = spec.map("selector").filter(|s| !s.is_empty());
    if selector.is_none() {
        errors.push(Error::required(&SPEC.child("selector"), ""));
    }
    match spec.int("replicas") {
        None => errors.push(Error::required(&SPEC.child("replicas"), "")),
        Some(count) => not_negative(count, &SPEC.child("replicas"), errors),
    }
    let Some(own) = spec.some("template") else {
        return errors.push(Error::required(&SPEC.child("template"), ""));
    };
    if let Some(selector) = selector {
        let labels = own.at(&["metadata", "labels"]).and_then(Value::as_object);
        if !LabelSelector::from_labels(selector).matches(labels.unwrap_or(&Map::new())) {
            let shown = labels.map_or(BadValue::text("null"), |l| BadValue::from(&Value::Object(l.clone())));
            let detail = "`selector` does not match template `labels`";
            errors.push(Error::invalid(&SPEC.children(&["template", "metadata", "labels"]), shown, detail));
        }
    }
    template(env, own, &SPEC.child("template"), errors);
    check_always(spec, "ReplicationController", errors);
}
