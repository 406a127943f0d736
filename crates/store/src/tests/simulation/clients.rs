//! Those who use the store and the caches: each draws on its own what it does, and tells the model what it was told.

use super::model::{Change, Listed, Model, Told, Watched, change_of, colour, text};
use crate::cache::{CachedObject, EventKind, Hub, Interest, Rendered, Renderer, ResourceCache, Scope};
use crate::random::Random;
use crate::{
    EmbeddedStore, Expect, KeyRange, Previous, RangeRequest, Revision, Store, StoreError, Watch, WatchError,
    WatchRequest,
};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

pub const ROOT: &str = "/r/";
pub const RESOURCES: [&str; 2] = ["maps", "pods"];
const COLOURS: [char; 3] = ['r', 'g', 'b'];
/// After an error, before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// What all clients of one life of the process share.
#[derive(Clone)]
pub struct Site {
    pub store: EmbeddedStore,
    pub model: Arc<Mutex<Model>>,
    pub clock: Arc<kubelith_meta::time::TestClock>,
    /// Tells values of one life from those of another.
    pub life: u64,
}

/// Stored text is the object; its colour is a label.
pub struct Texts;

impl Renderer for Texts {
    fn render(&self, value: &[u8], revision: i64) -> Result<Rendered, String> {
        let text = std::str::from_utf8(value).map_err(|e| e.to_string())?;
        let json = format!(r#"{{"metadata":{{"name":"{text}","resourceVersion":"{revision}"}}}}"#).into_bytes();
        let labels = colour(text).map(|colour| ("colour".into(), colour.to_string().into()));
        Ok(Rendered { json, labels: labels.into_iter().collect(), ..Rendered::default() })
    }
}

/// The text that was stored.
fn stored(object: &CachedObject) -> String {
    let json = text(&object.json());
    json.split('"').nth(5).unwrap_or_default().to_owned()
}

impl Site {
    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("no panic while the model is locked")
    }

    pub fn now(&self) -> u64 {
        crate::limits::now_millis(&*self.clock)
    }

