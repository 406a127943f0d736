//! One watch on the whole store feeds the caches of all resources, in revision order. So every cache is
//! complete up to one revision, and a consistent read is: ask the store for its revision, wait for the feed to get there.

use super::directory::{Directory, Registered};
use super::feed;
use super::freshness::Freshness;
use super::inheritance::Inheritance;
use super::load::{self, Loading};
use super::object::{CachedObject, Draft, Rendered};
use super::pending_writes::PendingWrites;
use super::recent::Recent;
use super::replay::Replay;
use super::resource::ResourceCache;
use super::snapshot::Objects;
use crate::encryption::{EncryptedStore, Transformers, Unconfigured};
use crate::offload::Offload;
use crate::{Result, Revision, Store, StoreError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

/// Turns stored bytes into what readers get. One per resource.
pub trait Renderer: Send + Sync {
    fn render(&self, value: &[u8], revision: i64) -> std::result::Result<Rendered, String>;
}

/// How a store is cached.
#[derive(Clone)]
pub struct HubOptions {
    /// Everything below this key prefix is watched. It ends with a slash.
    pub root: String,
    /// What values go through on their way to the store and back; `None` if nothing is encrypted.
    pub encryption: Option<Arc<dyn Transformers>>,
    pub malformed: Malformed,
    pub past: Past,
    /// How long objects live, by the prefix of their resource without slashes at its ends: events.
    pub lifetimes: BTreeMap<String, Duration>,
    /// What the caches begin with, over a store that was forked.
    pub inheritance: Inheritance,
}

impl HubOptions {
    pub fn new(root: impl Into<String>) -> HubOptions {
        HubOptions {
            root: root.into(),
            encryption: None,
            malformed: Malformed::default(),
            past: Past::default(),
            lifetimes: BTreeMap::new(),
            inheritance: Inheritance::default(),
        }
    }
}

/// Whether admission of other writes reads an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBy {
    /// Admission may, so that a write waits until the cache has seen it.
    Admission,
    /// Admission does not; only clients do.
    Clients,
}

/// What can be done about objects that cannot be read: the gate AllowUnsafeMalformedObjectDeletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing; reading them is an internal error.
    #[default]
    Reported,
    /// They are told apart, and can be deleted unseen.
    Deletable,
}

/// What the caches know of the time before the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Past {
    /// Nothing: watches begin at the start or later.
    #[default]
    Forgotten,
    /// What the store has kept, so that watches go on over a restart.
    Replayed,
}

/// The caches of one store.
pub struct Hub {
    pub(super) values: Values,
    pub(super) directory: Directory,
    pub(super) freshness: Freshness,
    /// What this server is writing.
    pub(super) pending_writes: PendingWrites,
    /// What it wrote lately.
    pub(super) recent: Recent,
    pub(super) beginnings: Beginnings,
    malformed: Malformed,
    /// Held while a cache is loaded or a batch is applied, so that the two cannot interleave.
    pub(super) feeding: AsyncMutex<()>,
    task: Mutex<Option<JoinHandle<()>>>,
    pub(super) offload: Offload,
}

/// The store and what its values go through.
pub(super) struct Values {
    /// As it is.
    pub raw: Arc<dyn Store>,
    /// As everybody else sees it: with values in the clear.
    clear: Arc<dyn Store>,
    pub transformers: Arc<dyn Transformers>,
    encrypts: bool,
    /// Resources, by key prefix, whose values were encrypted when they were read.
    encrypted: Mutex<BTreeSet<String>>,
}

impl Values {
    fn new(raw: Arc<dyn Store>, encryption: Option<Arc<dyn Transformers>>) -> Values {
        let encrypts = encryption.is_some();
        let transformers = encryption.unwrap_or_else(|| Arc::new(Unconfigured::default()));
        let clear = match encrypts {
            true => Arc::new(EncryptedStore::new(raw.clone(), transformers.clone())) as Arc<dyn Store>,
            false => raw.clone(),
        };
        Values { raw, clear, transformers, encrypts, encrypted: Mutex::default() }
    }

    /// Whether the values of a resource are encrypted, or were before.
    fn is_encrypted(&self, slashed: &str, root: &str) -> bool {
        if !self.encrypts {
            return false;
        }
        let now = !self.transformers.of(format!("{root}{slashed}").as_bytes()).is_identity_only();
        let mut encrypted = self.encrypted.lock().expect("no panic under this lock");
        let before = if now { !encrypted.insert(slashed.to_owned()) } else { encrypted.remove(slashed) };
        now || before
    }
}

/// What the first load of a cache may begin with.
pub(super) struct Beginnings {
    pub replay: Mutex<Replay>,
    pub inheritance: Mutex<Inheritance>,
}

impl Hub {
    /// Starts the feed of a store without encryption.
    pub async fn start(store: Arc<dyn Store>, root: &str) -> Result<Arc<Hub>> {
        Hub::start_with(store, HubOptions::new(root)).await
    }

