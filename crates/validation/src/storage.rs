//! Storage classes, attachments, and what drivers say of themselves.

use crate::common::{
    Fields, SPEC, dns_subdomain, immutable, immutable_text, invalid_all, member, meta, meta_update, name_full,
    not_negative, qualified_name, quantity_not_negative, same_member,
};
use crate::core::volume::{Place, check_volume};
use crate::internal;
use crate::{Env, Rules};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{self, NameUse, is_dns1123_subdomain, name_is_dns_subdomain, range_message};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::{LabelSelectorRules, validate_label_name, validate_label_selector};
use kubelith_meta::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 << 10;
const MAX_METADATA_BYTES: usize = 256 << 10;
const MAX_ERROR_BYTES: usize = 1024;
const MAX_NODE_ID: usize = 256;

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "storageclasses" => {
            Rules { create: |_, class| storage_class(class), update: |_, new, old| class_update(new, old) }
        }
        "volumeattributesclasses" => Rules {
            create: |_, class| attributes_class(class),
            update: |_, new, old| {
                let mut errors = meta_update(new, old);
                for key in ["driverName", "parameters"] {
                    if !same_member(new, old, key) {
                        errors.push(Error::forbidden(&Path::new(key), format!("updates to {key} are forbidden.")));
                    }
                }
                errors.extend(attributes_class(new));
                errors
            },
        },
        "volumeattachments" => Rules {
            create: |_, attachment| self::attachment(attachment),
            update: |_, new, old| {
                let mut errors = self::attachment(new);
                internal::immutable("VolumeAttachmentSpec", new.get("spec"), old.get("spec"), &SPEC, &mut errors);
                errors
            },
        },
        "csinodes" => Rules { create: |_, node| csi_node(node), update: |_, new, old| csi_node_update(new, old) },
        "csidrivers" => Rules {
            create: |request, driver| {
                let mut errors = meta(driver, Namespacing::Forbidden, driver_name_rule);
                check_driver(request.env, member(driver, "spec"), &mut errors);
                errors
            },
            update: |request, new, old| {
                let mut errors = meta_update(new, old);
                let (spec, old) = (member(new, "spec"), member(old, "spec"));
                check_driver(request.env, spec, &mut errors);
                // The reference spells the first path like this.
                for (key, path) in
                    [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
                {
                    immutable(spec.get(key), old.get(key), &SPEC.child(path), &mut errors);
                }
                errors
            },
        },
        "csistoragecapacities" => Rules {
            create: |_, capacity| self::capacity(capacity),
            update: |_, new, old| {
                let mut errors = self::capacity(new);
                errors.extend(meta_update(new, old));
                let [topology, before] = [new, old].map(|capacity| capacity.get("nodeTopology"));
                internal::immutable("*LabelSelector", topology, before, &Path::new("nodeTopology"), &mut errors);
                immutable_text(new, old, "storageClassName", &Path::ROOT, &mut errors);
                errors
            },
        },
        _ => return None,
    })
}

fn storage_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    provisioner(class, "provisioner", &mut errors);
    parameters(class.map("parameters"), &mut errors);
    let policy = class.text("reclaimPolicy");
    if !policy.is_empty() && !["Delete", "Retain"].contains(&policy) {
        let path = Path::new("reclaimPolicy");
        errors.push(Error::not_supported(&path, BadValue::json(policy), ["Delete", "Retain"]));
    }
    let path = Path::new("volumeBindingMode");
    match class.some("volumeBindingMode").and_then(Value::as_str) {
        None => errors.push(Error::required(&path, "")),
        Some("Immediate" | "WaitForFirstConsumer") => {}
        Some(mode) => {
            errors.push(Error::not_supported(&path, BadValue::json(mode), ["Immediate", "WaitForFirstConsumer"]));
        }
    }
    check_topologies(class.list("allowedTopologies"), &Path::new("allowedTopologies"), &mut errors);
    errors
}

fn class_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = storage_class(new);
    errors.extend(meta_update(new, old));
    let fixed = [
        ("parameters", "map[string]"),
        ("provisioner", "string"),
        ("reclaimPolicy", "*string"),
        ("volumeBindingMode", "*string"),
    ];
    for (key, form) in fixed {
        internal::immutable(form, new.get(key), old.get(key), &Path::new(key), &mut errors);
    }
    errors
}

fn attributes_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    provisioner(class, "driverName", &mut errors);
    parameters(class.map("parameters"), &mut errors);
    if class.map("parameters").is_none_or(Map::is_empty) {
        errors.push(Error::required(&Path::new("parameters"), "must contain at least one key/value pair"));
    }
    errors
}

