//! Reading one consistent state of the store, newest or past.

use super::engine::failure;
use super::schema::{Record, StateRow, Version};
use crate::error::{Result, StoreError};
use crate::hub::{HISTORY_CHUNK_BYTES, HistoryChunk};
use crate::model::{Counting, GetResponse, KeyRange, KeyValue, RangeRequest, RangeResponse, Revision, Select};
use crate::watch::{Event, Previous, WatchError, WatchRequest};
use bytes::Bytes;
use redb::ReadOnlyTable;
use std::ops::Bound;
use std::sync::mpsc;

/// Tables of one commit. Cheap to keep until the next commit: it pins only the pages that one frees.
pub(super) struct Snapshot {
    pub state: StateRow,
    pub versions: ReadOnlyTable<(&'static [u8], u64), Version>,
    pub records: ReadOnlyTable<u64, &'static [u8]>,
    pub expiring: ReadOnlyTable<(u64, u64), &'static [u8]>,
    /// Tells by its end that nobody reads this any more, where somebody waits for that.
    pub _held: Option<mpsc::Sender<()>>,
}

/// One key's version as the index has it.
struct Found {
    key: Vec<u8>,
    revision: u64,
    create_revision: u64,
}

impl Snapshot {
    pub fn get(&self, key: Bytes, at: Option<Revision>) -> Result<GetResponse> {
        let at = self.readable(at)?;
        let mut versions = self.versions.range((&key[..], 0)..=(&key[..], at)).map_err(failure)?;
        let mut item = None;
        if let Some(newest) = versions.next_back() {
            let (id, version) = newest.map_err(failure)?;
            if version.value().0 != 0 {
                item = Some(self.read(key, id.value().1)?);
            }
        }
        Ok(GetResponse { revision: self.state.revision(), item })
    }

    pub fn range(&self, request: &RangeRequest) -> Result<RangeResponse> {
        let at = self.readable(request.at)?;
        let mut response = RangeResponse { revision: self.state.revision(), items: Vec::new(), count: 0, more: false };
        // Whether to go on.
        let mut take = |found: &Found| -> Result<bool> {
            if found.create_revision == 0 {
                return Ok(true);
            }
            response.count += 1;
            if request.select == Select::Count {
                return Ok(true);
            }
            if request.limit != 0 && response.items.len() == request.limit {
                response.more = true;
                return Ok(request.counting == Counting::Exact);
            }
            response.items.push(self.item(found, request.select)?);
            Ok(true)
        };
        // The versions of a key stand together, oldest first: the last one that is old enough is the one.
        let mut found: Option<Found> = None;
        for entry in self.index(&request.range)? {
            let (id, version) = entry.map_err(failure)?;
            let (key, revision) = id.value();
            let create_revision = version.value().0;
            if revision > at {
                continue;
            }
            match &mut found {
                Some(same) if same.key == key => {
                    (same.revision, same.create_revision) = (revision, create_revision);
                }
                other => {
                    if let Some(done) = other
                        && !take(done)?
                    {
                        return Ok(response);
                    }
                    *other = Some(Found { key: key.to_vec(), revision, create_revision });
                }
            }
        }
        if let Some(last) = &found {
            take(last)?;
        }
        Ok(response)
    }

    /// Events in the request's range with `after < revision <= until`, up to about a chunk of them.
    pub fn history(&self, request: &WatchRequest, until: Revision) -> Result<HistoryChunk, WatchError> {
        let WatchRequest { range, after, .. } = request;
        if *after < self.state.compacted() {
            return Err(WatchError::Compacted { compacted: self.state.compacted() });
        }
        let until = until.min(self.state.revision());
        let mut chunk = HistoryChunk { events: Vec::new(), through: until };
        let mut bytes = 0;
        let records = self.records.range(after.0 as u64 + 1..=until.0.max(0) as u64).map_err(failure)?;
        for entry in records {
            let (revision, stored) = entry.map_err(failure)?;
            let revision = revision.value();
            let record = Record::decode(revision, stored.value())?;
            if !range.contains(record.key) {
                continue;
            }
            let event = self.event(revision, record, request.previous)?;
            bytes += event.weight();
            chunk.events.push(event);
            if bytes >= HISTORY_CHUNK_BYTES {
                chunk.through = Revision(revision as i64);
                break;
            }
        }
        Ok(chunk)
    }

    /// A revision after which lie at least so many bytes of changes in the range, as they are in events; or all that is kept.
    pub fn recent(&self, range: &KeyRange, bytes: usize) -> Result<Revision> {
        let mut found = 0;
        let kept = self.state.compacted + 1..=self.state.revision;
        for entry in self.records.range(kept).map_err(failure)?.rev() {
            let (revision, stored) = entry.map_err(failure)?;
            let record = Record::decode(revision.value(), stored.value())?;
            if range.contains(record.key) {
                found += record.key.len() + record.value.len();
            }
            if found >= bytes {
                return Ok(Revision(revision.value() as i64 - 1));
            }
        }
        Ok(self.state.compacted())
    }

    /// Reads the record of a version that the index knows.
    pub fn read(&self, key: Bytes, revision: u64) -> Result<KeyValue> {
        let Some(stored) = self.records.get(revision).map_err(failure)? else {
            return Err(missing(revision, &key));
        };
        let record = Record::decode(revision, stored.value())?;
        if record.key != key {
            return Err(missing(revision, &key));
        }
        Ok(record.to_kv(key, revision))
    }

    fn event(&self, revision: u64, record: Record<'_>, previous: Previous) -> Result<Event> {
        let key = Bytes::copy_from_slice(record.key);
        let prev = match record.previous {
            0 => None,
            _ if previous == Previous::Omit => None,
            previous => Some(self.read(key.clone(), previous)?),
        };
        Ok(if record.is_deletion() {
            Event::Delete { key, revision: Revision(revision as i64), prev }
        } else {
            Event::Put { kv: record.to_kv(key, revision), prev }
        })
    }

    fn item(&self, found: &Found, select: Select) -> Result<KeyValue> {
        let key = Bytes::copy_from_slice(&found.key);
        if select == Select::KeysAndValues {
            return self.read(key, found.revision);
        }
        Ok(KeyValue {
            key,
            value: Bytes::new(),
            create_revision: Revision(found.create_revision as i64),
            mod_revision: Revision(found.revision as i64),
            stale: false,
        })
    }

    fn index(&self, range: &KeyRange) -> Result<redb::Range<'static, (&'static [u8], u64), Version>> {
        let start = (&range.start[..], 0);
        let end = match &range.end {
            // A range that ends before it starts is empty, not an error.
            Some(end) => Bound::Excluded((&end.max(&range.start)[..], 0)),
            None => Bound::Unbounded,
        };
        self.versions.range((Bound::Included(start), end)).map_err(failure)
    }

    fn readable(&self, at: Option<Revision>) -> Result<u64> {
        let StateRow { revision, compacted, .. } = self.state;
        match at {
            None => Ok(revision),
            Some(at) if at.0 > revision as i64 => Err(StoreError::FutureRevision { current: self.state.revision() }),
            Some(at) if at.0 < compacted as i64 => Err(StoreError::Compacted { compacted: self.state.compacted() }),
            Some(at) => Ok(at.0.max(0) as u64),
        }
    }
}

pub(super) fn missing(revision: u64, key: &[u8]) -> StoreError {
    let key = String::from_utf8_lossy(key);
    StoreError::Corrupt(format!("the index has {key:?} at revision {revision}, but there is no such record"))
}
