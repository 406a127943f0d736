//! The embedded engine: durable, ordered storage in one file, for one process.
//!
//! Acknowledged means on disk. One thread writes ([`writer`]): it applies everything that waits and makes one
//! commit, with one sync, for all of it. Readers work on the snapshot of the last commit and never wait for
//! the writer. A failed sync poisons the store. A full disk refuses writes until there is room.

mod batch;
mod checksum;
mod disk;
mod engine;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
mod maintain;
mod marks;
mod opening;
mod overlay;
mod portable;
mod queue;
mod schema;
mod snapshot;
mod writer;

pub use disk::Disk;
pub use engine::LoadProgress;
pub use maintain::{CheckReport, FolderStats, ResourceStats, backup, check, restore, stats};
pub use portable::{Entry, export, import};

use crate::error::{Result, StoreError};
use crate::hub::{History, HistoryChunk, WatchHub, WatchLimits};
use crate::limits::HistoryLimits;
use crate::model::{Deleted, Expect, GetResponse, KeyRange, RangeRequest, RangeResponse, Revision, StoreStats};
use crate::offload::Offload;
use crate::traits::Store;
use crate::watch::{Watch, WatchError, WatchRequest};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use disk::FolderDisk;
use engine::Engine;
use futures::future::BoxFuture;
use kubelith_meta::Clock;
use kubelith_meta::time::SystemClock;
use kubelith_system::process;
use opening::Unsettled;
use queue::{Queue, Request, Waiting};
use snapshot::Snapshot;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
pub(crate) use writer::Writer;

/// Bytes of requests that may wait for the writer; later ones wait to get into the queue.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Longer keys are refused. etcd takes any; Kubernetes' stay below 1,000.
const MAX_KEY_BYTES: usize = 32 << 10;
/// How long a read waits for the data file to be opened again after the disk was full.
const REOPEN_PATIENCE: Duration = Duration::from_secs(5);

/// Whether acknowledged means on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    Always,
    /// What was acknowledged outlives the process, however it ends, but not the machine: for tests of others.
    Never,
}

#[derive(Clone)]
pub struct EmbeddedOptions {
    /// The data folder. Made if it does not exist.
    pub folder: PathBuf,
    pub history: HistoryLimits,
    /// Pages that the engine keeps in memory. Objects are cached above, so a few megabytes do.
    pub cache_bytes: usize,
    /// Puts are refused while the disk has less room than this.
    pub reserve_bytes: u64,
    pub sync: Fsync,
    pub clock: Arc<dyn Clock>,
    /// Told when opening takes over a second.
    pub progress: Option<LoadProgress>,
}

impl EmbeddedOptions {
    pub fn new(folder: impl Into<PathBuf>) -> EmbeddedOptions {
        EmbeddedOptions {
            folder: folder.into(),
            history: HistoryLimits::default(),
            cache_bytes: 4 << 20,
            reserve_bytes: 64 << 20,
            sync: Fsync::Always,
            clock: Arc::new(SystemClock),
            progress: None,
        }
    }
}

/// Cloning shares the store. Dropping the last clone closes it.
#[derive(Clone)]
pub struct EmbeddedStore {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    waiting: Arc<Semaphore>,
}

/// What the writer and the callers share.
struct Shared {
    queue: Arc<Queue>,
    hub: Arc<WatchHub>,
    /// `None` once closed. Replaced under the hub's lock; see [`WatchHub::publish`].
    snapshot: ArcSwapOption<Snapshot>,
    status: Mutex<Status>,
    /// Whether the file was checked, and can be written to unless the status says otherwise.
    settled: watch::Sender<bool>,
    reopened: Notify,
    offload: Offload,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    limits: HistoryLimits,
    cache_bytes: usize,
    reserve_bytes: u64,
    progress: Option<LoadProgress>,
}

#[derive(Debug, Clone)]
enum Status {
    Open,
    Closed,
    Poisoned(String),
    /// What was opened for reading is damaged.
    Refused(StoreError),
}

impl Shared {
    fn new(
        disk: Arc<dyn Disk>,
        options: EmbeddedOptions,
        offload: Offload,
        watches: WatchLimits,
        snapshot: Snapshot,
    ) -> Arc<Shared> {
        let EmbeddedOptions { history, cache_bytes, reserve_bytes, clock, progress, .. } = options;
        Arc::new(Shared {
            queue: Arc::default(),
            hub: WatchHub::with(snapshot.state.revision(), watches),
            snapshot: ArcSwapOption::new(Some(Arc::new(snapshot))),
            status: Mutex::new(Status::Open),
            settled: watch::Sender::new(true),
            reopened: Notify::new(),
            offload,
            disk,
            clock,
            limits: history,
            cache_bytes,
            reserve_bytes,
            progress,
        })
    }

    fn check(&self) -> Result<()> {
        match &*self.status.lock().expect("no panic while the status is locked") {
            Status::Open => Ok(()),
            Status::Closed => Err(StoreError::Closed),
            Status::Poisoned(reason) => Err(StoreError::Poisoned(reason.clone())),
            Status::Refused(error) => Err(error.clone()),
        }
    }

