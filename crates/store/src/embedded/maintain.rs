//! `store check | backup | restore | stats`: what an operator does with a data folder.
//!
//! Checking and counting never write: the file is read through an [`Overlay`].

use super::batch::Batch;
use super::disk::{Disk, FolderDisk, private};
use super::engine::{Engine, check_pages, failure, initialize, open_failure};
use super::overlay::Overlay;
use super::schema::{EXPIRING, META, RECORDS, Record, STATE_KEY, StateRow, VERSIONS};
use super::snapshot::Snapshot;
use crate::error::{Result, StoreError};
use crate::hub::WatchHub;
use crate::model::{Revision, StoreStats};
use kubelith_system::files;
use redb::{Database, Durability, StorageBackend, WriteTransaction};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Pages kept in memory while a folder is worked on.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes of records per transaction of a copy: bounds its memory, and what a sync of the store may have to wait for.
const COPY_STEP_BYTES: usize = 4 << 20;
/// Problems that a check lists; the rest is only counted.
const LISTED_PROBLEMS: usize = 100;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub stats: StoreStats,
    /// Versions of keys in the file, history included.
    pub versions: u64,
    /// One line each; the first hundred.
    pub problems: Vec<String>,
    pub problem_count: u64,
}

/// What a folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderStats {
    pub stats: StoreStats,
    pub history_versions: u64,
    /// By the first two segments of the key, `/registry/pods`.
    pub resources: BTreeMap<String, ResourceStats>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceStats {
    pub keys: u64,
    pub bytes: u64,
}

/// Reads everything in a folder that no process has open and compares it with itself.
pub fn check(folder: &Path) -> Result<CheckReport> {
    let reader = Reader::open(folder)?;
    let snapshot = reader.engine.snapshot()?;
    let mut report = CheckReport { stats: reader.stats()?, ..CheckReport::default() };
    let mut keys = 0;
    let mut last: Option<(Vec<u8>, bool)> = None;
    for entry in snapshot.versions.range::<(&[u8], u64)>(..).map_err(failure)? {
        let (id, version) = entry.map_err(failure)?;
        let (key, revision) = id.value();
        let (create_revision, deadline, bytes) = version.value();
        report.versions += 1;
        if last.as_ref().is_some_and(|(before, exists)| *exists && before != key) {
            keys += 1;
        }
        last = Some((key.to_vec(), create_revision != 0));
        let Some(stored) = snapshot.records.get(revision).map_err(failure)? else {
            report.problem(format!("{:?} at {revision} has no record", String::from_utf8_lossy(key)));
            continue;
        };
        match Record::decode(revision, stored.value()) {
            Err(damage) => report.problem(damage.to_string()),
            Ok(record) => {
                let found = (record.key, record.create_revision, record.deadline, record.value.len() as u32);
                if found != (key, create_revision, deadline, bytes) {
                    let key = String::from_utf8_lossy(key);
                    report.problem(format!("{key:?} at {revision} differs from its record"));
                }
            }
        }
    }
    keys += u64::from(last.is_some_and(|(_, exists)| exists));
    let mut records = 0;
    for entry in snapshot.records.range::<u64>(..).map_err(failure)? {
        entry.map_err(failure)?;
        records += 1;
    }
    if records != report.versions {
        report.problem(format!("there are {records} records for {} versions", report.versions));
    }
    if keys != snapshot.state.keys {
        report.problem(format!("there are {keys} keys, but {} were counted", snapshot.state.keys));
    }
    Ok(report)
}

