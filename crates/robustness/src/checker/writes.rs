//! Each write has its place in the order, once, upon what it expected, and after all that had ended before it began.

use super::timeline::{Stretch, Timeline};
use super::{Known, Property, Report};
use crate::history::{Call, Change, History, Mark, Operation, Outcome, Revision, Version};
use std::collections::HashMap;

/// The revision of each write, as far as it can be told.
pub fn places(history: &History, timelines: &[Timeline]) -> Vec<Option<Revision>> {
    let (mut written, mut deleted) = (HashMap::new(), HashMap::new());
    for timeline in timelines {
        for (revision, (change, version)) in &timeline.changes {
            match change {
                Change::Deleted => drop(deleted.insert(version.uid.as_str(), *revision)),
                // The first one counts; another is a violation by itself.
                _ => drop(written.entry(version.mark).or_insert(*revision)),
            }
        }
    }
    let place = |operation: &Operation| match (&operation.call, &operation.outcome) {
        (Call::Delete { .. }, Outcome::Deleted { uid }) => deleted.get(uid.as_str()).copied(),
        (call, Outcome::Object(version)) if call.is_write() => Some(version.revision),
        (call, _) => call.mark().and_then(|mark| written.get(&mark).copied()),
    };
    history.operations.iter().map(place).collect()
}

pub fn check(
    history: &History,
    timelines: &[Timeline],
    places: &[Option<Revision>],
    known: &Known,
    report: &mut Report,
) {
    let by_mark: HashMap<Mark, &Operation> =
        history.operations.iter().filter_map(|operation| Some((operation.call.mark()?, operation))).collect();
    let deletions = Deletions::of(history);
    for timeline in timelines {
        for (revision, (change, version)) in &timeline.changes {
            match change {
                Change::Deleted => deletions.attribute(timeline, *revision, version, known, report),
                _ => attribute(&by_mark, timeline, *revision, version, known, report),
            }
        }
    }
    for (operation, place) in history.operations.iter().zip(places) {
        if operation.call.is_write() {
            acknowledged(&timelines[operation.resource], operation, *place, known, report);
        }
    }
}

/// Some operation did this, and was allowed to.
fn attribute(
    by_mark: &HashMap<Mark, &Operation>,
    timeline: &Timeline,
    revision: Revision,
    version: &Version,
    known: &Known,
    report: &mut Report,
) {
    let what = || format!("{version:?} at {revision}");
    let Some(operation) = by_mark.get(&version.mark) else {
        return report.violation(Property::Attributed, format!("nobody wrote {}", what()));
    };
    if operation.resource != timeline.resource || operation.call.name() != Some(&version.name) {
        report.violation(Property::Attributed, format!("{} was written by {operation:?}", what()));
    }
    if matches!(operation.outcome, Outcome::Refused(_)) {
        report.violation(Property::RefusedWithoutEffect, format!("{} was written by {operation:?}", what()));
    }
    if revision <= known.before(operation.start) {
        let by_then = known.before(operation.start);
        let what = format!("{} was written by {operation:?}, which began when {by_then} was known", what());
        report.violation(Property::RealTime, what);
    }
    let Some(before) = timeline.before(&version.name, revision) else { return };
    if before.is_some_and(|before| before.mark == version.mark) {
        report.violation(Property::WrittenOnce, format!("{} is there a second time, after {before:?}", what()));
    }
    let holds = match operation.call {
        Call::Create { .. } => before.is_none(),
        Call::Update { after, .. } | Call::Patch { after: Some(after), .. } => {
            before.is_some_and(|before| before.revision == after)
        }
        Call::Patch { after: None, .. } => before.is_some(),
        _ => true,
    };
    if !holds {
        report.violation(Property::Precondition, format!("{operation:?} made {}, after {before:?}", what()));
    }
}

/// Deletions that may have happened.
struct Deletions<'a> {
    by_uid: HashMap<&'a str, Vec<&'a Operation>>,
    unknown: HashMap<(usize, &'a str), Vec<&'a Operation>>,
}

