//! `store export | import`: the newest version of every key, out of a folder and into a new one. Revisions stay as they were;
//! the past does not come along.

use super::disk::{Disk, FolderDisk, private};
use super::engine::{failure, initialize, open_failure};
use super::maintain::{Reader, unavailable, unfinished};
use super::schema::{EXPIRING, META, RECORDS, Record, STATE_KEY, StateRow, VERSIONS};
use crate::error::{Result, StoreError};
use crate::model::Revision;
use kubelith_system::files;
use redb::Database;
use std::path::Path;

/// Pages kept in memory while a file is written.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes of values in a transaction: bounds its memory.
const STEP_BYTES: usize = 16 << 20;

/// A key with its newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub create_revision: u64,
    pub revision: u64,
    /// Unix milliseconds after which it expires; 0: never.
    pub deadline: u64,
}

/// Hands over everything in a folder that no process has open, in the order of keys. Answers the store's revision.
pub fn export(folder: &Path, mut each: impl FnMut(Entry) -> Result<()>) -> Result<Revision> {
    let reader = Reader::open(folder)?;
    let snapshot = reader.engine.snapshot()?;
    let mut hand_over = |newest: Option<(Vec<u8>, u64)>| -> Result<()> {
        let Some((key, revision)) = newest else { return Ok(()) };
        let stored = snapshot.records.get(revision).map_err(failure)?;
        let stored = stored.ok_or_else(|| StoreError::Corrupt(format!("revision {revision} has no record")))?;
        let Record { create_revision, deadline, value, .. } = Record::decode(revision, stored.value())?;
        each(Entry { key, value: value.to_vec(), create_revision, revision, deadline })
    };
    // The last of a key's versions is its newest.
    let mut newest: Option<(Vec<u8>, u64)> = None;
    for entry in snapshot.versions.range::<(&[u8], u64)>(..).map_err(failure)? {
        let (id, version) = entry.map_err(failure)?;
        let ((key, revision), (create_revision, ..)) = (id.value(), version.value());
        if newest.as_ref().is_some_and(|(before, _)| before != key) {
            hand_over(newest.take())?;
        }
        newest = (create_revision != 0).then(|| (key.to_vec(), revision));
    }
    hand_over(newest)?;
    Ok(snapshot.state.revision())
}

/// Makes the store of a new folder from entries, at a revision that is `skip_revisions` later than theirs: see
/// [`super::restore`].
pub fn import(
    folder: &Path,
    revision: Revision,
    skip_revisions: u64,
    entries: impl Iterator<Item = Result<Entry>>,
) -> Result<Revision> {
    let disk = FolderDisk::lock(folder)?;
    let data = FolderDisk::data_file(folder);
    if data.exists() {
        return Err(StoreError::Invalid(format!("{} holds data already", folder.display())));
    }
    let draft = unfinished(&data);
    let _ = std::fs::remove_file(&draft);
    let made = fill(&draft, revision, skip_revisions, entries).and_then(|state| {
        let named = std::fs::rename(&draft, &data).and_then(|()| files::sync_folder(folder));
        named.map_err(|error| unavailable("importing into", folder, error))?;
        Ok(state)
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    let state = made?;
    disk.note_acked(state.revision).map_err(|error| unavailable("importing into", folder, error))?;
    Ok(state.revision())
}

fn fill(
    file: &Path,
    revision: Revision,
    skip_revisions: u64,
    entries: impl Iterator<Item = Result<Entry>>,
) -> Result<StateRow> {
    let newest = u64::try_from(revision.0).map_err(|_| StoreError::Invalid(format!("revision {revision}")))?;
    let opened = private().create_new(true).open(file).map_err(|error| unavailable("making", file, error))?;
    let db = Database::builder().set_cache_size(CACHE_BYTES).create_file(opened).map_err(open_failure)?;
    initialize(&db)?;
    let mut entries = entries.peekable();
    let mut keys = 0;
    while entries.peek().is_some() {
        let txn = db.begin_write().map_err(failure)?;
        {
            let mut records = txn.open_table(RECORDS).map_err(failure)?;
            let mut versions = txn.open_table(VERSIONS).map_err(failure)?;
            let mut expiring = txn.open_table(EXPIRING).map_err(failure)?;
            let mut bytes = 0;
            while bytes < STEP_BYTES {
                let Some(entry) = entries.next().transpose()? else { break };
                let Entry { key, value, create_revision, revision, deadline } = &entry;
                if *create_revision == 0 || create_revision > revision || *revision > newest {
                    let what = format!("{:?} has impossible revisions", String::from_utf8_lossy(key));
                    return Err(StoreError::Invalid(what));
                }
                let record = Record { create_revision: *create_revision, previous: 0, deadline: *deadline, key, value };
                let mut encoded = vec![0; record.encoded_len()];
                record.encode(*revision, &mut encoded);
                let twice = records.insert(*revision, &encoded[..]).map_err(failure)?.is_some();
                let version = (*create_revision, *deadline, value.len() as u32);
                versions.insert((&key[..], *revision), version).map_err(failure)?;
                if twice {
                    return Err(StoreError::Invalid(format!("revision {revision} is there twice")));
                }
                if *deadline > 0 {
                    expiring.insert((*deadline, *revision), &key[..]).map_err(failure)?;
                }
                bytes += encoded.len();
                keys += 1;
            }
        }
        txn.commit().map_err(failure)?;
    }
    // The past is not there: whoever wants to go on from it starts over.
    let revision = newest.saturating_add(skip_revisions).min(i64::MAX as u64);
    let state = StateRow { revision, compacted: revision, swept: revision, superseded: 0, keys };
    let txn = db.begin_write().map_err(failure)?;
    txn.open_table(META).map_err(failure)?.insert(STATE_KEY, &state.encode()[..]).map_err(failure)?;
    txn.commit().map_err(failure)?;
    Ok(state)
}
