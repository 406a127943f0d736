//! Keeps the index of RBAC as the stored roles and bindings are.

use kubelith_auth::authz::rbac::{RbacIndex, RbacKind};
use kubelith_codec::json;
use kubelith_kube::Resources;
use kubelith_server::lifecycle::Tasks;
use kubelith_store::cache::{CachedObject, EventKind, ResourceCache, Scope};
use std::sync::Arc;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Fills the index and follows changes until the server ends.
pub fn follow(index: &Arc<RbacIndex>, resources: &Resources, tasks: &Tasks) {
    for kind in [RbacKind::Role, RbacKind::ClusterRole, RbacKind::RoleBinding, RbacKind::ClusterRoleBinding] {
        let Some(resource) = resources.get(&(GROUP.into(), kind.resource().into())) else { continue };
        let (cache, index) = (resource.cache.clone(), index.clone());
        load(&index, kind, &cache);
        tasks.spawn_until_stopped("rbac-index", async move {
            loop {
                follow_once(&index, kind, &cache).await;
            }
        });
    }
}

fn load(index: &RbacIndex, kind: RbacKind, cache: &ResourceCache) {
    for object in cache.snapshot().objects.values() {
        put(index, kind, object);
    }
}

/// From a snapshot on until the watch falls behind.
async fn follow_once(index: &RbacIndex, kind: RbacKind, cache: &Arc<ResourceCache>) {
    let (snapshot, mut watcher) = cache.list_and_watch(Scope::All);
    for object in snapshot.objects.values() {
        put(index, kind, object);
    }
    let mut events = Vec::new();
    while watcher.next(&mut events).await.is_ok() {
        for event in events.drain(..) {
            match event.kind {
                EventKind::Deleted => index.delete(kind, event.object.namespace(), event.object.name()),
                _ => put(index, kind, &event.object),
            }
        }
    }
}

fn put(index: &RbacIndex, kind: RbacKind, object: &CachedObject) {
    if let Ok(value) = json::parse(&object.json()) {
        index.put(kind, &value);
    }
}