fn provisioner(class: &Value, key: &str, errors: &mut ErrorList) {
    let name = class.text(key);
    if name.is_empty() {
        errors.push(Error::required(&Path::new(key), ""));
    } else {
        qualified_name(&name.to_lowercase(), &Path::new(key), errors);
    }
}

fn parameters(parameters: Option<&Map>, errors: &mut ErrorList) {
    let Some(parameters) = parameters else { return };
    let path = Path::new("parameters");
    if parameters.len() > MAX_PARAMETERS {
        errors.push(Error::too_long(&path, MAX_PARAMETERS));
        return;
    }
    if parameters.contains_key("") {
        errors.push(Error::invalid(&path, "", "field can not be empty."));
    }
    if bytes_of(parameters) > MAX_PARAMETER_BYTES {
        errors.push(Error::too_long(&path, MAX_PARAMETER_BYTES));
    }
}

fn bytes_of(map: &Map) -> usize {
    map.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum()
}

fn check_topologies(terms: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (i, term) in terms.iter().enumerate() {
        let path = path.index(i);
        let mut by_key = BTreeMap::new();
        for (j, requirement) in term.list("matchLabelExpressions").iter().enumerate() {
            let path = path.item("matchLabelExpressions", j);
            let values = requirement.texts("values");
            if values.is_empty() {
                errors.push(Error::required(&path.child("values"), ""));
            }
            let mut distinct = BTreeSet::new();
            for (k, value) in values.into_iter().enumerate() {
                if !distinct.insert(value) {
                    errors.push(Error::duplicate(&path.item("values", k), value));
                }
            }
            let key = requirement.text("key");
            errors.extend(validate_label_name(key, &path.child("key")));
            if by_key.insert(key, distinct).is_some() {
                errors.push(Error::duplicate(&path.child("key"), key));
            }
        }
        if seen.contains(&by_key) || (by_key.is_empty() && !terms.is_empty()) {
            errors.push(Error::duplicate(&path.child("matchLabelExpressions"), ""));
        }
        seen.push(by_key);
    }
}

/// The name of a driver, in any case.
pub fn driver_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    if name.len() > 63 {
        errors.push(Error::too_long(path, 63));
    }
    let lower = name.to_lowercase();
    errors.extend(is_dns1123_subdomain(&lower).into_iter().map(|m| Error::invalid(path, name, m)));
}

fn driver_name_rule(name: &str, name_use: NameUse) -> names::Messages {
    name_is_dns_subdomain(&name.to_lowercase(), name_use)
}

fn attachment(attachment: &Value) -> ErrorList {
    let mut errors = meta(attachment, Namespacing::Forbidden, name_is_dns_subdomain);
    let spec = member(attachment, "spec");
    driver_name(spec.text("attacher"), &SPEC.child("attacher"), &mut errors);
    let source = member(spec, "source");
    let path = SPEC.child("source");
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = source.some("persistentVolumeName").and_then(Value::as_str);
    match (source.some("inlineVolumeSpec"), volume) {
        (None, None) => errors.push(Error::required(&path, ONE)),
        (Some(_), Some(_)) => errors.push(Error::forbidden(&path, ONE)),
        (None, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(Error::required(&path.child("persistentVolumeName"), detail));
        }
        (Some(inline), None) => {
            check_volume(inline, "", Place::Inline, &path.child("inlineVolumeSpec"), &mut errors);
        }
        (None, Some(_)) => {}
    }
    name_full(name_is_dns_subdomain, spec.text("nodeName"), &SPEC.child("nodeName"), &mut errors);
    check_attachment_status(member(attachment, "status"), &mut errors);
    if let Some(volume) = volume {
        dns_subdomain(volume, &Path::new("spec.source.persistentVolumeName"), &mut errors);
    }
    errors
}

fn check_attachment_status(status: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    if status.map("attachmentMetadata").is_some_and(|m| bytes_of(m) > MAX_METADATA_BYTES) {
        errors.push(Error::too_long(&path.child("attachmentMetadata"), MAX_METADATA_BYTES));
    }
    for key in ["attachError", "detachError"] {
        let Some(error) = status.some(key) else { continue };
        if error.text("message").len() > MAX_ERROR_BYTES {
            errors.push(Error::too_long(&path.child(key).child("message"), MAX_METADATA_BYTES));
        }
        if let Some(code) = error.int("errorCode").filter(|c| *c < 0) {
            let detail = range_message(0, i64::from(i32::MAX));
            errors.push(Error::invalid(&path.child(key).child("errorCode"), code, detail));
        }
    }
}

