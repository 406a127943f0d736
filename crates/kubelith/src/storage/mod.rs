//! The stores that the options name, opened, cached, watched over and counted.

mod by_route;
mod encryption_metrics;
mod etcd_metrics;
pub mod live_backup;
mod metered;
mod metrics;

use crate::access::metrics::hash;
use crate::blueprint::Blueprint;
use crate::failure::Failure;
use crate::options::{Options, StorageBackend, StorageOptions};
use kubelith_catalog::Catalog;
use kubelith_companion as companion;
use kubelith_meta::{Clock, GroupResource};
use kubelith_observe::metrics::Metrics;
use kubelith_server::health::{Check, HealthChecks};
use kubelith_server::lifecycle::{PostStartHook, Tasks};
use kubelith_store::cache::{Hub, HubOptions, Inheritance, Malformed, Past};
use kubelith_store::embedded::{EmbeddedOptions, EmbeddedStore, Fsync};
use kubelith_store::encryption::{Encryption, Keyring, LegacyKms, ReloadMode, Reloaded, Transformers};
use kubelith_store::etcd::{EtcdCounts, EtcdOptions, EtcdStore};
use kubelith_store::{HistoryLimits, KeyLayout, MemorySnapshot, MemoryStore, Store, StoreError};
use kubelith_system::sockets;
pub use metrics::CountObjects;

use encryption_metrics::EncryptionMetrics;
use metered::MeteredStore;
use metrics::StorageMetrics;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An etcd may take this long to come up, whatever the flag says: as long as kube-apiserver tries to connect.
const LEAST_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks for a store that does not answer.
const RETRY: Duration = Duration::from_millis(250);

/// The folder of the embedded store below the data folder.
const STORE: &str = "store";

/// The folder of the embedded store.
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE)
}

/// What a store begins with.
pub struct Begin {
    pub clock: Arc<dyn Clock>,
    /// A fork of another server's store, for the backend in memory.
    pub store: Option<MemoryStore>,
    /// Its caches.
    pub inheritance: Inheritance,
    /// What the server is called among those of its cluster.
    pub server_id: String,
}

/// A store whose state can be taken, copied and put back: this server has it for itself.
#[derive(Clone)]
pub enum Kept {
    Memory(MemoryStore),
    Embedded(EmbeddedStore),
}

impl Kept {
    pub async fn snapshot(&self) -> Result<MemorySnapshot, StoreError> {
        match self {
            Kept::Memory(store) => Ok(store.snapshot()),
            Kept::Embedded(store) => MemorySnapshot::read(store).await,
        }
    }

    /// Makes everything as it was then; watches see what changes by it.
    pub async fn reset(&self, then: &MemorySnapshot) -> Result<(), StoreError> {
        match self {
            Kept::Memory(store) => store.reset(then).map(drop),
            Kept::Embedded(store) => then.write_to(store).await,
        }
    }

    /// Looks for what has expired, after a clock was turned.
    pub fn tick(&self) {
        if let Kept::Memory(store) = self {
            store.tick();
        }
    }
}

/// All storage of the server.
pub struct Storage {
    /// The caches of the main store; some resources may live in others ([`Hub::of`]).
    pub hub: Arc<Hub>,
    /// Where everything is kept, if it can be copied.
    pub kept: Option<Kept>,
    /// The caches of all stores, the main one first.
    pub hubs: Vec<Arc<Hub>>,
    /// Whose object a key is.
    pub layout: Arc<KeyLayout>,
    /// The main store, then those of `--etcd-servers-overrides`.
    stores: Vec<Arc<dyn Store>>,
    /// The main store, if it is embedded, and its folder.
    pub embedded: Option<(PathBuf, EmbeddedStore)>,
    encryption: Option<Arc<Encryption>>,
    metrics: Arc<StorageMetrics>,
    health_timeout: Duration,
    ready_timeout: Duration,
    size_interval: Duration,
}

