//! Who holds it, and for how long.

use crate::coordination::shared::check_strategy;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, METADATA, SPEC, member};

pub const RULES: Rules = Rules {
    create: |_, lease| {
        let mut errors = validate_object_meta(lease.meta(), Namespacing::Required, name_is_dns_subdomain, &METADATA);
        check_lease(member(lease, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = validate_object_meta_update(new.meta(), old.meta(), &METADATA);
        check_lease(member(new, "spec"), &mut errors);
        errors
    },
};

fn check_lease(spec: &Value, errors: &mut ErrorList) {
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|s| *s <= 0) {
        errors.push(Error::invalid(&SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count) = spec.int("leaseTransitions").filter(|c| *c < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&SPEC.child("leaseTransitions"), count, detail));
    }
    if let Some(strategy) = spec.some("strategy") {
        check_strategy(strategy.or_empty(), &SPEC.child("strategy"), errors);
    }
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(Error::forbidden(&SPEC.child("preferredHolder"), detail));
    }
}
