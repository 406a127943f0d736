//! Keeps the status of definitions, and what is published of them. One worker: names are given to one at a time.

use super::conditions::{self, Taken};
use super::index::Index;
use super::publish::Publisher;
use crate::Config;
use crate::definition::{self, Definition};
use crate::serving::Table;
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_server::controller::{Controller, Next, Running};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use std::sync::Arc;

pub struct StatusController {
    pub config: Arc<Config>,
    pub client: LoopbackClient,
    pub table: Arc<Table>,
    pub index: Arc<Index>,
    pub publisher: Arc<Publisher>,
    /// Told of definitions that are being deleted.
    pub finalizer: Running,
}

impl StatusController {
    pub fn controller(self) -> Controller {
        let cache = self.config.definitions.cache.clone();
        let this = Arc::new(self);
        let reconcile = move |name: Str| {
            let this = this.clone();
            async move {
                this.reconcile(name).await?;
                // Only now: those who looked before the names were given up were refused them.
                Ok::<_, String>(Next::Others(this.index.take_waiting()))
            }
        };
        Controller::new("crd-status", reconcile).watches(&cache, |change| vec![change.key()])
    }

    /// The names that this definition cannot have.
    fn taken(&self, definition: Definition<'_>) -> Result<Taken, String> {
        if definition.names() == definition.accepted_names() {
            return Ok(Taken::default());
        }
        let mut taken = self.index.taken(definition.group(), definition.name());
        // After the start others may have names, and their turn is yet to come.
        let snapshot = self.config.definitions.cache.snapshot();
        for (key, other) in &snapshot.objects {
            let is_other = &**key != definition.name() && definition::group_of(key) == definition.group();
            if is_other && !self.index.knows(key) {
                taken.add(&Definition(&definition::read(other)?).accepted_names());
            }
        }
        Ok(taken)
    }

    async fn reconcile(&self, name: Str) -> Result<(), String> {
        let Some(cached) = self.config.definitions.cache.get(&name) else {
            let touched = self.index.remove(&name);
            self.publisher.publish(&self.index, &name, &touched);
            self.table.forget(&name).await;
            return Ok(());
        };
        if self.index.is_settled(&cached) {
            return Ok(());
        }
        let mut object = definition::read(&cached)?;
        let definition = Definition(&object);
        if definition.is_being_deleted() {
            self.finalizer.add(name.clone());
        }
        let taken = self.taken(definition)?;
        let Some(status) = conditions::settled(&object, &taken, self.config.clock.now()) else {
            let touched = self.index.put(definition, &cached);
            self.publisher.publish(&self.index, &name, &touched);
            self.table.refresh(&name).await;
            return Ok(());
        };
        let patch = patch(definition, &status);
        object.set_at(&["status"], status);
        // Published before it is said to be established: whoever waits for that finds it.
        let wanted = Arc::new(object);
        let touched = self.index.settle(&wanted, &cached);
        self.publisher.publish(&self.index, &name, &touched);
        let resource = definitions();
        let target = ResourceRef::new(&resource).name(&name).subresource("status");
        let written = self.client.patch_large(&target, PatchType::Json, &patch).await;
        self.index.written(&name);
        self.table.refresh(&name).await;
        match written {
            Ok(written) => {
                // With all its names it waits for no other definition, so that it is as it should be.
                let wanted = Definition(&wanted);
                if wanted.is("NamesAccepted") && wanted.is("Established") && !wanted.is_being_deleted() {
                    self.index.settled(wanted, written.meta().resource_version().parse().unwrap_or_default());
                }
                Ok(())
            }
            // Changed or deleted meanwhile: the change brings us here again.
            Err(status) if status.is_conflict() || status.is_not_found() => Ok(()),
            Err(status) => Err(status.message),
        }
    }
}

/// Puts the status in its place, unless the definition changed: schemas are large and need not be sent.
fn patch(definition: Definition<'_>, status: &Value) -> Value {
    let add = |path: &str, value: Value| Value::from([("op", "add".into()), ("path", path.into()), ("value", value)]);
    let version = Value::from(definition.0.meta().resource_version());
    Value::Array(vec![add("/metadata/resourceVersion", version), add("/status", status.clone())])
}

pub fn definitions() -> GroupVersionResource {
    GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}
