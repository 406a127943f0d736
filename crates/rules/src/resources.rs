//! Names of resources that containers ask for and nodes have, and their amounts.

use crate::common::{bad_quantity, quantity, quantity_not_negative};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_qualified_name;

const NOT_INTEGER: &str = "must be an integer";

pub const COUNTED: [&str; 9] = [
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

pub const COMPUTE: [&str; 7] = [
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

/// What every container may ask for.
pub fn is_container_resource(name: &str) -> bool {
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

pub fn invalid_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
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
