//! Who owns whom, as far as it matters: objects that have owners, objects that are owners, and those whose deletion waits
//! for their dependents. Pure: changes go in, work comes out.
//!
//! An owner that is only known from somebody's reference is *virtual* until it was seen. Its coordinates are what the
//! reference says, which may be wrong; see [`Graph::absent`].

use kubelith_meta::{Str, Value};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Owners that are known not to exist, so that not every dependent has to ask. As many as kube-controller-manager keeps.
const ABSENT: usize = 500;

pub const ORPHAN: &str = "orphan";
pub const FOREGROUND: &str = "foregroundDeletion";

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    pub kind: Str,
    pub api_version: Str,
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Identity { kind, api_version, namespace, name, uid } = self;
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub api_version: Str,
    pub kind: Str,
    pub name: Str,
    pub uid: Str,
    pub blocks: bool,
}

impl Owner {
    /// Where it would be if the reference of a dependent in `namespace` is right.
    pub fn identity(&self, namespace: &Str) -> Identity {
        Identity {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            namespace: namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    fn names(&self, identity: &Identity) -> bool {
        let ours = (&self.uid, &self.name, &self.kind, &self.api_version);
        ours == (&identity.uid, &identity.name, &identity.kind, &identity.api_version)
    }
}

/// An object as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub identity: Identity,
    pub owners: Vec<Owner>,
    pub being_deleted: bool,
    pub finalizers: Vec<Str>,
    pub resource_version: Str,
}

impl Seen {
    /// `object` needs to have its metadata alone.
    pub fn of(api_version: &Str, kind: &Str, object: &Value) -> Seen {
        let meta = object.meta();
        let owners = meta.owner_references().map(|owner| Owner {
            api_version: owner.api_version().into(),
            kind: owner.kind().into(),
            name: owner.name().into(),
            uid: owner.uid().into(),
            blocks: owner.value().get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true),
        });
        Seen {
            identity: Identity {
                kind: kind.clone(),
                api_version: api_version.clone(),
                namespace: meta.namespace().into(),
                name: meta.name().into(),
                uid: meta.uid().into(),
            },
            owners: owners.collect(),
            being_deleted: meta.is_being_deleted(),
            finalizers: meta.finalizers().map(Str::from).collect(),
            resource_version: meta.resource_version().into(),
        }
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|f| f == name)
    }

    /// It goes after its dependents.
    pub fn waits_for_dependents(&self) -> bool {
        self.being_deleted && self.has_finalizer(FOREGROUND)
    }

    /// It goes when its dependents have forgotten it.
    fn waits_for_orphans(&self) -> bool {
        self.being_deleted && self.has_finalizer(ORPHAN)
    }
}

/// What a change asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Look whether the object has to go.
    Delete(Str),
    /// The same, not at once.
    DeleteLater(Str),
    /// Make the dependents of the object forget it.
    Orphan(Str),
    /// Tell that an object refers to an owner that is in another namespace.
    WrongNamespace { dependent: Identity, owner: Owner },
}

#[derive(Debug)]
struct Node {
    identity: Identity,
    owners: Vec<Owner>,
    dependents: BTreeSet<Str>,
    is_virtual: bool,
    being_deleted: bool,
    deleting_dependents: bool,
}

/// A node as a worker needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub identity: Identity,
    pub is_virtual: bool,
    pub being_deleted: bool,
    pub deleting_dependents: bool,
    pub dependents: Vec<Dependent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependent {
    pub identity: Identity,
    /// The owner must not go before it.
    pub blocks: bool,
    pub deleting_dependents: bool,
}

#[derive(Debug, Default)]
pub struct Graph {
    nodes: HashMap<Str, Node>,
    absent: Absent,
    work: Vec<Work>,
}

