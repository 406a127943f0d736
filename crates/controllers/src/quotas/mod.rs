//! The status of quotas: what a namespace uses of what it may. Admission charges what comes; this counts what is there, and
//! so gives back what goes.

mod others;

use crate::world::World;
use crate::{Context, caches};
use kubelith_admission::plugins::QuotaUsage;
use kubelith_meta::{GroupResource, GroupVersionResource, Str, Value};
use kubelith_server::controller::{Change, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use others::Others;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const WORKERS: usize = 5;
/// Against drift.
const AGAIN: Duration = Duration::from_secs(5 * 60);
/// Changes of these count, not only their deletion.
const CHANGING: [(&str, &str); 4] =
    [("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims")];

struct Quotas {
    client: LoopbackClient,
    quotas: Arc<ResourceCache>,
    world: Arc<dyn World>,
    usage: Arc<QuotaUsage>,
}

pub fn start(context: &Context) {
    let Some(quotas) = context.world.cache("", "resourcequotas") else { return };
    let this = Arc::new(Quotas {
        client: context.client("resourcequota-controller"),
        quotas: quotas.clone(),
        world: context.world.clone(),
        usage: context.quotas.clone(),
    });
    let reconcile = this.clone();
    let mut controller = Controller::new("resourcequota_primary", move |key: Str| {
        let this = reconcile.clone();
        async move { this.reconcile(&key).await }
    })
    .watches(&quotas, |change| if limits_changed(change) { vec![change.key()] } else { Vec::new() });
    for resource in this.counted() {
        let Some(cache) = context.world.cache(&resource.group, &resource.resource) else { continue };
        let changing = CHANGING.contains(&(&*resource.group, &*resource.resource));
        let this = this.clone();
        controller = controller.watches(&cache, move |change| match changing || change.is_deletion() {
            true => this.of_namespace(change, &resource),
            false => Vec::new(),
        });
    }
    let running = controller.every(AGAIN).workers(WORKERS).metrics(&context.metrics).start(&context.tasks);
    Others::new(context, this, running).start();
}

/// Admission writes the status before the object that it is charged for: to count then would be to forget that object.
fn limits_changed(change: &Change) -> bool {
    let Some(new) = &change.new else { return false };
    let Some(old) = &change.old else { return true };
    // Nothing changed: it is time to look again.
    if Arc::ptr_eq(old, new) {
        return true;
    }
    let limits = |quota| caches::value(quota).and_then(|q| q.at(&["spec"]).cloned());
    limits(new) != limits(old)
}

impl Quotas {
    /// Resources with a namespace, each once.
    fn counted(&self) -> Vec<GroupResource> {
        let discovered = self.world.discover();
        let preferred = discovered.preferred();
        preferred.into_iter().filter(|r| r.namespaced && r.can("list")).map(|r| r.resource.group_resource()).collect()
    }

    /// The quotas that a change of an object concerns. Most namespaces have none.
    fn of_namespace(&self, change: &Change, resource: &GroupResource) -> Vec<Str> {
        let Some((namespace, _)) = change.object().key.split_once('/') else { return Vec::new() };
        self.concerned(&format!("{namespace}/"), resource)
    }

    /// The quotas that a resource concerns, among those whose keys begin so.
    fn concerned(&self, prefix: &str, resource: &GroupResource) -> Vec<Str> {
        if self.quotas.is_empty() {
            return Vec::new();
        }
        let snapshot = self.quotas.snapshot();
        let concerned = snapshot.range(prefix, None).filter(|quota| {
            let quota = caches::value(quota);
            quota.is_some_and(|quota| self.usage.concerns(resource, &quota))
        });
        concerned.map(|quota| Str::from(&*quota.key)).collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Next, String> {
        let Some(quota) = self.quotas.get(key).and_then(|q| caches::value(&q)) else { return Ok(Next::Done) };
        let (namespace, name) = (quota.meta().namespace().to_owned(), quota.meta().name().to_owned());
        let mut counted = BTreeMap::new();
        for resource in self.counted() {
            if !self.usage.concerns(&resource, &quota) {
                continue;
            }
            let objects = self.objects(&resource, &namespace).await?;
            counted.extend(self.usage.count(&resource, &quota, objects.iter())?);
        }
        let Some(object) = self.usage.with_status(&quota, &counted) else { return Ok(Next::Done) };
        let quotas = GroupVersionResource::new("", "v1", "resourcequotas");
        let target = ResourceRef::new(&quotas).namespace(&namespace).name(&name).subresource("status");
        match self.client.update(&target, &object).await {
            Err(status) if status.is_not_found() => Ok(Next::Done),
            outcome => outcome.map(|_| Next::Done).map_err(|status| status.message),
        }
    }

    async fn objects(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, String> {
        if let Some(cache) = self.world.cache_of(resource).await {
            let (prefix, snapshot) = (format!("{namespace}/"), cache.snapshot());
            return Ok(snapshot.range(&prefix, None).filter_map(|object| caches::value(object)).collect());
        }
        let discovered = self.world.discover();
        let known = discovered.resources.iter().find(|r| r.resource.group_resource() == *resource);
        let Some(known) = known else { return Ok(Vec::new()) };
        let list = self.client.list_metadata(&ResourceRef::new(&known.resource).namespace(namespace)).await;
        let list = list.map_err(|status| status.message)?;
        Ok(list.get("items").and_then(Value::as_array).unwrap_or_default().to_vec())
    }
}
