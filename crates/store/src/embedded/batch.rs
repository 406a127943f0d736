//! Applying writes inside one transaction: guards, versions, expiry, and the history they leave behind.

use super::engine::failure;
use super::marks::Mark;
use super::schema::{EXPIRING, MARKS, META, RECORDS, Record, STATE_KEY, StateRow, VERSIONS, Version};
use super::snapshot::missing;
use crate::error::{Result, StoreError};
use crate::hub::WatchHub;
use crate::model::{Deleted, Expect, KeyValue, Revision};
use crate::watch::Event;
use bytes::Bytes;
use redb::{ReadableTable, Table, WriteTransaction};

/// What one request is told. An error of the engine below is not an answer: it fails the whole batch.
pub(super) type Answer<T> = std::result::Result<T, StoreError>;

/// Index entry, record and bookkeeping of a superseded version, besides its key and value.
const VERSION_OVERHEAD: u64 = 100;

pub(super) struct Batch<'txn> {
    txn: &'txn WriteTransaction,
    hub: &'txn WatchHub,
    versions: Table<'txn, (&'static [u8], u64), Version>,
    records: Table<'txn, u64, &'static [u8]>,
    expiring: Table<'txn, (u64, u64), &'static [u8]>,
    pub state: StateRow,
    pub events: Vec<Event>,
}

/// The newest version of a key that exists, as the index has it.
struct Current {
    revision: u64,
    create_revision: u64,
    deadline: u64,
    bytes: u64,
}

