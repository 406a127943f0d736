//! When history becomes old: a sparse list of (revision, time, bytes superseded so far).

use super::engine::failure;
use super::schema::{MARKS, StateRow};
use crate::clock::HistoryLimits;
use crate::error::Result;
use redb::{Database, ReadableDatabase, ReadableTable};
use std::collections::VecDeque;
use std::time::Duration;

/// A mark per second is fine enough for a window of minutes; a mark per this part of the byte limit, for bytes.
const MARK_INTERVAL_MILLIS: u64 = 1_000;
const MARKS_PER_LIMIT: u64 = 32;

#[derive(Debug, Clone, Copy)]
struct Mark {
    revision: u64,
    millis: u64,
    superseded: u64,
}

pub(super) struct Marks {
    limits: HistoryLimits,
    /// Oldest first, as in the file.
    marks: VecDeque<Mark>,
    /// `superseded` at the compacted revision: what is above it is the history's size.
    compacted_superseded: u64,
}

impl Marks {
    pub fn load(db: &Database, limits: HistoryLimits) -> Result<Marks> {
        let txn = db.begin_read().map_err(failure)?;
        let table = txn.open_table(MARKS).map_err(failure)?;
        let mut marks = VecDeque::new();
        for entry in table.iter().map_err(failure)? {
            let (revision, value) = entry.map_err(failure)?;
            let (millis, superseded) = value.value();
            marks.push_back(Mark { revision: revision.value(), millis, superseded });
        }
        // What lies before the first mark is at most one mark's worth.
        let compacted_superseded = marks.front().map_or(0, |mark| mark.superseded);
        Ok(Marks { limits, marks, compacted_superseded })
    }

    /// Whether the state after this batch deserves a mark.
    pub fn due(&self, now: u64, state: &StateRow) -> bool {
        match self.marks.back() {
            Some(last) if last.revision == state.revision => false,
            Some(last) => {
                now.abs_diff(last.millis) >= MARK_INTERVAL_MILLIS
                    || state.superseded - last.superseded >= self.limits.bytes / MARKS_PER_LIMIT
            }
            None => state.revision > state.compacted.max(1),
        }
    }

    /// The newest revision whose history is over a limit.
    pub fn compactable(&self, now: u64, state: &StateRow) -> Option<u64> {
        let oldest = now.saturating_sub(self.limits.age.as_millis() as u64);
        let size = state.superseded.saturating_sub(self.compacted_superseded);
        let mut found = None;
        for mark in &self.marks {
            let over_age = mark.millis < oldest;
            // With everything up to the mark before it gone, is there still too much?
            let left = found.map_or(size, |before: Mark| state.superseded - before.superseded);
            if !over_age && left <= self.limits.bytes {
                break;
            }
            found = Some(*mark);
        }
        found.map(|mark| mark.revision).filter(|revision| *revision > state.compacted)
    }

    /// Takes over what was committed.
    pub fn committed(&mut self, marked: Option<u64>, state: &StateRow) {
        if let Some(millis) = marked {
            self.marks.push_back(Mark { revision: state.revision, millis, superseded: state.superseded });
        }
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.revision <= state.compacted) {
            self.compacted_superseded = mark.superseded;
            self.marks.pop_front();
        }
    }

    /// How long until the oldest mark is over age.
    pub fn next_due(&self, now: u64) -> Option<Duration> {
        let oldest = self.marks.front()?;
        let due = oldest.millis + self.limits.age.as_millis() as u64 + 1;
        Some(Duration::from_millis(due.saturating_sub(now)))
    }
}
