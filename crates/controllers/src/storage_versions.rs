//! Entries of servers that are gone leave the StorageVersions; what no server has an entry in goes. There are such objects
//! only with the feature gate StorageVersionAPI.

use crate::{Context, KUBE_SYSTEM, caches};
use kubelith_kube::bootstrap::set_storage_versions;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Change, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::sync::Arc;

/// The label of leases by which servers say that they are there, and what it says.
const COMPONENT: &str = "apiserver.kubernetes.io/identity";
const SERVER: &str = "kube-apiserver";

struct Cleaner {
    client: LoopbackClient,
    leases: Arc<ResourceCache>,
    versions: Arc<ResourceCache>,
    clock: Arc<dyn Clock>,
}

pub fn start(context: &Context) {
    let world = &context.world;
    let (Some(leases), Some(versions)) =
        (world.cache("coordination.k8s.io", "leases"), world.cache("internal.apiserver.k8s.io", "storageversions"))
    else {
        return;
    };
    let this = Arc::new(Cleaner {
        client: context.client("storage-version-garbage-collector"),
        leases: leases.clone(),
        versions: versions.clone(),
        clock: context.clock.clone(),
    });
    let gone = this.clone();
    Controller::new("storage_version_garbage_collector_leases", move |server: Str| {
        let this = gone.clone();
        async move { this.forget(&server).await.map_err(|status| status.message) }
    })
    .watches(&leases, server_that_went)
    .metrics(&context.metrics)
    .start(&context.tasks);
    Controller::new("storage_version_garbage_collector_storageversions", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await.map_err(|status| status.message) }
    })
    .watches(&versions, |change| if change.is_deletion() { Vec::new() } else { vec![change.key()] })
    .metrics(&context.metrics)
    .start(&context.tasks);
}

/// The server whose lease is deleted.
fn server_that_went(change: &Change) -> Vec<Str> {
    let name = change.is_deletion().then(|| change.object().key.split_once('/')).flatten();
    let ours = name.filter(|(namespace, _)| *namespace == KUBE_SYSTEM && is_servers(change.object()));
    ours.map(|(_, name)| Str::from(name)).into_iter().collect()
}

fn is_servers(lease: &CachedObject) -> bool {
    caches::value(lease).is_some_and(|lease| lease.str_at(&["metadata", "labels", COMPONENT]) == SERVER)
}

fn resource() -> GroupVersionResource {
    GroupVersionResource::new("internal.apiserver.k8s.io", "v1alpha1", "storageversions")
}

fn entries(version: &Value) -> Vec<Value> {
    version.at(&["status", "storageVersions"]).and_then(Value::as_array).unwrap_or_default().to_vec()
}

impl Cleaner {
    fn is_there(&self, server: &str) -> bool {
        self.leases.get(&format!("{KUBE_SYSTEM}/{server}")).is_some_and(|lease| is_servers(&lease))
    }

    /// A server's lease is gone, and so are its entries.
    async fn forget(&self, server: &str) -> Result<Next, Status> {
        if self.leases.get(&format!("{KUBE_SYSTEM}/{server}")).is_some() {
            return Ok(Next::Done);
        }
        let snapshot = self.versions.snapshot();
        for version in snapshot.range("", None).filter(|version| caches::mentions(version, server)) {
            let Some(version) = caches::value(version) else { continue };
            self.keep(version, |entry| entry.str_at(&["apiServerID"]) != server).await?;
        }
        Ok(Next::Done)
    }

    /// Whoever has an entry must be there.
    async fn reconcile(&self, name: &str) -> Result<Next, Status> {
        let known = |entry: &Value| self.is_there(entry.str_at(&["apiServerID"]));
        let cached = self.versions.get(name).and_then(|version| caches::value(&version));
        if cached.is_none_or(|version| entries(&version).iter().all(known)) {
            return Ok(Next::Done);
        }
        match self.client.get(&ResourceRef::new(&resource()).name(name)).await {
            Ok(version) => self.keep(version, known).await.map(|()| Next::Done),
            Err(status) if status.is_not_found() => Ok(Next::Done),
            Err(status) => Err(status),
        }
    }

    async fn keep(&self, mut version: Value, good: impl Fn(&Value) -> bool) -> Result<(), Status> {
        let all = entries(&version);
        let left: Vec<Value> = all.iter().filter(|entry| good(entry)).cloned().collect();
        if left.len() == all.len() {
            return Ok(());
        }
        let (name, resource) = (version.meta().name().to_owned(), resource());
        let target = ResourceRef::new(&resource).name(&name);
        let outcome = if left.is_empty() {
            let options = Value::from([("kind", "DeleteOptions"), ("apiVersion", "v1")]);
            self.client.delete_unseen(&target, &options).await
        } else {
            set_storage_versions(&mut version, left, &self.clock.now().rfc3339());
            self.client.update(&target.subresource("status"), &version).await.map(drop)
        };
        outcome.or_else(|status| if status.is_not_found() { Ok(()) } else { Err(status) })
    }
}
