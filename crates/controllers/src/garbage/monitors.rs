//! Follows all objects that can be deleted and tells the graph of those that matter.
//!
//! Resources of this server are read from their watch caches. Most objects own nothing and are owned by nobody: a look for
//! two words in their text tells, and they are not even parsed. Resources of other servers are watched through them.

use super::Shared;
use super::api::{self, Api};
use super::graph::{Identity, Seen};
use crate::caches::{BEING_DELETED, OWNED};
use crate::resources::when_resources_change;
use crate::world::Known;
use crate::{Context, World};
use kubelith_meta::{GroupResource, Status, Str, Value};
use kubelith_server::lifecycle::Tasks;
use kubelith_server::loopback::{ResourceRef, WatchKind};
use kubelith_store::cache::{CachedObject, Event, EventKind, ResourceCache, Scope};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Until a watch of another server is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Between looks at followers that are a moment behind.
const MOMENT: Duration = Duration::from_micros(200);
/// Nobody waits longer than this for them.
const PATIENCE: Duration = Duration::from_secs(3);

/// Objects of these come and go too quickly to follow, and own nothing.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

pub struct Monitors {
    shared: Arc<Shared>,
    api: Arc<Api>,
    world: Arc<dyn World>,
    tasks: Tasks,
    running: Mutex<HashMap<GroupResource, Monitor>>,
    context: Context,
}