impl Storage {
    pub async fn open(
        options: &Options,
        catalog: &Catalog,
        blueprint: &Blueprint,
        metrics: &Metrics,
        begin: Begin,
    ) -> Result<Storage, Failure> {
        let storage = &options.storage;
        let layout = blueprint.layout(catalog, &root(&storage.etcd_prefix));
        let server = hash(begin.server_id.as_bytes());
        let observer = Arc::new(EncryptionMetrics::new(&metrics.registry, layout.clone(), &server));
        let metrics = Arc::new(StorageMetrics::new(&metrics.registry, layout.clone(), &server));
        let legacy = match options.features.enabled("KMSv1") {
            true => LegacyKms::Allowed,
            false => LegacyKms::Refused,
        };
        let encryption = load_encryption(storage, legacy, observer).await?;
        let hub_options = HubOptions {
            encryption: encryption.clone().map(|e| Arc::new(Keyring::new(layout.clone(), e)) as Arc<dyn Transformers>),
            malformed: match options.features.enabled("AllowUnsafeMalformedObjectDeletion") {
                true => Malformed::Deletable,
                false => Malformed::Reported,
            },
            past: match storage.backend {
                StorageBackend::Embedded | StorageBackend::Companion => Past::Replayed,
                StorageBackend::Memory | StorageBackend::Etcd3 => Past::Forgotten,
            },
            lifetimes: BTreeMap::from([("events".to_owned(), storage.event_ttl)]),
            inheritance: begin.inheritance,
            ..HubOptions::new(layout.root())
        };
        let metered = |store| Arc::new(MeteredStore::new(store, layout.clone(), metrics.clone())) as Arc<dyn Store>;
        let embedded = match storage.backend {
            StorageBackend::Embedded | StorageBackend::Companion => {
                Some(open_embedded(options, begin.clock.clone()).await?)
            }
            StorageBackend::Memory | StorageBackend::Etcd3 => None,
        };
        let history = history_limits(options);
        let memory = begin.store.unwrap_or_else(|| MemoryStore::with_clock(history, begin.clock.clone()));
        let kept = match (&embedded, storage.backend) {
            _ if !storage.etcd_overrides.is_empty() => None,
            (Some((_, store)), _) => Some(Kept::Embedded(store.clone())),
            (None, StorageBackend::Etcd3) => None,
            (None, _) => Some(Kept::Memory(memory.clone())),
        };
        let main: Arc<dyn Store> = match (&embedded, storage.backend) {
            (Some((_, store)), _) => Arc::new(store.clone()),
            (None, StorageBackend::Etcd3) => open_etcd(options, &storage.etcd_servers, &metrics).await?,
            (None, _) => Arc::new(memory.clone()),
        };
        let main = metered(main);
        let hub = Hub::start_with(main.clone(), hub_options.clone()).await.map_err(|error| match &embedded {
            Some((folder, _)) => Failure::of_store(&error, folder),
            None => error.to_string().into(),
        })?;
        let mut stores = vec![main];
        let mut hubs = vec![hub.clone()];
        for (servers, resources) in &storage.etcd_overrides {
            let store = metered(open_etcd(options, servers, &metrics).await?);
            let options = HubOptions { past: Past::Forgotten, ..hub_options.clone() };
            let other = Hub::start_with(store.clone(), options).await.map_err(|e| e.to_string())?;
            for resource in resources {
                if let Some(prefix) = prefix_of(catalog, resource) {
                    hub.delegate(prefix, other.clone());
                }
            }
            stores.push(store);
            hubs.push(other);
        }
        metrics.follow(&hubs, storage.count_objects);
        Ok(Storage {
            hub,
            kept,
            hubs,
            layout,
            stores,
            embedded,
            encryption,
            metrics,
            health_timeout: storage.health_timeout,
            ready_timeout: storage.ready_timeout,
            size_interval: storage.size_interval,
        })
    }

