//! The order of all changes of a resource, as all watches of it together tell.

use super::{Property, Report};
use crate::history::{Begin, Call, Change, End, Freshness, History, Notice, Outcome, Revision, Version, Watched};
use std::collections::BTreeMap;

/// Objects by name.
pub type State = BTreeMap<String, Version>;

/// From a revision with a known state on, as far as every change is known.
#[derive(Debug)]
pub struct Stretch {
    pub from: Revision,
    pub state: State,
    pub to: Revision,
}

#[derive(Debug)]
pub struct Timeline {
    pub resource: usize,
    pub changes: BTreeMap<Revision, (Change, Version)>,
    pub stretches: Vec<Stretch>,
}

/// How far a watch that selects nothing has come, and from where: all changes in between were delivered.
pub fn span(watched: &Watched) -> Option<(Revision, Revision)> {
    let mut from = match watched.begin {
        Begin::After(revision) => Some(revision),
        Begin::Initial => None,
    };
    let mut to = from;
    for notice in &watched.notices {
        match notice {
            Notice::InitialEnd(revision) if from.is_none() => (from, to) = (Some(*revision), Some(*revision)),
            Notice::InitialEnd(revision) | Notice::Bookmark(revision) => to = to.map(|to| to.max(*revision)),
            Notice::Change(_, version) => to = to.map(|to| to.max(version.revision)),
        }
    }
    from.zip(to)
}

pub fn build(history: &History, resource: usize, report: &mut Report) -> Timeline {
    let watched = || history.watched.iter().filter(|w| w.resource == resource && w.color.is_none());
    let mut changes: BTreeMap<Revision, (Change, Version)> = BTreeMap::new();
    for one in watched() {
        let Some((from, _)) = span(one) else { continue };
        for notice in &one.notices {
            let Notice::Change(change, version) = notice else { continue };
            // Initial events tell a state and no changes.
            if version.revision <= from && one.begin == Begin::Initial {
                continue;
            }
            let found = changes.entry(version.revision).or_insert_with(|| (*change, version.clone()));
            if *found != (*change, version.clone()) {
                let what = format!("at {}: {found:?} and {change:?} {version:?}", version.revision);
                report.violation(Property::OneOrder, what);
            }
        }
    }
    let mut spans: Vec<_> = watched().filter_map(span).collect();
    spans.sort_unstable();
    let lists = lists(history, resource);
    let base = history.bases[resource];
    let mut stretches = vec![Stretch { from: base, state: State::new(), to: base }];
    for (from, to) in spans {
        let last = stretches.last_mut().expect("the first one is the base");
        if from <= last.to {
            last.to = last.to.max(to);
            continue;
        }
        // A hole: known again from the first list that is within what was watched.
        let state = |items: &[Version]| items.iter().map(|v| (v.name.clone(), v.clone())).collect();
        let list = lists.iter().find(|(at, _)| *at >= from && *at <= to);
        stretches.extend(list.map(|(at, items)| Stretch { from: *at, state: state(items), to }));
    }
    let gone = history.watched.iter().filter(|w| w.resource == resource && w.end == End::Gone).count();
    report.count("watches that heard 410", gone);
    report.count("changes in order", changes.len());
    report.count("holes in what is known", stretches.len() - 1);
    Timeline { resource, changes, stretches }
}

/// Whole lists in one page, by their revisions.
fn lists(history: &History, resource: usize) -> Vec<(Revision, Vec<Version>)> {
    let mut lists: Vec<_> = history
        .operations
        .iter()
        .filter(|operation| operation.resource == resource)
        .filter_map(|operation| match (&operation.call, &operation.outcome) {
            (Call::List { color: None, fresh: Freshness::Consistent }, Outcome::Pages(pages)) if pages.len() == 1 => {
                Some((pages[0].revision, pages[0].items.clone()))
            }
            _ => None,
        })
        .collect();
    lists.sort_by_key(|(revision, _)| *revision);
    lists
}

impl Timeline {
    /// As far as everything is known.
    pub fn end(&self) -> Revision {
        self.stretches.last().map_or(0, |stretch| stretch.to)
    }

    pub fn stretch(&self, revision: Revision) -> Option<&Stretch> {
        self.stretches.iter().find(|stretch| stretch.from <= revision && revision <= stretch.to)
    }

    /// The changes in (from, to].
    pub fn between(&self, from: Revision, to: Revision) -> impl Iterator<Item = &(Change, Version)> {
        let is_some = from < to;
        is_some.then(|| self.changes.range(from + 1..=to)).into_iter().flatten().map(|(_, change)| change)
    }

    /// Whether every change in (from, to] is known.
    pub fn covers(&self, from: Revision, to: Revision) -> bool {
        self.stretch(from).is_some_and(|stretch| to <= stretch.to)
    }

    /// The state of one name just before a revision: `None` if that is not known.
    pub fn before(&self, name: &str, revision: Revision) -> Option<Option<&Version>> {
        let stretch = self.stretch(revision - 1)?;
        let earlier = self.changes.range(stretch.from + 1..revision).rev().find(|(_, (_, v))| v.name == name);
        Some(match earlier {
            Some((_, (Change::Deleted, _))) => None,
            Some((_, (_, version))) => Some(version),
            None => stretch.state.get(name),
        })
    }

    /// The next change of a name after a revision, if all is known up to it or to the end.
    pub fn next(&self, name: &str, revision: Revision) -> Option<(Revision, Change)> {
        let mut later = self.changes.range(revision + 1..);
        later.find(|(_, (_, version))| version.name == name).map(|(at, (change, _))| (*at, *change))
    }

    /// The state at each of these revisions, which are in order; `None` where it is not known.
    pub fn states(&self, at: &[Revision], mut with: impl FnMut(usize, Option<&State>)) {
        let mut current: Option<(usize, Revision, State)> = None;
        for (index, revision) in at.iter().enumerate() {
            let place = self.stretches.iter().position(|s| s.from <= *revision && *revision <= s.to);
            let Some(place) = place else {
                with(index, None);
                continue;
            };
            let stretch = &self.stretches[place];
            let (_, reached, state) = match &mut current {
                Some(current) if current.0 == place => current,
                other => other.insert((place, stretch.from, stretch.state.clone())),
            };
            for (change, version) in self.between(*reached, *revision) {
                apply(state, *change, version);
            }
            *reached = *revision;
            with(index, Some(state));
        }
    }

    /// The changes of each name follow from each other.
    pub fn check_order(&self, report: &mut Report) {
        for stretch in &self.stretches {
            let mut state = stretch.state.clone();
            for (change, version) in self.between(stretch.from, stretch.to) {
                let before = state.get(&version.name);
                let fits = match (change, before) {
                    (Change::Added, None) => true,
                    (Change::Modified, Some(before)) => before.uid == version.uid,
                    (Change::Deleted, Some(before)) => before.uid == version.uid && before.mark == version.mark,
                    _ => false,
                };
                if !fits {
                    let what = format!("{change:?} {version:?} after {before:?}");
                    report.violation(Property::OneOrder, what);
                }
                apply(&mut state, *change, version);
            }
        }
    }
}

pub fn apply(state: &mut State, change: Change, version: &Version) {
    match change {
        Change::Deleted => drop(state.remove(&version.name)),
        _ => drop(state.insert(version.name.clone(), version.clone())),
    }
}