impl<'a> Deletions<'a> {
    fn of(history: &'a History) -> Deletions<'a> {
        let mut found = Deletions { by_uid: HashMap::new(), unknown: HashMap::new() };
        for operation in &history.operations {
            match (&operation.call, &operation.outcome) {
                (Call::Delete { .. }, Outcome::Deleted { uid }) => {
                    found.by_uid.entry(uid).or_default().push(operation);
                }
                (Call::Delete { name, .. }, Outcome::Unknown) => {
                    found.unknown.entry((operation.resource, name)).or_default().push(operation);
                }
                _ => {}
            }
        }
        found
    }

    /// Somebody asked for it, by name, and for this version if for any.
    fn attribute(
        &self,
        timeline: &Timeline,
        revision: Revision,
        version: &Version,
        known: &Known,
        report: &mut Report,
    ) {
        let before = timeline.before(&version.name, revision).flatten();
        let did = |operation: &&&Operation| {
            let Call::Delete { name, after } = &operation.call else { return false };
            let expected = match (after, before) {
                (Some(after), Some(before)) => before.revision == *after,
                _ => true,
            };
            let after_start = revision > known.before(operation.start);
            expected && after_start && *name == version.name && operation.resource == timeline.resource
        };
        let answered = self.by_uid.get(version.uid.as_str()).into_iter().flatten();
        let unknown = self.unknown.get(&(timeline.resource, version.name.as_str())).into_iter().flatten();
        let count = answered.clone().count();
        if count > 1 {
            report.violation(Property::WrittenOnce, format!("{count} deletions of {version:?} were acknowledged"));
        }
        if !answered.chain(unknown).any(|operation| did(&operation)) {
            report.violation(Property::Attributed, format!("nobody deleted {version:?} at {revision}"));
        }
    }
}

/// What the answer says is so.
fn acknowledged(
    timeline: &Timeline,
    operation: &Operation,
    place: Option<Revision>,
    known: &Known,
    report: &mut Report,
) {
    let lost = |report: &mut Report| report.violation(Property::WriteKept, format!("{operation:?} is nowhere"));
    match &operation.outcome {
        Outcome::Object(version) => {
            report.count("acknowledged writes", 1);
            let found = timeline.changes.get(&version.revision);
            // After a hole all is known from a list on, which shows the write that it is as late as.
            let is_listed = |stretch: &Stretch| {
                stretch.from == version.revision && stretch.state.get(&version.name) == Some(version)
            };
            match found {
                None => match timeline.stretch(version.revision) {
                    Some(stretch) if !is_listed(stretch) => lost(report),
                    Some(_) => {}
                    None => report.count("acknowledged writes in holes", 1),
                },
                Some((Change::Deleted, _)) => lost(report),
                Some((_, found)) if found != version => {
                    report.violation(Property::WriteKept, format!("{operation:?} is there as {found:?}"));
                }
                Some(_) => {}
            }
            if Some(version.mark) != operation.call.mark() {
                report.violation(Property::WriteKept, format!("{operation:?} was answered with another's"));
            }
        }
        Outcome::Deleted { uid } => {
            report.count("acknowledged writes", 1);
            let is_there = timeline.stretches.len() == 1
                && !timeline
                    .changes
                    .values()
                    .any(|(change, version)| *change == Change::Deleted && version.uid == *uid);
            if is_there {
                lost(report);
            }
        }
        Outcome::Refused(_) => report.count("refused writes", 1),
        Outcome::Unknown => report.count("writes without an answer", 1),
        Outcome::Pages(_) => report.violation(Property::WriteKept, format!("{operation:?}")),
    }
    let by_then = known.before(operation.start);
    if place.is_some_and(|place| place <= by_then) {
        report.violation(Property::RealTime, format!("{operation:?} at {place:?} began when {by_then} was known"));
    }
}