    /// The checks that kube-apiserver has of its etcd, whatever the store is, and of KMS plugins.
    pub fn add_checks(&self, checks: &mut HealthChecks) {
        for (i, store) in self.stores.iter().enumerate() {
            let (health, ready) = match i {
                0 => ("etcd".to_owned(), "etcd-readiness".to_owned()),
                n => (format!("etcd-override-{}", n - 1), format!("etcd-override-readiness-{}", n - 1)),
            };
            checks.add(store_check(health, store, self.health_timeout).in_group("etcd"));
            checks.add_readyz(store_check(ready, store, self.ready_timeout).in_group("etcd-readiness"));
        }
        for check in self.encryption.iter().flat_map(Encryption::health_checks) {
            let check = Check::new(check.name(), move || {
                let check = check.clone();
                async move { check.check().await }
            });
            checks.healthz.push(check.clone());
            checks.add_readyz(check);
        }
    }

    /// Waits until what was stored before has been checked, which goes on while the caches are loaded from it.
    pub fn checked(&self) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let embedded = self.embedded.clone();
        async move {
            let Some((folder, store)) = embedded else { return Ok(()) };
            store.settled().await.map_err(|error| Failure::of_store(&error, &folder))
        }
    }

    /// What starts with the server: following the encryption file.
    pub fn hooks(&self) -> Vec<PostStartHook> {
        let Some(encryption) = self.encryption.clone() else { return Vec::new() };
        self.metrics.encryption_loaded(&encryption.config_hash());
        if !encryption.reloads() {
            return Vec::new();
        }
        let (metrics, hubs) = (self.metrics.clone(), self.hubs.clone());
        vec![PostStartHook::new("start-encryption-provider-config-automatic-reload", move |context| async move {
            let tasks = context.tasks.clone();
            context.tasks.spawn_until_stopped("encryption-config", async move {
                let told = encryption.clone();
                let tell = move |outcome: &Result<Reloaded, String>| {
                    metrics.encryption_reloaded(outcome, &told.config_hash());
                    if outcome.is_ok() {
                        tasks.spawn_until_stopped("encryption-reread", reread(hubs.clone()));
                    }
                };
                encryption.follow_file(tell).await;
            });
            Ok(())
        })]
    }

    /// Measures the size of the stores from time to time, and writes backups when asked to.
    pub fn spawn(&self, tasks: &Tasks) {
        if let Some((folder, store)) = self.embedded.clone().filter(|_| sockets::SUPPORTED) {
            tasks.spawn_until_stopped("live-backup", live_backup::serve(folder, store));
        }
        let (stores, metrics, interval) = (self.stores.clone(), self.metrics.clone(), self.size_interval);
        if interval.is_zero() {
            return;
        }
        tasks.spawn_until_stopped("storage-size", async move {
            loop {
                for (i, store) in stores.iter().enumerate() {
                    if let Ok(stats) = store.stats().await {
                        metrics.size(i, stats.size);
                    }
                }
                tokio::time::sleep(interval).await;
            }
        });
    }

    /// Finishes the writes under way and releases files and connections.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        let stores = self.stores.clone();
        async move {
            for store in stores {
                store.close().await;
            }
        }
    }
}

fn store_check(name: String, store: &Arc<dyn Store>, timeout: Duration) -> Check {
    let store = store.clone();
    Check::new(name, move || {
        let store = store.clone();
        async move {
            match tokio::time::timeout(timeout, store.health()).await {
                Ok(health) => health.map_err(|error| format!("error getting data from etcd: {error}")),
                Err(_) => Err("error getting data from etcd: context deadline exceeded".into()),
            }
        }
    })
}

/// The caches have what the providers before could read.
async fn reread(hubs: Vec<Arc<Hub>>) {
    for hub in hubs {
        if let Err(why) = hub.reread().await {
            tracing::error!(%why, "what is encrypted was not read again");
        }
    }
}

async fn load_encryption(
    options: &StorageOptions,
    legacy: LegacyKms,
    observer: Arc<EncryptionMetrics>,
) -> Result<Option<Arc<Encryption>>, String> {
    let Some(path) = &options.encryption_config else { return Ok(None) };
    let mode = if options.encryption_reload { ReloadMode::OnChange } else { ReloadMode::Once };
    Encryption::load_observed(path, mode, legacy, observer).await.map(Some)
}

