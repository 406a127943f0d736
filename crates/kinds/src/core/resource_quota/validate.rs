//! Names of what is counted, and scopes that fit them.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, IMMUTABLE, SPEC, member, meta, meta_update};
use kubelith_rules::resources::{
    COMPUTE, COUNTED, is_container_resource, is_standard_resource, resource_name, resource_value,
};
use std::collections::BTreeSet;

pub const RULES: Rules = Rules {
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

fn is_standard_quota_resource(name: &str) -> bool {
    (is_standard_resource(name) && !(name.starts_with("hugepages-") && name.len() == "hugepages-".len()))
        && (is_container_resource(name)
            || COUNTED.contains(&name)
            || COMPUTE.contains(&name)
            || name.starts_with("hugepages-")
            || name.starts_with("requests.hugepages-"))
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
