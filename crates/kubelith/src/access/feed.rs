//! Keeps what authorizers know as the stored objects are: roles and bindings for RBAC, pods and what belongs to
//! nodes for the node authorizer.

use kubelith_auth::authz::node::{CLAIMS_OF_POD, NodeGraph, NodeGraphKind, READ_OF_POD};
use kubelith_auth::authz::rbac::{RBAC_GROUP, RbacIndex, RbacKind};
use kubelith_codec::json;
use kubelith_kube::Resources;
use kubelith_meta::{Str, Value};
use kubelith_server::lifecycle::Tasks;
use kubelith_store::cache::{CachedObject, EventKind, Objects, ResourceCache, Scope, Watcher};
use std::sync::Arc;
use tokio::sync::watch;

/// What learns of objects.
trait Learns: Send + Sync + 'static {
    fn put(&self, object: &Value);
    fn delete(&self, namespace: &str, name: &str);

    /// Namespaces and names of what was learned.
    fn known(&self) -> Vec<(Str, Str)>;

    /// As much of an object as is looked at.
    fn read(&self, object: &CachedObject) -> Option<Value> {
        json::parse_stored(&object.json()).ok()
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

    fn known(&self) -> Vec<(Str, Str)> {
        self.0.names(self.1)
    }
}

struct Nodes(Arc<NodeGraph>, NodeGraphKind);

impl Learns for Nodes {
    fn put(&self, object: &Value) {
        self.0.put(self.1, object);
    }

    fn read(&self, object: &CachedObject) -> Option<Value> {
        let json = object.json();
        match self.1 {
            NodeGraphKind::Pod => json::parse_selected(&json, &READ_OF_POD).ok(),
            _ => json::parse_stored(&json).ok(),
        }
    }

    /// What a pod refers to is settled when it comes to its node, but for claims that are made for it later.
    fn is_concerned(&self, change: &Changed<'_>) -> bool {
        if self.1 != NodeGraphKind::Pod {
            return true;
        }
        let (node, node_before) = change.nodes();
        let claims = |object: &CachedObject| json::parse_selected(&object.json(), &CLAIMS_OF_POD).ok();
        !node.is_empty() && (node != node_before || claims(change.object) != change.before.and_then(claims))
    }

    fn delete(&self, namespace: &str, name: &str) {
        self.0.delete(self.1, namespace, name);
    }

    fn known(&self) -> Vec<(Str, Str)> {
        self.0.names(self.1)
    }
}

/// Nothing is learned before the first question, which finds everything that is stored by then: nobody waits for it.
const UNASKED: i64 = i64::MAX;

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
#[derive(Clone)]
pub struct RolesProgress(Arc<[Progress]>);

impl RolesProgress {
    pub async fn caught_up(&self, resource: &str) {
        for mut progress in self.0.iter().filter(|p| p.is_of(resource)).cloned() {
            progress.caught_up().await;
        }
    }
}

/// Fills the index of RBAC and follows changes until the server ends: at once if there is much to learn, else when somebody asks.
pub fn roles(index: &Arc<RbacIndex>, resources: &Resources, tasks: &Tasks) -> RolesProgress {
    let kinds = [RbacKind::Role, RbacKind::ClusterRole, RbacKind::RoleBinding, RbacKind::ClusterRoleBinding];
    let begin = |kind: RbacKind| {
        let cache = cache_of(RBAC_GROUP, kind.resource(), resources)?;
        let (learned, progress) = watch::channel(UNASKED);
        Some(((kind, cache.clone(), learned), Progress { resource: kind.resource().into(), cache, learned: progress }))
    };
    let (feeds, progress): (Vec<_>, Vec<_>) = kinds.into_iter().filter_map(begin).unzip();
    let few = feeds.iter().map(|(_, cache, _)| cache.stats().objects).sum::<usize>() < SHARE;
    let (filled, tasks) = (Arc::downgrade(index), tasks.clone());
    let fill = move || {
        let Some(index) = filled.upgrade() else { return };
        for (kind, cache, learned) in feeds {
            follow(cache, Roles(index.clone(), kind), learned, &tasks);
        }
    };
    match few {
        true => index.fill_when_asked(fill),
        false => fill(),
    }
    RolesProgress(progress.into())
}

/// Fills the graph of nodes and follows changes until the server ends: at once if there are nodes, else when one asks.
pub fn nodes(graph: &Arc<NodeGraph>, resources: &Resources, tasks: &Tasks) {
    let kinds = [
        ("", "pods", NodeGraphKind::Pod),
        ("", "persistentvolumes", NodeGraphKind::PersistentVolume),
        ("storage.k8s.io", "volumeattachments", NodeGraphKind::VolumeAttachment),
        ("resource.k8s.io", "resourceslices", NodeGraphKind::ResourceSlice),
        ("certificates.k8s.io", "podcertificaterequests", NodeGraphKind::PodCertificateRequest),
    ];
    let cached = |(group, plural, kind)| Some((kind, cache_of(group, plural, resources)?));
    let caches: Vec<_> = kinds.into_iter().filter_map(cached).collect();
    let (filled, tasks) = (Arc::downgrade(graph), tasks.clone());
    let fill = move || {
        let Some(graph) = filled.upgrade() else { return };
        for (kind, cache) in caches {
            follow(cache, Nodes(graph.clone(), kind), watch::channel(UNASKED).0, &tasks);
        }
    };
    match cache_of("", "nodes", resources) {
        Some(nodes) if nodes.is_empty() => graph.fill_when_asked(fill),
        _ => fill(),
    }
}

