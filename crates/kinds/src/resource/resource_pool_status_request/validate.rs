//! ResourcePoolStatusRequests: a question about pools of devices, which is answered once. Most rules are declared with the
//! types in the reference, which tells them in words of their own.

use crate::resource::shared::each;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_subdomain, is_dns1123_subdomain_caseless, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_conditions};
use kubelith_rules::common::{Fields, IMMUTABLE, SPEC, member, meta, meta_update};
use kubelith_rules::declared::{at_least, at_most, in_bytes, long_name};
use kubelith_rules::{Rules, internal};

const MAX_LIMIT: i64 = 1000;

const MAX_POOLS: usize = 1000;

const MAX_CONDITIONS: usize = 10;

/// Bytes.
const MAX_POOL_NAME: usize = 253;

/// Bytes.
const MAX_VALIDATION_ERROR: usize = 256;

const STATUS: Path<'static> = Path::new("status");

pub const RULES: Rules = Rules {
    create: |_, request| {
        let mut errors = meta(request, Namespacing::Forbidden, name_is_dns_subdomain);
        check_spec(member(request, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        if request.subresource == "status" {
            check_status(new.some("status"), old.some("status"), &mut errors);
        } else if !internal::same("ResourcePoolStatusRequestSpec", new.get("spec"), old.get("spec")) {
            errors.push(Error::invalid(&SPEC, BadValue::text("null"), IMMUTABLE));
        }
        errors
    },
};

fn check_spec(spec: &Value, errors: &mut ErrorList) {
    driver(spec, &SPEC, errors);
    if let Some(name) = spec.some("poolName").and_then(Value::as_str) {
        pool_name(name, &SPEC.child("poolName"), errors);
    }
    if let Some(limit) = spec.int("limit") {
        at_least(limit, 1, &SPEC.child("limit"), errors);
        at_most(limit, MAX_LIMIT, &SPEC.child("limit"), errors);
    }
}

fn check_status(status: Option<&Value>, before: Option<&Value>, errors: &mut ErrorList) {
    if before.is_some() {
        internal::immutable("*ResourcePoolStatusRequestStatus", status, before, &STATUS, errors);
    } else if let Some(status) = status {
        errors.extend(validate_conditions(status.list("conditions"), &STATUS.child("conditions")));
    }
    let Some(status) = status else { return };
    // What is declared holds for what changes.
    let is_new = |key: &str| before.is_none_or(|before| before.get(key) != status.get(key));
    if is_new("poolCount") {
        match status.int("poolCount") {
            None => errors.push(Error::required(&STATUS.child("poolCount"), "")),
            Some(count) => at_least(count, 0, &STATUS.child("poolCount"), errors),
        }
    }
    if is_new("pools") {
        each(status.list("pools"), MAX_POOLS, &STATUS.child("pools"), errors, check_pool);
    }
    if is_new("conditions") {
        let (conditions, path) = (status.list("conditions"), STATUS.child("conditions"));
        if each(conditions, MAX_CONDITIONS, &path, errors, |_, _, _| {}) {
            let repeated = |i: &usize| conditions[..*i].iter().any(|c| c.text("type") == conditions[*i].text("type"));
            for i in (0..conditions.len()).filter(repeated) {
                errors.push(Error::duplicate(&path.index(i), internal::shown("Condition", conditions.get(i))));
            }
        }
    }
}

fn check_pool(pool: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    driver(pool, path, errors);
    match pool.text("poolName") {
        "" => errors.push(Error::required(&path.child("poolName"), "")),
        name => pool_name(name, &path.child("poolName"), errors),
    }
    match pool.number("generation") {
        0 => errors.push(Error::required(&path.child("generation"), "")),
        generation => at_least(generation, 0, &path.child("generation"), errors),
    }
    for (key, least) in [
        ("resourceSliceCount", 1),
        ("totalDevices", 0),
        ("allocatedDevices", 0),
        ("availableDevices", 0),
        ("unavailableDevices", 0),
    ] {
        if let Some(count) = pool.int(key) {
            at_least(count, least, &path.child(key), errors);
        }
    }
    if let Some(node) = pool.some("nodeName").and_then(Value::as_str) {
        long_name(node, &path.child("nodeName"), errors);
    }
    if pool.text("validationError").len() > MAX_VALIDATION_ERROR {
        errors.push(Error::too_long(&path.child("validationError"), MAX_VALIDATION_ERROR));
    }
}

fn driver(owner: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (name, path) = (owner.text("driver"), path.child("driver"));
    if name.is_empty() {
        return errors.push(Error::required(&path, ""));
    }
    let messages = is_dns1123_subdomain_caseless(name).into_iter().map(in_bytes);
    errors.extend(messages.map(|message| Error::invalid(&path, name, message)));
}

/// Domain names with slashes between them.
fn pool_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.len() > MAX_POOL_NAME {
        errors.push(Error::too_long(path, MAX_POOL_NAME));
    }
    for (i, segment) in name.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(Error::invalid(path, name, format!("segment {i}: must not be empty")));
            continue;
        }
        let messages = is_dns1123_subdomain(segment).into_iter().map(in_bytes);
        errors.extend(messages.map(|message| Error::invalid(path, segment, format!("segment {i}: {message}"))));
    }
}
