//! The spec of a claim on a volume: claims have one, and so have the templates in pods.

use crate::validate::volumes::required;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::validate_annotations;
use kubelith_meta::selector::validate_labels;
use kubelith_rules::common::{
    Fields, dns_subdomain, label_selector, member, name_full, quantity, quantity_positive, supported,
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub fn check_modes(spec: &Value, missing: &str, path: &Path<'_>, errors: &mut ErrorList) {
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

pub fn check_attributes_class(spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
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

pub fn basic_resource(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if quantity(value).is_some_and(|q| q.value() < 0) {
        errors.push(Error::invalid(
            path,
            quantity(value).map_or(0, |q| q.value()),
            "must be a valid resource quantity",
        ));
    }
}
