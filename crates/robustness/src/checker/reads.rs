//! Reads show states that were current while they ran, lists those at their revision; refusals say the truth.

use super::timeline::{State, Timeline};
use super::{Known, Property, Report};
use crate::history::{Call, Change, Freshness, History, Operation, Outcome, Page, Revision, Version};

pub fn check(history: &History, timelines: &[Timeline], known: &Known, report: &mut Report) {
    for operation in &history.operations {
        let timeline = &timelines[operation.resource];
        match (&operation.call, &operation.outcome) {
            (Call::Get { name, fresh }, Outcome::Object(version)) => {
                report.count("reads", 1);
                got(timeline, operation, name, *fresh, version, known, report);
            }
            (Call::Get { name, fresh: Freshness::Consistent }, Outcome::Refused(404)) => {
                report.count("reads", 1);
                absent(timeline, operation, name, known, report);
            }
            (
                Call::Delete { name, .. } | Call::Patch { name, .. } | Call::Update { name, .. },
                Outcome::Refused(404),
            ) => {
                absent(timeline, operation, name, known, report);
            }
            (Call::Create { name, .. }, Outcome::Refused(409)) => present(timeline, operation, name, known, report),
            (
                Call::Update { name, after, .. }
                | Call::Patch { name, after: Some(after), .. }
                | Call::Delete { name, after: Some(after) },
                Outcome::Refused(409),
            ) => {
                let unchanged = timeline.covers(*after, timeline.end()) && timeline.next(name, *after).is_none();
                if unchanged && timeline.changes.contains_key(after) {
                    report.violation(Property::Refusal, format!("{operation:?}: it has never changed since"));
                }
            }
            _ => {}
        }
    }
    for timeline in timelines {
        lists(history, timeline, known, report);
    }
}

fn got(
    timeline: &Timeline,
    operation: &Operation,
    name: &str,
    fresh: Freshness,
    version: &Version,
    known: &Known,
    report: &mut Report,
) {
    if version.name != name {
        report.violation(Property::Read, format!("{operation:?} is about another"));
    }
    match timeline.changes.get(&version.revision) {
        Some((Change::Added | Change::Modified, found)) if found == version => {}
        None if timeline.stretch(version.revision).is_none() => return,
        // What a hole left behind: it was not seen when it changed.
        None if timeline.stretches.len() > 1 => return,
        found => return report.violation(Property::Read, format!("{operation:?}, and there was {found:?}")),
    }
    let low = match fresh {
        Freshness::Consistent => known.before(operation.start),
        Freshness::NotOlderThan(revision) | Freshness::Exact(revision) => revision,
        Freshness::Any => return,
    };
    if let Some((next, _)) = timeline.next(name, version.revision).filter(|(next, _)| *next <= low) {
        let what = format!("{operation:?} began when {low} was known, and it had changed at {next}");
        report.violation(Property::Read, what);
    }
}

/// It was missing at some time from what was known at the start on.
fn absent(timeline: &Timeline, operation: &Operation, name: &str, known: &Known, report: &mut Report) {
    let low = known.before(operation.start);
    if !timeline.covers(low, timeline.end()) {
        return;
    }
    let missing_then = timeline.before(name, low + 1) == Some(None);
    let deleted_later = timeline
        .changes
        .range(low + 1..)
        .any(|(_, (change, version))| *change == Change::Deleted && version.name == name);
    if !missing_then && !deleted_later {
        report.violation(Property::Refusal, format!("{operation:?}: it was there all the time from {low} on"));
    }
}

/// It was there at some time from what was known at the start on.
fn present(timeline: &Timeline, operation: &Operation, name: &str, known: &Known, report: &mut Report) {
    let low = known.before(operation.start);
    if !timeline.covers(low, timeline.end()) {
        return;
    }
    let there_then = timeline.before(name, low + 1).is_some_and(|version| version.is_some());
    if !there_then && timeline.next(name, low).is_none() {
        report.violation(Property::Refusal, format!("{operation:?}: it was missing all the time from {low} on"));
    }
}

/// A list and the state that it must show.
struct Listed<'a> {
    at: Revision,
    operation: &'a Operation,
    pages: &'a [Page],
    color: Option<u8>,
}

fn lists(history: &History, timeline: &Timeline, known: &Known, report: &mut Report) {
    let mut listed: Vec<Listed<'_>> = Vec::new();
    for operation in history.operations.iter().filter(|operation| operation.resource == timeline.resource) {
        let (Call::List { fresh, color }, Outcome::Pages(pages)) = (&operation.call, &operation.outcome) else {
            continue;
        };
        let Some(first) = pages.first() else { continue };
        if pages.iter().any(|page| page.revision != first.revision) {
            let revisions: Vec<_> = pages.iter().map(|page| page.revision).collect();
            report.violation(Property::ListAtRevision, format!("pages at {revisions:?}: {:?}", operation.call));
            continue;
        }
        let low = match fresh {
            Freshness::Consistent => known.before(operation.start),
            Freshness::NotOlderThan(revision) | Freshness::Exact(revision) => *revision,
            Freshness::Any => 0,
        };
        let is_exact = matches!(fresh, Freshness::Exact(_));
        if first.revision < low || (is_exact && first.revision != low) {
            let what = format!("a list at {} where {low} was known or asked for: {:?}", first.revision, operation.call);
            report.violation(Property::Read, what);
        }
        report.count("lists", 1);
        report.count("pages", pages.len());
        listed.push(Listed { at: first.revision, operation, pages, color: *color });
    }
    listed.sort_by_key(|listed| listed.at);
    let at: Vec<Revision> = listed.iter().map(|listed| listed.at).collect();
    timeline.states(&at, |index, state| match state {
        Some(state) => compare(&listed[index], state, report),
        None => report.count("lists in holes", 1),
    });
}

fn compare(listed: &Listed<'_>, state: &State, report: &mut Report) {
    let expected = || state.values().filter(|version| listed.color.is_none_or(|color| version.color == color));
    let items = || listed.pages.iter().flat_map(|page| &page.items);
    if items().eq(expected()) {
        return;
    }
    let missing: Vec<_> = expected().filter(|version| !items().any(|item| item == *version)).collect();
    let extra: Vec<_> = items().filter(|item| !expected().any(|version| version == *item)).collect();
    let what = format!(
        "at {} ({} pages, {:?}): missing {missing:?}, too much {extra:?}",
        listed.at,
        listed.pages.len(),
        listed.operation.call
    );
    report.violation(Property::ListAtRevision, what);
}