fn cache_of(group: &str, plural: &str, resources: &Resources) -> Option<Arc<ResourceCache>> {
    Some(resources.get(&(group.into(), plural.into()))?.cache.clone())
}

fn follow(followed: Arc<ResourceCache>, learner: impl Learns, learned: watch::Sender<i64>, tasks: &Tasks) {
    // Whoever writes from here on waits until it is learned.
    learned.send_replace(i64::MIN);
    let (snapshot, mut watcher) = followed.list_and_watch(Scope::All);
    learn_all(&learner, &snapshot.objects, followed.indexed_field());
    learned.send_replace(snapshot.revision);
    tasks.spawn_until_stopped("authorization-feed", async move {
        loop {
            follow_events(&learner, watcher, &learned, followed.indexed_field()).await;
            // It fell behind: what has gone meanwhile must not count any more.
            let (snapshot, next) = followed.list_and_watch(Scope::All);
            forget_others(&learner, &snapshot.objects);
            learn_all(&learner, &snapshot.objects, followed.indexed_field());
            learned.send_replace(snapshot.revision);
            watcher = next;
        }
    });
}

/// So many objects are worth a thread.
const SHARE: usize = 10_000;

fn learn_all(learner: &impl Learns, objects: &Objects, indexed: Option<usize>) {
    let all: Vec<&CachedObject> = objects.values().map(|object| &**object).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let mut shares = all.chunks(all.len().div_ceil(threads).max(SHARE));
        let own = shares.next().unwrap_or_default();
        let learn = |share: &[&CachedObject]| {
            for object in share {
                put(learner, &Changed { object, before: None, indexed });
            }
        };
        for share in shares {
            scope.spawn(move || learn(share));
        }
        learn(own);
    });
}

/// Forgets everything that is not among `objects`.
fn forget_others(learner: &impl Learns, objects: &Objects) {
    for (namespace, name) in learner.known() {
        let key = if namespace.is_empty() { name.to_string() } else { format!("{namespace}/{name}") };
        if !objects.contains_key(key.as_str()) {
            learner.delete(&namespace, &name);
        }
    }
}

/// Until the watch falls behind.
async fn follow_events(
    learner: &impl Learns,
    mut watcher: Watcher,
    learned: &watch::Sender<i64>,
    indexed: Option<usize>,
) {
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
    if !learner.is_concerned(change) {
        return;
    }
    if let Some(value) = learner.read(change.object) {
        learner.put(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_store::cache::Rendered;

    fn cached(key: &str, json: &str, node: &str) -> (Arc<str>, Arc<CachedObject>) {
        let rendered = Rendered { json: json.into(), fields: vec![node.into()], ..Rendered::default() };
        (key.into(), Arc::new(CachedObject::new(key.into(), 1, EventKind::Added, rendered)))
    }

    #[test]
    fn what_is_gone_after_a_gap_is_forgotten() {
        let graph = Arc::new(NodeGraph::default());
        let learner = Nodes(graph.clone(), NodeGraphKind::Pod);
        let pod = |name: &str| {
            let json = format!(r#"{{"metadata":{{"namespace":"ns","name":"{name}"}},"spec":{{"nodeName":"n"}}}}"#);
            cached(&format!("ns/{name}"), &json, "n")
        };
        learn_all(&learner, &[pod("a"), pod("b")].into_iter().collect(), Some(0));
        assert_eq!(graph.names(NodeGraphKind::Pod).len(), 2);
        forget_others(&learner, &[pod("b")].into_iter().collect());
        assert_eq!(graph.names(NodeGraphKind::Pod), [("ns".into(), "b".into())]);
    }

    #[test]
    fn a_pod_is_read_when_it_comes_to_its_node() {
        let learner = Nodes(Arc::default(), NodeGraphKind::Pod);
        let concerned = |now: &CachedObject, before: Option<&CachedObject>| {
            learner.is_concerned(&Changed { object: now, before, indexed: Some(0) })
        };
        let (_, pending) = cached("ns/p", "{}", "");
        let (_, bound) = cached("ns/p", "{}", "n");
        let (_, claimed) = cached("ns/p", r#"{"status":{"resourceClaimStatuses":[{"name":"c"}]}}"#, "n");
        assert!(!concerned(&pending, None));
        assert!(concerned(&bound, None) && concerned(&bound, Some(&pending)));
        assert!(!concerned(&bound, Some(&bound)));
        assert!(concerned(&claimed, Some(&bound)) && concerned(&bound, Some(&claimed)));
    }
}
