//! The versions of every key, the log of changes, and the rules of reading and writing them.

use crate::error::{Result, StoreError};
use crate::hub::HistoryChunk;
use crate::limits::HistoryLimits;
use crate::model::{Expect, KeyValue, RangeRequest, RangeResponse, Revision, Select, StoreStats};
use crate::watch::{Event, Previous, WatchError, WatchRequest};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

/// A new store is at revision 1, as a new etcd is: 0 stays free to mean "none".
const FIRST_REVISION: Revision = Revision(1);

/// What an entry of the log takes by itself, so that a flood of creations is bounded, too.
const CHANGE_BYTES: u64 = 64;

pub(super) struct State {
    revision: Revision,
    compacted: Revision,
    /// The versions of each key that a read can ask for, oldest first.
    keys: BTreeMap<Bytes, Vec<Version>>,
    live: u64,
    /// One entry per revision above `compacted`.
    log: VecDeque<Change>,
    /// Bytes in `keys`, and of those what only the history needs.
    bytes: u64,
    history_bytes: u64,
    /// By deadline. An entry whose revision is not its key's newest any more means nothing.
    expiring: BTreeSet<(u64, Revision, Bytes)>,
    limits: HistoryLimits,
    closed: bool,
}

struct Version {
    create_revision: Revision,
    mod_revision: Revision,
    /// `None`: the key was deleted.
    value: Option<Bytes>,
}

struct Change {
    at_millis: u64,
    revision: Revision,
    key: Bytes,
    /// What this change added to `history_bytes`.
    superseded: u64,
}

impl Version {
    fn to_kv(&self, key: &Bytes) -> Option<KeyValue> {
        let value = self.value.clone()?;
        let Version { create_revision, mod_revision, .. } = *self;
        Some(KeyValue { key: key.clone(), value, create_revision, mod_revision, stale: false })
    }

    fn size(&self, key: &Bytes) -> u64 {
        (key.len() + self.value.as_ref().map_or(0, Bytes::len)) as u64
    }
}

impl State {
    pub fn new(limits: HistoryLimits) -> State {
        State {
            revision: FIRST_REVISION,
            compacted: Revision::ZERO,
            keys: BTreeMap::new(),
            live: 0,
            log: VecDeque::new(),
            bytes: 0,
            history_bytes: 0,
            expiring: BTreeSet::new(),
            limits,
            closed: false,
        }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn has_expiring(&self) -> bool {
        !self.expiring.is_empty()
    }

    pub fn stats(&self) -> StoreStats {
        StoreStats {
            revision: self.revision,
            compacted: self.compacted,
            size: self.bytes,
            size_in_use: self.bytes,
            keys: Some(self.live),
        }
    }

    pub fn get(&self, key: &Bytes, at: Option<Revision>) -> Result<Option<KeyValue>> {
        let at = self.readable(at)?;
        Ok(self.keys.get(key).and_then(|versions| version_at(versions, at)).and_then(|version| version.to_kv(key)))
    }

    pub fn range(&self, request: &RangeRequest) -> Result<RangeResponse> {
        let at = self.readable(request.at)?;
        let mut response = RangeResponse { revision: self.revision, items: Vec::new(), count: 0, more: false };
        if request.range.is_empty() {
            return Ok(response);
        }
        let start = Bound::Included(&request.range.start[..]);
        let end = request.range.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
        for (key, versions) in self.keys.range::<[u8], _>((start, end)) {
            let Some(mut kv) = version_at(versions, at).and_then(|version| version.to_kv(key)) else { continue };
            response.count += 1;
            match request.select {
                Select::Count => continue,
                Select::Keys => kv.value = Bytes::new(),
                Select::KeysAndValues => {}
            }
            if request.limit != 0 && response.items.len() == request.limit {
                response.more = true;
                continue;
            }
            response.items.push(kv);
        }
        Ok(response)
    }

    /// Applies a put and answers its event.
    pub fn put(&mut self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>, now: u64) -> Result<Event> {
        let prev = self.current(&key);
        if !expect.holds(prev.as_ref().map(|kv| kv.mod_revision)) {
            return Err(StoreError::conflict(prev));
        }
        let revision = self.revision.next();
        let create_revision = prev.as_ref().map_or(revision, |kv| kv.create_revision);
        if let Some(ttl) = ttl {
            self.expiring.insert((now.saturating_add(ttl.as_millis() as u64), revision, key.clone()));
        }
        self.apply(&key, Version { create_revision, mod_revision: revision, value: Some(value.clone()) }, now);
        let kv = KeyValue { key, value, create_revision, mod_revision: revision, stale: false };
        Ok(Event::Put { kv, prev })
    }

    /// Applies a deletion and answers its event and what was deleted.
    pub fn delete(&mut self, key: Bytes, expect: Expect, now: u64) -> Result<(Event, KeyValue)> {
        let prev = match self.current(&key) {
            Some(kv) if expect.holds(Some(kv.mod_revision)) => kv,
            current => return Err(StoreError::conflict(current)),
        };
        let revision = self.revision.next();
        self.apply(&key, Version { create_revision: Revision::ZERO, mod_revision: revision, value: None }, now);
        Ok((Event::Delete { key, revision, prev: Some(prev.clone()) }, prev))
    }

    /// Deletes one key whose time has passed.
    pub fn expire_one(&mut self, now: u64) -> Option<Event> {
        while self.expiring.first().is_some_and(|(deadline, ..)| *deadline <= now) {
            let (_, revision, key) = self.expiring.pop_first()?;
            if let Ok((event, _)) = self.delete(key, Expect::At(revision), now) {
                return Some(event);
            }
        }
        None
    }

    /// Forgets the history that is over the limits.
    pub fn trim(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.limits.age.as_millis() as u64);
        let mut revision = None;
        let mut bytes = self.history_bytes;
        for change in &self.log {
            if change.at_millis >= oldest && bytes <= self.limits.bytes {
                break;
            }
            bytes -= change.superseded;
            revision = Some(change.revision);
        }
        if let Some(revision) = revision {
            self.forget(revision);
        }
    }

