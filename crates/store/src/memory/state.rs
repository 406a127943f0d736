//! The versions of every key, the log of changes, and the rules of reading and writing them.
//!
//! All of it is persistent: a copy costs nothing and shares memory until one of the two changes. Forks and snapshots are copies.

use crate::error::{Result, StoreError};
use crate::hub::HistoryChunk;
use crate::limits::HistoryLimits;
use crate::model::{Counting, Expect, KeyValue, RangeRequest, RangeResponse, Revision, Select, StoreStats};
use crate::watch::{Event, Previous, WatchError, WatchRequest};
use bytes::Bytes;
use imbl::ordmap::DiffItem;
use imbl::{OrdMap, OrdSet};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// A new store is at revision 1, as a new etcd is: 0 stays free to mean "none".
const FIRST_REVISION: Revision = Revision(1);

/// What an entry of the log takes by itself, so that a flood of creations is bounded, too.
const CHANGE_BYTES: u64 = 64;

#[derive(Clone)]
pub(super) struct State {
    revision: Revision,
    compacted: Revision,
    /// The versions of each key that a read can ask for, oldest first.
    keys: OrdMap<Bytes, Arc<Vec<Version>>>,
    live: u64,
    /// One entry per revision above `compacted`, by it.
    log: OrdMap<Revision, Change>,
    /// Bytes in `keys`, and of those what only the history needs.
    bytes: u64,
    history_bytes: u64,
    /// By deadline. An entry whose revision is not its key's newest any more means nothing.
    expiring: OrdSet<(u64, Revision, Bytes)>,
    limits: HistoryLimits,
    closed: bool,
}

#[derive(Clone, PartialEq, Eq)]
struct Version {
    create_revision: Revision,
    mod_revision: Revision,
    /// `None`: the key was deleted.
    value: Option<Bytes>,
}