    fn is_settled(&self) -> bool {
        *self.settled.borrow()
    }

    async fn wait_until_settled(&self) {
        // The sender is in here: it does not go.
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    fn is_open(&self) -> bool {
        self.check().is_ok()
    }

    /// The first reason to stop stays the reason.
    fn set_status(&self, new: Status) {
        let mut status = self.status.lock().expect("no panic while the status is locked");
        if matches!(*status, Status::Open) {
            *status = new;
        }
    }

    fn current(&self) -> Result<Arc<Snapshot>> {
        self.check()?;
        self.snapshot.load_full().ok_or(StoreError::Closed)
    }

    /// Runs a read on the newest snapshot, off the async threads: it may wait for the disk.
    async fn read<T, E>(
        &self,
        read: impl Fn(&Snapshot) -> std::result::Result<T, E> + Clone + Send + 'static,
    ) -> std::result::Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Reopening + Send + 'static,
    {
        loop {
            let reopened = self.reopened.notified();
            let snapshot = self.current()?;
            let (used, read) = (snapshot.clone(), read.clone());
            let was_settled = self.is_settled();
            let result = self.offload.call(move || read(&used)).await;
            if !was_settled && !matches!(result, Ok(Ok(_))) {
                // Perhaps the file is damaged. The check finds out how, and says it better.
                drop(snapshot);
                self.wait_until_settled().await;
                continue;
            }
            match result {
                // The snapshot belongs to a file that was opened again since, or is about to be.
                Ok(Err(error)) if error.is_reopening() => {
                    if self.current().is_ok_and(|now| !Arc::ptr_eq(&now, &snapshot)) {
                        continue;
                    }
                    if tokio::time::timeout(REOPEN_PATIENCE, reopened).await.is_err() {
                        return Err(error);
                    }
                }
                Ok(result) => return result,
                Err(panic) => return Err(StoreError::Corrupt(format!("reading failed: {panic}")).into()),
            }
        }
    }
}

/// Errors that a read gets while the data file is opened again.
trait Reopening {
    fn is_reopening(&self) -> bool;
}

impl Reopening for StoreError {
    fn is_reopening(&self) -> bool {
        matches!(self, StoreError::Unavailable(_))
    }
}

impl Reopening for WatchError {
    fn is_reopening(&self) -> bool {
        matches!(self, WatchError::Store(error) if error.is_reopening())
    }
}

impl EmbeddedStore {
    /// Locks the folder and opens what is in it. Blocks: the whole file is read and checked.
    pub fn open(options: EmbeddedOptions) -> Result<EmbeddedStore> {
        let disk = Arc::new(FolderDisk::lock(&options.folder)?.syncing(options.sync));
        EmbeddedStore::open_on(disk, options)
    }

    /// Opens the data of a disk that tests provide; `options.folder` is not looked at.
    pub fn open_on(disk: Arc<dyn Disk>, options: EmbeddedOptions) -> Result<EmbeddedStore> {
        let (store, writer) = EmbeddedStore::assemble(disk, options, Offload::Threads, WatchLimits::default())?;
        store.spawn(move || writer.run())?;
        Ok(store)
    }

    /// As [`EmbeddedStore::open`], but what was there before can be read at once, while it is still being checked. Writes wait for
    /// that, and nothing of what was read may be trusted before [`EmbeddedStore::settled`]. Blocks as long as a file that was
    /// not closed in order needs.
    pub fn open_early(options: EmbeddedOptions) -> Result<EmbeddedStore> {
        let disk = Arc::new(FolderDisk::lock(&options.folder)?.syncing(options.sync));
        EmbeddedStore::open_early_on(disk, options)
    }

    /// The same on a disk that tests provide.
    pub fn open_early_on(disk: Arc<dyn Disk>, options: EmbeddedOptions) -> Result<EmbeddedStore> {
        let Some(preview) = Engine::preview(&*disk, options.cache_bytes, options.progress.clone())? else {
            return EmbeddedStore::open_on(disk, options);
        };
        let (unsettled, snapshot) = Unsettled::new(preview)?;
        let shared = Shared::new(disk, options, Offload::Threads, WatchLimits::default(), snapshot);
        shared.settled.send_replace(false);
        let store = EmbeddedStore::over(shared.clone());
        store.spawn(move || unsettled.run(shared))?;
        Ok(store)
    }

    /// Waits until what was there before has been checked: the error says what is wrong with it.
    pub async fn settled(&self) -> Result<()> {
        self.handle.shared.wait_until_settled().await;
        self.handle.shared.check()
    }

    fn over(shared: Arc<Shared>) -> EmbeddedStore {
        let waiting = Arc::new(Semaphore::new(MAX_WAITING_BYTES));
        EmbeddedStore { handle: Arc::new(Handle { shared, writer: Mutex::default(), waiting }) }
    }

    fn spawn(&self, write: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(write)
            .map_err(|error| StoreError::Unavailable(format!("starting the writer: {error}")))?;
        *self.handle.writer.lock().expect("no panic while the writer is locked") = Some(thread);
        Ok(())
    }

