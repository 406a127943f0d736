//! Follows resources that come and go, custom ones and those of other servers: what is deleted of them gives its share of a
//! quota back, as built-in objects do.

use super::Quotas;
use crate::Context;
use crate::resources::when_resources_change;
use crate::world::Known;
use kubelith_meta::{GroupResource, Status};
use kubelith_server::controller::{Running, follow};
use kubelith_server::loopback::{ResourceRef, WatchKind};
use kubelith_store::cache::ResourceCache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Until a watch of another server is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub struct Others {
    context: Context,
    quotas: Arc<Quotas>,
    running: Running,
    followed: Mutex<HashMap<GroupResource, Followed>>,
}

struct Followed {
    /// Where changes come from, if it is here.
    cache: Option<Arc<ResourceCache>>,
    stop: CancellationToken,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Others {
    pub fn new(context: &Context, quotas: Arc<Quotas>, running: Running) -> Arc<Others> {
        Arc::new(Others { context: context.clone(), quotas, running, followed: Mutex::default() })
    }

    /// Looks which there are, and again when these change.
    pub fn start(self: Arc<Self>) {
        let context = self.context.clone();
        when_resources_change(&context, "resourcequota_resources", move || {
            let this = self.clone();
            async move { this.sync().await }
        });
    }

    async fn sync(&self) {
        let discovered = self.context.world.discover();
        let wanted = discovered.preferred().into_iter().filter(|known| {
            let built_in = self.context.world.cache(&known.resource.group, &known.resource.resource).is_some();
            known.namespaced && !built_in && ["list", "watch", "delete"].iter().all(|verb| known.can(verb))
        });
        let wanted: HashMap<GroupResource, &Known> = wanted.map(|k| (k.resource.group_resource(), k)).collect();
        for (resource, known) in &wanted {
            let cache = self.context.world.cache_of(resource).await;
            self.follow(resource, known, cache);
        }
        let is_stale =
            |resource: &GroupResource| discovered.stale.iter().any(|version| version.group == resource.group);
        let mut followed = self.followed.lock().expect("no panic under this lock");
        followed.retain(|resource, _| wanted.contains_key(resource) || is_stale(resource));
    }

    fn follow(&self, resource: &GroupResource, known: &Known, cache: Option<Arc<ResourceCache>>) {
        let mut followed = self.followed.lock().expect("no panic under this lock");
        let same = followed.get(resource).is_some_and(|old| match (&old.cache, &cache) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        });
        if same {
            return;
        }
        let stop = CancellationToken::new();
        let until = stop.clone();
        let teller = Teller { quotas: self.quotas.clone(), running: self.running.clone(), resource: resource.clone() };
        // What is there already counts.
        teller.tell("");
        let following = match cache.clone() {
            Some(cache) => futures::future::Either::Left(teller.follow(cache)),
            None => futures::future::Either::Right(teller.follow_elsewhere(known.clone())),
        };
        self.context.tasks.spawn_until_stopped("resourcequota-monitor", async move {
            until.run_until_cancelled(following).await;
        });
        followed.insert(resource.clone(), Followed { cache, stop });
    }
}

/// Has the quotas counted again that a resource concerns.
struct Teller {
    quotas: Arc<Quotas>,
    running: Running,
    resource: GroupResource,
}

impl Teller {
    fn tell(&self, prefix: &str) {
        for key in self.quotas.concerned(prefix, &self.resource) {
            self.running.add(key);
        }
    }

    async fn follow(self, cache: Arc<ResourceCache>) {
        let tell = |change: kubelith_server::controller::Change| {
            if change.is_deletion() {
                for key in self.quotas.of_namespace(&change, &self.resource) {
                    self.running.add(key);
                }
            }
        };
        follow(cache, tell, || ()).await;
    }

    /// Objects of another server.
    async fn follow_elsewhere(self, known: Known) {
        loop {
            if let Err(why) = self.watch_elsewhere(&known).await {
                tracing::debug!(resource = %known.resource.resource, err = why.message, "cannot be followed");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn watch_elsewhere(&self, known: &Known) -> Result<(), Status> {
        let collection = ResourceRef::new(&known.resource);
        let list = self.quotas.client.list_metadata(&collection).await?;
        let version = list.meta().resource_version().to_owned();
        // Some may have gone while nobody looked.
        self.tell("");
        let mut watch = self.quotas.client.watch_metadata(&collection.with("resourceVersion", &version)).await?;
        while let Some(event) = watch.next().await {
            let event = event?;
            if event.kind == WatchKind::Deleted {
                self.tell(&format!("{}/", event.object.meta().namespace()));
            }
        }
        Ok(())
    }
}
