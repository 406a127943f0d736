//! One watch on the whole store feeds the caches of all resources, in revision order. So every cache is
//! complete up to one revision, and a consistent read is: ask the store for its revision, wait for the feed to get there.

use super::object::{CachedObject, EventKind, Rendered};
use super::resource::{Objects, ResourceCache};
use crate::{Event, KeyRange, KeyValue, RangeRequest, Result, Revision, Store, StoreError, WatchBatch, WatchRequest};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;

/// Objects read from the store at a time while loading: large enough to amortise the round trip, small
/// enough that two pages in work are a few tens of megabytes.
const PAGE: usize = 2_000;
/// Pages rendered at the same time while loading.
const RENDERERS: usize = 4;
/// How long a read waits for the feed to reach a revision before it fails, as in kube-apiserver.
pub const FRESH_TIMEOUT: Duration = Duration::from_secs(3);
/// Progress requests may get lost with a connection: ask again this often while waiting.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Pause before the feed tries again after the store failed.
const RETRY: Duration = Duration::from_millis(250);
/// How often idle caches drop what is over age.
const TRIM: Duration = Duration::from_secs(30);

/// Turns stored bytes into what readers get. One per resource.
pub trait Renderer: Send + Sync + 'static {
    fn render(&self, value: &[u8], revision: i64) -> std::result::Result<Rendered, String>;
}

