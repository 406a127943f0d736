//! PersistentVolumes and the claims on them.

use super::pod::node_selector;
use super::pod::volumes::{Target, iscsi, required, shared_source};
use crate::common::{
    Fields, IMMUTABLE, SPEC, dns_subdomain, immutable, label_selector, member, meta, meta_update, name_full,
    qualified_name, quantity, quantity_not_negative, quantity_positive, supported,
};
use crate::storage::driver_name;
use crate::{Env, Rules, internal};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_annotations};
use kubelith_meta::selector::validate_labels;
use kubelith_meta::{Map, Value};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub const VOLUME: Rules = Rules {
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

fn check_attributes_class(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(class) = spec.some("volumeAttributesClassName").and_then(Value::as_str) else { return };
    let at = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.push(Error::required(&at, "an empty string is disallowed"));
    } else {
        name_full(name_is_dns_subdomain, class, &at, errors);
    }
    if !spec.has("csi") {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(Error::required(&path.child("csi"), detail));
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

fn basic_resource(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if quantity(value).is_some_and(|q| q.value() < 0) {
        errors.push(Error::invalid(
            path,
            quantity(value).map_or(0, |q| q.value()),
            "must be a valid resource quantity",
        ));
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

/// The metadata of a template of something that is made later: labels and annotations.
pub fn check_template_metadata(metadata: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(annotations) = metadata.map("annotations") {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    if let Some(labels) = metadata.map("labels") {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    const OTHERS: [(&str, &str); 13] = [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        // The reference makes this name from that of Go.
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ];
    for (key, shown) in OTHERS {
        if metadata.get(key).is_some_and(|value| !value.is_empty()) {
            errors.push(Error::forbidden(&path.child(shown), "cannot be set"));
        }
    }
}

/// The template of a claim that comes with something else.
pub fn check_claim_template(template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    check_template_metadata(member(template, "metadata"), &path.child("metadata"), errors);
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
    // The reference shows the path as a value, which prints as nothing.
    let shown = BadValue::text("{}");
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
    check_claim_rest(new, old, &mut errors);
    let size = |spec: &Value| spec.at(&["resources", "requests", "storage"]).and_then(quantity);
    if size(spec) < size(before) {
        let kept = old.at(&["status", "capacity", "storage"]).and_then(quantity);
        if size(spec) <= Some(kept.unwrap_or_default()) {
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

/// What a claim asks for stays, but for its size and attributes once it is bound, and for what is found later: its volume
/// and its class.
fn check_claim_rest(new: &Value, old: &Value, errors: &mut ErrorList) {
    let (mut spec, mut before) = (member(new, "spec").clone(), member(old, "spec").clone());
    if before.text("volumeName").is_empty() {
        put(&mut before, &["volumeName"], spec.get("volumeName"));
    }
    let [own_class, old_class] = [&spec, &before].map(|s| s.some("storageClassName").and_then(Value::as_str));
    let [own_note, old_note] = [new, old].map(|object| object.meta().annotation(CLASS_ANNOTATION));
    let is_moved = old_note.is_some()
        && old_class.is_none()
        && own_class == old_note
        && (own_note.is_none() || own_note == old_note);
    if is_moved {
        spec.make_object().remove("storageClassName");
    } else {
        let (own, old) = (own_note.unwrap_or_default(), old_note.unwrap_or_default());
        if own != old {
            let path = Path::of(&["metadata", "annotations"]);
            errors.push(Error::invalid(&path.child(CLASS_ANNOTATION), own, IMMUTABLE));
        }
        let is_first = own_class.is_some() && old_class.is_none();
        if is_first && (old_note.is_none() || own_class == old_note) {
            spec.make_object().remove("storageClassName");
        }
    }
    if new.str_at(&["status", "phase"]) == "Bound" {
        if member(&spec, "resources").map("requests").is_some() {
            // The reference puts a zero where nothing was asked for before.
            let size = before.at(&["resources", "requests", "storage"]).cloned();
            spec.set_at(&["resources", "requests", "storage"], size.unwrap_or_else(|| "0".into()));
        }
        put(&mut spec, &["volumeAttributesClassName"], before.get("volumeAttributesClassName"));
    }
    if !internal::same("PersistentVolumeClaimSpec", Some(&spec), Some(&before)) {
        let difference = internal::difference("PersistentVolumeClaimSpec", &before, &spec);
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{difference}"
        );
        errors.push(Error::forbidden(&SPEC, detail));
    }
}

fn put(object: &mut Value, path: &[&str], value: Option<&Value>) {
    match value {
        Some(value) => object.set_at(path, value.clone()),
        None => drop(object.remove_at(path)),
    }
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

fn claim_status(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    if new.meta().resource_version().is_empty() {
        errors.push(Error::required(&Path::new("resourceVersion"), ""));
    }
    if member(new, "spec").list("accessModes").is_empty() {
        errors.push(Error::required(&Path::of(&["Spec", "accessModes"]), ""));
    }
    let capacity = Path::of(&["status", "capacity"]);
    for (name, value) in member(new, "status").entries("capacity") {
        basic_resource(value, &capacity.key(name), &mut errors);
    }
    check_expansion(member(new, "status"), &mut errors);
    errors
}

/// How far the volume has grown.
fn check_expansion(status: &Value, errors: &mut ErrorList) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let path = Path::of(&["status", "allocatedResourceStatuses"]);
    for (name, state) in status.entries("allocatedResourceStatuses") {
        check_resource_key(name, &path, errors);
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            let mut known = STATES;
            known.sort_unstable();
            errors.push(Error::not_supported(&path, BadValue::json(name), known));
        }
    }
    let path = Path::of(&["status", "allocatedResources"]);
    for (name, amount) in status.entries("allocatedResources") {
        let count = errors.len();
        check_resource_key(name, &path, errors);
        if errors.len() == count {
            basic_resource(amount, &path.key(name), errors);
        }
        if errors.len() == count {
            quantity_not_negative(amount, &path.key(name), errors);
        }
    }
}

/// Of the resources that Kubernetes itself knows, a claim is about storage only.
fn check_resource_key(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let count = errors.len();
    qualified_name(name, path, errors);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if errors.len() == count && is_native && name != "storage" {
        errors.push(Error::not_supported(path, name, ["storage"]));
    }
}
