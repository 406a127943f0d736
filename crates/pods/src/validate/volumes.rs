//! Volumes of pods, and the sources that persistent volumes share with them.

use super::projected;
use super::variables::{FIELDS_OF_VOLUMES, Holder, field_reference, resource_reference};
use super::{Owner, host_path};
use crate::claim::check_claim_template;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_subdomain, name_is_dns_subdomain, range_message};
use kubelith_meta::{Map, Value};
use kubelith_rules::common::{
    Fields, descending_path, dns_label, invalid_all, member, name_full, no_backsteps, one_of, quantity, supported,
    unreserved_path,
};
use kubelith_rules::values::driver_name;
use std::collections::BTreeSet;

/// The pod that volumes belong to, if it has a name yet.
#[derive(Debug, Clone, Copy)]
pub struct PodName<'a>(pub &'a str);

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const ONE: &str = "may not specify more than 1 volume type";
pub const DUPLICATE: &str = "conflicting duplicate paths";

/// Checks all volumes; those that are right come back by name.
pub fn check<'a>(
    volumes: &'a [Value],
    pod: PodName<'_>,
    owner: Owner,
    path: &Path<'_>,
    errors: &mut ErrorList,
) -> Vec<(&'a str, &'a Value)> {
    let is_made = |claim: &str| {
        let ephemeral = volumes.iter().filter(|v| v.has("ephemeral") && !pod.0.is_empty());
        ephemeral.into_iter().any(|v| claim == format!("{}-{}", pod.0, v.text("name")))
    };
    let mut good: Vec<(&str, &Value)> = Vec::new();
    for (i, volume) in volumes.iter().enumerate() {
        let path = path.index(i);
        let name = volume.text("name");
        let before = errors.len();
        volume_source(volume, name, pod, owner, &path, errors);
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        } else {
            dns_label(name, &path.child("name"), errors);
        }
        if good.iter().any(|(known, _)| *known == name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
        if errors.len() == before {
            good.push((name, volume));
        }
        let claim = volume.some("persistentVolumeClaim").map_or("", |c| c.text("claimName"));
        if !claim.is_empty() && is_made(claim) {
            let path = path.child("persistentVolumeClaim");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(Error::invalid(&path.child("claimName"), claim, detail));
        }
    }
    good
}

/// In the order of the checks: the field, and how the reference spells it when it is one too many.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

pub fn volume_source(
    volume: &Value,
    name: &str,
    pod: PodName<'_>,
    owner: Owner,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let place = |key: &str| SOURCES.iter().position(|(known, _)| *known == key);
    let mut given: Vec<(usize, &Value)> = Vec::new();
    for (key, value) in volume.as_object().into_iter().flat_map(Map::iter).filter(|(key, _)| *key != "name") {
        if let Some(place) = place(key).filter(|_| !value.is_null()) {
            given.push((place, value));
        }
    }
    given.sort_unstable_by_key(|(place, _)| *place);
    for (count, (place, source)) in given.iter().enumerate() {
        let (key, when_many) = SOURCES[*place];
        if count > 0 {
            errors.push(Error::forbidden(&path.child(when_many), ONE));
        } else if key == "ephemeral" {
            check_ephemeral(source, name, pod, path, errors);
        } else {
            let spelled = if key == "gcePersistentDisk" { "persistentDisk" } else { key };
            check_source(key, source, owner, &path.child(spelled), errors);
        }
        if key == "iscsi" && source.has("initiatorName") && name.len() + 1 + source.text("targetPortal").len() > 64 {
            let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                 iscsi.initiatorName is specified.";
            errors.push(Error::invalid(&path.child("name"), name, detail));
        }
    }
    if given.is_empty() {
        errors.push(Error::required(path, "must specify a volume type"));
    }
}

