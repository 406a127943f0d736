//! PersistentVolumes and the claims on them.

use super::pod::node_selector;
use super::pod::volumes::{required, shared_source};
use crate::Rules;
use crate::common::{
    Fields, SPEC, dns_subdomain, immutable, label_selector, member, meta, meta_update, name_full, quantity,
    quantity_not_negative, quantity_positive, supported,
};
use crate::storage::driver_name;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_annotations};
use kubelith_meta::selector::validate_labels;
use kubelith_meta::{Map, Value};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub const VOLUME: Rules = Rules {
    create: |_, volume| self::volume(volume),
    update: |request, new, old| match request.subresource {
        "status" => {
            let mut errors = meta_update(new, old);
            if new.meta().resource_version().is_empty() {
                errors.push(Error::required(&Path::new("resourceVersion"), ""));
            }
            errors
        }
        _ => volume_update(new, old),
    },
};

pub const CLAIM: Rules = Rules {
    create: |_, claim| {
        let mut errors = meta(claim, Namespacing::Required, name_is_dns_subdomain);
        check_claim(member(claim, "spec"), &SPEC, &mut errors);
        errors
    },
    update: |request, new, old| match request.subresource {
        "status" => claim_status(new, old),
        _ => claim_update(new, old),
    },
};

/// The sources of persistent volumes, in the order of the checks.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn check_modes(spec: &Value, missing: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let modes = spec.texts("accessModes");
    if modes.is_empty() {
        errors.push(Error::required(&path.child("accessModes"), missing));
    }
    check_mode_names(&modes, &path.child("accessModes"), errors);
}

