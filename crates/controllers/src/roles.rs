//! Cluster roles that are made of others: `aggregationRule`.

use crate::{Context, caches};
use kubelith_meta::{GroupVersionResource, LabelSelector, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;

const ACCOUNT: &str = "clusterrole-aggregation-controller";
const WORKERS: usize = 5;
/// How such a role is told from others at a glance.
const AGGREGATES: &str = "\"aggregationRule\":{";

struct Aggregation {
    client: LoopbackClient,
    roles: Arc<ResourceCache>,
}

pub fn start(context: &Context) {
    let Some(roles) = context.world.cache("rbac.authorization.k8s.io", "clusterroles") else { return };
    let this = Arc::new(Aggregation { client: context.client(ACCOUNT), roles: roles.clone() });
    let all = roles.clone();
    Controller::new("ClusterRoleAggregator", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    })
    .watches(&roles, move |_| {
        let roles = all.snapshot().objects;
        roles.values().filter(|role| caches::mentions(role, AGGREGATES)).map(|role| Str::from(&*role.key)).collect()
    })
    .workers(WORKERS)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Aggregation {
    async fn reconcile(&self, name: &str) -> Result<Next, String> {
        let Some(role) = self.roles.get(name).and_then(|r| caches::value(&r)) else { return Ok(Next::Done) };
        let Some(rule) = role.get("aggregationRule").filter(|r| !r.is_null()) else { return Ok(Next::Done) };
        let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or_default();
        let mut rules: Vec<Value> = Vec::new();
        for selector in selectors {
            let selector = LabelSelector::from_object(Some(selector)).map_err(|e| e.to_string())?;
            for other in self.roles.snapshot().objects.values().filter(|other| *other.key != *name) {
                if !selector.matches(&other.labels[..]) {
                    continue;
                }
                let Some(other) = caches::value(other) else { continue };
                for rule in other.get("rules").and_then(Value::as_array).unwrap_or_default() {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        if role.get("rules").and_then(Value::as_array).unwrap_or_default() == rules {
            return Ok(Next::Done);
        }
        let mut apply = Value::from([("apiVersion", "rbac.authorization.k8s.io/v1"), ("kind", "ClusterRole")]);
        apply.meta_mut().set_name(name);
        if !rules.is_empty() {
            apply.set_at(&["rules"], rules.into());
        }
        let resource = GroupVersionResource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
        let target = ResourceRef::new(&resource).name(name).with("fieldManager", ACCOUNT).with("force", "true");
        self.client.patch(&target, PatchType::Apply, &apply).await.map(|_| Next::Done).map_err(|status| status.message)
    }
}
