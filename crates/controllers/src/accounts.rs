//! The service account `default` of each namespace.

use crate::{Context, caches};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Change, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;

const NAME: &str = "default";
/// Of a refusal because the namespace is on its way out.
pub const TERMINATING: &str = "NamespaceTerminating";

struct Accounts {
    client: LoopbackClient,
    namespaces: Arc<ResourceCache>,
    accounts: Arc<ResourceCache>,
}

pub fn start(context: &Context) {
    let (Some(namespaces), Some(accounts)) =
        (context.world.cache("", "namespaces"), context.world.cache("", "serviceaccounts"))
    else {
        return;
    };
    let this = Arc::new(Accounts {
        client: context.client("service-account-controller"),
        namespaces: namespaces.clone(),
        accounts: accounts.clone(),
    });
    Controller::new("serviceaccount", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    })
    .watches(&namespaces, |change| if change.is_deletion() { Vec::new() } else { vec![change.key()] })
    .watches(&accounts, |change| namespace_of_deleted(change, NAME))
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Accounts {
    async fn reconcile(&self, namespace: &str) -> Result<Next, Status> {
        let Some(found) = self.namespaces.get(namespace).and_then(|n| caches::value(&n)) else { return Ok(Next::Done) };
        let is_there = self.accounts.get(&format!("{namespace}/{NAME}")).is_some();
        if is_there || found.str_at(&["status", "phase"]) != "Active" {
            return Ok(Next::Done);
        }
        let resource = GroupVersionResource::new("", "v1", "serviceaccounts");
        let mut account = Value::object();
        account.meta_mut().set_name(NAME).set_namespace(namespace);
        match self.client.create(&ResourceRef::new(&resource).namespace(namespace), &account).await {
            Err(status) if !status.is_already_exists() && !status.has_cause(TERMINATING) => Err(status),
            _ => Ok(Next::Done),
        }
    }
}

/// The namespace of a deleted object, if that is its name.
pub fn namespace_of_deleted(change: &Change, name: &str) -> Vec<Str> {
    let ours = change.is_deletion().then(|| change.object().key.split_once('/')).flatten();
    ours.filter(|(_, found)| *found == name).map(|(namespace, _)| namespace.into()).into_iter().collect()
}
