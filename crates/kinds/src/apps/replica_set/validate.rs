//! Selector and template.

use crate::workload::{REPLICA_SET_COUNTS, check_lasting_template, check_selector, invalid_selector, on_update};
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, member, meta, not_negative};
use kubelith_rules::{Env, Rules};

pub const RULES: Rules = Rules {
    create: |request, object| {
        let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
        replica_set(request.env, member(object, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| on_update(request, new, old, replica_set, REPLICA_SET_COUNTS),
};

fn replica_set(env: &Env, spec: &Value, errors: &mut ErrorList) {
    not_negative(spec.number("replicas"), &SPEC.child("replicas"), errors);
    not_negative(spec.number("minReadySeconds"), &SPEC.child("minReadySeconds"), errors);
    check_selector(spec, "deployment", errors);
    if !invalid_selector(spec, errors) {
        check_lasting_template(env, spec, "ReplicaSet", errors);
    }
}
