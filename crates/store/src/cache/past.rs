//! What the store itself still has of the past, for those who ask how an object came to be. The caches keep less of it, and nothing
//! over a restart where the store is shared.

use super::directory::Registered;
use super::hub::Hub;
use super::load::{self, Loading};
use super::object::{CachedObject, EventKind};
use super::replay::PastEvents;
use crate::{
    Event, KeyRange, KeyValue, Previous, ProgressRequests, Result, Revision, StoreError, WatchError, WatchRequest,
};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Values that are held at a time while the past is read; older ones are left out.
const MAX_BYTES: usize = 16 << 20;
/// A store that takes longer tells nothing.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What is asked for may be compacted while it is asked for.
const ATTEMPTS: usize = 3;
/// A store that was asked how far it is, is asked again this often.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// A state of an object.
#[derive(Debug)]
pub struct PastVersion {
    pub kind: EventKind,
    /// That made it so; of what was deleted, as it was last.
    pub object: CachedObject,
}

/// Changes in the order of their revisions, the oldest of which go when they are too many.
struct Kept {
    events: VecDeque<Event>,
    bytes: usize,
    limit: usize,
}

impl Kept {
    /// Calls `dropped` with those that go.
    fn push(&mut self, event: Event, mut dropped: impl FnMut(Event)) {
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > self.limit || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.weight();
            dropped(oldest);
        }
    }
}

impl Hub {
    /// The last states of one object that the store has, newest first. `prefix` is one of [`Hub::caches`], `key` is below it.
    pub async fn past_of(&self, prefix: &str, key: &str, limit: usize) -> Result<Vec<PastVersion>> {
        let Some(registered) = self.registered(prefix) else { return Ok(Vec::new()) };
        let key = Bytes::from(format!("{prefix}{key}"));
        let mut kept = Kept { events: VecDeque::new(), bytes: 0, limit };
        self.events(KeyRange::key(key.clone()), |event| kept.push(event, drop)).await?;
        let mut states: Vec<(EventKind, KeyValue)> = kept.events.iter().rev().filter_map(state).collect();
        // What was before the first change, or all there is without one.
        let before = match kept.events.front() {
            Some(event) => event.prev().cloned(),
            None => self.values.raw.get(key, None).await?.item,
        };
        if let Some(kv) = before.filter(|_| states.len() < limit) {
            let kind = if kv.create_revision == kv.mod_revision { EventKind::Added } else { EventKind::Modified };
            states.push((kind, kv));
        }
        Ok(self.read_states(prefix, &registered, states).await)
    }

    /// Objects below `prefix` that are gone, as they were last, newest first.
    pub async fn past_deletions(&self, prefix: &str, limit: usize) -> Result<Vec<PastVersion>> {
        let Some(registered) = self.registered(prefix) else { return Ok(Vec::new()) };
        // Of those that are kept: there may be any number of others.
        let mut gone: HashMap<Bytes, Revision> = HashMap::new();
        let mut kept = Kept { events: VecDeque::new(), bytes: 0, limit };
        self.events(KeyRange::prefix(prefix.to_owned()), |event| {
            if matches!(event, Event::Delete { .. }) {
                gone.insert(event.key().clone(), event.revision());
                kept.push(event, |dropped| {
                    if gone.get(dropped.key()) == Some(&dropped.revision()) {
                        gone.remove(dropped.key());
                    }
                });
            } else {
                gone.remove(event.key());
            }
        })
        .await?;
        let is_gone = |event: &&Event| gone.get(event.key()) == Some(&event.revision());
        let states = kept.events.iter().rev().filter(is_gone).filter_map(state).collect();
        Ok(self.read_states(prefix, &registered, states).await)
    }

    /// Lets watches of a resource begin after a revision that its cache has forgotten or never seen, if the store still has all that
    /// happened since, and the cache has room for it.
    pub async fn recall(&self, prefix: &str, after: i64) -> Result<()> {
        let Some(registered) = self.directory.get(&format!("{prefix}/")) else { return Ok(()) };
        let until = registered.cache.horizon();
        if after >= until {
            return Ok(());
        }
        let prefix = self.key_prefix(prefix);
        let (mut events, mut bytes, mut reached) = (Vec::new(), 0, Revision(after));
        let mut take = |event: Event| {
            bytes += event.weight();
            if bytes <= MAX_BYTES {
                events.push(event);
            }
        };
        let range = KeyRange::prefix(prefix.clone());
        let reading = self.events_after(&range, Revision(after), Revision(until), &mut reached, &mut take);
        tokio::time::timeout(TIMEOUT, reading).await.map_err(|_| too_slow())??;
        if bytes <= MAX_BYTES {
            let objects = registered.cache.snapshot().objects;
            let loading = Loading { hub: self, prefix, registered: &registered };
            let past = loading.past(PastEvents { after: Revision(after), events }, &objects).await;
            registered.cache.remember(past, after, until);
        }
        Ok(())
    }

