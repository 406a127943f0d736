//! Which objects are related to which nodes, kept up to date with the objects.
//!
//! What a pod refers to is counted per node, so that a question is a lookup however many pods there are. Only
//! volumes add a step: a Secret may be a volume's, the volume a claim's, and the claim a pod's.

use super::references;
use kubelith_meta::when_asked::WhenAsked;
use kubelith_meta::{Str, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::RwLock;

/// Kinds that questions are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    ConfigMap,
    Secret,
    ServiceAccount,
    PersistentVolumeClaim,
    ResourceClaim,
    PersistentVolume,
    VolumeAttachment,
    ResourceSlice,
    PodCertificateRequest,
    Pod,
}

/// Kinds whose objects are to be fed to the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeGraphKind {
    Pod,
    PersistentVolume,
    VolumeAttachment,
    ResourceSlice,
    PodCertificateRequest,
}

type Key = (Target, Str, Str);

/// Readers and writers meet only for the moment of a lookup or a change.
#[derive(Default)]
pub struct NodeGraph {
    state: RwLock<GraphState>,
    filling: WhenAsked,
}

#[derive(Default)]
struct GraphState {
    pods: HashMap<(Str, Str), Pod>,
    /// For each object that pods refer to, the nodes of these pods, with how many.
    referred: HashMap<Key, HashMap<Str, u32>>,
    volumes: HashMap<Str, Volume>,
    /// Volumes that need a Secret.
    secret_volumes: HashMap<(Str, Str), BTreeSet<Str>>,
    /// Objects that name their node themselves.
    on_node: HashMap<Key, Str>,
}

struct Pod {
    node: Str,
    refers_to: Vec<(Target, Str)>,
}

struct Volume {
    claim: (Str, Str),
    secrets: Vec<(Str, Str)>,
}

impl NodeGraph {
    /// Leaves it to the first question to fill the graph: a server that no node asks need not look at every pod.
    pub fn fill_when_asked(&self, fill: impl FnOnce() + Send + 'static) {
        self.filling.put_off(fill);
    }

    /// Adds an object or replaces the one of that name.
    pub fn put(&self, kind: NodeGraphKind, object: &Value) {
        let name = Str::from(object.str_at(&["metadata", "name"]));
        let namespace = Str::from(object.str_at(&["metadata", "namespace"]));
        let node = object.str_at(&["spec", "nodeName"]);
        // What is read from the object is read before the lock is taken.
        match kind {
            NodeGraphKind::Pod if node.is_empty() => {}
            NodeGraphKind::Pod => {
                let pod = Pod { node: node.into(), refers_to: references::of_pod(object) };
                self.write(|s| s.put_pod(namespace, name, pod));
            }
            NodeGraphKind::PersistentVolume => {
                let claim = object.at(&["spec", "claimRef"]).filter(|c| !c.is_null());
                let volume = claim.map(|c| Volume {
                    claim: (c.str_at(&["namespace"]).into(), c.str_at(&["name"]).into()),
                    secrets: references::secrets_of_volume(object),
                });
                self.write(|s| s.put_volume(name, volume));
            }
            kind => {
                let key = (kind.target(), namespace, name);
                self.write(|s| match node {
                    "" => drop(s.on_node.remove(&key)),
                    node => drop(s.on_node.insert(key, node.into())),
                });
            }
        }
    }

    pub fn delete(&self, kind: NodeGraphKind, namespace: &str, name: &str) {
        self.write(|s| match kind {
            NodeGraphKind::Pod => s.delete_pod(&(namespace.into(), name.into())),
            NodeGraphKind::PersistentVolume => s.put_volume(name.into(), None),
            kind => drop(s.on_node.remove(&(kind.target(), namespace.into(), name.into()))),
        });
    }

    /// Namespaces and names of the objects that are known.
    pub fn names(&self, kind: NodeGraphKind) -> Vec<(Str, Str)> {
        let state = self.state.read().expect("no panic while held");
        match kind {
            NodeGraphKind::Pod => state.pods.keys().cloned().collect(),
            NodeGraphKind::PersistentVolume => {
                state.volumes.keys().map(|name| (Str::default(), name.clone())).collect()
            }
            kind => {
                let of_kind = state.on_node.keys().filter(|(target, ..)| *target == kind.target());
                of_kind.map(|(_, namespace, name)| (namespace.clone(), name.clone())).collect()
            }
        }
    }

