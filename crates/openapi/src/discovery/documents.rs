//! The documents of `/api`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`.

use super::{Group, GroupVersion, Resource};
use base64::Engine;
use kubelith_meta::{Str, Value};
use kubelith_schema::Scope;

/// `/apis`
pub fn group_list(groups: &[Group]) -> Value {
    let groups: Vec<Value> = groups.iter().filter(|g| !g.name.is_empty()).map(group_members).collect();
    Value::from([
        ("kind", Value::from("APIGroupList")),
        ("apiVersion", Value::from("v1")),
        ("groups", Value::Array(groups)),
    ])
}

/// `/apis/<group>`
pub fn group(group: &Group) -> Value {
    let mut value = group_members(group);
    value.set_at(&["kind"], "APIGroup".into());
    value.set_at(&["apiVersion"], "v1".into());
    value
}

fn group_members(group: &Group) -> Value {
    let version = |v: &GroupVersion| {
        Value::from([
            ("groupVersion", Value::from(format!("{}/{}", group.name, v.name))),
            ("version", Value::String(v.name.clone())),
        ])
    };
    Value::from([
        ("name", Value::String(group.name.clone())),
        ("versions", Value::Array(group.versions.iter().map(version).collect())),
        ("preferredVersion", group.versions.first().map_or_else(Value::object, version)),
    ])
}

/// `/api`
pub fn legacy_versions(groups: &[Group], server_address: &str) -> Value {
    let core = groups.iter().find(|g| g.name.is_empty());
    let versions: Vec<Str> = core.map(|g| g.versions.iter().map(|v| v.name.clone()).collect()).unwrap_or_default();
    let address = Value::from([("clientCIDR", "0.0.0.0/0"), ("serverAddress", server_address)]);
    Value::from([
        ("kind", Value::from("APIVersions")),
        ("versions", Value::from(versions)),
        ("serverAddressByClientCIDRs", Value::Array(vec![address])),
    ])
}

/// `/apis/<group>/<version>`
pub fn resource_list(group: &str, version: &GroupVersion) -> Value {
    let group_version = if group.is_empty() { version.name.to_string() } else { format!("{group}/{}", version.name) };
    let mut resources: Vec<&Resource> = version.resources.iter().collect();
    resources.sort_by(|a, b| a.plural.cmp(&b.plural));
    let entries = resources.iter().flat_map(|r| entries(r, group, &version.name)).collect();
    let mut list = Value::from([
        ("kind", Value::from("APIResourceList")),
        ("groupVersion", Value::from(group_version)),
        ("resources", Value::Array(entries)),
    ]);
    // The core group's document predates the field.
    if !group.is_empty() {
        list.set_at(&["apiVersion"], "v1".into());
    }
    list
}

/// A resource and its subresources.
fn entries(resource: &Resource, group: &str, version: &str) -> Vec<Value> {
    let namespaced = Value::Bool(resource.scope == Scope::Namespaced);
    let mut entries = Vec::new();
    if !resource.verbs.is_empty() {
        let mut entry = Value::from([
            ("name", Value::String(resource.plural.clone())),
            ("singularName", Value::String(resource.singular.clone())),
            ("namespaced", namespaced.clone()),
            ("kind", Value::String(resource.kind.clone())),
            ("verbs", Value::from(resource.verbs.clone())),
        ]);
        for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
            if !list.is_empty() {
                entry.set_at(&[key], list.clone().into());
            }
        }
        if let Some(kind) = &resource.stored_as {
            let hash = storage_version_hash(&kind.group, &kind.version, &kind.kind);
            entry.set_at(&["storageVersionHash"], hash.into());
        }
        entries.push(entry);
    }
    for sub in &resource.subresources {
        let mut entry = Value::from([
            ("name", Value::from(format!("{}/{}", resource.plural, sub.name))),
            ("singularName", Value::from("")),
            ("namespaced", namespaced.clone()),
            ("kind", Value::String(sub.kind.kind.clone())),
            ("verbs", Value::from(sub.verbs.clone())),
        ]);
        if sub.kind.group != group || sub.kind.version != version {
            entry.set_at(&["group"], Value::String(sub.kind.group.clone()));
            entry.set_at(&["version"], Value::String(sub.kind.version.clone()));
            if sub.kind.group.is_empty() {
                entry.remove_at(&["group"]);
            }
        }
        entries.push(entry);
    }
    entries
}

/// Tells clients when the stored form of a resource changes: the first eight bytes of a SHA-256.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let text = format!("{group}/{version}/{kind}");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_reference_s() {
        assert_eq!(storage_version_hash("autoscaling", "v2", "HorizontalPodAutoscaler"), "qwQve8ut294=");
        assert_eq!(storage_version_hash("batch", "v1", "CronJob"), "sd5LIXh4Fjs=");
    }
}
