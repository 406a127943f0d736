//! Where containers see volumes.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{Value, members};
use kubelith_rules::common::{Fields, descending_path, supported};

pub fn check(container: &Value, volumes: &[(&str, &Value)], path: &Path<'_>, errors: &mut ErrorList) {
    members!(container => mounts: "volumeMounts", devices: "volumeDevices");
    let (mounts, devices) = (mounts.items(), devices.items());
    let list = path.child("volumeMounts");
    for (i, mount) in mounts.iter().enumerate() {
        check_mount(mount, &mounts[..i], devices, container, volumes, (&list, i), errors);
    }
    let list = path.child("volumeDevices");
    for (i, device) in devices.iter().enumerate() {
        check_device(device, &devices[..i], mounts, volumes, &list.index(i), errors);
    }
}

fn check_mount(
    mount: &Value,
    before: &[Value],
    devices: &[Value],
    container: &Value,
    volumes: &[(&str, &Value)],
    (list, i): (&Path<'_>, usize),
    errors: &mut ErrorList,
) {
    let path = list.index(i);
    members!(mount =>
        name: "name",
        target: "mountPath",
        sub: "subPath",
        expression: "subPathExpr",
        propagation: "mountPropagation",
        recursive: "recursiveReadOnly",
    );
    let (name, target) = (name.or_empty(), target.or_empty());
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    if !volumes.iter().any(|(known, _)| *known == name) {
        errors.push(Error::not_found(&path.child("name"), name));
    }
    if target.is_empty() {
        errors.push(Error::required(&path.child("mountPath"), ""));
    }
    if before.iter().any(|m| m.text("mountPath") == target) {
        errors.push(Error::invalid(&path.child("mountPath"), target, "must be unique"));
    }
    if devices.iter().any(|d| d.text("name") == name) {
        errors.push(Error::invalid(&path.child("name"), name, "must not already exist in volumeDevices"));
    }
    if devices.iter().any(|d| d.text("devicePath") == target) {
        let detail = "must not already exist as a path in volumeDevices";
        errors.push(Error::invalid(&path.child("mountPath"), target, detail));
    }
    // From here on the reference names the list, not the item.
    let (sub, expression) = (sub.or_empty(), expression.or_empty());
    if !sub.is_empty() {
        descending_path(sub, &list.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(Error::invalid(&path.child("subPathExpr"), expression, detail));
        }
        descending_path(expression, &list.child("subPathExpr"), errors);
    }
    if let Some(propagation) = propagation.as_str() {
        let path = list.child("mountPropagation");
        supported(propagation, &["Bidirectional", "HostToContainer", "None"], &path, errors);
        let is_privileged = container.some("securityContext").is_some_and(|c| c.flag("privileged"));
        if propagation == "Bidirectional" && !is_privileged {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(Error::forbidden(&path, detail));
        }
    }
    if let Some(recursive) = recursive.as_str() {
        check_recursion(recursive, mount, &list.child("recursiveReadOnly"), errors);
    }
}

fn check_recursion(recursive: &str, mount: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match recursive {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.flag("readOnly") {
                errors.push(Error::forbidden(path, "may only be specified when readOnly is true"));
            }
            if !matches!(mount.text("mountPropagation"), "" | "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(Error::forbidden(path, detail));
            }
        }
        other => supported(other, &["Disabled", "Enabled", "IfPossible"], path, errors),
    }
}

fn check_device(
    device: &Value,
    before: &[Value],
    mounts: &[Value],
    volumes: &[(&str, &Value)],
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let (name, target) = (device.text("name"), device.text("devicePath"));
    let (name_path, target_path) = (path.child("name"), path.child("devicePath"));
    if name.is_empty() {
        errors.push(Error::required(&name_path, ""));
    }
    if !name.is_empty() && before.iter().any(|d| d.text("name") == name) {
        errors.push(Error::invalid(&name_path, name, "must be unique"));
    }
    match volumes.iter().find(|(known, _)| *known == name) {
        None => errors.push(Error::not_found(&name_path, name)),
        Some((_, source)) if !source.has("persistentVolumeClaim") && !source.has("ephemeral") => {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            errors.push(Error::invalid(&name_path, name, detail));
        }
        Some(_) => {}
    }
    if target.is_empty() {
        errors.push(Error::required(&target_path, ""));
    }
    if before.iter().any(|d| d.text("devicePath") == target) {
        errors.push(Error::invalid(&target_path, target, "must be unique"));
    }
    if target.split('/').any(|part| part == "..") {
        errors.push(Error::invalid(&target_path, target, "can not contain backsteps ('..')"));
    }
    if mounts.iter().any(|m| m.text("name") == name) {
        errors.push(Error::invalid(&name_path, name, "must not already exist in volumeMounts"));
    }
    if mounts.iter().any(|m| m.text("mountPath") == target) {
        let detail = "must not already exist as a path in volumeMounts";
        errors.push(Error::invalid(&target_path, target, detail));
    }
}