impl Graph {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What is to be done since the last call.
    pub fn take_work(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.work)
    }

    pub fn is_absent(&self, identity: &Identity) -> bool {
        self.absent.has(identity)
    }

    pub fn add_absent(&mut self, identity: Identity) {
        self.absent.add(identity);
    }

    pub fn view(&self, uid: &str) -> Option<View> {
        let node = self.nodes.get(uid)?;
        let dependents = node.dependents.iter().filter_map(|d| self.nodes.get(d)).map(|d| Dependent {
            identity: d.identity.clone(),
            blocks: d.owners.iter().any(|o| o.uid == *uid && o.blocks),
            deleting_dependents: d.deleting_dependents,
        });
        Some(View {
            identity: node.identity.clone(),
            is_virtual: node.is_virtual,
            being_deleted: node.being_deleted,
            deleting_dependents: node.deleting_dependents,
            dependents: dependents.collect(),
        })
    }

    /// Observed objects of a kind, for whoever has to find out which of them are gone.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Vec<Identity> {
        let ours = |n: &&Node| !n.is_virtual && n.identity.api_version == api_version && n.identity.kind == kind;
        self.nodes.values().filter(ours).map(|n| n.identity.clone()).collect()
    }

    /// An object was created or changed, or was found to be there. `before` is what it was, if that is known.
    pub fn observe(&mut self, seen: &Seen, before: Option<&Seen>) {
        let uid = &seen.identity.uid;
        if self.nodes.contains_key(uid) {
            self.meet(&seen.identity);
            self.change(seen);
        } else {
            if seen.owners.is_empty() && !seen.waits_for_dependents() && !seen.waits_for_orphans() {
                return;
            }
            let node = Node {
                identity: seen.identity.clone(),
                owners: seen.owners.clone(),
                dependents: BTreeSet::new(),
                is_virtual: false,
                being_deleted: seen.being_deleted,
                deleting_dependents: seen.waits_for_dependents(),
            };
            self.nodes.insert(uid.clone(), node);
            self.join(uid, &seen.owners);
        }
        self.begin_waiting(seen, before);
        self.forget_if_idle(uid);
    }

    /// A virtual node turns out to be this object.
    fn meet(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.get_mut(&identity.uid) else { return };
        if !std::mem::take(&mut node.is_virtual) || node.identity == *identity {
            return;
        }
        node.identity = identity.clone();
        // Some said that it is something else, or elsewhere.
        for uid in self.partition(identity).mismatching {
            let Some(dependent) = self.nodes.get(&uid) else { continue };
            if !identity.namespace.is_empty() && dependent.identity.namespace != identity.namespace {
                self.report(&uid, &identity.uid);
            }
            self.work.push(Work::Delete(uid));
        }
    }

    fn change(&mut self, seen: &Seen) {
        let uid = &seen.identity.uid;
        let Some(node) = self.nodes.get_mut(uid) else { return };
        node.being_deleted |= seen.being_deleted;
        let old = std::mem::replace(&mut node.owners, seen.owners.clone());
        if old == seen.owners {
            return;
        }
        let find = |all: &[Owner], uid: &Str| all.iter().find(|o| o.uid == *uid).cloned();
        for before in &old {
            let now = find(&seen.owners, &before.uid);
            if before.blocks && !now.as_ref().is_some_and(|now| now.blocks) && self.nodes.contains_key(&before.uid) {
                self.work.push(Work::Delete(before.uid.clone()));
            }
            if now.is_none() {
                self.leave(uid, before);
            }
        }
        let added: Vec<Owner> = seen.owners.iter().filter(|o| find(&old, &o.uid).is_none()).cloned().collect();
        self.join(uid, &added);
    }

    fn begin_waiting(&mut self, seen: &Seen, before: Option<&Seen>) {
        let uid = &seen.identity.uid;
        if seen.waits_for_orphans() {
            if !before.is_some_and(Seen::waits_for_orphans) {
                self.work.push(Work::Orphan(uid.clone()));
            }
            return;
        }
        if seen.waits_for_dependents() && !before.is_some_and(Seen::waits_for_dependents) {
            let Some(node) = self.nodes.get_mut(uid) else { return };
            node.deleting_dependents = true;
            self.work.extend(node.dependents.iter().cloned().map(Work::Delete));
            self.work.push(Work::Delete(uid.clone()));
        }
    }

    /// Makes a node a dependent of its owners, whom nobody may have seen yet.
    fn join(&mut self, uid: &Str, owners: &[Owner]) {
        let Some(namespace) = self.nodes.get(uid).map(|n| n.identity.namespace.clone()) else { return };
        let mut doubtful = false;
        for owner in owners {
            let Some(node) = self.nodes.get_mut(&owner.uid) else {
                let node = Node {
                    identity: owner.identity(&namespace),
                    owners: Vec::new(),
                    dependents: [uid.clone()].into(),
                    is_virtual: true,
                    being_deleted: false,
                    deleting_dependents: false,
                };
                self.nodes.insert(owner.uid.clone(), node);
                self.work.push(Work::Delete(owner.uid.clone()));
                continue;
            };
            node.dependents.insert(uid.clone());
            let elsewhere = node.identity.namespace != namespace;
            let (namespaced, is_virtual) = (!node.identity.namespace.is_empty(), node.is_virtual);
            let named = owner.names(&node.identity);
            if doubtful {
                continue;
            }
            if namespaced && elsewhere {
                if !is_virtual {
                    self.report(uid, &owner.uid);
                }
                doubtful = true;
            } else if !named || (elsewhere && is_virtual) {
                doubtful = true;
            }
        }
        if doubtful {
            self.work.push(Work::Delete(uid.clone()));
        }
    }

    fn leave(&mut self, uid: &str, owner: &Owner) {
        if let Some(node) = self.nodes.get_mut(&owner.uid) {
            node.dependents.remove(uid);
            self.forget_if_idle(&owner.uid);
        }
    }

    fn report(&mut self, dependent: &Str, owner: &Str) {
        let Some(node) = self.nodes.get(dependent) else { return };
        let Some(owner) = node.owners.iter().find(|o| o.uid == *owner).cloned() else { return };
        self.work.push(Work::WrongNamespace { dependent: node.identity.clone(), owner });
    }

    /// Objects that own nothing, are owned by nobody and wait for nobody need not be remembered.
    fn forget_if_idle(&mut self, uid: &Str) {
        let idle = |n: &Node| n.owners.is_empty() && n.dependents.is_empty() && !n.being_deleted;
        if self.nodes.get(uid).is_some_and(idle) {
            self.nodes.remove(uid);
        }
    }

    /// An object was deleted.
    pub fn gone(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.remove(&identity.uid) else { return };
        for owner in &node.owners {
            self.leave(&identity.uid, owner);
        }
        if !node.dependents.is_empty() {
            self.absent.add(identity.clone());
        }
        self.work.extend(node.dependents.into_iter().map(Work::Delete));
        for owner in &node.owners {
            if self.nodes.get(&owner.uid).is_some_and(|n| n.deleting_dependents) {
                self.work.push(Work::Delete(owner.uid.clone()));
            }
        }
    }

    /// Nothing was found where `identity` says that the object is. Not all dependents may say so: those that do lose an
    /// owner; if others say something else, that is looked at next.
    pub fn absent(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.get(&identity.uid) else { return };
        let (is_virtual, same) = (node.is_virtual, node.identity == *identity);
        let Parts { matching, mismatching } = self.partition(identity);
        if (is_virtual && mismatching.is_empty()) || (!is_virtual && same) {
            return self.gone(identity);
        }
        if !matching.is_empty() {
            self.absent.add(identity.clone());
            self.work.extend(matching.into_iter().map(Work::Delete));
        }
        if is_virtual && same {
            let Some(other) = self.alternate(&mismatching, identity) else { return };
            if let Some(node) = self.nodes.get_mut(&identity.uid) {
                node.identity = other;
                self.work.push(Work::DeleteLater(identity.uid.clone()));
            }
        }
    }

    /// Dependents by whether they say of an owner what is true.
    fn partition(&self, owner: &Identity) -> Parts {
        let mut parts = Parts::default();
        let Some(node) = self.nodes.get(&owner.uid) else { return parts };
        for uid in &node.dependents {
            let Some(dependent) = self.nodes.get(uid) else { continue };
            let (mut right, mut wrong) = (false, false);
            if !owner.namespace.is_empty() && dependent.identity.namespace != owner.namespace {
                wrong = true;
            } else {
                for reference in dependent.owners.iter().filter(|o| o.uid == owner.uid) {
                    match reference.names(owner) {
                        true => right = true,
                        false => wrong = true,
                    }
                }
            }
            if right {
                parts.matching.push(uid.clone());
            }
            if wrong {
                parts.mismatching.push(uid.clone());
            }
        }
        parts
    }

    /// What else dependents say of an owner: the next after the one that was tried, so that all have their turn.
    fn alternate(&self, dependents: &[Str], tried: &Identity) -> Option<Identity> {
        let cluster_wide = tried.namespace.is_empty();
        let mut others = BTreeSet::new();
        for dependent in dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            for owner in dependent.owners.iter().filter(|o| o.uid == tried.uid) {
                if owner.names(tried) && (cluster_wide || tried.namespace == dependent.identity.namespace) {
                    continue;
                }
                let mut other = owner.identity(&dependent.identity.namespace);
                if cluster_wide && (&other.api_version, &other.kind) == (&tried.api_version, &tried.kind) {
                    other.namespace = Str::default();
                }
                if other != *tried {
                    others.insert(other);
                }
            }
        }
        others.iter().find(|other| *other > tried).or_else(|| others.first()).cloned()
    }
}

#[derive(Debug, Default)]
struct Parts {
    matching: Vec<Str>,
    mismatching: Vec<Str>,
}

/// The last owners that were found to be absent.
#[derive(Debug, Default)]
struct Absent {
    known: std::collections::HashSet<Identity>,
    order: VecDeque<Identity>,
}

impl Absent {
    fn has(&self, identity: &Identity) -> bool {
        self.known.contains(identity)
    }

    fn add(&mut self, identity: Identity) {
        if !self.known.insert(identity.clone()) {
            return;
        }
        self.order.push_back(identity);
        if self.order.len() > ABSENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