fn check_mode_names(modes: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for mode in modes {
        supported(mode, &ACCESS_MODES, path, errors);
    }
    let alone = modes.contains(&"ReadWriteOncePod");
    if alone && modes.iter().any(|m| *m != "ReadWriteOncePod" && ACCESS_MODES.contains(m)) {
        errors.push(Error::forbidden(path, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn volume(volume: &Value) -> ErrorList {
    let mut errors = meta(volume, Namespacing::Forbidden, name_is_dns_subdomain);
    let spec = member(volume, "spec");
    check_modes(spec, "", &SPEC, &mut errors);
    check_capacity(spec, &mut errors);
    let policy = spec.text("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        let path = SPEC.child("persistentVolumeReclaimPolicy");
        supported(policy, &["Delete", "Recycle", "Retain"], &path, &mut errors);
    }
    if let Some(affinity) = spec.some("nodeAffinity") {
        let path = SPEC.child("nodeAffinity");
        match affinity.some("required") {
            Some(selector) => node_selector(selector, &path.child("required"), &mut errors),
            None => {
                errors.push(Error::required(&path.child("required"), "must specify required node constraints"));
            }
        }
    }
    check_source(spec, &mut errors);
    let root = spec.some("hostPath").is_some_and(|h| h.text("path").trim_end_matches('/').is_empty());
    if root && spec.some("hostPath").is_some_and(|h| !h.text("path").is_empty()) && policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(Error::forbidden(&SPEC.child("persistentVolumeReclaimPolicy"), detail));
    }
    if !spec.text("storageClassName").is_empty() {
        let path = SPEC.child("storageClassName");
        name_full(name_is_dns_subdomain, spec.text("storageClassName"), &path, &mut errors);
    }
    if let Some(mode) = spec.some("volumeMode").and_then(Value::as_str) {
        supported(mode, &VOLUME_MODES, &SPEC.child("volumeMode"), &mut errors);
    }
    if let Some(class) = spec.some("volumeAttributesClassName").and_then(Value::as_str) {
        let path = SPEC.child("volumeAttributesClassName");
        if class.is_empty() {
            errors.push(Error::required(&path, "an empty string is disallowed"));
        } else {
            name_full(name_is_dns_subdomain, class, &path, &mut errors);
        }
        if !spec.has("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(Error::required(&SPEC.child("csi"), detail));
        }
    }
    errors
}

fn check_capacity(spec: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("capacity");
    let capacity = spec.map("capacity");
    if capacity.is_none_or(Map::is_empty) {
        errors.push(Error::required(&path, ""));
    }
    if !capacity.is_some_and(|c| c.len() == 1 && c.contains_key("storage")) {
        let shown = spec.some("capacity").map_or(BadValue::text("null"), BadValue::from);
        errors.push(Error::not_supported(&path, shown, ["storage"]));
    }
    for (name, value) in spec.entries("capacity") {
        let path = path.key(name);
        basic_resource(value, &path, errors);
        quantity_positive(value, &path, errors);
    }
}

fn basic_resource(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if quantity(value).is_some_and(|q| q.value() < 0) {
        errors.push(Error::invalid(
            path,
            quantity(value).map_or(0, |q| q.value()),
            "must be a valid resource quantity",
        ));
    }
}

fn check_source(spec: &Value, errors: &mut ErrorList) {
    let mut count = 0;
    for key in SOURCES {
        let Some(source) = spec.some(key) else { continue };
        count += 1;
        // Flexible volumes are not counted against others.
        if count > 1 && key != "flexVolume" {
            let spelled = if key == "cephfs" { "cephFS" } else { key };
            errors.push(Error::forbidden(&SPEC.child(spelled), "may not specify more than 1 volume type"));
            continue;
        }
        let spelled = if key == "gcePersistentDisk" { "persistentDisk" } else { key };
        let path = SPEC.child(spelled);
        match key {
            "csi" => check_csi(source, &path, errors),
            "azureFile" => {
                required(source, &["secretName", "shareName"], &path, errors);
                if source.some("secretNamespace").and_then(Value::as_str) == Some("") {
                    errors.push(Error::required(&path.child("secretNamespace"), ""));
                }
            }
            "glusterfs" => {
                shared_source(key, source, &path, errors);
                if let Some(namespace) = source.some("endpointsNamespace").and_then(Value::as_str) {
                    let path = path.child("endpointsNamespace");
                    if namespace.is_empty() {
                        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                        errors.push(Error::invalid(&path, namespace, detail));
                    } else {
                        name_full(name_is_dns_label, namespace, &path, errors);
                    }
                }
            }
            _ => shared_source(key, source, &path, errors),
        }
        if key == "local" && !spec.has("nodeAffinity") {
            errors.push(Error::required(&SPEC.child("nodeAffinity"), "Local volume requires node affinity"));
        }
    }
    if count == 0 {
        errors.push(Error::required(&SPEC, "must specify a volume type"));
    }
}

fn check_csi(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    driver_name(source.text("driver"), &path.child("driver"), errors);
    required(source, &["volumeHandle"], path, errors);
    for key in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let Some(secret) = source.some(key) else { continue };
        let path = path.child(key);
        for key in ["name", "namespace"] {
            let value = secret.text(key);
            if value.is_empty() {
                errors.push(Error::required(&path.child(key), ""));
            } else if key == "name" {
                name_full(name_is_dns_subdomain, value, &path.child(key), errors);
            } else {
                name_full(name_is_dns_label, value, &path.child(key), errors);
            }
        }
    }
}

fn volume_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = volume(new);
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    let source = |spec: &Value, other: &Value| -> Vec<Value> {
        let mut all: Vec<Value> = SOURCES.iter().map(|key| member(spec, key).clone()).collect();
        // A secret for expanding may be added.
        if !member(other, "csi").has("controllerExpandSecretRef")
            && let Some(csi) = all.last_mut().and_then(Value::as_object_mut)
        {
            csi.remove("controllerExpandSecretRef");
        }
        all
    };
    if source(spec, before) != source(before, before) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(Error::forbidden(&SPEC.child("persistentvolumesource"), detail));
    }
    immutable(spec.get("volumeMode"), before.get("volumeMode"), &Path::new("volumeMode"), &mut errors);
    if before.has("nodeAffinity") {
        let (new, old) = (spec.get("nodeAffinity"), before.get("nodeAffinity"));
        immutable(new, old, &Path::new("nodeAffinity"), &mut errors);
    }
    if before.has("volumeAttributesClassName") && !spec.has("volumeAttributesClassName") {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(Error::forbidden(&SPEC.child("volumeAttributesClassName"), detail));
    }
    errors
}

/// The template of a claim that comes with something else.
pub fn check_claim_template(template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let metadata = path.child("metadata");
    if let Some(labels) = member(template, "metadata").map("labels") {
        errors.extend(validate_labels(labels, &metadata.child("labels")));
    }
    if let Some(annotations) = member(template, "metadata").map("annotations") {
        errors.extend(validate_annotations(annotations, &metadata.child("annotations")));
    }
    check_claim(member(template, "spec"), &path.child("spec"), errors);
}

