//! Aggregated discovery (apidiscovery.k8s.io/v2): all groups in one document.

use super::{Freshness, Group, GroupVersion, Resource};
use kubelith_meta::{GroupVersionKind, Value};
use kubelith_schema::Scope;

/// `/apis` or `/api`, as the client asks for it with `as=APIGroupDiscoveryList`.
pub fn discovery_list<'a>(groups: impl Iterator<Item = &'a Group>) -> Value {
    list_of(group_items(groups))
}

pub fn list_of(items: Vec<Value>) -> Value {
    Value::from([
        ("kind", Value::from("APIGroupDiscoveryList")),
        ("apiVersion", Value::from("apidiscovery.k8s.io/v2")),
        ("metadata", Value::object()),
        ("items", Value::Array(items)),
    ])
}

pub fn group_items<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<Value> {
    groups.map(group_item).collect()
}

fn group_item(group: &Group) -> Value {
    let mut meta = Value::object();
    if !group.name.is_empty() {
        meta.set_at(&["name"], Value::String(group.name.clone()));
    }
    let versions = group.versions.iter().map(|v| version_item(&group.name, v)).collect();
    Value::from([("metadata", meta), ("versions", Value::Array(versions))])
}

fn version_item(group: &str, version: &GroupVersion) -> Value {
    let mut resources: Vec<&Resource> = version.resources.iter().collect();
    resources.sort_by(|a, b| a.plural.cmp(&b.plural));
    let freshness = match version.freshness {
        Freshness::Current => "Current",
        Freshness::Stale => "Stale",
    };
    if let Some(described) = &version.described {
        let mut item = Value::clone(described);
        item.set_at(&["version"], Value::String(version.name.clone()));
        item.set_at(&["freshness"], freshness.into());
        return item;
    }
    Value::from([
        ("version", Value::String(version.name.clone())),
        ("resources", Value::Array(resources.into_iter().map(|r| resource_item(group, &version.name, r)).collect())),
        ("freshness", Value::from(freshness)),
    ])
}

fn resource_item(group: &str, version: &str, resource: &Resource) -> Value {
    let scope = match resource.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    // A group and version are given only where they are not the document's own.
    let own = GroupVersionKind::new("", "", resource.kind.clone());
    let mut item = Value::from([
        ("resource", Value::String(resource.plural.clone())),
        ("responseKind", kind_value(&own)),
        ("scope", Value::from(scope)),
        ("singularResource", Value::String(resource.singular.clone())),
        ("verbs", Value::from(resource.verbs.clone())),
    ]);
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            item.set_at(&[key], list.clone().into());
        }
    }
    if !resource.subresources.is_empty() {
        let subresources = resource.subresources.iter().map(|s| {
            let own = s.kind.group == group && s.kind.version == version;
            let kind = if own { GroupVersionKind::new("", "", s.kind.kind.clone()) } else { s.kind.clone() };
            Value::from([
                ("subresource", Value::String(s.name.clone())),
                ("responseKind", kind_value(&kind)),
                ("verbs", Value::from(s.verbs.clone())),
            ])
        });
        item.set_at(&["subresources"], Value::Array(subresources.collect()));
    }
    item
}

fn kind_value(kind: &GroupVersionKind) -> Value {
    Value::from([
        ("group", Value::String(kind.group.clone())),
        ("version", Value::String(kind.version.clone())),
        ("kind", Value::String(kind.kind.clone())),
    ])
}
