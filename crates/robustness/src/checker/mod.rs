//! Judges a history. The order of all changes is what watches delivered, joined; revisions give it. Against that order every
//! answer is held: each write has its place in it, each read shows a state of it that was current while the read ran.
//!
//! What is not known is not judged: an operation without an answer may have happened or not (but not twice), and where all
//! watches have a hole (410), nothing is said about the revisions within.

mod reads;
mod timeline;
mod watches;
mod writes;

#[cfg(test)]
mod tests;

use crate::history::{History, Moment, Outcome, Revision};
use std::collections::BTreeMap;
use std::fmt;
use timeline::Timeline;

/// What can be wrong. Each has a test with a history that is wrong in this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// Two watches tell different things about a revision, or a key's changes do not follow from each other.
    OneOrder,
    /// A write that was acknowledged is nowhere in the order, or differs from its answer.
    WriteKept,
    /// A write that was refused shows all the same.
    RefusedWithoutEffect,
    /// A write shows twice.
    WrittenOnce,
    /// A write with a precondition came upon something else.
    Precondition,
    /// Something changed that nobody asked for.
    Attributed,
    /// A later operation has an earlier revision than one that had ended before.
    RealTime,
    /// A read shows what was not so while it ran.
    Read,
    /// A list, with all its pages, is not the state at its revision.
    ListAtRevision,
    /// An answer says that something exists, is missing or was changed, and it was not so.
    Refusal,
    /// A watch left a change out.
    WatchGap,
    /// A watch delivered a change that it should not have (twice, out of order, not selected).
    WatchExtra,
    /// A bookmark says more than was delivered.
    Bookmark,
    /// Initial events are not the state at their end.
    InitialEvents,
    /// Watches did not come to the end.
    CaughtUp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub property: Property,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.what)
    }
}

/// What was held against what.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub violations: Vec<Violation>,
    /// Figures, by what they count.
    pub counts: BTreeMap<&'static str, usize>,
}

impl Report {
    fn violation(&mut self, property: Property, what: impl Into<String>) {
        self.violations.push(Violation { property, what: what.into() });
    }

    fn count(&mut self, what: &'static str, by: usize) {
        *self.counts.entry(what).or_default() += by;
    }
}

/// Judges all of a run.
pub fn check(history: &History) -> Report {
    let mut report = Report::default();
    let timelines: Vec<Timeline> =
        (0..history.bases.len()).map(|resource| timeline::build(history, resource, &mut report)).collect();
    for timeline in &timelines {
        timeline.check_order(&mut report);
    }
    let places = writes::places(history, &timelines);
    let known = Known::new(history, &places);
    writes::check(history, &timelines, &places, &known, &mut report);
    reads::check(history, &timelines, &known, &mut report);
    watches::check(history, &timelines, &known, &mut report);
    for (resource, last) in history.finals.iter().enumerate() {
        let reached = timelines[resource].end();
        if reached < *last {
            report.violation(Property::CaughtUp, format!("watches came to {reached}, and the last write was {last}"));
        }
    }
    report
}

/// Which revision had been seen by whom: at each moment the greatest that an answer had told by then.
pub struct Known(Vec<(Moment, Revision)>);

impl Known {
    fn new(history: &History, places: &[Option<Revision>]) -> Known {
        let mut seen: Vec<(Moment, Revision)> = Vec::new();
        for (operation, place) in history.operations.iter().zip(places) {
            let told = match &operation.outcome {
                Outcome::Object(version) => Some(version.revision),
                Outcome::Deleted { .. } => *place,
                Outcome::Pages(pages) => pages.first().map(|page| page.revision),
                Outcome::Refused(_) | Outcome::Unknown => None,
            };
            seen.extend(told.map(|revision| (operation.end, revision)));
        }
        seen.sort_unstable();
        let mut most = 0;
        for (_, revision) in &mut seen {
            most = most.max(*revision);
            *revision = most;
        }
        Known(seen)
    }

    /// What was known before this moment.
    fn before(&self, moment: Moment) -> Revision {
        let place = self.0.partition_point(|(end, _)| *end < moment);
        place.checked_sub(1).map_or(0, |place| self.0[place].1)
    }
}
