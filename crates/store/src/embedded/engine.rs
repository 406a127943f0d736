//! Opening the database below: the checks that come before anything is served, and a consistent view of it.

use super::disk::{Disk, WatchedBackend};
use super::overlay::Overlay;
use super::schema::{EXPIRING, FORMAT_KEY, FORMAT_VERSION, MARKS, META, RECORDS, STATE_KEY, StateRow, VERSIONS};
use super::snapshot::Snapshot;
use crate::error::{Result, StoreError};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableError};
use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Told while opening takes long: the part done so far, from 0 to 1.
pub type LoadProgress = Arc<dyn Fn(f64) + Send + Sync>;

/// Opening says nothing for this long, and then no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Engine {
    pub db: Database,
    pub state: StateRow,
    sync_failed: Arc<AtomicBool>,
}

/// A data file that is read and not written to.
pub(super) struct Preview {
    pub engine: Engine,
    /// Whether its pages were compared with their checksums: that is done to open a file that was not closed in order.
    pub is_checked: bool,
}

impl Engine {
    /// Opens or makes the database, checking every page of it first.
    pub fn open(disk: &dyn Disk, cache_bytes: usize, progress: Option<LoadProgress>) -> Result<Engine> {
        caught(|| {
            if let Some(file) = existing(disk)? {
                check_pages(file, cache_bytes, progress.clone())?;
            }
            Engine::open_inner(disk, cache_bytes, progress)
        })
    }

    /// The same for a file whose pages were checked just now.
    pub fn open_checked(disk: &dyn Disk, cache_bytes: usize, progress: Option<LoadProgress>) -> Result<Engine> {
        caught(|| Engine::open_inner(disk, cache_bytes, progress))
    }

    /// Opens what was there before for reading only; `None` if there was nothing.
    pub fn preview(disk: &dyn Disk, cache_bytes: usize, progress: Option<LoadProgress>) -> Result<Option<Preview>> {
        caught(|| {
            let Some(file) = existing(disk)? else { return Ok(None) };
            let overlay = Overlay::over(file).map_err(opening)?;
            let repaired = Arc::new(AtomicBool::new(false));
            let builder = builder(cache_bytes, progress, repaired.clone());
            let db = builder.create_with_backend(overlay).map_err(open_failure)?;
            let acked = disk.acked().map_err(opening)?;
            let Some(state) = read_state(&db)? else { return Err(lost(acked, "the data file has no state".into())) };
            let engine = Engine { db, state, sync_failed: Arc::default() }.with_acked(acked)?;
            Ok(Some(Preview { engine, is_checked: repaired.load(Ordering::SeqCst) }))
        })
    }

    fn open_inner(disk: &dyn Disk, cache_bytes: usize, progress: Option<LoadProgress>) -> Result<Engine> {
        let acked = disk.acked().map_err(opening)?;
        let inner = disk.open().map_err(opening)?;
        let is_new = Arc::new(AtomicBool::new(inner.len().map_err(opening)? == 0));
        let sync_failed = Arc::new(AtomicBool::new(false));
        let backend = WatchedBackend { inner, sync_failed: sync_failed.clone(), is_new: is_new.clone() };
        let db = builder(cache_bytes, progress, Arc::default()).create_with_backend(backend).map_err(|error| {
            match sync_failed.load(Ordering::SeqCst) {
                // What the next attempt would read is perhaps not on the disk, and never will be.
                true => StoreError::Poisoned(format!("opening the data file: {error}")),
                false => open_failure(error),
            }
        })?;
        let state = match read_state(&db)? {
            Some(state) => state,
            None if acked > 0 => return Err(lost(acked, "the data file has no state".into())),
            None => initialize(&db)?,
        };
        let engine = Engine { db, state, sync_failed }.with_acked(acked)?;
        is_new.store(false, Ordering::SeqCst);
        Ok(engine)
    }

    /// This engine, if it has all that was acknowledged.
    fn with_acked(self, acked: u64) -> Result<Engine> {
        if self.state.revision < acked {
            return Err(lost(acked, format!("the data ends at revision {}", self.state.revision)));
        }
        Ok(self)
    }

    /// Keeps older releases from misreading what is written from now on.
    pub fn mark_format(&self) -> Result<()> {
        let txn = self.db.begin_read().map_err(failure)?;
        if read_format(&txn.open_table(META).map_err(failure)?)? == FORMAT_VERSION {
            return Ok(());
        }
        let txn = self.db.begin_write().map_err(failure)?;
        let format = FORMAT_VERSION.to_le_bytes();
        txn.open_table(META).map_err(failure)?.insert(FORMAT_KEY, &format[..]).map_err(failure)?;
        txn.commit().map_err(failure)
    }

    pub fn sync_failed(&self) -> bool {
        self.sync_failed.load(Ordering::SeqCst)
    }

    /// A view of the last commit.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let txn = self.db.begin_read().map_err(failure)?;
        let versions = txn.open_table(VERSIONS).map_err(failure)?;
        let records = txn.open_table(RECORDS).map_err(failure)?;
        let expiring = txn.open_table(EXPIRING).map_err(failure)?;
        Ok(Snapshot { state: self.state, versions, records, expiring, _held: None })
    }
}

/// The engine below trusts its pages and can panic on a damaged file.
fn caught<T>(open: impl FnOnce() -> Result<T>) -> Result<T> {
    let opened = std::panic::catch_unwind(AssertUnwindSafe(open));
    opened.unwrap_or_else(|panic| Err(StoreError::Corrupt(panic_text(&*panic))))
}