impl<'txn> Batch<'txn> {
    pub fn begin(txn: &'txn WriteTransaction, hub: &'txn WatchHub, state: StateRow) -> Result<Batch<'txn>> {
        Ok(Batch {
            txn,
            hub,
            versions: txn.open_table(VERSIONS).map_err(failure)?,
            records: txn.open_table(RECORDS).map_err(failure)?,
            expiring: txn.open_table(EXPIRING).map_err(failure)?,
            state,
            events: Vec::new(),
        })
    }

    /// `deadline` 0 means that the key does not expire.
    pub fn put(&mut self, key: Bytes, value: Bytes, expect: Expect, deadline: u64) -> Result<Answer<Revision>> {
        let current = self.current(&key)?;
        let holds = expect.holds(current.as_ref().map(Current::revision));
        let mut prev = None;
        if let Some(current) = &current
            && (!holds || self.hub.wants_previous(&key))
        {
            match self.read(&key, current.revision)? {
                Ok(kv) => prev = Some(kv),
                Err(damage) => return Ok(Err(damage)),
            }
        }
        if !holds {
            return Ok(Err(StoreError::conflict(prev)));
        }
        let revision = self.state.revision + 1;
        let previous = current.as_ref().map_or(0, |current| current.revision);
        let create_revision = current.as_ref().map_or(revision, |current| current.create_revision);
        self.insert(revision, Record { create_revision, previous, deadline, key: &key, value: &value })?;
        if deadline != 0 {
            self.expiring.insert((deadline, revision), &key[..]).map_err(failure)?;
        }
        match &current {
            Some(current) => self.supersede(&key, current)?,
            None => self.state.keys += 1,
        }
        let kv = KeyValue {
            key,
            value,
            create_revision: Revision(create_revision as i64),
            mod_revision: Revision(revision as i64),
            stale: false,
        };
        self.events.push(Event::Put { kv, prev });
        Ok(Ok(Revision(revision as i64)))
    }

    pub fn delete(&mut self, key: Bytes, expect: Expect) -> Result<Answer<Deleted>> {
        let Some(current) = self.current(&key)? else { return Ok(Err(StoreError::conflict(None))) };
        let prev = match self.read(&key, current.revision)? {
            Ok(kv) => kv,
            Err(damage) => return Ok(Err(damage)),
        };
        if !expect.holds(Some(current.revision())) {
            return Ok(Err(StoreError::conflict(Some(prev))));
        }
        let revision = self.state.revision + 1;
        let record = Record { create_revision: 0, previous: current.revision, deadline: 0, key: &key, value: b"" };
        self.insert(revision, record)?;
        self.supersede(&key, &current)?;
        self.state.superseded += VERSION_OVERHEAD + key.len() as u64;
        self.state.keys = self.state.keys.saturating_sub(1);
        let revision = Revision(revision as i64);
        self.events.push(Event::Delete { key, revision, prev: Some(prev.clone()) });
        Ok(Ok(Deleted { revision, previous: prev }))
    }

    /// Deletes up to `limit` keys whose deadline has passed.
    pub fn expire(&mut self, now: u64, limit: usize) -> Result<()> {
        let mut due = Vec::new();
        for entry in self.expiring.range(..=(now, u64::MAX)).map_err(failure)?.take(limit) {
            let (id, key) = entry.map_err(failure)?;
            due.push((id.value(), Bytes::copy_from_slice(key.value())));
        }
        for (id, key) in due {
            match self.delete(key, Expect::At(Revision(id.1 as i64)))? {
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(damage) => tracing::error!(error = %damage, "an expired key cannot be deleted"),
            }
            self.expiring.remove(id).map_err(failure)?;
        }
        Ok(())
    }

    pub fn next_deadline(&self) -> Result<Option<u64>> {
        let first = self.expiring.first().map_err(failure)?;
        Ok(first.map(|(id, _)| id.value().0))
    }

    /// Writes down how far history was at what time.
    pub fn mark(&mut self, due: &[Mark]) -> Result<()> {
        let mut marks = self.txn.open_table(MARKS).map_err(failure)?;
        for mark in due {
            marks.insert(mark.revision, (mark.millis, mark.superseded)).map_err(failure)?;
        }
        Ok(())
    }

    /// Declares history up to `revision` gone; sweeping removes it bit by bit.
    pub fn compact(&mut self, revision: u64) -> Result<()> {
        self.state.compacted = revision;
        let mut marks = self.txn.open_table(MARKS).map_err(failure)?;
        marks.retain_in(..=revision, |_, _| false).map_err(failure)
    }

    /// Removes what the next `limit` compacted changes superseded.
    pub fn sweep(&mut self, limit: usize) -> Result<()> {
        if self.state.swept >= self.state.compacted {
            return Ok(());
        }
        let mut swept = self.state.compacted;
        let mut gone: Vec<(Vec<u8>, u64)> = Vec::new();
        let window = self.state.swept + 1..=self.state.compacted;
        for (seen, entry) in self.records.range(window).map_err(failure)?.enumerate() {
            let (revision, stored) = entry.map_err(failure)?;
            let revision = revision.value();
            if seen == limit {
                swept = revision - 1;
                break;
            }
            let record = match Record::decode(revision, stored.value()) {
                Ok(record) => record,
                // Left where it is: whoever reads it is told.
                Err(damage) => {
                    tracing::error!(error = %damage, "history is kept because it cannot be read");
                    continue;
                }
            };
            if record.previous != 0 {
                gone.push((record.key.to_vec(), record.previous));
            }
            if record.is_deletion() {
                gone.push((record.key.to_vec(), revision));
            }
        }
        for (key, revision) in gone {
            self.versions.remove((&key[..], revision)).map_err(failure)?;
            self.records.remove(revision).map_err(failure)?;
        }
        self.state.swept = swept;
        Ok(())
    }

    /// Writes the state row and hands back what the caller needs after the commit.
    pub fn finish(self) -> Result<(StateRow, Vec<Event>)> {
        let mut meta = self.txn.open_table(META).map_err(failure)?;
        meta.insert(STATE_KEY, &self.state.encode()[..]).map_err(failure)?;
        Ok((self.state, self.events))
    }

    fn current(&self, key: &[u8]) -> Result<Option<Current>> {
        let newest = self.versions.range((key, 0)..=(key, u64::MAX)).map_err(failure)?.next_back();
        let Some(newest) = newest else { return Ok(None) };
        let (id, version) = newest.map_err(failure)?;
        let (create_revision, deadline, bytes) = version.value();
        let current = Current { revision: id.value().1, create_revision, deadline, bytes: bytes.into() };
        Ok((create_revision != 0).then_some(current))
    }

    fn read(&self, key: &Bytes, revision: u64) -> Result<Answer<KeyValue>> {
        let Some(stored) = self.records.get(revision).map_err(failure)? else {
            return Ok(Err(missing(revision, key)));
        };
        Ok(match Record::decode(revision, stored.value()) {
            Ok(record) if record.key == key => Ok(record.to_kv(key.clone(), revision)),
            Ok(_) => Err(missing(revision, key)),
            Err(damage) => Err(damage),
        })
    }

    fn insert(&mut self, revision: u64, record: Record<'_>) -> Result<()> {
        let version = (record.create_revision, record.deadline, record.value.len() as u32);
        self.versions.insert((record.key, revision), version).map_err(failure)?;
        let mut room = self.records.insert_reserve(revision, record.encoded_len()).map_err(failure)?;
        record.encode(revision, room.as_mut());
        self.state.revision = revision;
        Ok(())
    }

    fn supersede(&mut self, key: &[u8], current: &Current) -> Result<()> {
        if current.deadline != 0 {
            self.expiring.remove((current.deadline, current.revision)).map_err(failure)?;
        }
        self.state.superseded += VERSION_OVERHEAD + key.len() as u64 + current.bytes;
        Ok(())
    }
}

impl Current {
    fn revision(&self) -> Revision {
        Revision(self.revision as i64)
    }
}
