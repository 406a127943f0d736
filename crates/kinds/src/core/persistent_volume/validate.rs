//! Sources, modes, capacity, and what may change of a volume.

use crate::core::persistent_volume_claim::validate::put;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Map, Value};
use kubelith_pods::claim::{VOLUME_MODES, basic_resource, check_attributes_class, check_modes};
use kubelith_pods::validate::node_selector;
use kubelith_pods::validate::volumes::{Target, iscsi, required, shared_source};
use kubelith_rules::common::{
    Fields, IMMUTABLE, SPEC, immutable, member, meta, meta_update, name_full, quantity_positive, supported,
};
use kubelith_rules::values::driver_name;
use kubelith_rules::{Env, Rules, internal};

pub const RULES: Rules = Rules {
    create: |_, volume| {
        let mut errors = self::volume(volume);
        check_mount_options(volume, &mut errors);
        errors
    },
    update: |request, new, old| match request.subresource {
        "status" => {
            let mut errors = meta_update(new, old);
            if new.meta().resource_version().is_empty() {
                errors.push(Error::required(&Path::new("resourceVersion"), ""));
            }
            errors
        }
        _ => volume_update(request.env, new, old),
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

/// Volumes whose mounts take options by an annotation.
const WITH_MOUNT_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

fn check_mount_options(volume: &Value, errors: &mut ErrorList) {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
    let spec = member(volume, "spec");
    if volume.meta().annotation(ANNOTATION).is_some() && !WITH_MOUNT_OPTIONS.iter().any(|key| spec.has(key)) {
        let path = Path::new("metadata");
        let detail = "may not specify mount options for this volume type";
        errors.push(Error::forbidden(&path.children(&["annotations", ANNOTATION]), detail));
    }
}

/// Where the spec of a volume stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Volume,
    /// In something that uses it: much of what volumes are found and kept by is out of place there.
    Inline,
}

fn volume(volume: &Value) -> ErrorList {
    let mut errors = meta(volume, Namespacing::Forbidden, name_is_dns_subdomain);
    check_volume(member(volume, "spec"), volume.meta().name(), Place::Volume, &SPEC, &mut errors);
    errors
}

pub fn check_volume(spec: &Value, name: &str, place: Place, path: &Path<'_>, errors: &mut ErrorList) {
    let misplaced =
        |key: &str| Error::forbidden(&path.child(key), "may not be specified in the context of inline volumes");
    let is_inline = place == Place::Inline;
    if is_inline {
        errors.extend(spec.has("claimRef").then(|| misplaced("claimRef")));
        errors.extend(spec.map("capacity").is_some_and(|c| !c.is_empty()).then(|| misplaced("capacity")));
        if !spec.has("csi") {
            let detail = "has to be specified in the context of inline volumes";
            errors.push(Error::required(&path.child("csi"), detail));
        }
    }
    check_modes(spec, "", path, errors);
    if !is_inline {
        check_capacity(spec, path, errors);
    }
    check_reclaim_policy(spec.text("persistentVolumeReclaimPolicy"), place, path, errors);
    if let Some(affinity) = spec.some("nodeAffinity") {
        let at = path.child("nodeAffinity");
        match affinity.some("required") {
            _ if is_inline => errors.push(misplaced("nodeAffinity")),
            Some(selector) => node_selector(selector, &at.child("required"), errors),
            None => errors.push(Error::required(&at.child("required"), "must specify required node constraints")),
        }
    }
    check_source(spec, name, place, path, errors);
    let root = spec.some("hostPath").is_some_and(|h| h.text("path").trim_end_matches('/').is_empty());
    if root
        && spec.some("hostPath").is_some_and(|h| !h.text("path").is_empty())
        && spec.text("persistentVolumeReclaimPolicy") == "Recycle"
    {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(Error::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    match spec.text("storageClassName") {
        "" => {}
        _ if is_inline => errors.push(misplaced("storageClassName")),
        class => name_full(name_is_dns_subdomain, class, &path.child("storageClassName"), errors),
    }
    match spec.some("volumeMode").and_then(Value::as_str) {
        Some(mode) if is_inline && mode != "Filesystem" => {
            let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
            errors.push(Error::forbidden(&path.child("volumeMode"), detail));
        }
        Some(mode) if !is_inline => supported(mode, &VOLUME_MODES, &path.child("volumeMode"), errors),
        _ => {}
    }
    check_attributes_class(spec, path, errors);
}

fn check_reclaim_policy(policy: &str, place: Place, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("persistentVolumeReclaimPolicy");
    match (place, policy) {
        (_, "") | (Place::Inline, "Retain") => {}
        (Place::Inline, _) => {
            errors.push(Error::forbidden(&path, "may only be Retain in the context of inline volumes"));
        }
        (Place::Volume, policy) => supported(policy, &["Delete", "Recycle", "Retain"], &path, errors),
    }
}

fn check_capacity(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("capacity");
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

fn check_source(spec: &Value, name: &str, place: Place, base: &Path<'_>, errors: &mut ErrorList) {
    let mut count = 0;
    for key in SOURCES {
        let Some(source) = spec.some(key) else { continue };
        count += 1;
        // Flexible volumes are not counted against others.
        if count > 1 && key != "flexVolume" {
            let spelled = if key == "cephfs" { "cephFS" } else { key };
            errors.push(Error::forbidden(&base.child(spelled), "may not specify more than 1 volume type"));
            continue;
        }
        let spelled = if key == "gcePersistentDisk" { "persistentDisk" } else { key };
        let path = base.child(spelled);
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
            "iscsi" => iscsi(source, Target::Volume(name), &path, errors),
            _ => shared_source(key, source, &path, errors),
        }
        if key == "local" && (place == Place::Inline || !spec.has("nodeAffinity")) {
            errors.push(Error::required(&base.child("nodeAffinity"), "Local volume requires node affinity"));
        }
    }
    if count == 0 {
        errors.push(Error::required(base, "must specify a volume type"));
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

fn volume_update(env: &Env, new: &Value, old: &Value) -> ErrorList {
    // The reference checks the whole volume twice, and lists every cause as often.
    let mut errors = volume(new);
    check_mount_options(new, &mut errors);
    errors.extend(volume(new));
    let (spec, before) = (member(new, "spec"), member(old, "spec"));
    // A secret for expanding may be added.
    let mut own = spec.clone();
    if before.has("csi") && !member(before, "csi").has("controllerExpandSecretRef") {
        own.remove_at(&["csi", "controllerExpandSecretRef"]);
    }
    if !internal::same("PersistentVolumeSource", Some(&own), Some(before)) {
        let difference = internal::difference("PersistentVolumeSource", before, &own);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(Error::forbidden(&SPEC.child("persistentvolumesource"), detail));
    }
    immutable(spec.get("volumeMode"), before.get("volumeMode"), &Path::new("volumeMode"), &mut errors);
    if before.has("nodeAffinity") && !env.features.volume_affinity_changes {
        check_affinity_update(member(spec, "nodeAffinity"), member(before, "nodeAffinity"), &mut errors);
    }
    if before.has("volumeAttributesClassName") && !spec.has("volumeAttributesClassName") {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(Error::forbidden(&SPEC.child("volumeAttributesClassName"), detail));
    }
    errors
}

/// Labels of nodes that have got a new name may be renamed.
fn check_affinity_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    const RENAMED: [(&str, &str); 5] = [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ];
    let mut own = new.clone();
    let terms = own.at_mut(&["required", "nodeSelectorTerms"]).and_then(Value::as_array_mut).into_iter().flatten();
    for (term, old) in terms.zip(member(old, "required").list("nodeSelectorTerms")) {
        for list in ["matchExpressions", "matchFields"] {
            let requirements = term.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for (requirement, old) in requirements.zip(old.list(list)) {
                if RENAMED.contains(&(old.text("key"), requirement.text("key"))) {
                    put(requirement, &["key"], old.get("key"));
                }
            }
        }
    }
    if !internal::same("*VolumeNodeAffinity", Some(&own), Some(old)) {
        let detail = format!("{IMMUTABLE}, except for updating from beta label to GA");
        let shown = internal::shown("*VolumeNodeAffinity", Some(new));
        errors.push(Error::invalid(&Path::new("nodeAffinity"), shown, detail));
    }
}
