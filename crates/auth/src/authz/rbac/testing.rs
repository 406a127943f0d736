//! Roles and bindings in one line each, for tests.

use super::{PolicyRule, RbacIndex, RbacKind};
use kubelith_meta::{Str, Value};

/// `verbs groups resources [names]` or `verbs url paths`; rules separated by `;`, `core` for the core group.
pub fn rules(text: &str) -> Vec<PolicyRule> {
    let list = |s: &str| s.split(',').map(|w| if w == "core" { "".into() } else { w.into() }).collect::<Vec<Str>>();
    let rule = |t: &str| match t.split(' ').collect::<Vec<_>>()[..] {
        [verbs, "url", urls] => {
            PolicyRule { verbs: list(verbs), non_resource_urls: list(urls), ..PolicyRule::default() }
        }
        [verbs, groups, resources, ref names @ ..] => PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: names.first().map(|n| list(n)).unwrap_or_default(),
            ..PolicyRule::default()
        },
        _ => panic!("{t}"),
    };
    text.split(';').filter(|t| !t.is_empty()).map(rule).collect()
}

fn object(name: &str) -> (Value, Option<&str>) {
    let (namespace, name) = name.split_once('/').map_or((None, name), |(ns, n)| (Some(ns), n));
    let mut object = Value::object();
    object.set_at(&["metadata", "name"], name.into());
    if let Some(namespace) = namespace {
        object.set_at(&["metadata", "namespace"], namespace.into());
    }
    (object, namespace)
}

/// `name` is `namespace/name` for a Role.
pub fn role(name: &str, text: &str) -> (RbacKind, Value) {
    let (mut object, namespace) = object(name);
    object.set_at(&["rules"], Value::Array(rules(text).iter().map(PolicyRule::to_value).collect()));
    (if namespace.is_some() { RbacKind::Role } else { RbacKind::ClusterRole }, object)
}

/// `role` is `Role/x` or `ClusterRole/x`; subjects are `User:x`, `Group:x`, `ServiceAccount:ns/x`.
pub fn binding(name: &str, role: &str, subjects: &str) -> (RbacKind, Value) {
    let (mut object, namespace) = object(name);
    let (kind, role) = role.split_once('/').unwrap();
    object
        .set_at(&["roleRef"], Value::from([("apiGroup", "rbac.authorization.k8s.io"), ("kind", kind), ("name", role)]));
    let subject = |s: &str| {
        let (kind, name) = s.split_once(':').unwrap();
        let mut subject = Value::from([("kind", kind)]);
        let (ns, name) = if kind == "ServiceAccount" { name.split_once('/').unwrap() } else { ("", name) };
        subject.set_at(&["name"], name.into());
        if !ns.is_empty() {
            subject.set_at(&["namespace"], ns.into());
        }
        subject
    };
    let subjects = subjects.split(' ').filter(|s| !s.is_empty()).map(subject).collect();
    object.set_at(&["subjects"], Value::Array(subjects));
    (if namespace.is_some() { RbacKind::RoleBinding } else { RbacKind::ClusterRoleBinding }, object)
}

pub fn index(objects: impl IntoIterator<Item = (RbacKind, Value)>) -> RbacIndex {
    let index = RbacIndex::default();
    for (kind, object) in objects {
        index.put(kind, &object);
    }
    index
}