    /// Runs an operation; most to the end, some are given up after a few turns.
    async fn operation<T>(&self, random: &mut Random, operation: impl Future<Output = T>) -> Option<T> {
        let mut patience = if random.one_in(10) { random.below(4) } else { usize::MAX };
        self.model().begins();
        let mut operation = pin!(operation);
        let answer = std::future::poll_fn(|cx| match operation.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if patience == 0 => Poll::Ready(None),
            Poll::Pending => {
                patience -= 1;
                Poll::Pending
            }
        })
        .await;
        self.model().ends();
        answer
    }

    /// Writes, deletes and compacts.
    pub async fn write(self, client: u64, mut random: Random, operations: usize) {
        for n in 0..operations {
            let key = key(&mut random);
            match random.below(20) {
                0 => self.compact(&mut random).await,
                1 => drop(self.operation(&mut random, self.store.tick()).await),
                2..6 => self.delete(key, &mut random).await,
                _ => {
                    let filler = if random.one_in(12) { 5000 } else { random.below(300) };
                    let colour = random.pick(&COLOURS);
                    let value = format!("{colour}{client}.{}.{n}{}", self.life, "-".repeat(filler));
                    self.put(key, value, &mut random).await;
                }
            }
        }
    }

    async fn expectation(&self, key: &str, random: &mut Random) -> Expect {
        match random.below(6) {
            0 => Expect::Absent,
            1 | 2 => match self.store.get(key.to_owned().into(), None).await {
                Ok(found) => Expect::At(found.item.map(|kv| kv.mod_revision).unwrap_or_default()),
                Err(_) => Expect::Any,
            },
            _ => Expect::Any,
        }
    }

    async fn put(&self, key: String, value: String, random: &mut Random) {
        let expect = self.expectation(&key, random).await;
        let ttl = random.one_in(5).then(|| Duration::from_secs(1 + random.below(4) as u64));
        let deadline = ttl.map(|ttl| self.now() + ttl.as_millis() as u64);
        self.model().asks_put(&key, &value, deadline);
        let floor = self.model().known();
        let put = self.store.put(key.clone().into(), value.clone().into(), expect, ttl);
        match self.operation(random, put).await {
            Some(Ok(revision)) => {
                self.model().acknowledged(revision.0, Change { key, value: Some(value) }, expect, floor);
            }
            Some(Err(error)) => self.refused(error).await,
            None => {}
        }
    }

    async fn delete(&self, key: String, random: &mut Random) {
        let expect = self.expectation(&key, random).await;
        self.model().asks_delete(&key);
        let floor = self.model().known();
        let delete = self.store.delete(key.clone().into(), expect);
        match self.operation(random, delete).await {
            Some(Ok(deleted)) => {
                let mut model = self.model();
                model.observe_value(&deleted.previous);
                model.acknowledged(deleted.revision.0, Change { key, value: None }, expect, floor);
            }
            Some(Err(error)) => self.refused(error).await,
            None => {}
        }
    }

    async fn refused(&self, error: StoreError) {
        match error {
            StoreError::Conflict { current } => current.iter().for_each(|kv| self.model().observe_value(kv)),
            StoreError::Corrupt(why) => self.model().violate(format!("corrupt: {why}")),
            _ => tokio::time::sleep(PAUSE).await,
        }
    }

    async fn compact(&self, random: &mut Random) {
        // Nothing of which nobody has heard yet.
        let revision = self.model().known() - random.below(4) as i64;
        drop(self.operation(random, self.store.compact(Revision(revision))).await);
    }

    /// Lists the store, now or as it was, in pages.
    pub async fn list(self, mut random: Random, operations: usize) {
        for _ in 0..operations {
            let prefix = prefix(&mut random);
            let floor = self.model().known();
            let at = random.one_in(3).then(|| floor - random.below(6) as i64);
            let limit = random.pick(&[0, 1, 2]);
            match self.operation(&mut random, self.pages(&prefix, at, limit)).await {
                Some(Ok(list)) => self.model().listed(list, at.unwrap_or(floor)),
                Some(Err(StoreError::Compacted { .. } | StoreError::FutureRevision { .. })) => {}
                Some(Err(error)) => self.refused(error).await,
                None => {}
            }
        }
    }

    async fn pages(&self, prefix: &str, at: Option<i64>, limit: usize) -> crate::Result<Listed> {
        let mut list =
            Listed { what: "a list", prefix: prefix.to_owned(), revision: at.unwrap_or_default(), items: vec![] };
        let mut request = RangeRequest::prefix(prefix.to_owned()).limit(limit);
        request.at = at.map(Revision);
        loop {
            let page = self.store.range(request.clone()).await?;
            let at = *request.at.get_or_insert(page.revision);
            list.revision = at.0;
            list.items.extend(page.items.iter().map(|kv| (text(&kv.key), kv.mod_revision.0, text(&kv.value))));
            let Some(last) = page.items.last().filter(|_| page.more) else { return Ok(list) };
            let next: Vec<u8> = last.key.iter().copied().chain([0]).collect();
            request.range = request.range.from(next);
        }
    }

    /// Watches the store, from now or from the past.
    pub async fn watch(self, mut random: Random) {
        loop {
            let known = self.model().known();
            let after = known - if random.one_in(2) { random.below(8) as i64 } else { 0 };
            let previous = random.pick(&[Previous::Include, Previous::Omit]);
            let prefix = prefix(&mut random);
            let request = WatchRequest::new(KeyRange::prefix(prefix.clone()), Revision(after)).previous(previous);
            let Ok(watch) = self.store.watch(request).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let watched =
                Watched { what: "a watch of the store", prefix, after, complete: after, ..Watched::default() };
            let number = self.model().watches(watched);
            let turns = if random.one_in(2) { random.below(6) } else { usize::MAX };
            self.follow(watch, number, previous, turns).await;
            self.model().ended(number);
        }
    }

    async fn follow(&self, mut watch: Watch, number: usize, previous: Previous, turns: usize) {
        for _ in 0..turns {
            match watch.next().await {
                Some(Ok(batch)) => {
                    let mut model = self.model();
                    for event in &batch.events {
                        let before = (previous == Previous::Include).then(|| event.prev().map(|kv| kv.mod_revision.0));
                        let told = Told { revision: event.revision().0, change: change_of(event), previous: before };
                        model.told_by(number, told, 0);
                    }
                    model.completed(number, batch.revision.0);
                }
                Some(Err(WatchError::Store(StoreError::Corrupt(why)))) => {
                    return self.model().violate(format!("a watch is told: {why}"));
                }
                Some(Err(WatchError::Compacted { .. })) => return,
                _ => return tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Reads the caches, now or as they were.
    pub async fn read_cached(
        self,
        hub: Arc<Hub>,
        caches: Vec<Arc<ResourceCache>>,
        mut random: Random,
        operations: usize,
    ) {
        for _ in 0..operations {
            let floor = self.model().known();
            if !matches!(self.operation(&mut random, hub.fresh()).await, Some(Ok(_))) {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let applied = hub.applied();
            for (resource, cache) in RESOURCES.iter().zip(&caches) {
                let snapshot = cache.snapshot();
                // One that was filled a moment ago may be further than the others.
                let revision = applied.max(snapshot.revision);
                self.model().listed(cached(resource, &snapshot, revision), floor);
                let then = applied - random.below(6) as i64;
                if let Ok(snapshot) = cache.snapshot_at(then) {
                    self.model().listed(cached(resource, &snapshot, then), 0);
                }
            }
        }
    }

    /// Watches a cache, and goes on from any revision that it heard of.
    pub async fn watch_cached(
        self,
        hub: Arc<Hub>,
        resource: &'static str,
        cache: Arc<ResourceCache>,
        mut random: Random,
    ) {
        let mut heard = vec![cache.snapshot().revision];
        loop {
            let after = heard[random.below(heard.len())];
            let (interest, prefix, colour) = interest(resource, &mut random);
            let Ok(mut watcher) = cache.watch(interest, after) else {
                if hub.fresh().await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
                heard = vec![cache.snapshot().revision];
                continue;
            };
            let watched = Watched { what: "a watch of the cache", prefix, colour, after, ..Watched::default() };
            let number = self.model().watches(watched);
            let turns = if random.one_in(2) { random.below(6) } else { usize::MAX };
            for _ in 0..turns {
                let mut events = Vec::new();
                if watcher.next(&mut events).await.is_err() {
                    heard.clear();
                    break;
                }
                for event in events {
                    let value = (event.kind != EventKind::Deleted).then(|| stored(&event.object));
                    let key = format!("{ROOT}{resource}/{}", event.object.key);
                    let previous = Some(event.prev.as_ref().map(|prev| prev.revision));
                    let told = Told { revision: event.revision, change: Change { key, value }, previous };
                    self.model().told_by(number, told, 0);
                    heard.push(event.revision);
                }
            }
            self.model().ended(number);
            if heard.is_empty() {
                heard.push(cache.snapshot().revision);
            }
        }
    }
}

fn cached(resource: &str, snapshot: &crate::cache::Snapshot, revision: i64) -> Listed {
    let prefix = format!("{ROOT}{resource}/");
    let items = snapshot.objects.values().map(|o| (format!("{prefix}{}", o.key), o.revision, stored(o))).collect();
    Listed { what: "a cached list", prefix, revision, items }
}

fn key(random: &mut Random) -> String {
    if random.one_in(10) {
        return "/other".into();
    }
    format!("{}{}/{}", prefix(random), random.pick(&["n", "m"]), random.pick(&["a", "b"])).replace("//", "/")
}

fn prefix(random: &mut Random) -> String {
    format!("{ROOT}{}/", random.pick(&RESOURCES))
}

/// What a watch of a cache asks for, and the same in the model's terms.
fn interest(resource: &str, random: &mut Random) -> (Interest, String, Option<char>) {
    let all = format!("{ROOT}{resource}/");
    match random.below(5) {
        0 => (Scope::All.into(), all, None),
        1 => (Scope::Namespace("n".into()).into(), format!("{all}n/"), None),
        2 => (Scope::Key("n/a".into()).into(), format!("{all}n/a"), None),
        // What comes by two ways is told once.
        3 => {
            let both = vec![Scope::Namespace("n".into()), Scope::Key("n/a".into())];
            (Interest::in_any(both), format!("{all}n/"), None)
        }
        _ => {
            let colour = random.pick(&COLOURS);
            let value = colour.to_string().into();
            (Scope::Label { namespace: "".into(), key: "colour".into(), value }.into(), all, Some(colour))
        }
    }
}