    /// Starts the feed.
    pub async fn start_with(raw: Arc<dyn Store>, options: HubOptions) -> Result<Arc<Hub>> {
        let (hub, feed) = Hub::assemble(raw, options, Offload::Threads).await?;
        *hub.task.lock().expect("no panic under this lock") = Some(tokio::spawn(feed));
        Ok(hub)
    }

    /// The hub and its feed, which somebody has to run.
    pub(crate) async fn assemble(
        raw: Arc<dyn Store>,
        options: HubOptions,
        offload: Offload,
    ) -> Result<(Arc<Hub>, impl Future<Output = ()> + Send + 'static)> {
        let (replay, revision) = match options.past {
            Past::Forgotten => (Replay::default(), raw.current_revision().await?),
            Past::Replayed => Replay::read(&*raw, &options.root).await?,
        };
        let hub = Arc::new(Hub {
            values: Values::new(raw, options.encryption),
            directory: Directory::new(options.root, options.lifetimes),
            freshness: Freshness::new(revision.0),
            pending_writes: PendingWrites::default(),
            recent: Recent::default(),
            beginnings: Beginnings { replay: Mutex::new(replay), inheritance: Mutex::new(options.inheritance) },
            malformed: options.malformed,
            feeding: AsyncMutex::default(),
            task: Mutex::default(),
            offload,
        });
        let feed = feed::feed(Arc::downgrade(&hub), revision);
        Ok((hub, feed))
    }

