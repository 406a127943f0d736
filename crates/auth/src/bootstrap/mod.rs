//! The roles and bindings that every cluster starts with, read from `policy.rbac`.

use crate::authz::rbac::{PolicyRule, RBAC_GROUP, RbacKind};
use kubelith_features::FeatureGates;
use kubelith_meta::{Str, Value};

const POLICY: &str = include_str!("policy.rbac");

/// An object of the bootstrap policy, in the form in which it is created.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapObject {
    pub kind: RbacKind,
    pub object: Value,
}

/// The policy under these gates: cluster roles, cluster role bindings, roles, role bindings.
pub fn policy(gates: &FeatureGates) -> Vec<BootstrapObject> {
    parse(POLICY, gates).expect("the policy in the source tree parses")
}

/// Roles whose rules moved into a role that they collect: `(old, new)`.
pub const AGGREGATED_FROM: [(&str, &str); 3] = [
    ("admin", "system:aggregate-to-admin"),
    ("edit", "system:aggregate-to-edit"),
    ("view", "system:aggregate-to-view"),
];

/// Cluster role bindings that were split off another: `(old, new)`.
pub const SPLIT_FROM: [(&str, &str); 1] = [("system:discovery", "system:public-info-viewer")];

/// A role to create before reconciliation, so that changes that people made to `old` are kept: a copy of it
/// under the new name. None if the new one exists or the old one is aggregated already.
pub fn aggregated_copy(old: Option<&Value>, new: Option<&Value>, new_name: &str) -> Option<Value> {
    let old = old.filter(|o| new.is_none() && o.get("aggregationRule").is_none_or(Value::is_null))?;
    let mut copy = old.clone();
    copy.set_at(&["metadata", "name"], new_name.into());
    copy.remove_at(&["metadata", "resourceVersion"]);
    Some(copy)
}

/// A binding to create before reconciliation: `template` for those whom `old` is for. None if the new one exists
/// or there is no old one.
pub fn split_copy(old: Option<&Value>, new: Option<&Value>, template: &Value) -> Option<Value> {
    let old = old.filter(|_| new.is_none())?;
    let mut copy = template.clone();
    for path in [&["subjects"][..], &["metadata", "labels"], &["metadata", "annotations"]] {
        copy.copy_at(path, old);
    }
    Some(copy)
}

fn parse(text: &str, gates: &FeatureGates) -> Result<Vec<BootstrapObject>, String> {
    let mut objects: Vec<(BootstrapObject, bool)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = || format!("line {}: {line}", i + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let (words, holds) = match words.as_slice() {
            [words @ .., "if", needed] => (words, needed.split(',').all(|gate| gates.enabled(gate))),
            words => (words, true),
        };
        match words {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [kind, name] if !line.starts_with(' ') => objects.push((start(kind, name).ok_or_else(wrong)?, holds)),
            detail => {
                let (object, _) = objects.last_mut().ok_or_else(wrong)?;
                if holds {
                    add(&mut object.object, detail, gates).ok_or_else(wrong)?;
                }
            }
        }
    }
    Ok(objects.into_iter().filter_map(|(object, holds)| holds.then_some(object)).collect())
}

fn start(kind: &str, name: &str) -> Option<BootstrapObject> {
    let (kind, title) = match kind {
        "clusterrole" => (RbacKind::ClusterRole, "ClusterRole"),
        "clusterrolebinding" => (RbacKind::ClusterRoleBinding, "ClusterRoleBinding"),
        "role" => (RbacKind::Role, "Role"),
        "rolebinding" => (RbacKind::RoleBinding, "RoleBinding"),
        _ => return None,
    };
    let mut object =
        Value::from([("apiVersion", Value::from(format!("{RBAC_GROUP}/v1"))), ("kind", Value::from(title))]);
    let (namespace, name) = match kind {
        RbacKind::Role | RbacKind::RoleBinding => name.split_once('/')?,
        _ => ("", name),
    };
    object.set_at(&["metadata", "name"], name.into());
    if !namespace.is_empty() {
        object.set_at(&["metadata", "namespace"], namespace.into());
    }
    object.set_at(&["metadata", "labels", "kubernetes.io/bootstrapping"], "rbac-defaults".into());
    object.set_at(&["metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"], "true".into());
    match kind {
        RbacKind::ClusterRole | RbacKind::Role => object.set_at(&["rules"], Value::Null),
        RbacKind::ClusterRoleBinding => object.set_at(&["roleRef"], role_ref("ClusterRole", name)),
        RbacKind::RoleBinding => object.set_at(&["roleRef"], role_ref("Role", name)),
    }
    Some(BootstrapObject { kind, object })
}

fn role_ref(kind: &str, name: &str) -> Value {
    Value::from([("apiGroup", RBAC_GROUP), ("kind", kind), ("name", name)])
}