    /// Whether `node` has to do with an object.
    pub(super) fn is_related(&self, node: &str, target: Target, namespace: &str, name: &str) -> bool {
        self.filling.asked();
        let state = self.state.read().expect("no panic while held");
        let name = Str::from(name);
        match target {
            Target::Pod => state.pods.get(&(namespace.into(), name)).is_some_and(|p| p.node == node),
            Target::VolumeAttachment | Target::ResourceSlice | Target::PodCertificateRequest => {
                state.on_node.get(&(target, namespace.into(), name)).is_some_and(|n| n == node)
            }
            Target::PersistentVolume => state.has_volume(node, &name),
            Target::Secret => {
                let by_volume = state.secret_volumes.get(&(namespace.into(), name.clone()));
                state.is_referred(node, (target, namespace.into(), name))
                    || by_volume.into_iter().flatten().any(|volume| state.has_volume(node, volume))
            }
            Target::ConfigMap | Target::ServiceAccount | Target::PersistentVolumeClaim | Target::ResourceClaim => {
                state.is_referred(node, (target, namespace.into(), name))
            }
        }
    }

    fn write(&self, change: impl FnOnce(&mut GraphState)) {
        change(&mut self.state.write().expect("no panic while held"));
    }
}

impl NodeGraphKind {
    fn target(self) -> Target {
        match self {
            NodeGraphKind::Pod => Target::Pod,
            NodeGraphKind::PersistentVolume => Target::PersistentVolume,
            NodeGraphKind::VolumeAttachment => Target::VolumeAttachment,
            NodeGraphKind::ResourceSlice => Target::ResourceSlice,
            NodeGraphKind::PodCertificateRequest => Target::PodCertificateRequest,
        }
    }
}

impl GraphState {
    fn is_referred(&self, node: &str, key: Key) -> bool {
        self.referred.get(&key).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn has_volume(&self, node: &str, volume: &Str) -> bool {
        self.volumes.get(volume).is_some_and(|v| {
            let (namespace, name) = v.claim.clone();
            self.is_referred(node, (Target::PersistentVolumeClaim, namespace, name))
        })
    }

    fn put_pod(&mut self, namespace: Str, name: Str, pod: Pod) {
        let key = (namespace, name);
        let unchanged = |old: &Pod| old.node == pod.node && old.refers_to == pod.refers_to;
        // Most updates of a pod change its status only.
        if self.pods.get(&key).is_some_and(unchanged) {
            return;
        }
        self.delete_pod(&key);
        for (target, name) in &pod.refers_to {
            let nodes = self.referred.entry((*target, key.0.clone(), name.clone())).or_default();
            *nodes.entry(pod.node.clone()).or_default() += 1;
        }
        self.pods.insert(key, pod);
    }

    fn delete_pod(&mut self, key: &(Str, Str)) {
        let Some(pod) = self.pods.remove(key) else { return };
        for (target, name) in pod.refers_to {
            let referred = (target, key.0.clone(), name);
            let Some(nodes) = self.referred.get_mut(&referred) else { continue };
            if let Some(count) = nodes.get_mut(&pod.node) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(&pod.node);
                }
            }
            if nodes.is_empty() {
                self.referred.remove(&referred);
            }
        }
    }

    fn put_volume(&mut self, name: Str, volume: Option<Volume>) {
        if let Some(old) = self.volumes.remove(&name) {
            for secret in old.secrets {
                let Some(volumes) = self.secret_volumes.get_mut(&secret) else { continue };
                volumes.remove(&name);
                if volumes.is_empty() {
                    self.secret_volumes.remove(&secret);
                }
            }
        }
        if let Some(volume) = volume {
            for secret in &volume.secrets {
                self.secret_volumes.entry(secret.clone()).or_default().insert(name.clone());
            }
            self.volumes.insert(name, volume);
        }
    }
}

#[cfg(test)]
impl NodeGraph {
    /// Everything gone leaves nothing behind.
    pub(super) fn is_empty(&self) -> bool {
        let s = self.state.read().unwrap();
        s.pods.is_empty()
            && s.referred.is_empty()
            && s.volumes.is_empty()
            && s.secret_volumes.is_empty()
            && s.on_node.is_empty()
    }
}
