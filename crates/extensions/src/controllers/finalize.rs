//! Before a definition goes, its instances go: the finalizer `customresourcecleanup.apiextensions.k8s.io`.

use super::conditions::{Condition, set};
use super::status::definitions;
use crate::definition::{self, Definition};
use crate::serving::Table;
use crate::{CLEANUP_FINALIZER, Config};
use kubelith_meta::user::User;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::{Call, DeleteBy, DeleteOptions, Mode, Resource, Warnings};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::Scope;
use std::sync::Arc;
use std::time::Duration;

/// Definitions that are emptied at a time.
const WORKERS: usize = 5;
/// How long instances may take to go before the status says that they do not.
const PATIENCE: Duration = Duration::from_secs(60);

struct Finalizer {
    config: Arc<Config>,
    client: LoopbackClient,
    table: Arc<Table>,
}

/// It watches nothing: who reads every change of a definition tells it which ones are being deleted.
pub fn finalizer(config: Arc<Config>, client: LoopbackClient, table: Arc<Table>) -> Controller {
    let this = Arc::new(Finalizer { config, client, table });
    let reconcile = move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    };
    Controller::new("crd-finalizer", reconcile).workers(WORKERS)
}

impl Finalizer {
    async fn reconcile(&self, name: &str) -> Result<Next, String> {
        let Some(cached) = self.config.definitions.cache.get(name) else { return Ok(Next::Done) };
        let mut object = definition::read(&cached)?;
        if !object.meta().is_being_deleted() || !object.meta().has_finalizer(CLEANUP_FINALIZER) {
            return Ok(Next::Done);
        }
        let begun = Condition::new(
            "Terminating",
            "True",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        );
        set(&mut object, &begun, self.config.clock.now());
        let Some(mut object) = self.write(name, &object).await? else { return Ok(Next::Done) };
        let outcome = if definition::overlaps_built_in(&definition::resource_of(name)) {
            let why = "instances overlap with built-in resources in storage";
            Ok(Condition::new("Terminating", "False", "OverlappingBuiltInResource", why))
        } else if Definition(&object).is("Established") {
            self.delete_instances(name).await
        } else {
            Ok(Condition::new("Terminating", "False", "NeverEstablished", "resource was never established"))
        };
        let (condition, failed) = match outcome {
            Ok(condition) => (condition, None),
            Err((condition, why)) => (condition, Some(why)),
        };
        set(&mut object, &condition, self.config.clock.now());
        if failed.is_none() {
            let left: Vec<Str> =
                object.meta().finalizers().filter(|f| *f != CLEANUP_FINALIZER).map(Str::from).collect();
            match left.is_empty() {
                true => drop(object.remove_at(&["metadata", "finalizers"])),
                false => object.set_at(&["metadata", "finalizers"], left.into()),
            }
        }
        self.write(name, &object).await?;
        failed.map_or(Ok(Next::Done), Err)
    }

    /// `None`: it was changed or deleted meanwhile, which brings us here again.
    async fn write(&self, name: &str, object: &Value) -> Result<Option<Value>, String> {
        let resource = definitions();
        let target = ResourceRef::new(&resource).name(name).subresource("status");
        match self.client.update(&target, object).await {
            Ok(written) => Ok(Some(written)),
            Err(status) if status.is_conflict() || status.is_not_found() => Ok(None),
            Err(status) => Err(status.message),
        }
    }

    async fn delete_instances(&self, name: &str) -> Result<Condition, (Condition, String)> {
        tokio::time::sleep(self.config.deletion_grace).await;
        let failed = |reason: &'static str, message: String, why: String| {
            (Condition::new("Terminating", "True", reason, message), why)
        };
        let serving = self.table.get(&definition::resource_of(name)).await;
        let endpoint = match &serving {
            Ok(Some(serving)) => serving.built.storage().cloned(),
            _ => None,
        };
        let Some(endpoint) = endpoint else {
            let why = format!("unable to find a custom resource client for {name}");
            return Err(failed("InstanceDeletionFailed", format!("could not list instances: {why}"), why));
        };
        let resource = &endpoint.resource;
        if let Err(status) = delete_all(resource).await {
            let why = status.message;
            return Err(failed("InstanceDeletionFailed", format!("could not issue all deletes: {why}"), why));
        }
        if tokio::time::timeout(PATIENCE, emptied(resource)).await.is_err() {
            let why = "context deadline exceeded".to_owned();
            let message = format!("could not confirm zero CustomResources remaining: {why}");
            return Err(failed("InstanceDeletionCheck", message, why));
        }
        Ok(Condition::new("Terminating", "False", "InstanceDeletionCompleted", "removed all instances"))
    }
}

async fn delete_all(resource: &Resource) -> Result<(), Status> {
    let user = Arc::new(User { name: "system:apiserver".into(), ..User::default() });
    let snapshot = resource.snapshot(kubelith_registry::ReadAt::Latest).await?;
    let mut failure = None;
    for object in snapshot.objects.values() {
        let call = Call {
            verb: Str::default(),
            user: user.clone(),
            resource: resource.descriptor.group_resource(),
            version: resource.descriptor.storage.kind.version.clone(),
            kind: resource.descriptor.storage.kind.clone(),
            namespace: object.namespace().into(),
            name: object.name().into(),
            subresource: Str::default(),
            mode: Mode::Real,
            deadline: None,
            warnings: Warnings::default(),
        };
        match resource.delete(&call, &DeleteOptions::default(), DeleteBy::Server).await {
            Err(status) if !status.is_not_found() => failure = Some(status),
            _ => {}
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Returns when no instance is left.
async fn emptied(resource: &Resource) {
    loop {
        let (snapshot, mut watcher) = resource.cache.list_and_watch(Scope::All);
        if snapshot.objects.is_empty() {
            return;
        }
        let mut events = Vec::new();
        while watcher.next(&mut events).await.is_ok() {
            events.clear();
            if resource.cache.is_empty() {
                return;
            }
        }
    }
}