/// The past that a store in memory keeps may take an eighth of what the process may use.
fn history_limits(options: &Options) -> HistoryLimits {
    const PART: u64 = 8;
    let usual = kept_history(options);
    let budget = options.generic.memory_budget;
    HistoryLimits { bytes: budget.map_or(usual.bytes, |budget| usual.bytes.min(budget / PART)), ..usual }
}

/// As long as the past would stay in etcd; within its bound of bytes, if that is for ever.
fn kept_history(options: &Options) -> HistoryLimits {
    const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    HistoryLimits { age: options.storage.etcd_compaction_interval.unwrap_or(FOR_EVER), ..HistoryLimits::default() }
}

async fn open_embedded(options: &Options, clock: Arc<dyn Clock>) -> Result<(PathBuf, EmbeddedStore), Failure> {
    let (folder, sync) = match &options.storage.companion {
        Some(companion) => (folder(&companion.folder), companion.sync),
        None => (folder(&options.data_dir), companion::Fsync::Always),
    };
    let mut embedded = EmbeddedOptions::new(folder.clone());
    embedded.clock = clock;
    embedded.history = kept_history(options);
    embedded.sync = match sync {
        companion::Fsync::Always => Fsync::Always,
        companion::Fsync::Never => Fsync::Never,
    };
    embedded.progress = Some(Arc::new(|part: f64| {
        tracing::info!(percent = (part * 100.0) as u32, "checking the data file");
    }));
    // Opening reads and locks files: not on a thread that serves.
    let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open_early(embedded));
    let store = opened.await.map_err(|e| e.to_string())?.map_err(|e| Failure::of_store(&e, &folder))?;
    Ok((folder, store))
}

/// Waits for an etcd that is late. What it answers does not matter here.
async fn await_etcd(options: &Options, servers: &[String], counts: &Arc<EtcdCounts>) -> Result<(), String> {
    by_route::check_files(&options.storage.etcd_tls)?;
    let usual = by_route::etcd_options(options, servers, counts.clone());
    let once = EtcdOptions { compaction_interval: None, patience: Duration::ZERO, ..usual };
    let store = EtcdStore::new(once).map_err(|e| e.to_string())?;
    let patience = options.storage.initialization_timeout.max(LEAST_PATIENCE);
    let end = tokio::time::Instant::now() + patience;
    let mut last = String::new();
    loop {
        match tokio::time::timeout_at(end, store.current_revision()).await {
            Ok(Err(StoreError::Unavailable(why) | StoreError::TimedOut(why)))
                if tokio::time::Instant::now() + RETRY < end =>
            {
                if why != last {
                    tracing::warn!(err = why, "the store does not answer, will be tried again");
                }
                last = why;
            }
            Ok(Err(StoreError::Unavailable(why) | StoreError::TimedOut(why))) => {
                return Err(format!("context deadline exceeded: {why}"));
            }
            Err(_) => return Err(format!("context deadline exceeded: {last}")),
            Ok(_) => return Ok(()),
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn open_etcd(options: &Options, servers: &[String], metrics: &StorageMetrics) -> Result<Arc<dyn Store>, String> {
    let counts = metrics.etcd();
    await_etcd(options, servers, counts).await?;
    Ok(Arc::new(EtcdStore::new(by_route::etcd_options(options, servers, counts.clone())).map_err(|e| e.to_string())?))
}

fn prefix_of<'a>(catalog: &'a Catalog, resource: &GroupResource) -> Option<&'a str> {
    let mut stored = catalog.descriptors.iter().filter(|d| d.storage.keeps_objects());
    stored.find(|d| d.group_resource() == *resource).map(|d| d.storage.prefix.as_str())
}

/// `--etcd-prefix` with slashes at both ends.
fn root(prefix: &str) -> String {
    format!("/{}/", prefix.trim_matches('/'))
}
