//! Keeps what authorizers know as the stored objects are: roles and bindings for RBAC, pods and what belongs to
//! nodes for the node authorizer.

use kubelith_auth::authz::node::{NodeGraph, NodeGraphKind, UNREAD_OF_PODS};
use kubelith_auth::authz::rbac::{RBAC_GROUP, RbacIndex, RbacKind};
use kubelith_codec::json;
use kubelith_kube::Resources;
use kubelith_meta::{Str, Value};
use kubelith_server::lifecycle::Tasks;
use kubelith_store::cache::{CachedObject, EventKind, ResourceCache, Scope};
use memchr::memmem;
use std::sync::Arc;
use tokio::sync::watch;

/// What learns of objects.
trait Learns: Send + Sync + 'static {
    fn put(&self, object: &Value);
    fn delete(&self, namespace: &str, name: &str);

    /// Members of objects that are never looked at.
    fn unread(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a change may matter; reading the object costs more than telling.
    fn is_concerned(&self, _change: &Changed<'_>) -> bool {
        true
    }
}

/// An object that was added or changed.
struct Changed<'a> {
    object: &'a CachedObject,
    before: Option<&'a CachedObject>,
    /// Which of an object's fields is indexed.
    indexed: Option<usize>,
}

impl Changed<'_> {
    /// The node of a pod as it is and as it was.
    fn nodes(&self) -> (&str, &str) {
        (self.indexed_in(Some(self.object)), self.indexed_in(self.before))
    }

    fn indexed_in<'o>(&self, object: Option<&'o CachedObject>) -> &'o str {
        object.zip(self.indexed).and_then(|(object, i)| object.fields.get(i)).map_or("", |field| field.as_str())
    }
}

struct Roles(Arc<RbacIndex>, RbacKind);

impl Learns for Roles {
    fn put(&self, object: &Value) {
        self.0.put(self.1, object);
    }

    fn delete(&self, namespace: &str, name: &str) {
        self.0.delete(self.1, namespace, name);
    }
}

struct Nodes(Arc<NodeGraph>, NodeGraphKind);

impl Learns for Nodes {
    fn put(&self, object: &Value) {
        self.0.put(self.1, object);
    }

    fn unread(&self) -> &'static [&'static str] {
        match self.1 {
            NodeGraphKind::Pod => &UNREAD_OF_PODS,
            _ => &[],
        }
    }

    /// What a pod refers to is settled when it comes to its node, but for claims that are made for it later.
    fn is_concerned(&self, change: &Changed<'_>) -> bool {
        if self.1 != NodeGraphKind::Pod {
            return true;
        }
        let (node, node_before) = change.nodes();
        // In status: resourceClaimStatuses and extendedResourceClaimStatus.
        let is_claiming = |object: &CachedObject| memmem::find(&object.json(), b"esourceClaimStatus").is_some();
        !node.is_empty()
            && (node != node_before || is_claiming(change.object) || change.before.is_some_and(is_claiming))
    }

    fn delete(&self, namespace: &str, name: &str) {
        self.0.delete(self.1, namespace, name);
    }
}

/// How far one resource has been learned.
#[derive(Clone)]
pub struct Progress {
    resource: Str,
    cache: Arc<ResourceCache>,
    learned: watch::Receiver<i64>,
}

impl Progress {
    /// Waits until everything that the cache holds now has been learned.
    async fn caught_up(&mut self) {
        let wanted = self.cache.snapshot().revision;
        // An error means that the server ends.
        let _ = self.learned.wait_for(|learned| *learned >= wanted).await;
    }

    pub fn is_of(&self, resource: &str) -> bool {
        self.resource == resource
    }
}

/// The progress of roles and bindings, so that whoever changes one can wait until it counts.
#[derive(Clone, Default)]
pub struct RolesProgress(Vec<Progress>);

impl RolesProgress {
    pub async fn caught_up(&self, resource: &str) {
        for mut progress in self.0.iter().filter(|p| p.is_of(resource)).cloned() {
            progress.caught_up().await;
        }
    }
}

/// Fills the index of RBAC and follows changes until the server ends.
pub fn roles(index: &Arc<RbacIndex>, resources: &Resources, tasks: &Tasks) -> RolesProgress {
    let kinds = [RbacKind::Role, RbacKind::ClusterRole, RbacKind::RoleBinding, RbacKind::ClusterRoleBinding];
    let follow = |kind: RbacKind| follow(RBAC_GROUP, kind.resource(), Roles(index.clone(), kind), resources, tasks);
    RolesProgress(kinds.into_iter().filter_map(follow).collect())
}

/// Fills the graph of nodes and follows changes until the server ends.
pub fn nodes(graph: &Arc<NodeGraph>, resources: &Resources, tasks: &Tasks) {
    for (group, plural, kind) in [
        ("", "pods", NodeGraphKind::Pod),
        ("", "persistentvolumes", NodeGraphKind::PersistentVolume),
        ("storage.k8s.io", "volumeattachments", NodeGraphKind::VolumeAttachment),
        ("resource.k8s.io", "resourceslices", NodeGraphKind::ResourceSlice),
        ("certificates.k8s.io", "podcertificaterequests", NodeGraphKind::PodCertificateRequest),
    ] {
        follow(group, plural, Nodes(graph.clone(), kind), resources, tasks);
    }
}

fn follow(
    group: &str,
    plural: &'static str,
    learner: impl Learns,
    resources: &Resources,
    tasks: &Tasks,
) -> Option<Progress> {
    let cache = resources.get(&(group.into(), plural.into()))?.cache.clone();
    // What is stored already counts from the first request on.
    let known = learn_all(&learner, &cache.snapshot().objects, cache.indexed_field());
    let (learned, progress) = watch::channel(known);
    let followed = cache.clone();
    tasks.spawn_until_stopped("authorization-feed", async move {
        loop {
            follow_once(&learner, &followed, &learned).await;
        }
    });
    Some(Progress { resource: plural.into(), cache, learned: progress })
}

fn learn_all<'a>(
    learner: &impl Learns,
    objects: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<CachedObject>)>,
    indexed: Option<usize>,
) -> i64 {
    let mut newest = 0;
    for (_, object) in objects {
        put(learner, &Changed { object, before: None, indexed });
        newest = newest.max(object.revision);
    }
    newest
}

/// From a snapshot on until the watch falls behind.
async fn follow_once(learner: &impl Learns, cache: &Arc<ResourceCache>, learned: &watch::Sender<i64>) {
    let (snapshot, mut watcher) = cache.list_and_watch(Scope::All);
    let indexed = cache.indexed_field();
    learn_all(learner, &snapshot.objects, indexed);
    learned.send_replace(snapshot.revision);
    let mut events = Vec::new();
    while watcher.next(&mut events).await.is_ok() {
        let newest = events.last().map(|e| e.revision);
        for event in events.drain(..) {
            match event.kind {
                EventKind::Deleted => learner.delete(event.object.namespace(), event.object.name()),
                _ => put(learner, &Changed { object: &event.object, before: event.prev.as_deref(), indexed }),
            }
        }
        learned.send_if_modified(|learned| newest.is_some_and(|n| std::mem::replace(learned, n) != n));
    }
}

fn put(learner: &impl Learns, change: &Changed<'_>) {
    if learner.is_concerned(change)
        && let Ok(value) = json::parse_stored_without(&change.object.json(), learner.unread())
    {
        learner.put(&value);
    }
}
