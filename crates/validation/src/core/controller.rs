//! ReplicationControllers and PodTemplates.

use crate::apps::{REPLICA_SET_COUNTS, check_always, check_counts, template};
use crate::common::{Fields, SPEC, declared_long_name, member, meta, meta_update, not_negative};
use crate::{Env, Rules};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::LabelSelector;
use kubelith_meta::{Map, Value};

pub const REPLICATION_CONTROLLER: Rules = Rules {
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

pub const POD_TEMPLATE: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        template(request.env, member(object, "template"), &Path::new("template"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        template(request.env, member(new, "template"), &Path::new("template"), &mut errors);
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
