//! DeviceTaintRules.

use crate::resource::shared::{pool_name, taint};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::{Namespacing, validate_conditions};
use kubelith_rules::common::{Fields, SPEC, dns_label, member, meta, meta_update};
use kubelith_rules::sealed::sealed;
use kubelith_rules::values::driver_name;
use kubelith_rules::{Kind, Rules};
use kubelith_schema::lifecycle::Generation;

pub const DEVICE_TAINT_RULE: Kind = sealed(
    Kind { group: "resource.k8s.io", plural: "devicetaintrules", rules: RULES, ..Kind::PLAIN }
        .generation(Generation::Spec)
        .returned(),
);

pub const RULES: Rules = Rules {
    create: |_, rule| {
        let mut errors = meta(rule, Namespacing::Forbidden, name_is_dns_subdomain);
        check_taint_rule(rule, None, &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        match request.subresource {
            "status" => check_taint_rule_status(new, &mut errors),
            _ => check_taint_rule(new, Some(old), &mut errors),
        }
        errors
    },
};

const MAX_RULE_CONDITIONS: usize = 8;

pub fn check_taint_rule(rule: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = member(rule, "spec");
    if let Some(selector) = spec.some("deviceSelector") {
        let path = SPEC.child("deviceSelector");
        if let Some(name) = selector.some("driver").and_then(Value::as_str) {
            driver_name(name, &path.child("driver"), errors);
        }
        if let Some(name) = selector.some("pool").and_then(Value::as_str) {
            pool_name(name, &path.child("pool"), errors);
        }
        if let Some(name) = selector.some("device").and_then(Value::as_str) {
            dns_label(name, &path.child("device"), errors);
        }
    }
    let before = old.map(|old| member(member(old, "spec"), "taint"));
    taint(member(spec, "taint"), before, &SPEC.child("taint"), errors);
}

pub fn check_taint_rule_status(rule: &Value, errors: &mut ErrorList) {
    let conditions = member(rule, "status").list("conditions");
    let path = Path::of(&["status", "conditions"]);
    errors.extend(validate_conditions(conditions, &path));
    if conditions.len() > MAX_RULE_CONDITIONS {
        errors.push(Error::too_many(&path, conditions.len(), MAX_RULE_CONDITIONS));
    }
}