    /// The store, with values in the clear.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.values.clear
    }

    pub fn malformed(&self) -> Malformed {
        self.malformed
    }

    /// Makes another hub that of a resource.
    pub fn delegate(&self, prefix: &str, other: Arc<Hub>) {
        self.directory.delegate(prefix, other);
    }

    /// The hub of a resource: this one, unless it lives elsewhere.
    pub fn of(self: &Arc<Self>, prefix: &str) -> Arc<Hub> {
        self.directory.elsewhere(prefix).unwrap_or_else(|| self.clone())
    }

    /// How long the objects of a resource live after each write; `None` for ever.
    pub fn lifetime(&self, prefix: &str) -> Option<Duration> {
        self.directory.lifetime(prefix)
    }

    /// The full key prefix of a resource.
    pub fn key_prefix(&self, prefix: &str) -> String {
        format!("{}{prefix}/", self.directory.root)
    }

    /// Whether the value of a key is not stored as it would be written today. What the cache holds does not
    /// tell: providers change while it runs.
    pub async fn is_stale(&self, key: Bytes) -> Result<bool> {
        if !self.values.encrypts || self.values.transformers.of(&key).is_identity_only() {
            return Ok(false);
        }
        Ok(self.values.clear.get(key, None).await?.item.is_some_and(|kv| kv.stale))
    }

    /// Values as they are stored, for [`Hub::read`]: one that cannot be decrypted must not fail the others.
    pub async fn range_as_stored(&self, request: crate::RangeRequest) -> Result<crate::RangeResponse> {
        self.values.raw.range(request).await
    }

    /// Makes an object of stored bytes, broken if need be.
    pub async fn read(&self, renderer: &dyn Renderer, skip: usize, kv: &crate::KeyValue) -> Option<CachedObject> {
        let transformer = self.values.transformers.of(&kv.key);
        load::read(&transformer, renderer, skip, kv, super::EventKind::Added).await
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
        let slashed = [prefix, "/"].concat();
        if let Some(known) = self.directory.get(&slashed) {
            return Ok(known.cache);
        }
        let inherited = self.beginnings.inheritance.lock().expect("no panic under this lock").take(&slashed);
        let registered = match inherited.filter(|cache| cache.indexed_field() == indexed_field) {
            Some(cache) => Registered { cache: cache.own(), renderer },
            None => {
                let registered = Registered { cache: Arc::new(ResourceCache::new(indexed_field)), renderer };
                self.load(&slashed, &registered).await?;
                registered
            }
        };
        let cache = registered.cache.clone();
        self.directory.insert(slashed, registered);
        Ok(cache)
    }

    /// Replaces the renderer of a resource and renders its objects anew: a custom resource whose schema changed.
    /// Its watchers end with "too old".
    pub async fn replace_renderer(&self, prefix: &str, renderer: Arc<dyn Renderer>) -> Result<()> {
        let _feeding = self.feeding.lock().await;
        let slashed = format!("{prefix}/");
        let Some(known) = self.directory.get(&slashed) else { return Ok(()) };
        let registered = Registered { renderer, ..known };
        self.load(&slashed, &registered).await?;
        self.directory.insert(slashed, registered);
        Ok(())
    }

    /// Stops caching a resource. Its watchers end.
    pub async fn unregister(&self, prefix: &str) {
        let _feeding = self.feeding.lock().await;
        if let Some(removed) = self.directory.remove(&format!("{prefix}/")) {
            removed.cache.load(Objects::new(), self.applied());
        }
    }

    /// The caches by their full key prefixes, in the order of these.
    pub fn caches(&self) -> Vec<(String, Arc<ResourceCache>)> {
        let resources = self.directory.resources();
        let full = |prefix: &String| [self.directory.root.as_str(), prefix].concat();
        let mut all: Vec<_> = resources.iter().map(|(prefix, r)| (full(prefix), r.cache.clone())).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The revision up to which all caches are complete.
    pub fn applied(&self) -> i64 {
        self.freshness.applied()
    }

    /// Times that the store said how far it is, with nothing new: to all caches at once.
    pub fn notices(&self) -> u64 {
        self.freshness.notices.load(Ordering::Relaxed)
    }

    /// The revision that the next write gets if no other comes first.
    pub fn next_revision(&self) -> i64 {
        self.applied().max(self.freshness.written()) + 1
    }

    /// Notes the object that a write will read as.
    pub fn add_pending_write(&self, key: Bytes, value: Bytes, draft: Arc<Draft>) {
        self.pending_writes.put(key, value, draft);
    }

    /// The write failed.
    pub fn drop_pending_write(&self, key: &Bytes) {
        self.pending_writes.forget(key);
    }

    /// Objects that this server wrote lately.
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Notes a write of this server.
    pub fn wrote(&self, revision: i64, read_by: ReadBy) {
        self.freshness.wrote(revision, read_by);
    }

    /// Waits until the caches hold what this server has written by now. Asks the store nothing: what other servers write
    /// may come later.
    pub async fn caught_up(&self) -> bool {
        self.wait_for(self.freshness.written()).await
    }

    /// As `caught_up`, for objects that admission reads; of others there is always one more under way.
    pub async fn caught_up_for_admission(&self) -> bool {
        self.wait_for(self.freshness.written_for_admission()).await
    }

    /// Waits until the caches have reached `revision`; false if that takes too long.
    pub async fn wait_for(&self, revision: i64) -> bool {
        self.freshness.wait_for(revision).await
    }

    /// Waits until the caches hold every write acknowledged before this call, and answers the revision.
    pub async fn fresh(&self) -> Result<i64> {
        let revision = self.values.raw.current_revision().await?.0;
        if self.wait_for(revision).await {
            return Ok(self.applied().max(revision));
        }
        Err(StoreError::Unavailable("the cache did not reach the store's revision in time".into()))
    }

    /// The caches as they are at `revision`, for a hub over a store that was forked there. Those that went on meanwhile are left
    /// out: they are read from the store.
    pub async fn bequeath(&self, revision: i64) -> Inheritance {
        if !self.wait_for(revision).await {
            return Inheritance::default();
        }
        let resources = self.directory.resources();
        let still = resources.iter().filter_map(|(prefix, r)| {
            let copy = r.cache.fork();
            (copy.stats().revision <= revision).then(|| (prefix.clone(), copy))
        });
        Inheritance::new(still)
    }

    /// Lets go of everything that the caches hold, once nobody is served any more: renderers know the server, which knows
    /// this hub.
    pub fn clear(&self) {
        self.stop();
        self.directory.clear();
        self.freshness.follow(None);
        *self.beginnings.inheritance.lock().expect("no panic under this lock") = Inheritance::default();
    }

    /// Ends the feed. Readers keep what they have.
    pub fn stop(&self) {
        if let Some(task) = self.task.lock().expect("no panic under this lock").take() {
            task.abort();
        }
    }

    /// Reads what is encrypted again, with the providers that there are now: what nobody can decrypt any more is broken, and what
    /// somebody can is not. Nobody is told, for the objects are what they were.
    pub async fn reread(&self) -> Result<()> {
        let root = &self.directory.root;
        let all: Vec<_> = self.directory.resources().iter().map(|(p, r)| (p.clone(), r.clone())).collect();
        for (slashed, registered) in all {
            if self.values.is_encrypted(&slashed, root) {
                let loading = Loading { hub: self, prefix: format!("{root}{slashed}"), registered: &registered };
                let (objects, _) = loading.objects(None).await?;
                registered.cache.reread(&objects);
            }
        }
        Ok(())
    }

    /// Under `feeding`: reads a resource and, if it is the first time, what is known of its past.
    pub(super) async fn load(&self, slashed: &str, registered: &Registered) -> Result<()> {
        self.values.is_encrypted(slashed, &self.directory.root);
        let past = self.beginnings.replay.lock().expect("no panic under this lock").take(slashed);
        // A past is known up to what was applied, so the present must be the same revision.
        let at = past.is_some().then(|| Revision(self.applied()));
        let loading = Loading { hub: self, prefix: format!("{}{slashed}", self.directory.root), registered };
        let (objects, revision) = loading.objects(at).await?;
        match past {
            None => registered.cache.load(objects, revision.0),
            Some(past) => {
                let horizon = past.after.0;
                let changes = loading.past(past, &objects).await;
                registered.cache.load_with_past(objects, revision.0, changes, horizon);
            }
        }
        Ok(())
    }
}