    pub fn compact(&mut self, revision: Revision) -> Result<()> {
        if revision <= self.compacted {
            return Err(StoreError::Compacted { compacted: self.compacted });
        }
        if revision > self.revision {
            return Err(StoreError::FutureRevision { current: self.revision });
        }
        self.forget(revision);
        Ok(())
    }

    /// The events in the request's range with `after < revision <= until`, up to about `max_bytes` of them.
    pub fn history(
        &self,
        request: &WatchRequest,
        until: Revision,
        max_bytes: usize,
    ) -> Result<HistoryChunk, WatchError> {
        let WatchRequest { range, after, .. } = request;
        if *after < self.compacted {
            return Err(WatchError::Compacted { compacted: self.compacted });
        }
        let mut chunk = HistoryChunk { events: Vec::new(), through: until.min(self.revision) };
        let mut bytes = 0;
        let first = self.log.partition_point(|change| change.revision <= *after);
        for change in self.log.range(first..).take_while(|change| change.revision <= until) {
            if !range.contains(&change.key) {
                continue;
            }
            let Some(mut event) = self.event(change) else { continue };
            if request.previous == Previous::Omit {
                event = event.without_previous();
            }
            bytes += event.weight();
            chunk.events.push(event);
            if bytes >= max_bytes {
                chunk.through = change.revision;
                break;
            }
        }
        Ok(chunk)
    }

    fn event(&self, change: &Change) -> Option<Event> {
        let Change { key, revision, .. } = change;
        let versions = self.keys.get(key)?;
        let at = versions.iter().rposition(|version| version.mod_revision == *revision)?;
        let prev = at.checked_sub(1).and_then(|before| versions[before].to_kv(key));
        Some(match versions[at].to_kv(key) {
            Some(kv) => Event::Put { kv, prev },
            None => Event::Delete { key: key.clone(), revision: *revision, prev },
        })
    }

    fn current(&self, key: &Bytes) -> Option<KeyValue> {
        self.keys.get(key)?.last()?.to_kv(key)
    }

    fn apply(&mut self, key: &Bytes, version: Version, now: u64) {
        self.revision = version.mod_revision;
        let versions = self.keys.entry(key.clone()).or_default();
        let was_live = versions.last().is_some_and(|last| last.value.is_some());
        let mut superseded = CHANGE_BYTES + versions.last().map_or(0, |last| last.size(key));
        if version.value.is_none() {
            superseded += version.size(key);
        }
        self.live = self.live + u64::from(version.value.is_some()) - u64::from(was_live);
        self.bytes += version.size(key);
        self.history_bytes += superseded;
        self.log.push_back(Change { at_millis: now, revision: version.mod_revision, key: key.clone(), superseded });
        versions.push(version);
    }

    fn forget(&mut self, through: Revision) {
        self.compacted = through;
        while self.log.front().is_some_and(|change| change.revision <= through) {
            let Some(change) = self.log.pop_front() else { break };
            self.history_bytes -= change.superseded;
            let Some(versions) = self.keys.get_mut(&change.key) else { continue };
            let bytes = &mut self.bytes;
            versions.retain(|version| {
                let keep = version.mod_revision > change.revision
                    || (version.mod_revision == change.revision && version.value.is_some());
                if !keep {
                    *bytes -= version.size(&change.key);
                }
                keep
            });
            if versions.is_empty() {
                self.keys.remove(&change.key);
            }
        }
    }

    fn readable(&self, at: Option<Revision>) -> Result<Revision> {
        match at {
            None => Ok(self.revision),
            Some(at) if at > self.revision => Err(StoreError::FutureRevision { current: self.revision }),
            Some(at) if at < self.compacted => Err(StoreError::Compacted { compacted: self.compacted }),
            Some(at) => Ok(at),
        }
    }
}

fn version_at(versions: &[Version], at: Revision) -> Option<&Version> {
    versions.iter().rev().find(|version| version.mod_revision <= at)
}