    /// The store and its writer, which somebody has to run: a thread, or the simulation.
    pub(crate) fn assemble(
        disk: Arc<dyn Disk>,
        options: EmbeddedOptions,
        offload: Offload,
        watches: WatchLimits,
    ) -> Result<(EmbeddedStore, Writer)> {
        let engine = Engine::open(&*disk, options.cache_bytes, options.progress.clone())?;
        engine.mark_format()?;
        let shared = Shared::new(disk, options, offload, watches, engine.snapshot()?);
        let writer = Writer::new(shared.clone(), engine)?;
        Ok((EmbeddedStore::over(shared), writer))
    }

    /// Does what is due by the clock: expiry, compaction, sweeping. Happens by itself with the machine's
    /// clock; tests with a clock of their own call it.
    pub async fn tick(&self) -> Result<()> {
        self.send(|reply| Request::Tick { reply }).await
    }

    /// Writes what the store holds now to a new file, while it goes on serving. Answers the revision.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Result<Revision> {
        self.settled().await?;
        let snapshot = self.handle.shared.current()?;
        let to = to.into();
        let (reply, copied) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-backup".into()).spawn(move || {
            give_way();
            // Whoever asked may have left: the file is there all the same.
            let _ = reply.send(maintain::copy(&snapshot, &to));
        });
        thread.map_err(|error| StoreError::Unavailable(format!("starting the backup: {error}")))?;
        copied.await.map_err(|error| StoreError::Unavailable(format!("the backup ended early: {error}")))?
    }

    async fn send<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<std::result::Result<T, StoreError>>) -> Request,
    ) -> Result<T> {
        let shared = &self.handle.shared;
        shared.check()?;
        let (reply, answer) = oneshot::channel();
        let request = request(reply);
        let share = request.weight().clamp(1, MAX_WAITING_BYTES) as u32;
        let permit = self.handle.waiting.clone().acquire_many_owned(share).await.map_err(|_| StoreError::Closed)?;
        if !shared.queue.push(Waiting { request, _permit: Some(permit) }) {
            return Err(shared.check().err().unwrap_or(StoreError::Closed));
        }
        match answer.await {
            Ok(answer) => answer,
            // The writer went away with the request in its hands.
            Err(_) => Err(shared.check().err().unwrap_or(StoreError::Closed)),
        }
    }
}

/// Lets other threads go first.
fn give_way() {
    if let Err(error) = process::give_way() {
        tracing::debug!(%error, "the backup runs at the priority of the server");
    }
}

fn check_key(key: &Bytes) -> Result<()> {
    if key.is_empty() {
        return Err(StoreError::Invalid("the key is empty".into()));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(StoreError::TooLarge { size: key.len(), limit: MAX_KEY_BYTES });
    }
    Ok(())
}

impl Store for EmbeddedStore {
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>> {
        Box::pin(async move { self.handle.shared.read(move |snapshot| snapshot.get(key.clone(), at)).await })
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>> {
        Box::pin(async move { self.handle.shared.read(move |snapshot| snapshot.range(&request)).await })
    }

    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move {
            check_key(&key)?;
            if value.len() > MAX_WAITING_BYTES {
                return Err(StoreError::TooLarge { size: value.len(), limit: MAX_WAITING_BYTES });
            }
            self.send(|reply| Request::Put { key, value, expect, ttl, reply }).await
        })
    }

    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>> {
        Box::pin(async move {
            check_key(&key)?;
            self.send(|reply| Request::Delete { key, expect, reply }).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>> {
        Box::pin(async move {
            let shared = &self.handle.shared;
            shared.check()?;
            let history: Arc<dyn History> = shared.clone();
            shared.hub.watch(history, request)
        })
    }

    fn recent(&self, range: KeyRange, bytes: usize) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move { self.handle.shared.read(move |snapshot| snapshot.recent(&range, bytes)).await })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision>> {
        Box::pin(async move {
            self.handle.shared.check()?;
            Ok(self.handle.shared.hub.revision())
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.send(|reply| Request::Compact { revision, reply }).await })
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats>> {
        Box::pin(async move {
            let shared = &self.handle.shared;
            let state = shared.current()?.state;
            let size = shared.disk.size().map_err(|error| StoreError::Unavailable(error.to_string()))?;
            Ok(StoreStats {
                revision: state.revision(),
                compacted: state.compacted(),
                size,
                size_in_use: size,
                keys: Some(state.keys),
            })
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.settled())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (reply, closed) = oneshot::channel();
            if self.handle.shared.queue.push(Waiting { request: Request::Close { reply }, _permit: None }) {
                let _ = closed.await;
            }
        })
    }
}

impl History for Shared {
    fn read(
        &self,
        request: &WatchRequest,
        until: Revision,
    ) -> BoxFuture<'_, std::result::Result<HistoryChunk, WatchError>> {
        let request = request.clone();
        Box::pin(Shared::read(self, move |snapshot: &Snapshot| snapshot.history(&request, until)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        self.shared.queue.push(Waiting { request: Request::Close { reply }, _permit: None });
        if let Some(writer) = self.writer.lock().ok().and_then(|mut writer| writer.take()) {
            // Joined, so that the folder's lock is free when the last clone is gone.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests;