fn add(object: &mut Value, detail: &[&str], gates: &FeatureGates) -> Option<()> {
    let aggregation_label = |name: &str| format!("{RBAC_GROUP}/{name}");
    match *detail {
        ["label", name] => object.set_at(&["metadata", "labels", &aggregation_label(name)], "true".into()),
        ["collect", name] => {
            let selector = Value::from([("matchLabels", Value::from([(aggregation_label(name), "true")]))]);
            push(object, &["aggregationRule", "clusterRoleSelectors"], selector);
        }
        ["allow", verbs, "url", paths] => {
            let paths = paths.split(',').filter_map(|path| match path.split_once('?') {
                Some((path, gate)) => gates.enabled(gate).then(|| Str::from(path)),
                None => Some(Str::from(path)),
            });
            let rule = PolicyRule { verbs: list(verbs), non_resource_urls: paths.collect(), ..PolicyRule::default() };
            push(object, &["rules"], rule.to_value());
        }
        ["allow", verbs, groups, resources, ref names @ ..] => {
            let resource_names = match names {
                [] => Vec::new(),
                ["named", names] => list(names),
                _ => return None,
            };
            let groups = list(groups).into_iter().map(|g| if g == "core" { Str::default() } else { g }).collect();
            let rule = PolicyRule {
                verbs: list(verbs),
                api_groups: groups,
                resources: list(resources),
                resource_names,
                ..PolicyRule::default()
            };
            push(object, &["rules"], rule.to_value());
        }
        ["role", name] => object.set_at(&["roleRef", "name"], name.into()),
        ["user", name] => push(object, &["subjects"], subject("User", name)),
        ["group", name] => push(object, &["subjects"], subject("Group", name)),
        ["serviceaccount", account] => {
            let (namespace, name) = account.split_once('/')?;
            let subject = Value::from([("kind", "ServiceAccount"), ("name", name), ("namespace", namespace)]);
            push(object, &["subjects"], subject);
        }
        _ => return None,
    }
    Some(())
}

fn subject(kind: &str, name: &str) -> Value {
    Value::from([("apiGroup", RBAC_GROUP), ("kind", kind), ("name", name)])
}

fn list(text: &str) -> Vec<Str> {
    text.split(',').map(Str::from).collect()
}

