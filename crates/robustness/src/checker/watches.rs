//! Each watch delivered the changes between where it began and where it ended, each once and in order.

use super::timeline::{self, State, Timeline};
use super::{Known, Property, Report};
use crate::history::{Begin, Change, End, History, Notice, Revision, Version, Watched};

pub fn check(history: &History, timelines: &[Timeline], known: &Known, report: &mut Report) {
    for watched in &history.watched {
        let timeline = &timelines[watched.resource];
        report.count("watches", 1);
        if let End::Error(error) = &watched.end {
            report.violation(Property::WatchGap, format!("a watch ended with {error}"));
        }
        bookmarks(watched, report);
        let Some((from, to)) = timeline::span(watched) else { continue };
        if watched.begin == Begin::Initial {
            initial(timeline, watched, from, known, report);
        }
        // As far as it can be told: a watch of a colour may have come further than those that see all.
        if let Some(stretch) = timeline.stretch(from) {
            delivered(timeline, watched, from, to.min(stretch.to), report);
        }
    }
}

/// Nothing comes after a bookmark that it already covers.
fn bookmarks(watched: &Watched, report: &mut Report) {
    let mut told: Option<Revision> = None;
    for notice in &watched.notices {
        match notice {
            Notice::Bookmark(revision) | Notice::InitialEnd(revision) => {
                report.count("bookmarks", 1);
                if told.is_some_and(|told| told > *revision) {
                    report.violation(Property::Bookmark, format!("{revision} after {told:?}"));
                }
                told = Some(*revision);
            }
            Notice::Change(change, version) => {
                if told.is_some_and(|told| version.revision <= told) {
                    report
                        .violation(Property::Bookmark, format!("{change:?} {version:?} after a bookmark at {told:?}"));
                }
            }
        }
    }
}

/// The initial events, with what changed meanwhile, make the state at their end.
fn initial(timeline: &Timeline, watched: &Watched, end: Revision, known: &Known, report: &mut Report) {
    report.count("watches with initial events", 1);
    let low = known.before(watched.start);
    if end < low {
        report.violation(Property::InitialEvents, format!("initial events at {end} where {low} was known"));
    }
    let mut state = State::new();
    for notice in &watched.notices {
        match notice {
            Notice::Change(change, version) => timeline::apply(&mut state, *change, version),
            Notice::Bookmark(_) => {}
            Notice::InitialEnd(_) => break,
        }
    }
    timeline.states(&[end], |_, expected| {
        let Some(expected) = expected else { return };
        let selected = |version: &&Version| watched.color.is_none_or(|color| version.color == color);
        let expected: Vec<_> = expected.values().filter(selected).collect();
        if !state.values().eq(expected.iter().copied()) {
            let what = format!("at {end}: {:?} instead of {expected:?}", state.values().collect::<Vec<_>>());
            report.violation(Property::InitialEvents, what);
        }
    });
}

fn delivered(timeline: &Timeline, watched: &Watched, from: Revision, to: Revision, report: &mut Report) {
    let is_initial = watched.begin == Begin::Initial;
    let past_initial = |notice: &&Notice| !is_initial || !matches!(notice, Notice::InitialEnd(_));
    let mut notices = watched.notices.iter();
    if is_initial {
        notices.by_ref().find(|notice| !past_initial(notice));
    }
    let got = notices.filter_map(|notice| match notice {
        Notice::Change(change, version) if version.revision <= to => Some((*change, version)),
        _ => None,
    });
    let got: Vec<(Change, &Version)> = got.collect();
    report.count("delivered changes", got.len());
    let expected: Vec<(Change, Version)> = expected(timeline, watched.color, from, to);
    let (mut left, mut right) = (expected.iter().peekable(), got.iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some((change, version)), Some((got, seen))) if change == got && version == *seen => {
                left.next();
                right.next();
            }
            (Some((change, version)), Some((_, seen))) if version.revision < seen.revision => {
                report.violation(Property::WatchGap, format!("{change:?} {version:?} is missing: {}", about(watched)));
                left.next();
            }
            (Some((change, version)), None) => {
                report.violation(Property::WatchGap, format!("{change:?} {version:?} is missing: {}", about(watched)));
                left.next();
            }
            (_, Some((change, version))) => {
                report.violation(Property::WatchExtra, format!("{change:?} {version:?}: {}", about(watched)));
                right.next();
            }
        }
    }
}

fn about(watched: &Watched) -> String {
    let Watched { watcher, begin, color, start, .. } = watched;
    format!("watcher {watcher} from {begin:?}, color {color:?}, at {start} µs")
}

/// What a watch of a colour hears: an object comes when it gets the colour, and goes when it loses it.
fn expected(timeline: &Timeline, color: Option<u8>, from: Revision, to: Revision) -> Vec<(Change, Version)> {
    let changes = timeline.between(from, to);
    let Some(color) = color else { return changes.cloned().collect() };
    let mut state = State::new();
    timeline.states(&[from], |_, known| state = known.cloned().unwrap_or_default());
    let mut found = Vec::new();
    for (change, version) in changes {
        let before = state.get(&version.name).filter(|before| before.color == color).cloned();
        let after = *change != Change::Deleted && version.color == color;
        found.extend(match (before, after) {
            (None, true) => Some((Change::Added, version.clone())),
            (Some(_), true) => Some((Change::Modified, version.clone())),
            // As it was when it was last selected, at the revision at which it went.
            (Some(before), false) => Some((Change::Deleted, Version { revision: version.revision, ..before })),
            (None, false) => None,
        });
        timeline::apply(&mut state, *change, version);
    }
    found
}