fn check_source(key: &str, source: &Value, owner: Owner, path: &Path<'_>, errors: &mut ErrorList) {
    match key {
        "emptyDir" => {
            if source.some("sizeLimit").and_then(quantity).is_some_and(|q| q.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(Error::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "hostPath" => host_path(source, path, errors),
        "gitRepo" => {
            required(source, &["repository"], path, errors);
            descending_path(source.text("directory"), &path.child("directory"), errors);
        }
        "secret" => {
            required(source, &["secretName"], path, errors);
            mode(source, "defaultMode", path, errors);
            keys(source.list("items"), &path.child("items"), errors);
        }
        "configMap" => {
            required(source, &["name"], path, errors);
            mode(source, "defaultMode", path, errors);
            keys(source.list("items"), &path.child("items"), errors);
        }
        "persistentVolumeClaim" => required(source, &["claimName"], path, errors),
        "downwardAPI" => {
            mode(source, "defaultMode", path, errors);
            // The reference does not say which item.
            for file in source.list("items") {
                downward_file(file, path, errors);
            }
        }
        "projected" => {
            mode(source, "defaultMode", path, errors);
            check_projections(source, path, errors);
        }
        "csi" => {
            driver_name(source.text("driver"), &path.child("driver"), errors);
            if let Some(secret) = source.some("nodePublishSecretRef") {
                if secret.text("name").is_empty() {
                    let at = path.child("nodePublishSecretRef");
                    errors.push(Error::required(&at.child("name"), ""));
                } else {
                    name_full(name_is_dns_subdomain, secret.text("name"), &path.child("name"), errors);
                }
            }
        }
        "image" => {
            if owner == Owner::Pod {
                required(source, &["reference"], path, errors);
            }
            let policies = ["Always", "IfNotPresent", "Never"];
            one_of(source.text("pullPolicy"), &policies, &path.child("pullPolicy"), errors);
        }
        _ => shared_source(key, source, path, errors),
    }
}

/// Sources that pods and persistent volumes have in common.
pub fn shared_source(key: &str, source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match key {
        "gcePersistentDisk" => disk(source, "pdName", path, errors),
        "awsElasticBlockStore" => disk(source, "volumeID", path, errors),
        "nfs" => {
            required(source, &["server", "path"], path, errors);
            if !source.text("path").starts_with('/') {
                errors.push(Error::invalid(&path.child("path"), source.text("path"), "must be an absolute path"));
            }
        }
        "iscsi" => iscsi(source, Target::Pod, path, errors),
        "glusterfs" => required(source, &["endpoints", "path"], path, errors),
        "flocker" => flocker(source, path, errors),
        "rbd" => {
            if source.list("monitors").is_empty() {
                errors.push(Error::required(&path.child("monitors"), ""));
            }
            required(source, &["image"], path, errors);
        }
        "cephfs" if source.list("monitors").is_empty() => errors.push(Error::required(&path.child("monitors"), "")),
        "cinder" => {
            required(source, &["volumeID"], path, errors);
            if source.some("secretRef").is_some_and(|s| s.text("name").is_empty()) {
                let path = path.child("secretRef");
                errors.push(Error::required(&path.child("name"), ""));
            }
        }
        "quobyte" => quobyte(source, path, errors),
        "fc" => fibre_channel(source, path, errors),
        "flexVolume" => {
            required(source, &["driver"], path, errors);
            for (option, _) in source.entries("options") {
                let domain = format!(".{}", option.split('/').next().unwrap_or_default().to_lowercase());
                if option.contains('/') && (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
                    let path = path.child("options");
                    let detail = "kubernetes.io and k8s.io namespaces are reserved";
                    errors.push(Error::invalid(&path.key(option), option, detail));
                }
            }
        }
        "azureFile" => required(source, &["secretName", "shareName"], path, errors),
        "vsphereVolume" => required(source, &["volumePath"], path, errors),
        "photonPersistentDisk" => required(source, &["pdID"], path, errors),
        "portworxVolume" => required(source, &["volumeID"], path, errors),
        "azureDisk" => azure_disk(source, path, errors),
        "storageos" => {
            if source.text("volumeName").is_empty() {
                errors.push(Error::required(&path.child("volumeName"), ""));
            } else {
                dns_label(source.text("volumeName"), &path.child("volumeName"), errors);
            }
            if !source.text("volumeNamespace").is_empty() {
                dns_label(source.text("volumeNamespace"), &path.child("volumeNamespace"), errors);
            }
        }
        "scaleIO" => required(source, &["gateway", "system", "volumeName"], path, errors),
        "hostPath" => host_path(source, path, errors),
        "local" => {
            if source.text("path").is_empty() {
                errors.push(Error::required(&path.child("path"), ""));
            } else {
                no_backsteps(source.text("path"), &path.child("path"), errors);
            }
        }
        _ => {}
    }
}

pub fn required(source: &Value, keys: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    for key in keys.iter().filter(|key| source.text(key).is_empty()) {
        errors.push(Error::required(&path.child(key), ""));
    }
}

fn mode(source: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(mode) = source.int(key).filter(|m| !(0..=0o777).contains(m)) {
        errors.push(Error::invalid(&path.child(key), mode, MODE));
    }
}

fn keys(items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    for (i, item) in items.iter().enumerate() {
        key_to_path(item, &path.index(i), errors);
    }
}

fn key_to_path(item: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    required(item, &["key", "path"], path, errors);
    unreserved_path(item.text("path"), &path.child("path"), errors);
    mode(item, "mode", path, errors);
}

fn downward_file(file: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    required(file, &["path"], path, errors);
    unreserved_path(file.text("path"), &path.child("path"), errors);
    match (file.some("fieldRef"), file.some("resourceFieldRef")) {
        (Some(field), other) => {
            field_reference(field, &FIELDS_OF_VOLUMES, &path.child("fieldRef"), errors);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(Error::invalid(path, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            resource_reference(resource, Holder::Volume, &path.child("resourceFieldRef"), errors);
        }
        (None, None) => errors.push(Error::required(path, "one of fieldRef and resourceFieldRef is required")),
    }
    mode(file, "mode", path, errors);
}

fn check_projections(volume: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for (i, source) in volume.list("sources").iter().enumerate() {
        let at = path.item("sources", i);
        let mut count = 0;
        for key in ["secret", "configMap"] {
            let Some(object) = source.some(key) else { continue };
            count += 1;
            let at = at.child(key);
            required(object, &["name"], &at, errors);
            for (j, item) in object.list("items").iter().enumerate() {
                key_to_path(item, &at.item("items", j), errors);
                if !item.text("path").is_empty() && !paths.insert(item.text("path")) {
                    errors.push(Error::invalid(path, object.text("name"), DUPLICATE));
                }
            }
        }
        if let Some(fields) = source.some("downwardAPI") {
            count += 1;
            for file in fields.list("items") {
                downward_file(file, &at.child("downwardAPI"), errors);
                let target = file.text("path");
                if !target.is_empty() && !paths.insert(target) {
                    errors.push(Error::invalid(path, target, DUPLICATE));
                }
            }
        }
        if let Some(token) = source.some("serviceAccountToken") {
            count += 1;
            check_token(token, &at.child("serviceAccountToken"), path, errors);
        }
        if let Some(bundle) = source.some("clusterTrustBundle") {
            count += 1;
            projected::check_bundle(bundle, &at.child("clusterTrustBundle"), errors);
            if !paths.insert(bundle.text("path")) {
                errors.push(Error::invalid(path, bundle.text("path"), DUPLICATE));
            }
        }
        if let Some(certificate) = source.some("podCertificate") {
            count += 1;
            projected::check_certificate(certificate, &mut paths, &at.child("podCertificate"), path, errors);
        }
        if count > 1 {
            errors.push(Error::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

fn check_token(token: &Value, at: &Path<'_>, volume: &Path<'_>, errors: &mut ErrorList) {
    let seconds = token.number("expirationSeconds");
    let path = at.child("expirationSeconds");
    if seconds < 600 {
        errors.push(Error::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > 1 << 32 {
        errors.push(Error::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    if token.text("path").is_empty() {
        errors.push(Error::required(&volume.child("path"), ""));
    } else {
        unreserved_path(token.text("path"), &volume.child("path"), errors);
    }
}

fn check_ephemeral(source: &Value, name: &str, pod: PodName<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("ephemeral");
    match source.some("volumeClaimTemplate") {
        None => errors.push(Error::required(&at.child("volumeClaimTemplate"), "")),
        Some(template) => check_claim_template(template, &at.child("volumeClaimTemplate"), errors),
    }
    if !pod.0.is_empty() && !name.is_empty() {
        let claim = format!("{}-{name}", pod.0);
        let messages = is_dns1123_subdomain(&claim).into_iter().map(|m| format!("PVC name \"{claim}\": {m}"));
        invalid_all(messages.collect(), &path.child("name"), name, errors);
    }
}

fn disk(source: &Value, name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    required(source, &[name], path, errors);
    if let Some(partition) = source.int("partition").filter(|p| !(0..=255).contains(p)) {
        errors.push(Error::invalid(&path.child("partition"), partition, range_message(1, 255)));
    }
}

/// Whose source a target is: a pod's, or that of the volume of this name. They are told apart in words only.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    Pod,
    Volume(&'a str),
}

pub fn iscsi(source: &Value, target: Target<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let portal = source.text("targetPortal");
    required(source, &["targetPortal"], path, errors);
    if let Target::Volume(name) = target
        && source.has("initiatorName")
        && name.len() + 1 + portal.len() > 64
    {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                      iscsi.initiatorName is specified.";
        errors.push(Error::invalid(&path.child("targetportal"), portal, detail));
    }
    match source.text("iqn") {
        "" => errors.push(Error::required(&path.child("iqn"), "")),
        iqn => check_initiator(iqn, target, &path.child("iqn"), errors),
    }
    if let Some(lun) = source.int("lun").filter(|lun| !(0..=255).contains(lun)) {
        errors.push(Error::invalid(&path.child("lun"), lun, range_message(0, 255)));
    }
    if (source.flag("chapAuthDiscovery") || source.flag("chapAuthSession")) && !source.has("secretRef") {
        errors.push(Error::required(&path.child("secretRef"), ""));
    }
    if matches!(target, Target::Volume(_)) && source.some("secretRef").is_some_and(|s| s.text("name").is_empty()) {
        errors.push(Error::required(&path.children(&["secretRef", "name"]), ""));
    }
    if let Some(name) = source.some("initiatorName").and_then(Value::as_str) {
        check_initiator(name, target, &path.child("initiatorname"), errors);
    }
}

fn check_initiator(name: &str, target: Target<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let alphanumeric = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_right = match name.get(..3) {
        Some("iqn") => is_qualified(name),
        Some("eui") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 16)),
        Some("naa") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 32)),
        _ => {
            let detail = match target {
                Target::Pod => "must be valid format starting with iqn, eui, or naa",
                Target::Volume(_) => "must be valid format",
            };
            return errors.push(Error::invalid(path, name, detail));
        }
    };
    if !is_right {
        errors.push(Error::invalid(path, name, "must be valid format"));
    }
}

/// `iqn.2004-10.com.example:name`.
fn is_qualified(name: &str) -> bool {
    let Some((authority, target)) = name.strip_prefix("iqn.").and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    let Some((date, domain)) = authority.split_once('.') else { return false };
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    let date_is_right = date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let domain_is_right =
        !domain.is_empty() && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let target_is_right = !target.is_empty() && !target.contains([',', ';', '*', '&', '$', '|', ' ', '\t', '\n']);
    date_is_right && domain_is_right && target_is_right
}

fn flocker(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (name, uuid) = (source.text("datasetName"), source.text("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(Error::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(Error::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        errors.push(Error::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn quobyte(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.text("registry");
    if registry.is_empty() {
        errors.push(Error::required(&path.child("registry"), PAIRS));
    } else if source.text("tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(Error::required(&path.child("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| pair.matches(':').count() != 1) {
            errors.push(Error::invalid(&path.child("registry"), registry, PAIRS));
        }
    }
    required(source, &["volume"], path, errors);
}

fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let (names, ids) = (source.list("targetWWNs"), source.list("wwids"));
    let at = path.child("targetWWNs");
    if names.is_empty() && ids.is_empty() {
        errors.push(Error::required(&at, "must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(Error::invalid(&at, member(source, "targetWWNs"), detail));
    }
    if !names.is_empty() {
        let path = path.child("lun");
        match source.int("lun") {
            None => errors.push(Error::required(&path, "lun is required if targetWWNs is specified")),
            Some(lun) if !(0..=255).contains(&lun) => errors.push(Error::invalid(&path, lun, range_message(0, 255))),
            Some(_) => {}
        }
    }
}

fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    required(source, &["diskName", "diskURI"], path, errors);
    if let Some(mode) = source.some("cachingMode").and_then(Value::as_str) {
        supported(mode, &["None", "ReadOnly", "ReadWrite"], &path.child("cachingMode"), errors);
    }
    let Some(kind) = source.some("kind").and_then(Value::as_str) else { return };
    supported(kind, &["Dedicated", "Managed", "Shared"], &path.child("kind"), errors);
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let uri = source.text("diskURI");
    let (prefix, known) = if kind == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if !uri.starts_with(prefix) {
        errors.push(Error::not_supported(&path.child("diskURI"), uri, [known]));
    }
}