/// The caches of one store.
pub struct Hub {
    store: Arc<dyn Store>,
    /// Everything below this key prefix is watched.
    root: String,
    /// By key prefix below the root, with a slash at the end: `pods/`.
    resources: RwLock<BTreeMap<String, Registered>>,
    applied: watch::Sender<i64>,
    control: RwLock<Option<crate::WatchControl>>,
    /// Held while a cache is loaded or a batch is applied, so that the two cannot interleave.
    feeding: AsyncMutex<()>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What a batch changes in one cache.
type Changes = (Arc<ResourceCache>, Vec<(EventKind, CachedObject)>);

#[derive(Clone)]
struct Registered {
    cache: Arc<ResourceCache>,
    renderer: Arc<dyn Renderer>,
}

impl Hub {
    /// Starts the feed. Caches registered before the first event see the store's whole retained history.
    pub async fn start(store: Arc<dyn Store>, root: &str) -> Result<Arc<Hub>> {
        let revision = store.current_revision().await?;
        let hub = Arc::new(Hub {
            store,
            root: root.to_owned(),
            resources: RwLock::default(),
            applied: watch::Sender::new(revision.0),
            control: RwLock::default(),
            feeding: AsyncMutex::default(),
            task: Mutex::default(),
        });
        let task = tokio::spawn(feed(Arc::downgrade(&hub), revision));
        *hub.task.lock().expect("no panic under this lock") = Some(task);
        Ok(hub)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The full key prefix of a resource.
    pub fn key_prefix(&self, prefix: &str) -> String {
        format!("{}{prefix}/", self.root)
    }

    /// Starts caching what is below `prefix` (without slashes at its ends) and loads it. A second call with
    /// the same prefix answers the same cache.
    pub async fn register(
        &self,
        prefix: &str,
        indexed_field: Option<usize>,
        renderer: Arc<dyn Renderer>,
    ) -> Result<Arc<ResourceCache>> {
        let _feeding = self.feeding.lock().await;
        let slashed = format!("{prefix}/");
        if let Some(known) = self.resources.read().expect("no panic under this lock").get(&slashed) {
            return Ok(known.cache.clone());
        }
        let registered = Registered { cache: Arc::new(ResourceCache::new(indexed_field)), renderer };
        self.load(&slashed, &registered).await?;
        let cache = registered.cache.clone();
        self.resources.write().expect("no panic under this lock").insert(slashed, registered);
        Ok(cache)
    }

    /// Replaces the renderer of a resource and renders its objects anew: a custom resource whose schema changed.
    /// Its watchers end with "too old".
    pub async fn replace_renderer(&self, prefix: &str, renderer: Arc<dyn Renderer>) -> Result<()> {
        let _feeding = self.feeding.lock().await;
        let slashed = format!("{prefix}/");
        let known = self.resources.read().expect("no panic under this lock").get(&slashed).cloned();
        let Some(known) = known else { return Ok(()) };
        let registered = Registered { renderer, ..known };
        self.load(&slashed, &registered).await?;
        self.resources.write().expect("no panic under this lock").insert(slashed, registered);
        Ok(())
    }

    /// Stops caching a resource. Its watchers end.
    pub async fn unregister(&self, prefix: &str) {
        let _feeding = self.feeding.lock().await;
        let removed = self.resources.write().expect("no panic under this lock").remove(&format!("{prefix}/"));
        if let Some(removed) = removed {
            removed.cache.load(Objects::new(), *self.applied.borrow());
        }
    }

    /// The revision up to which all caches are complete.
    pub fn applied(&self) -> i64 {
        *self.applied.borrow()
    }

    /// Waits until the caches have reached `revision`; false after `FRESH_TIMEOUT`.
    pub async fn wait_for(&self, revision: i64) -> bool {
        if self.applied() >= revision {
            return true;
        }
        let mut applied = self.applied.subscribe();
        let reached = async {
            loop {
                if let Some(control) = &*self.control.read().expect("no panic under this lock") {
                    control.request_progress();
                }
                match tokio::time::timeout(ASK_AGAIN, applied.wait_for(|r| *r >= revision)).await {
                    Ok(reached) => return reached.is_ok(),
                    Err(_) => continue,
                }
            }
        };
        tokio::time::timeout(FRESH_TIMEOUT, reached).await.unwrap_or(false)
    }

    /// Waits until the caches hold every write acknowledged before this call, and answers the revision.
    pub async fn fresh(&self) -> Result<i64> {
        let revision = self.store.current_revision().await?.0;
        if self.wait_for(revision).await {
            return Ok(self.applied().max(revision));
        }
        Err(StoreError::Unavailable("the cache did not reach the store's revision in time".into()))
    }

    /// Ends the feed. Readers keep what they have.
    pub fn stop(&self) {
        if let Some(task) = self.task.lock().expect("no panic under this lock").take() {
            task.abort();
        }
    }

    async fn load(&self, slashed: &str, registered: &Registered) -> Result<()> {
        let full = format!("{}{slashed}", self.root);
        let mut range = KeyRange::prefix(full.clone());
        let mut at: Option<Revision> = None;
        let mut rendering = std::collections::VecDeque::new();
        let mut objects = Objects::new();
        loop {
            let mut request = RangeRequest::new(range.clone()).limit(PAGE);
            request.at = at;
            let page = self.store.range(request).await?;
            let at = *at.get_or_insert(page.revision);
            let last = page.items.last().map(|kv| kv.key.clone());
            let (skip, renderer) = (full.len(), registered.renderer.clone());
            rendering.push_back(tokio::task::spawn_blocking(move || render_page(skip, &*renderer, page.items)));
            if rendering.len() >= RENDERERS || !page.more {
                while let Some(task) = rendering.pop_front() {
                    for object in task.await.map_err(|e| StoreError::Unavailable(e.to_string()))? {
                        objects.insert(object.key.clone(), Arc::new(object));
                    }
                    if page.more {
                        break; // keep the others busy
                    }
                }
            }
            match last {
                Some(last) if page.more => {
                    let mut next = last.to_vec();
                    next.push(0);
                    range = range.from(Bytes::from(next));
                }
                _ => {
                    registered.cache.load(objects, at.0);
                    return Ok(());
                }
            }
        }
    }

    /// Applies a batch to the caches it concerns, then moves `applied` on.
    fn apply(&self, batch: WatchBatch) {
        let mut changes: HashMap<String, Changes> = HashMap::new();
        {
            let resources = self.resources.read().expect("no panic under this lock");
            for event in batch.events {
                let Ok(key) = std::str::from_utf8(event.key()) else { continue };
                let Some(below) = key.strip_prefix(self.root.as_str()) else { continue };
                let Some((prefix, registered)) = find(&resources, below) else { continue };
                let change = change_of(&below[prefix.len()..], &*registered.renderer, &event);
                match changes.get_mut(prefix) {
                    Some((_, list)) => list.push(change),
                    None => drop(changes.insert(prefix.to_owned(), (registered.cache.clone(), vec![change]))),
                }
            }
        }
        for (_, (cache, list)) in changes {
            cache.apply(list);
        }
        self.applied.send_if_modified(|applied| {
            let later = batch.revision.0 > *applied;
            *applied = batch.revision.0.max(*applied);
            later
        });
    }

    async fn reload_all(&self) -> Result<()> {
        let all: Vec<_> = {
            let resources = self.resources.read().expect("no panic under this lock");
            resources.iter().map(|(p, r)| (p.clone(), r.clone())).collect()
        };
        for (prefix, registered) in all {
            self.load(&prefix, &registered).await?;
        }
        Ok(())
    }
}

/// The resource whose prefix begins `key`: at most a few segments (`services/specs/`, `group/resource/`).
fn find<'a>(resources: &'a BTreeMap<String, Registered>, key: &str) -> Option<(&'a str, &'a Registered)> {
    let mut end = 0;
    let mut found = None;
    // Longest match: a custom resource's `group/plural/` never begins another resource's prefix, but be exact.
    for _ in 0..3 {
        end += key[end..].find('/')? + 1;
        if let Some((prefix, registered)) = resources.get_key_value(&key[..end]) {
            found = Some((prefix.as_str(), registered));
            break;
        }
    }
    found
}

fn render_page(skip: usize, renderer: &dyn Renderer, items: Vec<KeyValue>) -> Vec<CachedObject> {
    items
        .iter()
        .filter_map(|kv| {
            let key: Arc<str> = std::str::from_utf8(&kv.key).ok()?[skip..].into();
            Some(render(key, renderer, &kv.value, kv.mod_revision.0, EventKind::Added))
        })
        .collect()
}

fn render(key: Arc<str>, renderer: &dyn Renderer, value: &[u8], revision: i64, kind: EventKind) -> CachedObject {
    match renderer.render(value, revision) {
        Ok(rendered) => CachedObject::new(key, revision, kind, rendered),
        Err(why) => CachedObject::broken(key, revision, why),
    }
}

fn change_of(key: &str, renderer: &dyn Renderer, event: &Event) -> (EventKind, CachedObject) {
    let key: Arc<str> = key.into();
    let revision = event.revision().0;
    match event {
        Event::Put { kv, prev } => {
            let kind = if prev.is_some() { EventKind::Modified } else { EventKind::Added };
            (kind, render(key, renderer, &kv.value, revision, kind))
        }
        Event::Delete { prev, .. } => {
            let object = match prev {
                Some(prev) => render(key, renderer, &prev.value, revision, EventKind::Deleted),
                None => CachedObject::broken(key, revision, "the deleted value is gone".into()),
            };
            (EventKind::Deleted, object)
        }
    }
}

/// Follows the store until the hub is dropped. After a gap that the store cannot replay, everything is loaded anew.
async fn feed(hub: std::sync::Weak<Hub>, mut after: Revision) {
    loop {
        let Some(store) = hub.upgrade().map(|h| h.store.clone()) else { return };
        let Some(root) = hub.upgrade().map(|h| h.root.clone()) else { return };
        match store.watch(WatchRequest::new(KeyRange::prefix(root), after)).await {
            Ok(watch) => {
                if let Some(hub) = hub.upgrade() {
                    *hub.control.write().expect("no panic under this lock") = Some(watch.control());
                }
                after = follow(&hub, watch, after).await;
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "cannot watch the store"),
        }
        let Some(hub) = hub.upgrade() else { return };
        // Lagging behind is resumed by the next watch; what is compacted is not, and only a list tells.
        let replayable = store.stats().await.map(|s| s.compacted <= after);
        if !matches!(replayable, Ok(true)) {
            let _feeding = hub.feeding.lock().await;
            match (store.current_revision().await, hub.reload_all().await) {
                (Ok(revision), Ok(())) => {
                    after = revision;
                    hub.applied.send_replace(revision.0);
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(%error, "cannot list the store");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

/// Applies batches until the watch ends; answers the last revision applied.
async fn follow(hub: &std::sync::Weak<Hub>, mut watch: crate::Watch, mut after: Revision) -> Revision {
    let mut trim = tokio::time::interval(TRIM);
    loop {
        let next = tokio::select! {
            next = watch.next() => next,
            _ = trim.tick() => {
                let Some(hub) = hub.upgrade() else { return after };
                for registered in hub.resources.read().expect("no panic under this lock").values() {
                    registered.cache.trim();
                }
                continue;
            }
        };
        let Some(hub) = hub.upgrade() else { return after };
        match next {
            Some(Ok(batch)) => {
                after = after.max(batch.revision);
                let _feeding = hub.feeding.lock().await;
                hub.apply(batch);
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "the store's watch ended");
                return after;
            }
            None => return after,
        }
    }
}