fn push(object: &mut Value, path: &[&str], item: Value) {
    match object.at_mut(path).and_then(Value::as_array_mut) {
        Some(list) => list.push(item),
        None => object.set_at(path, Value::Array(vec![item])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(kind: RbacKind, name: &str) -> Value {
        find_with("", kind, name).unwrap()
    }

    /// With these gates (`A,-B`) turned on or off.
    fn policy_with(gates: &str) -> Vec<BootstrapObject> {
        let words = gates.split(',').filter(|word| !word.is_empty());
        let pairs = words.map(|word| word.strip_prefix('-').map_or((word, Some("true")), |off| (off, Some("false"))));
        policy(&FeatureGates::parse(pairs, Default::default()).unwrap())
    }

    fn find_with(gates: &str, kind: RbacKind, name: &str) -> Option<Value> {
        let fits = |o: &BootstrapObject| o.kind == kind && o.object.str_at(&["metadata", "name"]) == name;
        policy_with(gates).into_iter().find(fits).map(|o| o.object)
    }

    #[test]
    fn numbers_of_the_reference() {
        let policy = policy_with("");
        let count = |kind| policy.iter().filter(|o| o.kind == kind).count();
        assert_eq!(count(RbacKind::ClusterRole), 69);
        assert_eq!(count(RbacKind::ClusterRoleBinding), 50);
        assert_eq!(count(RbacKind::Role), 7);
        assert_eq!(count(RbacKind::RoleBinding), 7);
    }

    #[test]
    fn every_binding_names_an_existing_role() {
        let mut all = policy_with("");
        all.extend(policy_with("AllAlpha,AllBeta"));
        for binding in all.iter().filter(|o| o.object.get("roleRef").is_some()) {
            let role = |o: &&BootstrapObject| {
                o.object.get("roleRef").is_none()
                    && o.object.str_at(&["kind"]) == binding.object.str_at(&["roleRef", "kind"])
                    && o.object.str_at(&["metadata", "name"]) == binding.object.str_at(&["roleRef", "name"])
                    && o.object.str_at(&["metadata", "namespace"]) == binding.object.str_at(&["metadata", "namespace"])
            };
            assert!(all.iter().any(|o| role(&o)), "{:?}", binding.object);
        }
    }

    #[test]
    fn gates_bring_roles_and_rules() {
        let names = |gates: &str| -> Vec<String> {
            let roles = policy_with(gates).into_iter().filter(|o| o.kind == RbacKind::ClusterRole);
            roles.map(|o| o.object.meta().name().to_owned()).collect()
        };
        let usual = names("");
        for (gates, role) in [
            ("StorageVersionAPI", "system:controller:storage-version-garbage-collector"),
            ("StorageVersionMigrator", "system:controller:storage-version-migrator-controller"),
            ("PodCertificateRequest", "system:controller:podcertificaterequestcleaner"),
            ("GenericWorkload", "system:controller:podgroup-protection-controller"),
            ("DRAResourcePoolStatus", "system:controller:resourcepoolstatusrequest-controller"),
        ] {
            let new: Vec<String> = names(gates).into_iter().filter(|name| !usual.contains(name)).collect();
            assert_eq!(new, [role], "{gates}");
        }
        let new: Vec<String> = names("ClusterTrustBundle").into_iter().filter(|name| !usual.contains(name)).collect();
        assert_eq!(
            new,
            [
                "system:cluster-trust-bundle-discovery",
                "system:controller:kube-apiserver-serving-clustertrustbundle-publisher"
            ]
        );
        let gone = names("-DRADeviceTaints");
        assert!(!gone.iter().any(|name| name == "system:controller:device-taint-eviction-controller"), "{gone:?}");

        let rules = |gates: &str, role: &str| {
            let role = find_with(gates, RbacKind::ClusterRole, role).unwrap();
            PolicyRule::list_from(&role).iter().map(PolicyRule::describe).collect::<Vec<_>>()
        };
        for (gates, role, more) in [
            ("GenericWorkload", "system:aggregate-to-view", 1),
            ("GenericWorkload", "system:aggregate-to-edit", 1),
            ("GenericWorkload", "system:kube-scheduler", 2),
            ("GenericWorkload,WorkloadWithJob", "system:controller:job-controller", 1),
            ("GenericWorkload,DRAWorkloadResourceClaims", "system:controller:resource-claim-controller", 2),
            ("DRADeviceTaintRules", "system:controller:device-taint-eviction-controller", 2),
            ("DRADeviceTaintRules", "system:kube-scheduler", 1),
            ("-DRAExtendedResource", "system:kube-scheduler", -1),
            ("ClusterTrustBundle", "system:node", 1),
            ("PodCertificateRequest", "system:node", 1),
            ("-KubeletServiceAccountTokenForCredentialProviders", "system:node", -1),
        ] {
            let (with, without) = (rules(gates, role).len(), rules("", role).len());
            assert_eq!(with as i64 - without as i64, more, "{gates} {role}");
        }
        let monitoring = rules("-ComponentFlagz", "system:monitoring").concat();
        assert!(!monitoring.contains("/flagz") && monitoring.contains("\"/statusz\""), "{monitoring}");
        assert!(rules("", "system:monitoring").concat().contains("\"/flagz\""));
    }

    #[test]
    fn forms() {
        let admin = find(RbacKind::ClusterRole, "admin");
        assert_eq!(admin.get("rules"), Some(&Value::Null));
        let selector = &admin.at(&["aggregationRule", "clusterRoleSelectors"]).unwrap().as_array().unwrap()[0];
        assert_eq!(selector.str_at(&["matchLabels", "rbac.authorization.k8s.io/aggregate-to-admin"]), "true");

        let cluster_admin = PolicyRule::list_from(&find(RbacKind::ClusterRole, "cluster-admin"));
        let described: Vec<String> = cluster_admin.iter().map(PolicyRule::describe).collect();
        assert_eq!(
            described,
            [r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#, r#"{NonResourceURLs:["*"], Verbs:["*"]}"#]
        );
        let reader = find(RbacKind::RoleBinding, "system::extension-apiserver-authentication-reader");
        assert_eq!(reader.str_at(&["roleRef", "name"]), "extension-apiserver-authentication-reader");
        assert_eq!(reader.get("subjects").unwrap().as_array().unwrap().len(), 2);
    }

    #[test]
    fn changes_survive_upgrades() {
        let mut old = find(RbacKind::ClusterRole, "cluster-admin");
        old.set_at(&["metadata", "resourceVersion"], "7".into());
        let copy = aggregated_copy(Some(&old), None, "new").unwrap();
        assert_eq!((copy.str_at(&["metadata", "name"]), copy.get("rules")), ("new", old.get("rules")));
        assert!(copy.at(&["metadata", "resourceVersion"]).is_none());
        assert_eq!(aggregated_copy(Some(&old), Some(&old), "new"), None);
        assert_eq!(aggregated_copy(Some(&find(RbacKind::ClusterRole, "admin")), None, "new"), None);

        let mut discovery = find(RbacKind::ClusterRoleBinding, "system:discovery");
        discovery.remove_at(&["subjects"]);
        let template = find(RbacKind::ClusterRoleBinding, "system:public-info-viewer");
        let copy = split_copy(Some(&discovery), None, &template).unwrap();
        assert_eq!(copy.str_at(&["roleRef", "name"]), "system:public-info-viewer");
        assert!(copy.get("subjects").is_none(), "who took discovery from everybody took this, too");
        assert_eq!(split_copy(None, None, &template), None);
    }

    #[test]
    fn mistakes_are_found() {
        for bad in
            ["role x", "clusterrole a\n  allow get", "  allow get core pods", "thing x", "clusterrole a\n  nonsense x"]
        {
            assert!(parse(bad, &FeatureGates::default()).is_err(), "{bad:?}");
        }
    }
}
