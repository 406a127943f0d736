//! LimitRanges and ResourceQuotas, and names of resources.

use crate::Rules;
use crate::common::{
    Fields, IMMUTABLE, SPEC, bad_quantity, member, meta, meta_update, quantity, quantity_not_negative, quantity_text,
};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Quantity, Value};
use std::collections::BTreeSet;

const NOT_INTEGER: &str = "must be an integer";
const COUNTED: [&str; 9] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const COMPUTE: [&str; 7] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

pub fn is_standard_resource(name: &str) -> bool {
    is_container_resource(name)
        || name == "storage"
        || COUNTED.contains(&name)
        || COMPUTE.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

pub fn is_standard_container_resource(name: &str) -> bool {
    is_container_resource(name) || name.starts_with("hugepages-")
}

fn is_standard_quota_resource(name: &str) -> bool {
    (is_standard_resource(name) && !(name.starts_with("hugepages-") && name.len() == "hugepages-".len()))
        && (is_container_resource(name)
            || COUNTED.contains(&name)
            || COMPUTE.contains(&name)
            || name.starts_with("hugepages-")
            || name.starts_with("requests.hugepages-"))
}

/// What every container may ask for.
fn is_container_resource(name: &str) -> bool {
    matches!(name, "cpu" | "ephemeral-storage" | "memory")
}

/// Counted in whole units.
pub fn is_integer_resource(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended_resource(name)
}

/// A resource that nodes advertise and that is not Kubernetes' own.
pub fn is_extended_resource(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}")).is_empty()
}

pub fn may_overcommit(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    native && !name.starts_with("hugepages-")
}

fn invalid_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let messages = is_qualified_name(name);
    let found = !messages.is_empty();
    errors.extend(messages.into_iter().map(|m| Error::invalid(path, BadValue::json(name), m)));
    found
}

pub fn resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if !invalid_name(name, path, errors) && !name.contains('/') && !is_standard_resource(name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(Error::invalid(path, BadValue::json(name), detail));
    }
}

/// A resource that a container may ask for.
pub fn container_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    // Nearly always.
    if is_container_resource(name) {
        return;
    }
    resource_name(name, path, errors);
    if !name.contains('/') {
        if !is_standard_container_resource(name) {
            errors.push(Error::invalid(path, BadValue::json(name), "must be a standard resource for containers"));
        }
    } else if !(name.contains("kubernetes.io/") || is_extended_resource(name)) {
        errors.push(Error::invalid(path, BadValue::json(name), "doesn't follow extended resource name standard"));
    }
}

/// An amount of a resource.
pub fn resource_value(name: &str, value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    quantity_not_negative(value, path, errors);
    let may_be_counted = !is_container_resource(name);
    if may_be_counted && is_integer_resource(name) && quantity(value).is_some_and(|q| q.milli_value() % 1000 != 0) {
        errors.push(Error::invalid(path, bad_quantity(value), NOT_INTEGER));
    }
}

pub const LIMIT_RANGE: Rules = Rules { create: |_, range| limit_range(range), update: |_, new, _| limit_range(new) };

fn limit_range(range: &Value) -> ErrorList {
    let mut errors = meta(range, Namespacing::Required, name_is_dns_subdomain);
    let mut types = BTreeSet::new();
    for (i, limit) in member(range, "spec").list("limits").iter().enumerate() {
        let path = SPEC.item("limits", i);
        let kind = limit.text("type");
        let type_path = path.child("type");
        if !invalid_name(kind, &type_path, &mut errors)
            && !kind.contains('/')
            && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind)
        {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(Error::invalid(&type_path, BadValue::json(kind), detail));
        }
        if !types.insert(kind) {
            errors.push(Error::duplicate(&type_path, BadValue::json(kind)));
        }
        check_limit(limit, kind, &path, &mut errors);
    }
    errors
}