    fn registered(&self, prefix: &str) -> Option<Registered> {
        let below = prefix.strip_prefix(&self.directory.root)?;
        self.directory.resources().get(below).cloned()
    }

    async fn read_states(
        &self,
        prefix: &str,
        registered: &Registered,
        states: Vec<(EventKind, KeyValue)>,
    ) -> Vec<PastVersion> {
        let mut versions = Vec::with_capacity(states.len());
        for (kind, kv) in states {
            let transformer = self.values.transformers.of(&kv.key);
            let object = load::read(&transformer, &*registered.renderer, prefix.len(), &kv, kind).await;
            versions.extend(object.filter(|object| object.broken.is_none()).map(|object| PastVersion { kind, object }));
        }
        versions
    }

    /// All changes of a range that the store still has, until now.
    async fn events(&self, range: KeyRange, mut take: impl FnMut(Event)) -> Result<()> {
        let mut after = self.values.raw.stats().await?.compacted;
        let until = self.values.raw.current_revision().await?;
        let mut reached = after;
        for _ in 0..ATTEMPTS {
            let reading = self.events_after(&range, after, until, &mut reached, &mut take);
            match tokio::time::timeout(TIMEOUT, reading).await.map_err(|_| too_slow())? {
                // Whatever was taken stays: it goes on from there, or from what is left.
                Err(StoreError::Compacted { compacted }) => after = compacted.max(reached),
                done => return done,
            }
        }
        Ok(())
    }

    async fn events_after(
        &self,
        range: &KeyRange,
        after: Revision,
        until: Revision,
        reached: &mut Revision,
        take: &mut impl FnMut(Event),
    ) -> Result<()> {
        if after >= until {
            return Ok(());
        }
        // Where progress cannot be relied on, only changes tell how far the store is: then all are read, for each revision is one.
        let tells = self.values.raw.progress_requests() == ProgressRequests::Trusted;
        let read = if tells { range.clone() } else { KeyRange::all() };
        let request = WatchRequest::new(read, after).previous(Previous::Include);
        let mut watch = self.values.raw.watch(request).await?;
        if tells {
            watch.control().request_progress();
        }
        while *reached < until {
            let batch = match tokio::time::timeout(ASK_AGAIN, watch.next()).await {
                Ok(Some(Ok(batch))) => batch,
                Ok(Some(Err(WatchError::Store(error)))) => return Err(error),
                Ok(Some(Err(WatchError::Compacted { compacted }))) => return Err(StoreError::Compacted { compacted }),
                Ok(Some(Err(WatchError::Closed)) | None) => return Err(StoreError::Closed),
                Err(_) => {
                    watch.control().request_progress();
                    continue;
                }
            };
            *reached = batch.revision;
            let wanted = |event: &Event| event.revision() <= until && range.contains(event.key());
            batch.events.into_iter().filter(wanted).for_each(&mut *take);
        }
        Ok(())
    }
}

fn too_slow() -> StoreError {
    StoreError::Unavailable("the store did not tell its past in time".into())
}