pub fn check_claim(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let modes = spec.texts("accessModes");
    if modes.is_empty() {
        errors.push(Error::required(&path.child("accessModes"), "at least 1 access mode is required"));
    }
    label_selector(spec.get("selector"), &path.child("selector"), errors);
    check_mode_names(&modes, &path.child("accessModes"), errors);
    let resources = path.child("resources");
    let at = resources.key("storage");
    match spec.at(&["resources", "requests", "storage"]) {
        None => errors.push(Error::required(&at, "")),
        Some(size) => quantity_positive(size, &at, errors),
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        if key == "volumeAttributesClassName" {
            if let Some(mode) = spec.some("volumeMode").and_then(Value::as_str) {
                supported(mode, &VOLUME_MODES, &path.child("volumeMode"), errors);
            }
            check_data_sources(spec, path, errors);
        }
        if !spec.text(key).is_empty() {
            name_full(name_is_dns_subdomain, spec.text(key), &path.child(key), errors);
        }
    }
}

fn check_data_sources(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = spec.some(key) else { continue };
        let path = path.child(key);
        required(source, &["name", "kind"], &path, errors);
        let (group, kind) = (source.text("apiGroup"), source.text("kind"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(Error::invalid(&path, kind, detail));
        }
        if !group.is_empty() {
            dns_subdomain(group, &path.child("apiGroup"), errors);
        }
        if key == "dataSourceRef" && !source.text("namespace").is_empty() {
            name_full(name_is_dns_label, source.text("namespace"), &path.child("namespace"), errors);
        }
    }
    let (Some(source), Some(reference)) = (spec.some("dataSource"), spec.some("dataSourceRef")) else { return };
    let shown = BadValue::json(path.child("dataSource").to_string());
    if !reference.text("namespace").is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(Error::invalid(path, shown, detail));
    } else if ["apiGroup", "kind", "name"].iter().any(|key| source.text(key) != reference.text(key)) {
        errors.push(Error::invalid(path, shown, "must match dataSourceRef"));
    }
}

fn claim_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    errors.extend(meta(new, Namespacing::Required, name_is_dns_subdomain));
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    check_claim(spec, &SPEC, &mut errors);
    let class = |object: &Value| object.meta().annotation(CLASS_ANNOTATION).unwrap_or_default().to_owned();
    if class(new) != class(old) {
        let annotations = Path::of(&["metadata", "annotations"]);
        errors.push(Error::invalid(&annotations.key(CLASS_ANNOTATION), class(new), "field is immutable"));
    }
    let is_bound = new.str_at(&["status", "phase"]) == "Bound";
    if fixed(spec, before, is_bound, class(old).is_empty()) != fixed(before, before, is_bound, false) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
             bound claims";
        errors.push(Error::forbidden(&SPEC, detail));
    }
    let size = |spec: &Value| spec.at(&["resources", "requests", "storage"]).and_then(quantity);
    if size(spec) < size(before) {
        let kept = old.at(&["status", "capacity", "storage"]).and_then(quantity);
        if kept.is_some_and(|kept| size(spec) <= Some(kept)) {
            let path = SPEC.children(&["resources", "requests", "storage"]);
            errors.push(Error::forbidden(&path, "field can not be less than status.capacity"));
        }
    }
    immutable(spec.get("volumeMode"), before.get("volumeMode"), &Path::new("volumeMode"), &mut errors);
    let current = old.at(&["status", "currentVolumeAttributesClassName"]).is_some_and(|v| !v.is_null());
    let key = "volumeAttributesClassName";
    if current && spec.some(key) != before.some(key) {
        let to = match spec.some(key).and_then(Value::as_str) {
            None => Some("nil"),
            Some("") => Some("empty string"),
            Some(_) => None,
        };
        if let Some(to) = to {
            let detail = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
            errors.push(Error::forbidden(&SPEC.child(key), detail));
        }
    }
    errors
}

/// A claim's spec without what an update may change.
fn fixed(spec: &Value, before: &Value, is_bound: bool, class_may_come: bool) -> Value {
    let mut spec = spec.clone();
    if before.text("volumeName").is_empty() {
        spec.make_object().remove("volumeName");
    }
    if class_may_come && !before.has("storageClassName") {
        spec.make_object().remove("storageClassName");
    }
    if is_bound {
        spec.remove_at(&["resources", "requests", "storage"]);
        spec.make_object().remove("volumeAttributesClassName");
    }
    spec
}

fn claim_status(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if member(new, "spec").list("accessModes").is_empty() {
        errors.push(Error::required(&Path::of(&["Spec", "accessModes"]), ""));
    }
    let capacity = Path::of(&["status", "capacity"]);
    for (name, value) in member(new, "status").entries("capacity") {
        quantity_not_negative(value, &capacity.key(name), &mut errors);
    }
    errors
}