/// The data file, if something is in it.
fn existing(disk: &dyn Disk) -> Result<Option<Box<dyn StorageBackend>>> {
    let file = disk.open().map_err(opening)?;
    let acked = disk.acked().map_err(opening)?;
    match file.len().map_err(opening)? {
        0 if acked > 0 => Err(lost(acked, "the data file is empty".into())),
        0 => Ok(None),
        _ => Ok(Some(file)),
    }
}

fn opening(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("opening the data file: {error}"))
}

/// Passes progress on once it has been going for a second, and then once a second.
pub(super) struct ThrottledProgress {
    progress: LoadProgress,
    told: Mutex<Instant>,
}

impl From<LoadProgress> for ThrottledProgress {
    fn from(progress: LoadProgress) -> ThrottledProgress {
        ThrottledProgress { progress, told: Mutex::new(Instant::now()) }
    }
}

impl ThrottledProgress {
    pub fn tell(&self, part: f64) {
        let mut told = self.told.lock().expect("no panic while locked");
        if told.elapsed() >= PROGRESS_EVERY {
            *told = Instant::now();
            drop(told);
            (self.progress)(part);
        }
    }
}

fn builder(cache_bytes: usize, progress: Option<LoadProgress>, repaired: Arc<AtomicBool>) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache_bytes);
    let progress = progress.map(ThrottledProgress::from);
    builder.set_repair_callback(move |session| {
        repaired.store(true, Ordering::SeqCst);
        if let Some(progress) = &progress {
            progress.tell(session.progress());
        }
    });
    builder
}

/// Reads every page and compares checksums, without changing the file. A flipped bit in an index would
/// otherwise just hide a key.
pub(super) fn check_pages(
    file: Box<dyn StorageBackend>,
    cache_bytes: usize,
    progress: Option<LoadProgress>,
) -> Result<()> {
    let overlay = Overlay::over(file).map_err(|error| StoreError::Unavailable(format!("data file: {error}")))?;
    let overlay = overlay.telling(progress);
    let repaired = Arc::new(AtomicBool::new(false));
    let mut db = builder(cache_bytes, None, repaired.clone()).create_with_backend(overlay).map_err(open_failure)?;
    // Opening after a crash has compared the checksums already.
    if !repaired.load(Ordering::SeqCst) && !db.check_integrity().map_err(open_failure)? {
        return Err(StoreError::Corrupt("pages of the data file do not match their checksums".into()));
    }
    Ok(())
}

fn lost(acked: u64, found: String) -> StoreError {
    StoreError::Corrupt(format!(
        "writes up to revision {acked} were acknowledged, but {found}; restore a backup, or remove the file \
         'acked' beside the data to go on without them"
    ))
}

fn read_state(db: &Database) -> Result<Option<StateRow>> {
    let txn = db.begin_read().map_err(failure)?;
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(failure(error)),
    };
    let format = read_format(&meta)?;
    if format > FORMAT_VERSION {
        return Err(StoreError::NewerFormat { found: format, supported: FORMAT_VERSION });
    }
    match meta.get(STATE_KEY).map_err(failure)? {
        Some(state) => Ok(Some(StateRow::decode(state.value())?)),
        None => Err(StoreError::Corrupt("the data file has no state".into())),
    }
}

fn read_format(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<u64> {
    let Some(format) = meta.get(FORMAT_KEY).map_err(failure)? else {
        return Err(StoreError::Corrupt("the data file has no format version".into()));
    };
    let format =
        format.value().try_into().map_err(|_| StoreError::Corrupt("the format version is not a number".into()))?;
    Ok(u64::from_le_bytes(format))
}

/// Makes the tables of a new store.
pub(super) fn initialize(db: &Database) -> Result<StateRow> {
    let txn = db.begin_write().map_err(failure)?;
    {
        txn.open_table(VERSIONS).map_err(failure)?;
        txn.open_table(RECORDS).map_err(failure)?;
        txn.open_table(EXPIRING).map_err(failure)?;
        txn.open_table(MARKS).map_err(failure)?;
        let mut meta = txn.open_table(META).map_err(failure)?;
        meta.insert(FORMAT_KEY, &FORMAT_VERSION.to_le_bytes()[..]).map_err(failure)?;
        meta.insert(STATE_KEY, &StateRow::NEW.encode()[..]).map_err(failure)?;
    }
    txn.commit().map_err(failure)?;
    Ok(StateRow::NEW)
}

pub(super) fn open_failure(error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Locked("the data file".into()),
        DatabaseError::UpgradeRequired(version) => {
            StoreError::Invalid(format!("the data file has the layout {version}, which this release cannot read"))
        }
        DatabaseError::Storage(redb::StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            StoreError::Corrupt(format!("this is not a data file: {error}"))
        }
        DatabaseError::Storage(redb::StorageError::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            StoreError::Corrupt(format!("the data file is cut off: {error}"))
        }
        error => failure(error),
    }
}

/// An error of the engine below in this crate's terms.
pub(super) fn failure(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Io(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            StoreError::NoSpace(error.to_string())
        }
        redb::Error::Io(error) => StoreError::Unavailable(format!("disk: {error}")),
        redb::Error::PreviousIo => StoreError::Unavailable("disk: an earlier operation failed".into()),
        redb::Error::DatabaseClosed => StoreError::Unavailable("the data file is being opened again".into()),
        redb::Error::Corrupted(text) => StoreError::Corrupt(text),
        error => StoreError::Corrupt(error.to_string()),
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into())
}
