//! Leases.

use crate::Rules;
use crate::common::{Fields, SPEC, invalid_all, member, meta, meta_update, supported};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::{is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;

pub fn rules(plural: &str) -> Option<Rules> {
    (plural == "leases").then_some(LEASE)
}

const LEASE: Rules = Rules {
    create: |_, lease| {
        let mut errors = meta(lease, Namespacing::Required, name_is_dns_subdomain);
        check_spec(member(lease, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        check_spec(member(new, "spec"), &mut errors);
        errors
    },
};

fn check_spec(spec: &Value, errors: &mut ErrorList) {
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|s| *s <= 0) {
        errors.push(Error::invalid(&SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count) = spec.int("leaseTransitions").filter(|c| *c < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&SPEC.child("leaseTransitions"), count, detail));
    }
    let strategy = spec.text("strategy");
    if spec.has("strategy") {
        let path = SPEC.child("strategy");
        if strategy.contains('/') {
            invalid_all(is_qualified_name(strategy), &path, strategy, errors);
        } else {
            supported(strategy, &["OldestEmulationVersion"], &path, errors);
        }
    }
    if !spec.text("preferredHolder").is_empty() && strategy.is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(Error::forbidden(&SPEC.child("preferredHolder"), detail));
    }
}
