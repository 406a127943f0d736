//! Volumes, claims and their classes.

use super::{CellFn, Row, joined, strings};
use kubelith_meta::Value;

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "volume_phase" => {
            |row| Some(if row.is_deleted() { "Terminating" } else { row.text(&["status", "phase"]) }.into())
        }
        "volume_capacity" => |row| Some(amount(row, &["spec", "capacity", "storage"])),
        "volume_access_modes" => |row| Some(access_modes(row.list(&["spec", "accessModes"])).into()),
        "volume_claim" => volume_claim,
        "storage_class" => storage_class,
        "claim_capacity" => {
            |row| Some(if is_bound(row) { amount(row, &["status", "capacity", "storage"]) } else { "".into() })
        }
        "claim_access_modes" => |row| {
            Some(if is_bound(row) { access_modes(row.list(&["status", "accessModes"])) } else { String::new() }.into())
        },
        "default_class_name" => default_class_name,
        "csidriver_modes" => csidriver_modes,
        "csidriver_token_requests" => csidriver_token_requests,
        "storage_versions" => storage_versions,
        "migration_resource" => migration_resource,
        "migration_status" => migration_status,
        _ => return None,
    })
}

/// An amount that is not there is nothing.
fn amount(row: &Row<'_>, path: &[&str]) -> Value {
    row.at(path).cloned().unwrap_or_else(|| "0".into())
}

/// In a fixed order, whatever the order they are given in.
fn access_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    joined(SHORT.iter().filter(|(long, _)| strings(modes).any(|m| m == *long)).map(|(_, short)| *short), ",")
}

/// A claim has the modes and the capacity of its volume, once it has one.
fn is_bound(row: &Row<'_>) -> bool {
    !row.text(&["spec", "volumeName"]).is_empty()
}

fn volume_claim(row: &Row<'_>) -> Option<Value> {
    let claim = row.at(&["spec", "claimRef"])?;
    Some(format!("{}/{}", claim.str_at(&["namespace"]), claim.str_at(&["name"])).into())
}

/// An annotation of old names the class before the field does.
fn storage_class(row: &Row<'_>) -> Option<Value> {
    let annotation = row.at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotation.or_else(|| row.at(&["spec", "storageClassName"])).cloned()
}

/// The class that is taken where none is named is marked.
fn default_class_name(row: &Row<'_>) -> Option<Value> {
    let annotations: &[&str] = match row.text(&["kind"]) {
        "IngressClass" => &["ingressclass.kubernetes.io/is-default-class"],
        _ => &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"],
    };
    let name = row.text(&["metadata", "name"]);
    let is_default = annotations.iter().any(|a| row.text(&["metadata", "annotations", a]) == "true");
    Some(if is_default { format!("{name} (default)").into() } else { name.into() })
}

fn csidriver_modes(row: &Row<'_>) -> Option<Value> {
    let modes = joined(strings(row.list(&["spec", "volumeLifecycleModes"])), ",");
    Some(if modes.is_empty() { "<none>".into() } else { modes.into() })
}

fn csidriver_token_requests(row: &Row<'_>) -> Option<Value> {
    let Some(requests) = row.at(&["spec", "tokenRequests"]).and_then(Value::as_array) else {
        return Some("<unset>".into());
    };
    Some(joined(requests.iter().map(|r| r.str_at(&["audience"])), ",").into())
}

fn storage_versions(row: &Row<'_>) -> Option<Value> {
    let versions = row.list(&["status", "storageVersions"]).iter();
    let versions =
        versions.map(|v| format!("{}={}", v.str_at(&["apiServerID"]), v.str_at(&["encodingVersion"])).into());
    Some(super::network::first_of(versions).into())
}

fn migration_resource(row: &Row<'_>) -> Option<Value> {
    let (group, resource) = (row.text(&["spec", "resource", "group"]), row.text(&["spec", "resource", "resource"]));
    Some(if group.is_empty() { resource.into() } else { format!("{resource}.{group}").into() })
}

/// The last condition that holds and means something.
fn migration_status(row: &Row<'_>) -> Option<Value> {
    let mut holding = row.conditions().iter().filter(|c| super::holds(c)).map(|c| c.str_at(&["type"]));
    let last = holding.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    Some(last.unwrap_or("Unknown").into())
}
