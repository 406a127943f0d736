//! A history that is right, and what is noticed when one thing about it is wrong.

use super::{Property, check};
use crate::history::{
    Begin, Call, Change, End, Freshness, History, Mark, Notice, Operation, Outcome, Page, Revision, Version, Watched,
};
use Change::{Added, Deleted, Modified};
use std::slice::from_ref;

fn version(name: &str, revision: Revision, uid: &str, mark: Mark, color: u8) -> Version {
    Version { name: name.into(), revision, uid: uid.into(), mark, color }
}

fn operation(start: u64, end: u64, call: Call, outcome: Outcome) -> Operation {
    Operation { resource: 0, start, end, call, outcome }
}

fn list(start: u64, end: u64, fresh: Freshness, color: Option<u8>, pages: &[(Revision, &[Version])]) -> Operation {
    let pages = pages.iter().map(|(revision, items)| Page { revision: *revision, items: items.to_vec() }).collect();
    operation(start, end, Call::List { fresh, color }, Outcome::Pages(pages))
}

fn watched(begin: Begin, color: Option<u8>, notices: Vec<Notice>) -> Watched {
    Watched { resource: 0, watcher: 1, start: 95, begin, color, notices, end: End::Cut }
}

// Places in the right history, for those who spoil it.
const CREATE_A: usize = 0;
const UPDATE_A: usize = 1;
const CREATE_B: usize = 2;
const CONFLICT: usize = 3;
const DELETE_B: usize = 4;
const GET_A: usize = 5;
const GET_B_404: usize = 6;
const CREATE_A_409: usize = 7;
const PAGED: usize = 8;
const SELECTED_LIST: usize = 9;
const LOST_ANSWER: usize = 10;

const ALL: usize = 0;
const RESUMED: usize = 1;
const SELECTED: usize = 2;
const INITIAL: usize = 3;

/// 11: a is made; 12: a changes its colour; 13: b is made; 15: b is deleted; 17: a is patched, and nobody heard it.
fn right() -> History {
    let a11 = version("a", 11, "ua", 1, 0);
    let a12 = version("a", 12, "ua", 2, 1);
    let b13 = version("b", 13, "ub", 3, 1);
    let b15 = Version { revision: 15, ..b13.clone() };
    let a17 = version("a", 17, "ua", 6, 1);
    let operations = vec![
        operation(0, 10, Call::Create { name: "a".into(), mark: 1 }, Outcome::Object(a11.clone())),
        operation(11, 20, Call::Update { name: "a".into(), mark: 2, after: 11 }, Outcome::Object(a12.clone())),
        operation(21, 30, Call::Create { name: "b".into(), mark: 3 }, Outcome::Object(b13.clone())),
        operation(31, 40, Call::Update { name: "a".into(), mark: 4, after: 11 }, Outcome::Refused(409)),
        operation(41, 50, Call::Delete { name: "b".into(), after: Some(13) }, Outcome::Deleted { uid: "ub".into() }),
        operation(51, 60, Call::Get { name: "a".into(), fresh: Freshness::Consistent }, Outcome::Object(a12.clone())),
        operation(51, 60, Call::Get { name: "b".into(), fresh: Freshness::Consistent }, Outcome::Refused(404)),
        operation(61, 70, Call::Create { name: "a".into(), mark: 5 }, Outcome::Refused(409)),
        list(31, 40, Freshness::Consistent, None, &[(13, from_ref(&a12)), (13, from_ref(&b13))]),
        list(61, 70, Freshness::Consistent, Some(1), &[(16, from_ref(&a12))]),
        operation(71, 80, Call::Patch { name: "a".into(), mark: 6, after: None }, Outcome::Unknown),
    ];
    let change = |change, version: &Version| Notice::Change(change, version.clone());
    let all = vec![change(Added, &a11), change(Modified, &a12), change(Added, &b13), Notice::Bookmark(14)];
    let resumed = vec![change(Added, &b13), change(Deleted, &b15), change(Modified, &a17)];
    // a gets the colour at 12, b has it from the start.
    let selected = vec![
        change(Added, &a12),
        change(Added, &b13),
        change(Deleted, &b15),
        change(Modified, &a17),
        Notice::Bookmark(18),
    ];
    let initial = vec![change(Added, &a12), Notice::InitialEnd(16), change(Modified, &a17)];
    let watched = vec![
        watched(Begin::After(10), None, all),
        watched(Begin::After(12), None, resumed),
        watched(Begin::After(10), Some(1), selected),
        watched(Begin::Initial, None, initial),
    ];
    History { bases: vec![10], operations, watched, finals: vec![17] }
}

