//! What the store has kept of the time before the start, until the caches have taken it over.

use crate::{Event, KeyRange, Previous, Result, Revision, Store, StoreError, WatchError, WatchRequest};
use std::collections::{HashMap, HashSet, VecDeque};

/// Bytes of past events taken over at a start: as much as one resource's window holds.
const REPLAY_BYTES: usize = 24 << 20;

/// Events by the first segment below the root. A segment that is not here has no events, unless it was overtaken.
#[derive(Debug, Default)]
pub(super) struct Replay {
    root: usize,
    /// All events after this revision are known; `None` if there is no past to take over.
    after: Option<Revision>,
    segments: HashMap<String, Vec<Event>>,
    /// Segments that changed while nobody had claimed them: their past ends before the present.
    overtaken: HashSet<String>,
    /// Prefixes whose past was taken.
    taken: HashSet<String>,
}

/// The past of one resource.
#[derive(Debug)]
pub(super) struct PastEvents {
    pub after: Revision,
    pub events: Vec<Event>,
}

impl Replay {
    /// Reads all that is kept below `root`, and the revision up to which that is everything.
    pub async fn read(store: &dyn Store, root: &str) -> Result<(Replay, Revision)> {
        let revision = store.current_revision().await?;
        let range = KeyRange::prefix(root.to_owned());
        // Long histories are not read from their beginning: only their end is kept.
        let mut after = store.recent(range.clone(), REPLAY_BYTES).await?;
        let mut kept: VecDeque<Event> = VecDeque::new();
        let mut bytes = 0;
        let mut reached = after;
        if after < revision {
            let request = WatchRequest::new(range, after).previous(Previous::Include);
            let mut watch = store.watch(request).await?;
            watch.control().request_progress();
            while reached < revision {
                let batch = match watch.next().await {
                    Some(Ok(batch)) => batch,
                    Some(Err(WatchError::Store(error))) => return Err(error),
                    // Compacted in between: there is no past then.
                    Some(Err(WatchError::Compacted { .. })) => return Ok((Replay::default(), revision)),
                    Some(Err(WatchError::Closed)) | None => return Err(StoreError::Closed),
                };
                reached = batch.revision;
                for event in batch.events {
                    bytes += event.weight();
                    kept.push_back(event);
                }
                while bytes > REPLAY_BYTES {
                    let Some(dropped) = kept.pop_front() else { break };
                    bytes -= dropped.weight();
                    after = dropped.revision();
                }
            }
        }
        // Half of a revision is no past.
        while kept.front().is_some_and(|event| event.revision() <= after) {
            kept.pop_front();
        }
        let mut replay = Replay { root: root.len(), after: Some(after), ..Replay::default() };
        for event in kept {
            let Some(segment) = replay.segment_of(event.key()) else { continue };
            replay.segments.entry(segment).or_default().push(event);
        }
        Ok((replay, revision.max(reached)))
    }

    fn segment_of(&self, key: &[u8]) -> Option<String> {
        let below = std::str::from_utf8(key).ok()?.get(self.root..)?;
        Some(below.split('/').next()?.to_owned())
    }

    /// The past of a resource, for its first load only. `prefix` is below the root and ends with a slash.
    pub fn take(&mut self, prefix: &str) -> Option<PastEvents> {
        let after = self.after?;
        let segment = prefix.split('/').next()?;
        if self.overtaken.contains(segment) || !self.taken.insert(prefix.to_owned()) {
            return None;
        }
        let mut events = Vec::new();
        if let Some(all) = self.segments.get_mut(segment) {
            let root = self.root;
            let (ours, others) =
                std::mem::take(all).into_iter().partition(|e| e.key()[root..].starts_with(prefix.as_bytes()));
            events = ours;
            *all = others;
        }
        Some(PastEvents { after, events })
    }

    /// Who has not come for it by now gets none.
    pub fn forget(&mut self) {
        *self = Replay::default();
    }

    /// Keys (below the root) that nobody caches have changed.
    pub fn overtaken(&mut self, keys: &[String]) {
        if self.after.is_none() {
            return;
        }
        for segment in keys.iter().filter_map(|key| key.split('/').next()) {
            if !self.overtaken.contains(segment) {
                self.segments.remove(segment);
                self.overtaken.insert(segment.to_owned());
            }
        }
    }
}