fn csi_node(node: &Value) -> ErrorList {
    let mut errors = meta(node, Namespacing::Forbidden, name_is_dns_subdomain);
    let mut names = BTreeSet::new();
    for (i, driver) in member(node, "spec").list("drivers").iter().enumerate() {
        let path = SPEC.item("drivers", i);
        let name = driver.text("name");
        driver_name(name, &path.child("name"), &mut errors);
        let id = driver.text("nodeID");
        if id.is_empty() {
            errors.push(Error::required(&path.child("nodeID"), ""));
        }
        if id.len() > MAX_NODE_ID {
            errors.push(Error::invalid(&path.child("nodeID"), id, format!("must be {MAX_NODE_ID} characters or less")));
        }
        if let Some(count) = member(driver, "allocatable").int("count") {
            not_negative(count, &path.child("allocatable").child("count"), &mut errors);
        }
        if !names.insert(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in driver.texts("topologyKeys") {
            if key.is_empty() {
                errors.push(Error::required(&path, ""));
            }
            if !keys.insert(key) {
                errors.push(Error::duplicate(&path, key));
            }
            qualified_name(key, &path, &mut errors);
        }
    }
    errors
}

fn csi_node_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = csi_node(new);
    let without_count = |driver: &Value| {
        let mut driver = driver.clone();
        driver.make_object().remove("allocatable");
        driver
    };
    for old in member(old, "spec").list("drivers") {
        for new in member(new, "spec").list("drivers").iter().filter(|new| new.text("name") == old.text("name")) {
            let (new, old) = (without_count(new), without_count(old));
            internal::immutable("CSINodeDriver", Some(&new), Some(&old), &SPEC.child("drivers"), &mut errors);
        }
    }
    errors
}

fn check_driver(env: &Env, spec: &Value, errors: &mut ErrorList) {
    for (key, path) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(key) {
            errors.push(Error::required(&SPEC.child(path), ""));
        }
    }
    if let Some(policy) = spec.some("fsGroupPolicy").and_then(Value::as_str) {
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        crate::common::supported(policy, &known, &SPEC.child("fsGroupPolicy"), errors);
    }
    let mut audiences = BTreeSet::new();
    for (i, request) in spec.list("tokenRequests").iter().enumerate() {
        let path = SPEC.item("tokenRequests", i);
        if !audiences.insert(request.text("audience")) {
            errors.push(Error::duplicate(&path.child("audience"), request.text("audience")));
            continue;
        }
        let Some(seconds) = request.int("expirationSeconds") else { continue };
        let path = path.child("expirationSeconds");
        if seconds < 600 {
            errors.push(Error::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
        }
        if seconds > 1 << 32 {
            errors.push(Error::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
    for mode in spec.texts("volumeLifecycleModes") {
        crate::common::supported(mode, &["Persistent", "Ephemeral"], &SPEC.child("volumeLifecycleModes"), errors);
    }
    if !spec.has("seLinuxMount") {
        errors.push(Error::required(&SPEC.child("seLinuxMount"), ""));
    }
    if let Some(period) = spec.int("nodeAllocatableUpdatePeriodSeconds").filter(|p| *p < 10) {
        let detail = "must be greater than or equal to 10 seconds";
        errors.push(Error::invalid(&SPEC.child("nodeAllocatableUpdatePeriodSeconds"), period, detail));
    }
    if let Some(value) = spec.some("serviceAccountTokenInSecrets").filter(|_| spec.list("tokenRequests").is_empty()) {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(Error::invalid(&SPEC.child("serviceAccountTokenInSecrets"), value, detail));
    }
    if env.features.volume_limit_scaling && !spec.has("preventPodSchedulingIfMissing") {
        errors.push(Error::required(&SPEC.child("preventPodSchedulingIfMissing"), ""));
    }
}

fn capacity(capacity: &Value) -> ErrorList {
    let mut errors = meta(capacity, Namespacing::Required, name_is_dns_subdomain);
    if let Some(selector) = capacity.some("nodeTopology") {
        let path = Path::new("nodeTopology");
        errors.extend(validate_label_selector(selector, LabelSelectorRules::default(), &path));
    }
    let class = capacity.text("storageClassName");
    invalid_all(name_is_dns_subdomain(class, NameUse::Full), &Path::new("storageClassName"), class, &mut errors);
    if let Some(amount) = capacity.some("capacity") {
        quantity_not_negative(amount, &Path::new("capacity"), &mut errors);
    }
    errors
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