fn found(history: &History) -> Vec<Property> {
    let mut found: Vec<_> = check(history).violations.into_iter().map(|violation| violation.property).collect();
    found.sort();
    found.dedup();
    found
}

/// Spoils a right history; the property must be among those that are found broken.
fn broken(property: Property, spoil: impl FnOnce(&mut History)) {
    let mut history = right();
    spoil(&mut history);
    let found = found(&history);
    assert!(found.contains(&property), "{property:?} was not noticed, but {found:?}");
}

fn object(history: &mut History, place: usize) -> &mut Version {
    match &mut history.operations[place].outcome {
        Outcome::Object(version) => version,
        other => panic!("{other:?}"),
    }
}

fn page(history: &mut History, place: usize, page: usize) -> &mut Page {
    match &mut history.operations[place].outcome {
        Outcome::Pages(pages) => &mut pages[page],
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_right_history_is_right() {
    let report = check(&right());
    assert_eq!(report.violations, []);
    assert_eq!(report.counts["acknowledged writes"], 4);
    assert_eq!(report.counts["writes without an answer"], 1);
    assert_eq!(report.counts["changes in order"], 5);
    assert_eq!(report.counts["lists"], 2);
}

#[test]
fn an_unanswered_write_may_have_happened_or_not() {
    let mut history = right();
    history.finals = vec![15];
    for watched in &mut history.watched {
        watched.notices.retain(|notice| !matches!(notice, Notice::Change(_, version) if version.revision == 17));
    }
    assert_eq!(found(&history), []);
}

#[test]
fn a_list_after_a_hole_shows_the_write_at_its_revision() {
    let (a17, c40) = (version("a", 17, "ua", 6, 1), version("c", 40, "uc", 9, 0));
    let listed = |items: &[Version]| {
        let mut history = right();
        let call = Call::Create { name: "c".into(), mark: 9 };
        history.operations.push(operation(100, 110, call, Outcome::Object(c40.clone())));
        history.operations.push(list(111, 120, Freshness::Consistent, None, &[(40, items)]));
        history.watched.push(watched(Begin::After(40), None, Vec::new()));
        found(&history)
    };
    assert_eq!(listed(&[a17.clone(), c40.clone()]), []);
    assert!(listed(&[a17]).contains(&Property::WriteKept));
}

#[test]
fn what_is_in_a_hole_is_not_judged() {
    let mut history = right();
    // Nobody saw 13 to 15; a list tells where it goes on.
    history.watched.remove(RESUMED);
    history.watched.remove(SELECTED - 1);
    history.watched[ALL].notices.truncate(2);
    let a12 = version("a", 12, "ua", 2, 1);
    history.operations.push(list(61, 70, Freshness::Consistent, None, &[(16, &[a12])]));
    history.operations.remove(GET_B_404);
    let report = check(&history);
    assert_eq!(report.violations, []);
    assert_eq!(report.counts["holes in what is known"], 1);
    assert_eq!(report.counts["acknowledged writes in holes"], 1);
}

#[test]
fn lost_writes_are_noticed() {
    let forget = |revision: Revision| {
        move |history: &mut History| {
            for watched in &mut history.watched {
                let is = |notice: &Notice| matches!(notice, Notice::Change(_, v) if v.revision == revision);
                watched.notices.retain(|notice| !is(notice));
            }
        }
    };
    broken(Property::WriteKept, forget(12));
    broken(Property::WriteKept, forget(15));
    broken(Property::WriteKept, |history| object(history, CREATE_B).color = 0);
    broken(Property::WriteKept, |history| object(history, UPDATE_A).mark = 3);
}

#[test]
fn effects_of_refused_writes_are_noticed() {
    broken(Property::RefusedWithoutEffect, |history| {
        history.operations[CREATE_A].outcome = Outcome::Refused(422);
    });
    broken(Property::RefusedWithoutEffect, |history| {
        history.operations[LOST_ANSWER].outcome = Outcome::Refused(429);
    });
}

#[test]
fn second_effects_are_noticed() {
    broken(Property::WrittenOnce, |history| {
        let again = version("a", 18, "ua", 6, 1);
        history.watched[RESUMED].notices.push(Notice::Change(Modified, again));
    });
    broken(Property::WrittenOnce, |history| {
        let again = history.operations[DELETE_B].clone();
        history.operations.push(again);
    });
}

#[test]
fn preconditions_that_were_passed_over_are_noticed() {
    // An update upon a version that was not the current one: a lost update.
    broken(Property::Precondition, |history| {
        let Call::Update { after, .. } = &mut history.operations[UPDATE_A].call else { panic!() };
        *after = 10;
    });
    broken(Property::Precondition, |history| {
        history.operations[UPDATE_A].call = Call::Create { name: "a".into(), mark: 2 };
    });
    broken(Property::Attributed, |history| {
        let Call::Delete { after, .. } = &mut history.operations[DELETE_B].call else { panic!() };
        *after = Some(11);
    });
}

#[test]
fn changes_by_nobody_are_noticed() {
    broken(Property::Attributed, |history| drop(history.operations.remove(LOST_ANSWER)));
    broken(Property::Attributed, |history| drop(history.operations.remove(DELETE_B)));
    broken(Property::Attributed, |history| {
        history.operations[LOST_ANSWER].call = Call::Patch { name: "b".into(), mark: 6, after: None };
    });
}

#[test]
fn revisions_against_time_are_noticed() {
    // a's update began after b was made, and has an earlier revision.
    broken(Property::RealTime, |history| {
        (history.operations[UPDATE_A].start, history.operations[UPDATE_A].end) = (35, 39);
    });
    broken(Property::RealTime, |history| {
        let late = list(81, 90, Freshness::Consistent, Some(0), &[(30, &[])]);
        history.operations.insert(LOST_ANSWER, late);
        history.operations[LOST_ANSWER + 1].start = 100;
    });
}

#[test]
fn disorder_is_noticed() {
    broken(Property::OneOrder, |history| {
        // The same revision, told differently by another watch.
        history.watched[RESUMED].notices[0] = Notice::Change(Added, version("b", 13, "ub", 3, 2));
    });
    broken(Property::OneOrder, |history| {
        history.watched.truncate(1);
        history.watched[ALL].notices[2] = Notice::Change(Modified, version("b", 13, "ub", 3, 1));
    });
    broken(Property::OneOrder, |history| {
        for watched in [ALL, RESUMED] {
            for notice in &mut history.watched[watched].notices {
                if let Notice::Change(Deleted, version) = notice {
                    version.uid = "another".into();
                }
            }
        }
    });
}

#[test]
fn stale_and_wrong_reads_are_noticed() {
    broken(Property::Read, |history| *object(history, GET_A) = version("a", 11, "ua", 1, 0));
    broken(Property::Read, |history| object(history, GET_A).revision = 14);
    broken(Property::Read, |history| object(history, GET_A).mark = 9);
    // A list older than what was known.
    broken(Property::Read, |history| {
        let old = list(61, 70, Freshness::Consistent, None, &[(11, &[version("a", 11, "ua", 1, 0)])]);
        history.operations.push(old);
    });
    broken(Property::Read, |history| {
        let old = list(61, 70, Freshness::NotOlderThan(12), None, &[(11, &[version("a", 11, "ua", 1, 0)])]);
        history.operations.push(old);
    });
    broken(Property::Read, |history| {
        let other = list(61, 70, Freshness::Exact(11), None, &[(12, &[version("a", 12, "ua", 2, 1)])]);
        history.operations.push(other);
    });
    // What is old is fine where it was asked for.
    let mut history = right();
    let old = list(61, 70, Freshness::Any, None, &[(11, &[version("a", 11, "ua", 1, 0)])]);
    history.operations.push(old);
    assert_eq!(found(&history), []);
}

#[test]
fn lists_that_are_no_state_are_noticed() {
    broken(Property::ListAtRevision, |history| page(history, PAGED, 1).items.clear());
    broken(Property::ListAtRevision, |history| page(history, PAGED, 1).revision = 14);
    broken(Property::ListAtRevision, |history| {
        // The second page is of another time.
        page(history, PAGED, 0).items[0] = version("a", 11, "ua", 1, 0);
    });
    broken(Property::ListAtRevision, |history| {
        let b = version("b", 13, "ub", 3, 1);
        page(history, SELECTED_LIST, 0).items.push(b);
    });
}

#[test]
fn refusals_without_reason_are_noticed() {
    broken(Property::Refusal, |history| {
        let Call::Update { after, .. } = &mut history.operations[CONFLICT].call else { panic!() };
        *after = 17;
    });
    broken(Property::Refusal, |history| {
        history.operations[GET_B_404].call = Call::Get { name: "a".into(), fresh: Freshness::Consistent };
    });
    broken(Property::Refusal, |history| {
        history.operations[CREATE_A_409].call = Call::Create { name: "c".into(), mark: 5 };
    });
}

#[test]
fn gaps_and_duplicates_of_watches_are_noticed() {
    // Each is one that another watch has seen.
    for (place, left_out) in [(ALL, 2), (RESUMED, 0), (SELECTED, 1)] {
        broken(Property::WatchGap, |history| drop(history.watched[place].notices.remove(left_out)));
        broken(Property::WatchExtra, |history| {
            let again = history.watched[place].notices[1].clone();
            history.watched[place].notices.insert(2, again);
        });
        broken(Property::WatchExtra, |history| history.watched[place].notices.swap(0, 1));
    }
    broken(Property::WatchGap, |history| {
        history.watched[INITIAL].notices[2] = Notice::Bookmark(20);
    });
    // A watch of a colour shows another one.
    broken(Property::WatchExtra, |history| {
        let a11 = version("a", 11, "ua", 1, 0);
        history.watched[SELECTED].notices.insert(0, Notice::Change(Added, a11));
    });
    broken(Property::WatchGap, |history| history.watched[ALL].end = End::Error("500".into()));
}

#[test]
fn bookmarks_that_promise_too_much_are_noticed() {
    broken(Property::Bookmark, |history| history.watched[ALL].notices.insert(1, Notice::Bookmark(13)));
    broken(Property::Bookmark, |history| history.watched[ALL].notices.push(Notice::Bookmark(12)));
    // Nothing came after it, but others saw a change before it.
    broken(Property::WatchGap, |history| history.watched[ALL].notices.push(Notice::Bookmark(15)));
}

#[test]
fn initial_events_that_are_no_state_are_noticed() {
    broken(Property::InitialEvents, |history| drop(history.watched[INITIAL].notices.remove(0)));
    broken(Property::InitialEvents, |history| {
        let b = version("b", 13, "ub", 3, 1);
        history.watched[INITIAL].notices.insert(0, Notice::Change(Added, b));
    });
    // They end before what was known.
    broken(Property::InitialEvents, |history| history.watched[INITIAL].notices[1] = Notice::InitialEnd(12));
}

#[test]
fn watches_that_stay_behind_are_noticed() {
    broken(Property::CaughtUp, |history| history.finals = vec![19]);
}