/// What a change made of an object; `None` where it is not known any more.
fn state(event: &Event) -> Option<(EventKind, KeyValue)> {
    match event {
        Event::Put { kv, .. } => {
            let kind = if event.has_previous() { EventKind::Modified } else { EventKind::Added };
            Some((kind, kv.clone()))
        }
        Event::Delete { revision, prev, .. } => {
            Some((EventKind::Deleted, KeyValue { mod_revision: *revision, ..prev.clone()? }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{HubOptions, Rendered, Renderer, Scope};
    use crate::{
        Deleted, EmbeddedOptions, EmbeddedStore, Expect, GetResponse, MemoryStore, RangeRequest, RangeResponse, Store,
        StoreStats, Watch, WatchControl,
    };
    use futures::StreamExt;
    use futures::future::BoxFuture;
    use std::sync::Arc;

    struct Texts;

    impl Renderer for Texts {
        fn render(&self, value: &[u8], _: i64) -> std::result::Result<Rendered, String> {
            let text = String::from_utf8_lossy(value);
            let labels = [("is".into(), text.as_ref().into())];
            Ok(Rendered { labels: labels.into(), ..Rendered::default() })
        }
    }

    async fn write(store: &dyn Store) {
        for (name, value) in [("n/a", "1"), ("n/b", "1"), ("n/a", "2"), ("n/a", ""), ("n/b", "2"), ("n/a", "3")] {
            let key = Bytes::from(format!("/r/maps/{name}"));
            match value {
                "" => drop(store.delete(key, Expect::Any).await.unwrap()),
                value => drop(store.put(key, value.to_owned().into(), Expect::Any, None).await.unwrap()),
            }
        }
        store.delete("/r/maps/n/b".into(), Expect::Any).await.unwrap();
    }

    fn told(versions: &[PastVersion]) -> Vec<String> {
        let text = |v: &PastVersion| format!("{:?} {} {}", v.kind, v.object.key, v.object.labels[0].1);
        versions.iter().map(text).collect()
    }

    async fn look(store: Arc<dyn Store>) -> [Vec<String>; 3] {
        let hub = Hub::start_with(store, HubOptions::new("/r/")).await.unwrap();
        hub.register("maps", None, Arc::new(Texts)).await.unwrap();
        let past = [
            told(&hub.past_of("/r/maps/", "n/a", 10).await.unwrap()),
            told(&hub.past_of("/r/maps/", "n/b", 2).await.unwrap()),
            told(&hub.past_deletions("/r/maps/", 10).await.unwrap()),
        ];
        hub.stop();
        past
    }

    fn all() -> [Vec<String>; 3] {
        let own = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        [
            own(&["Added n/a 3", "Deleted n/a 2", "Modified n/a 2", "Added n/a 1"]),
            own(&["Deleted n/b 2", "Modified n/b 2"]),
            own(&["Deleted n/b 2"]),
        ]
    }

    #[tokio::test]
    async fn the_store_tells_what_it_has() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        write(&*store).await;
        assert_eq!(look(store.clone()).await, all());
        // What was compacted is gone, but for what each object was then.
        let now = store.current_revision().await.unwrap();
        store.compact(now).await.unwrap();
        let [a, b, gone] = look(store).await;
        assert_eq!((a, b, gone), (vec!["Added n/a 3".to_owned()], Vec::new(), Vec::new()));
    }

    /// A store that tells nothing of its progress, and takes its time.
    struct Slow(MemoryStore);

    impl Store for Slow {
        fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
            self.0.get(key, at)
        }

        fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
            self.0.range(request)
        }

        fn put(&self, k: Bytes, v: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
            self.0.put(k, v, expect, ttl)
        }

        fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
            self.0.delete(key, expect)
        }

        fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
            Box::pin(async move {
                let (batches, _) = self.0.watch(request).await?.into_parts();
                let late = batches.then(|batch| async {
                    tokio::time::sleep(2 * ASK_AGAIN).await;
                    batch
                });
                Ok(Watch::new(late.boxed(), WatchControl::new(|| ())))
            })
        }

        fn current_revision(&self) -> BoxFuture<'_, Result<Revision>> {
            self.0.current_revision()
        }

        fn progress_requests(&self) -> ProgressRequests {
            ProgressRequests::Unsupported
        }

        fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>> {
            self.0.compact(revision)
        }

        fn stats(&self) -> BoxFuture<'_, Result<StoreStats>> {
            self.0.stats()
        }

        fn health(&self) -> BoxFuture<'_, Result<()>> {
            self.0.health()
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            self.0.close()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_not_taken_for_its_end() {
        let store: Arc<dyn Store> = Arc::new(Slow(MemoryStore::default()));
        write(&*store).await;
        // The end of what is asked for is not the end of all.
        store.put("/r/others/x".into(), "1".into(), Expect::Any, None).await.unwrap();
        assert_eq!(look(store).await, all());
    }

    #[tokio::test]
    async fn watches_begin_in_what_the_store_has() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        write(&*store).await;
        let hub = Hub::start_with(store.clone(), HubOptions::new("/r/")).await.unwrap();
        let cache = hub.register("maps", None, Arc::new(Texts)).await.unwrap();
        let now = store.current_revision().await.unwrap();
        let after = now.0 - 4;
        assert!(cache.watch(Scope::All, after).is_err());
        hub.recall("maps", after).await.unwrap();
        assert!(cache.watch(Scope::All, after - 1).is_err());
        let mut everything = cache.watch(Scope::All, after).unwrap();
        let mut one = cache.watch(Scope::Key("n/b".into()), after).unwrap();
        store.put("/r/maps/n/c".into(), "1".into(), Expect::Any, None).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 5 {
            everything.next(&mut seen).await.unwrap();
        }
        let told = |events: &[Arc<crate::cache::Event>]| {
            let text = |e: &Arc<crate::cache::Event>| format!("{:?} {} {}", e.kind, e.object.key, e.revision - after);
            events.iter().map(text).collect::<Vec<_>>()
        };
        let want = ["Deleted n/a 1", "Modified n/b 2", "Added n/a 3", "Deleted n/b 4", "Added n/c 5"];
        assert_eq!(told(&seen), want);
        let mut of_one = Vec::new();
        one.next(&mut of_one).await.unwrap();
        assert_eq!(told(&of_one), ["Modified n/b 2", "Deleted n/b 4"]);
        // The state of then is there, too, and what was compacted is not.
        assert_eq!(cache.snapshot_at(after).unwrap().objects.len(), 2);
        store.compact(Revision(after - 1)).await.unwrap();
        assert!(matches!(hub.recall("maps", after - 2).await, Err(StoreError::Compacted { .. })));
        assert!(cache.watch(Scope::All, after).is_ok());
        hub.stop();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_does_so_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let open = || Arc::new(EmbeddedStore::open(EmbeddedOptions::new(path.clone())).unwrap());
        let store = open();
        write(&*store).await;
        store.close().await;
        drop(store);
        assert_eq!(look(open()).await, all());
    }
}