impl CheckReport {
    fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// Counts what is in a folder that no process has open.
pub fn stats(folder: &Path) -> Result<FolderStats> {
    let reader = Reader::open(folder)?;
    let snapshot = reader.engine.snapshot()?;
    let mut found = FolderStats { stats: reader.stats()?, ..FolderStats::default() };
    let mut newest: Option<(Vec<u8>, u64, u32)> = None;
    let mut versions = 0;
    let mut count = |newest: &Option<(Vec<u8>, u64, u32)>| {
        if let Some((key, create_revision, bytes)) = newest
            && *create_revision != 0
        {
            let resource = found.resources.entry(resource_of(key)).or_default();
            resource.keys += 1;
            resource.bytes += key.len() as u64 + u64::from(*bytes);
        }
    };
    for entry in snapshot.versions.range::<(&[u8], u64)>(..).map_err(failure)? {
        let (id, version) = entry.map_err(failure)?;
        let (key, (create_revision, _, bytes)) = (id.value().0, version.value());
        versions += 1;
        if newest.as_ref().is_some_and(|(before, ..)| before != key) {
            count(&newest);
        }
        newest = Some((key.to_vec(), create_revision, bytes));
    }
    count(&newest);
    found.history_versions = versions - snapshot.state.keys.min(versions);
    Ok(found)
}

fn resource_of(key: &[u8]) -> String {
    let key = String::from_utf8_lossy(key);
    let end = key.match_indices('/').nth(2).map_or(key.len(), |(at, _)| at);
    key[..end].to_string()
}

/// Copies a folder that no process has open to a new file. A running store has [`super::EmbeddedStore::backup`].
pub fn backup(folder: &Path, to: &Path) -> Result<Revision> {
    copy(&Reader::open(folder)?.engine.snapshot()?, to)
}

/// Makes a data folder from a backup. The folder must not hold data yet.
///
/// Clients may have seen revisions that the backup does not have. `skip_revisions` moves on by that many, so
/// that no revision is given twice, and drops the history, so that their watches start over.
pub fn restore(from: &Path, folder: &Path, skip_revisions: u64) -> Result<Revision> {
    let disk = FolderDisk::lock(folder)?;
    let data = FolderDisk::data_file(folder);
    if data.exists() {
        return Err(StoreError::Invalid(format!("{} holds data already", folder.display())));
    }
    let source = || FolderDisk::backend(from).map_err(|error| unavailable("opening", from, error));
    check_pages(source()?, CACHE_BYTES, None)?;
    let unfinished = unfinished(&data);
    let copied = File::open(from).and_then(|mut from| {
        let mut to = private().create(true).truncate(true).open(&unfinished)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    });
    copied.map_err(|error| unavailable("copying", from, error))?;
    let finish = std::fs::rename(&unfinished, &data).and_then(|()| files::sync_folder(folder));
    finish.map_err(|error| unavailable("restoring", folder, error))?;
    // Whatever an earlier store here acknowledged, this is another one.
    disk.note_acked(0).map_err(|error| unavailable("restoring", folder, error))?;
    let engine = Engine::open(&disk, CACHE_BYTES, None)?;
    let mut state = engine.state;
    if skip_revisions > 0 {
        state.revision = state.revision.saturating_add(skip_revisions).min(i64::MAX as u64);
        let txn = engine.db.begin_write().map_err(failure)?;
        let hub = WatchHub::new(state.revision());
        let mut batch = Batch::begin(&txn, &hub, state)?;
        batch.compact(state.revision)?;
        batch.finish()?;
        txn.commit().map_err(failure)?;
    }
    disk.note_acked(state.revision).map_err(|error| unavailable("restoring", folder, error))?;
    Ok(state.revision())
}

/// Writes a snapshot to a new file, which has its name only once it is whole and durable.
pub(super) fn copy(snapshot: &Snapshot, to: &Path) -> Result<Revision> {
    if to.exists() {
        return Err(StoreError::Invalid(format!("{} exists already", to.display())));
    }
    let unfinished = unfinished(to);
    let _ = std::fs::remove_file(&unfinished);
    let result = fill(snapshot, &unfinished).and_then(|()| {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = std::fs::rename(&unfinished, to).and_then(|()| files::sync_folder(folder));
        named.map_err(|error| unavailable("writing", to, error))
    });
    if result.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    result.map(|()| snapshot.state.revision())
}

fn fill(snapshot: &Snapshot, to: &Path) -> Result<()> {
    let file = private().create_new(true).open(to).map_err(|error| unavailable("making", to, error))?;
    let syncing = file.try_clone().map_err(|error| unavailable("making", to, error))?;
    let db = Database::builder().set_cache_size(CACHE_BYTES).create_file(file).map_err(open_failure)?;
    initialize(&db)?;
    let step = |fill: &mut dyn FnMut(&WriteTransaction) -> Result<()>| -> Result<()> {
        let mut txn = db.begin_write().map_err(failure)?;
        txn.set_durability(Durability::None).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        fill(&txn)?;
        txn.commit().map_err(failure)?;
        // What is written goes to the disk in pieces: the file system makes the syncs of a store that is written to meanwhile
        // wait for all that is not there yet.
        syncing.sync_data().map_err(|error| unavailable("writing", to, error))
    };
    let mut records = snapshot.records.range::<u64>(..).map_err(failure)?.peekable();
    while records.peek().is_some() {
        step(&mut |txn| {
            let mut table = txn.open_table(RECORDS).map_err(failure)?;
            let mut bytes = 0;
            while bytes < COPY_STEP_BYTES {
                let Some(entry) = records.next() else { break };
                let (revision, stored) = entry.map_err(failure)?;
                Record::decode(revision.value(), stored.value())?;
                bytes += stored.value().len();
                table.insert(revision.value(), stored.value()).map_err(failure)?;
            }
            Ok(())
        })?;
    }
    let mut versions = snapshot.versions.range::<(&[u8], u64)>(..).map_err(failure)?.peekable();
    while versions.peek().is_some() {
        step(&mut |txn| {
            let mut table = txn.open_table(VERSIONS).map_err(failure)?;
            let mut bytes = 0;
            while bytes < COPY_STEP_BYTES {
                let Some(entry) = versions.next() else { break };
                let (id, version) = entry.map_err(failure)?;
                bytes += id.value().0.len();
                table.insert(id.value(), version.value()).map_err(failure)?;
            }
            Ok(())
        })?;
    }
    let txn = db.begin_write().map_err(failure)?;
    {
        let mut expiring = txn.open_table(EXPIRING).map_err(failure)?;
        for entry in snapshot.expiring.range::<(u64, u64)>(..).map_err(failure)? {
            let (id, key) = entry.map_err(failure)?;
            expiring.insert(id.value(), key.value()).map_err(failure)?;
        }
        let mut meta = txn.open_table(META).map_err(failure)?;
        meta.insert(STATE_KEY, &snapshot.state.encode()[..]).map_err(failure)?;
    }
    txn.commit().map_err(failure)
}

pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

pub(super) fn unavailable(what: &str, path: &Path, error: io::Error) -> StoreError {
    StoreError::Unavailable(format!("{what} {}: {error}", path.display()))
}

/// A folder opened without writing to its data file.
pub(super) struct Reader {
    pub(super) engine: Engine,
    disk: Untouched,
}

impl Reader {
    pub(super) fn open(folder: &Path) -> Result<Reader> {
        if !FolderDisk::data_file(folder).exists() {
            return Err(StoreError::Invalid(format!("{} holds no data", folder.display())));
        }
        let disk = Untouched(FolderDisk::lock(folder)?);
        let engine = Engine::open(&disk, CACHE_BYTES, None)?;
        Ok(Reader { engine, disk })
    }

    fn stats(&self) -> Result<StoreStats> {
        let StateRow { keys, .. } = self.engine.state;
        let size = self.disk.size().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(StoreStats {
            revision: self.engine.state.revision(),
            compacted: self.engine.state.compacted(),
            size,
            size_in_use: size,
            keys: Some(keys),
        })
    }
}

#[derive(Debug)]
struct Untouched(FolderDisk);

impl Disk for Untouched {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(Overlay::over(self.0.open()?)?))
    }

    fn available(&self) -> io::Result<u64> {
        self.0.available()
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn note_acked(&self, _revision: u64) -> io::Result<()> {
        Ok(())
    }

    fn acked(&self) -> io::Result<u64> {
        self.0.acked()
    }
}

#[cfg(test)]
mod tests;