fn check_limit(limit: &Value, kind: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let mut keys = BTreeSet::new();
    let is_pod = kind == "Pod";
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let path = path.child(field);
        if is_pod && field.starts_with("default") {
            if limit.map(field).is_some_and(|m| !m.is_empty()) {
                errors.push(Error::forbidden(&path, "may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if field == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            check_claim_limit(limit, &path, errors);
        }
        for (name, _) in limit.entries(field) {
            match kind {
                "Pod" | "Container" => container_resource_name(name, &path.key(name), errors),
                _ => resource_name(name, &path.key(name), errors),
            }
            keys.insert(name);
        }
    }
    for key in keys {
        check_amounts(limit, key, is_pod, path, errors);
    }
}

fn check_claim_limit(limit: &Value, ratio_path: &Path<'_>, errors: &mut ErrorList) {
    let bounded = ["min", "max"].iter().any(|f| limit.map(f).is_some_and(|m| m.contains_key("storage")));
    if !bounded {
        let text = ratio_path.to_string();
        let parent = text.trim_end_matches("maxLimitRequestRatio").trim_end_matches('.').to_owned();
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(Error::required(&Path::new(&parent).child("limits"), detail));
    }
}

fn check_amounts(limit: &Value, key: &str, is_pod: bool, path: &Path<'_>, errors: &mut ErrorList) {
    let value = |field: &str| limit.map(field).and_then(|m| m.get(key));
    let of_container = |field: &str| if is_pod { None } else { value(field) };
    let (min, max, ratio) = (value("min"), value("max"), value("maxLimitRequestRatio"));
    let (default, request) = (of_container("default"), of_container("defaultRequest"));
    let mut greater = |a: Option<&Value>, b: Option<&Value>, field: &str, shown: Option<&Value>, what: (&str, &str)| {
        let (Some(a), Some(b)) = (a, b) else { return };
        if quantity(a) > quantity(b) {
            let detail = format!("{} {} is greater than {} {}", what.0, quantity_text(a), what.1, quantity_text(b));
            let shown = shown.map_or(BadValue::Omitted, bad_quantity);
            errors.push(Error::invalid(&path.child(field).key(key), shown, detail));
        }
    };
    greater(min, max, "min", min, ("min value", "max value"));
    greater(min, request, "defaultRequest", request, ("min value", "default request value"));
    greater(request, max, "defaultRequest", request, ("default request value", "max value"));
    greater(request, default, "defaultRequest", request, ("default request value", "default limit value"));
    greater(min, default, "default", min, ("min value", "default value"));
    greater(default, max, "default", max, ("default value", "max value"));
    if let Some(ratio) = ratio {
        check_ratio(ratio, min, max, &path.child("maxLimitRequestRatio").key(key), errors);
    }
    if let (Some(default), Some(request), false) = (default, request, may_overcommit(key))
        && quantity(default) != quantity(request)
    {
        let detail = format!(
            "default value {} must equal to defaultRequest value {} in {key}",
            quantity_text(default),
            quantity_text(request)
        );
        errors.push(Error::invalid(&path.child("defaultRequest").key(key), bad_quantity(request), detail));
    }
}

fn check_ratio(ratio: &Value, min: Option<&Value>, max: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(wanted) = quantity(ratio) else { return };
    let text = quantity_text(ratio);
    if wanted.milli_value() < 1000 {
        errors.push(Error::invalid(path, bad_quantity(ratio), format!("ratio {text} is less than 1")));
    }
    let (Some(min), Some(max)) = (min.and_then(quantity), max.and_then(quantity)) else { return };
    const MAX_MILLI: i64 = i64::MAX / 1000;
    let fits = |q: &Quantity| q.value() < MAX_MILLI;
    let (wanted, limit) = if fits(&wanted) && fits(&min) && fits(&max) {
        (wanted.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
    } else {
        (wanted.value() as f64, max.value() as f64 / min.value() as f64)
    };
    if wanted > limit {
        let detail = format!("ratio {text} is greater than max/min = {limit:.6}");
        errors.push(Error::invalid(path, bad_quantity(ratio), detail));
    }
}

pub const RESOURCE_QUOTA: Rules = Rules {
    create: |_, quota| {
        let mut errors = meta(quota, Namespacing::Required, name_is_dns_subdomain);
        check_quota_spec(member(quota, "spec"), &mut errors);
        check_amounts_of(member(quota, "status"), &["hard", "used"], &Path::new("status"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        if request.subresource == "status" {
            check_amounts_of(member(new, "status"), &["hard", "used"], &Path::new("status"), &mut errors);
            return errors;
        }
        let spec = member(new, "spec");
        check_quota_spec(spec, &mut errors);
        let scopes = |object: &Value| -> BTreeSet<String> {
            member(object, "spec").texts("scopes").into_iter().map(str::to_owned).collect()
        };
        if scopes(new) != scopes(old) {
            errors.push(Error::invalid(&SPEC.child("scopes"), member(spec, "scopes"), IMMUTABLE));
        }
        errors
    },
};

fn check_amounts_of(part: &Value, fields: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for field in fields {
        for (name, value) in part.entries(field) {
            let path = path.child(field);
            let path = path.key(name);
            quota_resource_name(name, &path, errors);
            resource_value(name, value, &path, errors);
        }
    }
}

fn quota_resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    resource_name(name, path, errors);
    if !name.contains('/') && !is_standard_quota_resource(name) {
        errors.push(Error::invalid(path, BadValue::json(name), "must be a standard resource for quota"));
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Whether a quota of a resource can be limited to a scope.
fn scope_fits(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods"
                || is_container_resource(resource)
                || matches!(
                    resource,
                    "limits.cpu"
                        | "limits.memory"
                        | "limits.ephemeral-storage"
                        | "requests.cpu"
                        | "requests.memory"
                        | "requests.ephemeral-storage"
                )
                || resource.starts_with("hugepages-")
                || resource.starts_with("requests.hugepages-")
        }
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn check_quota_spec(spec: &Value, errors: &mut ErrorList) {
    check_amounts_of(spec, &["hard"], &SPEC, errors);
    let hard: Vec<&str> = spec.entries("hard").map(|(name, _)| name).collect();
    let scopes = spec.texts("scopes");
    if !scopes.is_empty() {
        let path = SPEC.child("scopes");
        for scope in &scopes {
            if !SCOPES.contains(scope) {
                errors.push(Error::invalid(&path, member(spec, "scopes"), "unsupported scope"));
            }
            for name in hard.iter().filter(|n| is_standard_quota_resource(n) && !scope_fits(scope, n)) {
                let _ = name;
                errors.push(Error::invalid(&path, member(spec, "scopes"), "unsupported scope applied to resource"));
            }
        }
        check_pairs(&scopes, &path, member(spec, "scopes"), errors);
    }
    if let Some(selector) = spec.some("scopeSelector") {
        check_scope_selector(selector, &hard, spec, errors);
    }
}

fn check_pairs(scopes: &[&str], path: &Path<'_>, shown: &Value, errors: &mut ErrorList) {
    for [a, b] in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if scopes.contains(&a) && scopes.contains(&b) {
            errors.push(Error::invalid(path, shown, "conflicting scopes"));
        }
    }
}

fn check_scope_selector(selector: &Value, hard: &[&str], spec: &Value, errors: &mut ErrorList) {
    let parent = SPEC.child("scopeSelector");
    let path = parent.child("matchExpressions");
    let mut scopes = Vec::new();
    for expression in selector.list("matchExpressions") {
        let (scope, operator) = (expression.text("scopeName"), expression.text("operator"));
        if !SCOPES.contains(&scope) {
            errors.push(Error::invalid(&path.child("scopeName"), BadValue::json(scope), "unsupported scope"));
        }
        for _ in hard.iter().filter(|n| is_standard_quota_resource(n) && !scope_fits(scope, n)) {
            errors.push(Error::invalid(&path, selector, "unsupported scope applied to resource"));
        }
        let exists_only = matches!(
            scope,
            "BestEffort" | "NotBestEffort" | "Terminating" | "NotTerminating" | "CrossNamespacePodAffinity"
        );
        if exists_only && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                 ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                 ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(Error::invalid(&path.child("operator"), BadValue::json(operator), detail));
        }
        let values = member(expression, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(Error::required(&path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(Error::invalid(&path.child("values"), values, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let detail = "not a valid selector operator";
                errors.push(Error::invalid(&path.child("operator"), BadValue::json(operator), detail));
            }
        }
        scopes.push(scope);
    }
    check_pairs(&scopes, &path, member(spec, "scopes"), errors);
}
