//! When history becomes old: a sparse list of (revision, time, bytes superseded so far).

use super::engine::failure;
use super::schema::{MARKS, StateRow};
use crate::error::Result;
use crate::limits::HistoryLimits;
use redb::{Database, ReadableDatabase, ReadableTable};
use std::collections::VecDeque;
use std::time::Duration;

/// A mark per second is fine enough for a window of minutes; a mark per this part of the byte limit, for bytes.
const MARK_INTERVAL_MILLIS: u64 = 1_000;
const MARKS_PER_LIMIT: u64 = 32;

/// At this time the store was at this revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub revision: u64,
    pub millis: u64,
    pub superseded: u64,
}

pub(super) struct Marks {
    limits: HistoryLimits,
    /// Oldest first, as in the file.
    marks: VecDeque<Mark>,
    /// The last commit, while no mark stands for it.
    unmarked: Option<Mark>,
    /// `superseded` at the compacted revision: what is above it is the history's size.
    compacted_superseded: u64,
}

impl Marks {
    pub fn load(db: &Database, limits: HistoryLimits, now: u64, state: &StateRow) -> Result<Marks> {
        let txn = db.begin_read().map_err(failure)?;
        let table = txn.open_table(MARKS).map_err(failure)?;
        let mut marks = VecDeque::new();
        for entry in table.iter().map_err(failure)? {
            let (revision, value) = entry.map_err(failure)?;
            let (millis, superseded) = value.value();
            marks.push_back(Mark { revision: revision.value(), millis, superseded });
        }
        // What lies before the first mark is at most one mark's worth.
        let compacted_superseded = marks.front().map_or(state.superseded, |mark| mark.superseded);
        let newest = Mark { revision: state.revision, millis: now, superseded: state.superseded };
        let marked = marks.back().map_or(state.compacted.max(1), |mark| mark.revision);
        let unmarked = (marked < state.revision).then_some(newest);
        Ok(Marks { limits, marks, unmarked, compacted_superseded })
    }

    /// The marks to write with a batch that leads to `state`.
    pub fn due(&self, now: u64, state: &StateRow) -> Vec<Mark> {
        let mut due = Vec::new();
        if let Some(last) = self.unmarked
            && now.abs_diff(last.millis) >= MARK_INTERVAL_MILLIS
        {
            due.push(last);
        }
        let marked = self.marks.back().map_or(self.compacted_superseded, |mark| mark.superseded);
        if state.superseded.saturating_sub(marked) >= (self.limits.bytes / MARKS_PER_LIMIT).max(1) {
            due.push(Mark { revision: state.revision, millis: now, superseded: state.superseded });
        }
        due
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

    /// Takes over what was committed at `now`: the marks written, and `state`.
    pub fn committed(&mut self, written: Vec<Mark>, now: u64, state: &StateRow) {
        let newest = self.unmarked.map(|mark| mark.revision).or(self.marks.back().map(|mark| mark.revision));
        self.marks.extend(written);
        if newest != Some(state.revision) {
            self.unmarked = Some(Mark { revision: state.revision, millis: now, superseded: state.superseded });
        }
        if self.marks.back().map(|mark| mark.revision) >= self.unmarked.map(|mark| mark.revision) {
            self.unmarked = None;
        }
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.revision <= state.compacted) {
            self.compacted_superseded = mark.superseded;
            self.marks.pop_front();
        }
    }

    /// How long until the oldest mark is over age.
    pub fn next_due(&self, now: u64) -> Option<Duration> {
        let oldest = self.marks.front().or(self.unmarked.as_ref())?;
        let due = oldest.millis + self.limits.age.as_millis() as u64 + 1;
        Some(Duration::from_millis(due.saturating_sub(now)))
    }
}
