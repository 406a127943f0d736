//! The node itself, and the status of claims.

use super::{Checked, Visit};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Value};
use kubelith_registry::admission::Operation;
use kubelith_rules::internal;
use std::collections::BTreeSet;

/// What a kubelet may say about its machine.
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// For operators: workloads rely on it that no node gives itself such a label.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// The type of claims, as messages show them.
const CLAIM: &str = "PersistentVolumeClaim";

impl Visit<'_> {
    pub(super) fn own_node(&self) -> Checked {
        let (node, asked) = (Quoted(self.node), self.name());
        if asked != self.node {
            return self.refuse(format!("node {node} is not allowed to modify node {}", Quoted(asked)));
        }
        match self.request.operation {
            Operation::Create => self.new_node(),
            Operation::Update => self.changed_node(),
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    fn new_node(&self) -> Checked {
        let node = Quoted(self.node);
        if present(self.object, &["spec", "configSource"]).is_some() {
            return self.refuse(format!("node {node} is not allowed to create pods with a non-nil configSource"));
        }
        match forbidden_labels(self.object.meta().labels(), None) {
            Some(labels) => self.refuse(format!("node {node} is not allowed to set the following labels: {labels}")),
            None => Ok(()),
        }
    }

    fn changed_node(&self) -> Checked {
        let (node, old) = (Quoted(self.node), self.old());
        let source = present(self.object, &["spec", "configSource"]);
        if source.is_some() && source != present(old, &["spec", "configSource"]) {
            return self
                .refuse(format!("node {node} is not allowed to update configSource to a new non-nil configSource"));
        }
        for (path, name) in [(["spec", "taints"], "taints"), (["metadata", "ownerReferences"], "ownerReferences")] {
            if present(self.object, &path) != present(old, &path) {
                return self.refuse(format!("node {node} is not allowed to modify {name}"));
            }
        }
        match forbidden_labels(self.object.meta().labels(), old.meta().labels()) {
            Some(labels) => self.refuse(format!("is not allowed to modify labels: {labels}")),
            None => Ok(()),
        }
    }

    pub(super) fn claim_status(&self) -> Checked {
        if self.request.operation != Operation::Update {
            return self.refuse(format!("unexpected operation {}", Quoted(self.operation())));
        }
        let recovery: &[&str] = match self.plugin.gates.recover_volume_expansion {
            true => &["allocatedResourceStatuses", "allocatedResources"],
            false => &[],
        };
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            for field in ["capacity", "conditions"].iter().chain(recovery) {
                claim.remove_at(&["status", field]);
            }
            for field in ["resourceVersion", "managedFields"] {
                claim.remove_at(&["metadata", field]);
            }
            claim
        };
        let (old, new) = (rest(self.old()), rest(self.object));
        if internal::same(CLAIM, Some(&old), Some(&new)) {
            return Ok(());
        }
        let (node, difference) = (Quoted(self.node), internal::difference(CLAIM, &old, &new));
        self.refuse(format!(
            "node {node} is not allowed to update fields other than status.quantity and status.conditions: {difference}"
        ))
    }
}

/// What stands there, unless it is nothing.
fn present<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    object.at(path).filter(|value| !value.is_null() && !matches!(value, Value::Array(list) if list.is_empty()))
}

/// Labels that differ and are not a kubelet's to change, sorted.
fn forbidden_labels(new: Option<&Map>, old: Option<&Map>) -> Option<String> {
    let value = |labels: Option<&Map>, key: &str| labels.and_then(|l| l.get(key)).cloned();
    let keys = [new, old].into_iter().flatten().flat_map(Map::keys);
    let changed = keys.filter(|key| value(new, key) != value(old, key));
    let forbidden: BTreeSet<&str> = changed.filter(|key| !is_kubelets(key)).collect();
    (!forbidden.is_empty()).then(|| forbidden.into_iter().collect::<Vec<_>>().join(", "))
}

fn is_kubelets(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let below = |parent: &str| domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'));
    if below(RESTRICTED_DOMAIN) {
        return false;
    }
    let ours = below("kubernetes.io") || below("k8s.io");
    !ours || KUBELET_LABELS.contains(&label) || KUBELET_DOMAINS.iter().any(|parent| below(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_kubelets() {
        for (label, allowed) in [
            ("kubernetes.io/hostname", true),
            ("topology.kubernetes.io/zone", true),
            ("kubernetes.io/os", true),
            ("beta.kubernetes.io/arch", true),
            ("kubelet.kubernetes.io/any", true),
            ("x.kubelet.kubernetes.io/any", true),
            ("node.kubernetes.io/any", true),
            ("example.com/any", true),
            ("plain", true),
            ("notkubernetes.io/any", true),
            ("node-restriction.kubernetes.io/a", false),
            ("x.node-restriction.kubernetes.io/a", false),
            ("node-role.kubernetes.io/control-plane", false),
            ("kubernetes.io/other", false),
            ("foo.k8s.io/other", false),
        ] {
            assert_eq!(is_kubelets(label), allowed, "{label}");
        }
        let map = |pairs: &[(&'static str, &'static str)]| {
            let value = Value::from(pairs.iter().map(|(k, v)| (*k, Value::from(*v))).collect::<Map>());
            value.as_object().cloned().unwrap()
        };
        let (old, new) = (map(&[("a.k8s.io/x", "1"), ("k8s.io/y", "1")]), map(&[("a.k8s.io/x", "2"), ("b", "1")]));
        assert_eq!(forbidden_labels(Some(&new), Some(&old)).as_deref(), Some("a.k8s.io/x, k8s.io/y"));
        assert_eq!(forbidden_labels(Some(&new), Some(&new)), None);
    }
}