#[derive(Clone)]
struct Change {
    at_millis: u64,
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
            keys: OrdMap::new(),
            live: 0,
            log: OrdMap::new(),
            bytes: 0,
            history_bytes: 0,
            expiring: OrdSet::new(),
            limits,
            closed: false,
        }
    }

    /// What another store holds, without its past.
    pub fn of(items: impl IntoIterator<Item = KeyValue>, revision: Revision, limits: HistoryLimits) -> State {
        let mut state = State { revision, compacted: revision, ..State::new(limits) };
        for KeyValue { key, value, create_revision, mod_revision, .. } in items {
            let version = Version { create_revision, mod_revision, value: Some(value) };
            state.bytes += version.size(&key);
            state.live += 1;
            state.keys.insert(key, Arc::new(vec![version]));
        }
        state
    }

    /// The same, for a store of its own.
    pub fn open(mut self) -> State {
        self.closed = false;
        self
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
        for (key, versions) in self.keys.range::<_, [u8]>((start, end)) {
            let Some(mut kv) = version_at(versions, at).and_then(|version| version.to_kv(key)) else { continue };
            response.count += 1;
            match request.select {
                Select::Count => continue,
                Select::Keys => kv.value = Bytes::new(),
                Select::KeysAndValues => {}
            }
            if request.limit != 0 && response.items.len() == request.limit {
                response.more = true;
                if request.counting == Counting::Skip {
                    break;
                }
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
        while self.expiring.get_min().is_some_and(|(deadline, ..)| *deadline <= now) {
            let (_, revision, key) = self.expiring.remove_min()?;
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
        for (at, change) in &self.log {
            if change.at_millis >= oldest && bytes <= self.limits.bytes {
                break;
            }
            bytes -= change.superseded;
            revision = Some(*at);
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
        // What lies in the future has no past.
        let wanted = (Bound::Excluded(*after), Bound::Included(until.max(*after)));
        for (at, change) in self.log.range(wanted).filter(|(at, _)| **at <= until) {
            if !range.contains(&change.key) {
                continue;
            }
            let Some(mut event) = self.event(*at, &change.key) else { continue };
            if request.previous == Previous::Omit {
                event = event.without_previous();
            }
            bytes += event.weight();
            chunk.events.push(event);
            if bytes >= max_bytes {
                chunk.through = *at;
                break;
            }
        }
        Ok(chunk)
    }

    fn event(&self, revision: Revision, key: &Bytes) -> Option<Event> {
        let versions = self.keys.get(key)?;
        let at = versions.iter().rposition(|version| version.mod_revision == revision)?;
        let prev = at.checked_sub(1).and_then(|before| versions[before].to_kv(key));
        Some(match versions[at].to_kv(key) {
            Some(kv) => Event::Put { kv, prev },
            None => Event::Delete { key: key.clone(), revision, prev },
        })
    }

    fn current(&self, key: &Bytes) -> Option<KeyValue> {
        self.keys.get(key)?.last()?.to_kv(key)
    }

    fn apply(&mut self, key: &Bytes, version: Version, now: u64) {
        self.revision = version.mod_revision;
        let versions = Arc::make_mut(self.keys.entry(key.clone()).or_default());
        let was_live = versions.last().is_some_and(|last| last.value.is_some());
        let mut superseded = CHANGE_BYTES + versions.last().map_or(0, |last| last.size(key));
        if version.value.is_none() {
            superseded += version.size(key);
        }
        self.live = self.live + u64::from(version.value.is_some()) - u64::from(was_live);
        self.bytes += version.size(key);
        self.history_bytes += superseded;
        self.log.insert(version.mod_revision, Change { at_millis: now, key: key.clone(), superseded });
        versions.push(version);
    }

    fn forget(&mut self, through: Revision) {
        self.compacted = through;
        while let Some((at, key)) =
            self.log.get_min().filter(|(at, _)| *at <= through).map(|(at, c)| (*at, c.key.clone()))
        {
            self.history_bytes -= self.log.remove(&at).map_or(0, |change| change.superseded);
            let Some(versions) = self.keys.get_mut(&key) else { continue };
            let bytes = &mut self.bytes;
            let versions = Arc::make_mut(versions);
            versions.retain(|version| {
                let keep = version.mod_revision > at || (version.mod_revision == at && version.value.is_some());
                if !keep {
                    *bytes -= version.size(&key);
                }
                keep
            });
            if versions.is_empty() {
                self.keys.remove(&key);
            }
        }
    }

    /// Makes everything as it was in `then`, by changes of its own: revisions go on, and whoever watches sees what changed.
    pub fn reset_to(&mut self, then: &State, now: u64) -> Vec<Event> {
        let live = |versions: &Arc<Vec<Version>>| versions.last().filter(|last| last.value.is_some()).cloned();
        let mut wanted: Vec<(Bytes, Option<Version>)> = Vec::new();
        for difference in self.keys.diff(&then.keys) {
            let (key, before, after) = match difference {
                DiffItem::Add(key, after) => (key, None, live(after)),
                DiffItem::Update { old: (key, before), new: (_, after) } => (key, live(before), live(after)),
                DiffItem::Remove(key, before) => (key, live(before), None),
            };
            // The past of a key may differ where its present does not.
            if before.as_ref().map(|v| v.mod_revision) != after.as_ref().map(|v| v.mod_revision) {
                wanted.push((key.clone(), after));
            }
        }
        let deadlines: HashMap<&Bytes, (Revision, u64)> =
            then.expiring.iter().map(|(deadline, revision, key)| (key, (*revision, *deadline))).collect();
        let mut events = Vec::with_capacity(wanted.len());
        for (key, after) in wanted {
            let changed = match after {
                Some(Version { mod_revision, value: Some(value), .. }) => {
                    let deadline = deadlines.get(&key).filter(|(revision, _)| *revision == mod_revision);
                    let ttl = deadline.map(|(_, deadline)| Duration::from_millis(deadline.saturating_sub(now)));
                    self.put(key, value, Expect::Any, ttl, now).ok()
                }
                _ => self.delete(key, Expect::Any, now).ok().map(|(event, _)| event),
            };
            events.extend(changed);
        }
        events
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