struct Monitor {
    known: Known,
    /// Where changes come from: a cache here, or another server.
    cache: Option<Arc<ResourceCache>>,
    /// The revision up to which the graph knows of its changes.
    told: Arc<AtomicI64>,
    stop: CancellationToken,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Monitors {
    pub fn new(context: &Context, shared: Arc<Shared>, api: Arc<Api>) -> Arc<Monitors> {
        Arc::new(Monitors {
            shared,
            api,
            world: context.world.clone(),
            tasks: context.tasks.clone(),
            running: Mutex::default(),
            context: context.clone(),
        })
    }

    /// Follows what there is, and looks again when that changes.
    pub fn start(self: &Arc<Self>) {
        let monitors = self.clone();
        when_resources_change(&self.context, "garbage_collector_resources", move || {
            let monitors = monitors.clone();
            async move { monitors.sync().await }
        });
    }

    async fn sync(&self) {
        let discovered = self.api.discover();
        if discovered.resources.is_empty() {
            self.context.figures.garbage_sync_errors.inc();
            return;
        }
        let ignored = |r: &GroupResource| IGNORED.contains(&(&*r.group, &*r.resource));
        let preferred = discovered.preferred();
        let wanted = preferred.into_iter().filter(|r| ["delete", "list", "watch"].iter().all(|verb| r.can(verb)));
        let wanted: Vec<&Known> = wanted.filter(|r| !ignored(&r.resource.group_resource())).collect();
        for known in &wanted {
            let resource = known.resource.group_resource();
            let cache = self.world.cache_of(&resource).await;
            self.follow(resource, known, cache);
        }
        let names: HashSet<GroupResource> = wanted.iter().map(|k| k.resource.group_resource()).collect();
        let stale = |known: &Known| discovered.stale.contains(&known.resource.group_version());
        let mut running = self.running.lock().expect("no panic under this lock");
        let gone: Vec<GroupResource> = running
            .iter()
            .filter(|(resource, monitor)| !names.contains(resource) && !stale(&monitor.known))
            .map(|(resource, _)| resource.clone())
            .collect();
        for resource in gone {
            running.remove(&resource);
            self.api.set_cache(resource, None);
        }
    }

    fn follow(&self, resource: GroupResource, known: &Known, cache: Option<Arc<ResourceCache>>) {
        let mut running = self.running.lock().expect("no panic under this lock");
        let same = |monitor: &Monitor| match (&monitor.cache, &cache) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new) && monitor.known == *known,
            (None, None) => monitor.known == *known,
            _ => false,
        };
        if running.get(&resource).is_some_and(same) {
            return;
        }
        self.api.set_cache(resource.clone(), cache.clone());
        let (told, stop) = (Arc::new(AtomicI64::new(-1)), CancellationToken::new());
        let teller = Teller { shared: self.shared.clone(), api_version: known.api_version(), kind: known.kind.clone() };
        let (until, name) = (stop.clone(), "garbage-collector-monitor");
        match &cache {
            Some(cache) => {
                let following = teller.follow(cache.clone(), told.clone());
                self.tasks.spawn_until_stopped(name, async move {
                    until.run_until_cancelled(following).await;
                });
            }
            None => {
                told.store(i64::MAX, Ordering::Release);
                let following = teller.follow_elsewhere(self.api.clone(), known.clone());
                self.tasks.spawn_until_stopped(name, async move {
                    until.run_until_cancelled(following).await;
                });
            }
        }
        running.insert(resource, Monitor { known: known.clone(), cache, told, stop });
    }

    /// Waits until the graph knows of what the watch caches have now.
    pub async fn caught_up(&self) {
        let behind: Vec<(Arc<AtomicI64>, i64)> = {
            let running = self.running.lock().expect("no panic under this lock");
            let caches = running.values().filter_map(|m| Some((m.told.clone(), m.cache.as_ref()?.stats().revision)));
            caches.filter(|(told, revision)| told.load(Ordering::Acquire) < *revision).collect()
        };
        let wait = async {
            for (told, revision) in behind {
                while told.load(Ordering::Acquire) < revision {
                    tokio::time::sleep(MOMENT).await;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            tracing::warn!("the garbage collector is behind");
        }
    }
}

/// Tells the graph of the objects of one kind.
struct Teller {
    shared: Arc<Shared>,
    api_version: Str,
    kind: Str,
}

impl Teller {
    async fn follow(self, cache: Arc<ResourceCache>, told: Arc<AtomicI64>) {
        loop {
            let (snapshot, mut watcher) = cache.list_and_watch(Scope::All);
            for object in snapshot.objects.values().filter(|o| matters(o)) {
                if let Some(seen) = self.seen(object) {
                    self.shared.with(|graph| graph.observe(&seen, None));
                }
            }
            self.tell_gone(|identity| {
                let object = snapshot.get(&key(identity));
                object.and_then(|o| self.seen(o)).is_some_and(|seen| seen.identity.uid == identity.uid)
            });
            told.fetch_max(snapshot.revision, Ordering::AcqRel);
            drop(snapshot);
            let mut events = Vec::new();
            while watcher.next(&mut events).await.is_ok() {
                let last = events.last().map(|e| e.revision);
                for event in events.drain(..) {
                    self.tell(&event);
                }
                if let Some(last) = last {
                    told.fetch_max(last, Ordering::AcqRel);
                }
            }
        }
    }

    fn seen(&self, object: &CachedObject) -> Option<Seen> {
        api::seen(&self.api_version, &self.kind, object)
    }

    fn tell(&self, event: &Event) {
        if event.kind == EventKind::Deleted {
            if self.shared.graph().is_empty() {
                return;
            }
            if let Some(seen) = self.seen(&event.object) {
                self.shared.with(|graph| graph.gone(&seen.identity));
            }
            return;
        }
        let before = event.prev.as_ref();
        if !matters(&event.object) && !before.is_some_and(|before| matters(before)) {
            return;
        }
        let Some(seen) = self.seen(&event.object) else { return };
        let before = before.and_then(|before| self.seen(before));
        // Another object of the same name: the old one was deleted while nobody looked.
        if let Some(before) = before.as_ref().filter(|b| b.identity.uid != seen.identity.uid) {
            self.shared.with(|graph| graph.gone(&before.identity));
        }
        self.shared.with(|graph| graph.observe(&seen, before.as_ref()));
    }

    /// Objects that the graph knows and that are not there any more.
    fn tell_gone(&self, is_there: impl Fn(&Identity) -> bool) {
        let known = self.shared.graph().of_kind(&self.api_version, &self.kind);
        for identity in known.into_iter().filter(|identity| !is_there(identity)) {
            self.shared.with(|graph| graph.gone(&identity));
        }
    }

    /// Objects of another server.
    async fn follow_elsewhere(self, api: Arc<Api>, known: Known) {
        let mut known_objects: HashMap<Str, Seen> = HashMap::new();
        loop {
            if let Err(why) = self.watch_elsewhere(&api, &known, &mut known_objects).await {
                tracing::debug!(resource = %known.resource.resource, err = why.message, "cannot be followed");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn watch_elsewhere(&self, api: &Api, known: &Known, objects: &mut HashMap<Str, Seen>) -> Result<(), Status> {
        let collection = ResourceRef::new(&known.resource);
        let list = api.client().list_metadata(&collection).await?;
        let items = list.get("items").and_then(Value::as_array).unwrap_or_default();
        let mut there = HashSet::new();
        for item in items {
            let seen = Seen::of(&self.api_version, &self.kind, item);
            there.insert(seen.identity.uid.clone());
            self.tell_elsewhere(seen, objects);
        }
        objects.retain(|uid, _| there.contains(uid));
        self.tell_gone(|identity| there.contains(&identity.uid));
        let version = list.meta().resource_version().to_owned();
        let mut watch = api.client().watch_metadata(&collection.with("resourceVersion", &version)).await?;
        while let Some(event) = watch.next().await {
            let event = event?;
            let seen = Seen::of(&self.api_version, &self.kind, &event.object);
            match event.kind {
                WatchKind::Bookmark => {}
                WatchKind::Deleted => {
                    objects.remove(&seen.identity.uid);
                    self.shared.with(|graph| graph.gone(&seen.identity));
                }
                WatchKind::Added | WatchKind::Modified => self.tell_elsewhere(seen, objects),
            }
        }
        Ok(())
    }

    fn tell_elsewhere(&self, seen: Seen, objects: &mut HashMap<Str, Seen>) {
        let before = objects.remove(&seen.identity.uid);
        self.shared.with(|graph| graph.observe(&seen, before.as_ref()));
        if seen.being_deleted || !seen.owners.is_empty() {
            objects.insert(seen.identity.uid.clone(), seen);
        }
    }
}

fn key(identity: &Identity) -> String {
    match identity.namespace.is_empty() {
        true => identity.name.to_string(),
        false => format!("{}/{}", identity.namespace, identity.name),
    }
}

/// Whether an object has owners, or waits for its end.
fn matters(object: &CachedObject) -> bool {
    OWNED.is_in(object) || BEING_DELETED.is_in(object)
}
