//! What is known of the order of all changes, and what must follow from it.

use crate::model::{Expect, KeyValue};
use crate::watch::Event;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A change of one key: its new value, or that it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    pub value: Option<String>,
}

/// What somebody read: all keys that begin so, as of a revision.
#[derive(Debug)]
pub struct Listed {
    pub what: &'static str,
    pub prefix: String,
    pub revision: i64,
    pub items: Vec<(String, i64, String)>,
}

/// What a watch told: the changes after a revision that concern it.
#[derive(Debug, Default)]
pub struct Watched {
    pub what: &'static str,
    pub prefix: String,
    /// Only those that are, or were, of this colour.
    pub colour: Option<char>,
    pub after: i64,
    pub told: Vec<Told>,
    /// The watch has said that it is complete up to here.
    pub complete: i64,
    /// It goes on, so that in the end it must have told all.
    pub is_live: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub revision: i64,
    pub change: Change,
    /// What was there before, where the watch tells.
    pub previous: Option<Option<i64>>,
}

/// A write that was answered with success.
#[derive(Debug)]
struct Acked {
    revision: i64,
    key: String,
    expect: Expect,
    /// What had been acknowledged when it began.
    floor: i64,
}

#[derive(Debug, Default)]
pub struct Model {
    order: BTreeMap<i64, Change>,
    /// The newest revision that anybody was told of.
    known: i64,
    puts: HashMap<String, Put>,
    /// Deletions that were asked for, by key.
    deletions: HashMap<String, usize>,
    acked: Vec<Acked>,
    lists: Vec<Listed>,
    watches: Vec<Watched>,
    /// Operations that have begun and are not answered.
    in_flight: usize,
    /// When a change was first heard of.
    seen_at: HashMap<i64, u64>,
    /// Milliseconds.
    pub now: u64,
    pub violations: Vec<String>,
    pub counts: Counts,
}

/// How much was checked.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub writes: u64,
    pub reads: u64,
    pub events: u64,
    pub lives: u64,
    pub faults: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.writes += other.writes;
        self.reads += other.reads;
        self.events += other.events;
        self.lives += other.lives;
        self.faults += other.faults;
    }
}

#[derive(Debug)]
struct Put {
    key: String,
    /// Milliseconds, if it is to go by itself.
    deadline: Option<u64>,
}

/// Values begin with a colour, by which watches select.
pub fn colour(value: &str) -> Option<char> {
    value.chars().next()
}

impl Model {
    pub fn known(&self) -> i64 {
        self.known
    }

    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Somebody asks for a put; its value is no other's.
    pub fn asks_put(&mut self, key: &str, value: &str, deadline: Option<u64>) {
        self.puts.insert(value.to_owned(), Put { key: key.to_owned(), deadline });
    }

    pub fn asks_delete(&mut self, key: &str) {
        *self.deletions.entry(key.to_owned()).or_default() += 1;
    }

    /// Anybody learned of a change; all must have learned the same.
    pub fn observe(&mut self, revision: i64, change: Change) {
        self.known = self.known.max(revision);
        match self.order.get(&revision) {
            Some(known) if *known != change => {
                let text = format!("revision {revision} is {known:?}, and then {change:?}");
                self.violate(text);
            }
            Some(_) => {}
            None => {
                self.order.insert(revision, change);
                self.seen_at.insert(revision, self.now);
            }
        }
    }

    pub fn observe_value(&mut self, kv: &KeyValue) {
        let change = Change { key: text(&kv.key), value: Some(text(&kv.value)) };
        self.observe(kv.mod_revision.0, change);
    }

    pub fn observe_event(&mut self, event: &Event) {
        let change = change_of(event);
        self.observe(event.revision().0, change);
    }

    pub fn acknowledged(&mut self, revision: i64, change: Change, expect: Expect, floor: i64) {
        self.counts.writes += 1;
        if revision <= floor {
            self.violate(format!("{change:?} got revision {revision}, though {floor} was known before"));
        }
        self.acked.push(Acked { revision, key: change.key.clone(), expect, floor });
        self.observe(revision, change);
    }

    pub fn listed(&mut self, list: Listed, floor: i64) {
        self.counts.reads += 1;
        if list.revision < floor {
            let Listed { what, revision, .. } = list;
            self.violate(format!("{what} is of revision {revision}, though {floor} was known before"));
        }
        self.known = self.known.max(list.revision);
        self.lists.push(list);
    }

    /// A watch begins; answers its number.
    pub fn watches(&mut self, watched: Watched) -> usize {
        self.watches.push(Watched { is_live: true, ..watched });
        self.watches.len() - 1
    }

    pub fn told_by(&mut self, watch: usize, told: Told, complete: i64) {
        self.counts.events += 1;
        self.observe(told.revision, told.change.clone());
        self.watches[watch].told.push(told);
        self.completed(watch, complete);
    }

    pub fn completed(&mut self, watch: usize, complete: i64) {
        self.known = self.known.max(complete);
        let watch = &mut self.watches[watch];
        watch.complete = watch.complete.max(complete);
    }

    pub fn ended(&mut self, watch: usize) {
        self.watches[watch].is_live = false;
    }

    pub fn begins(&mut self) {
        self.in_flight += 1;
    }

    pub fn ends(&mut self) {
        self.in_flight -= 1;
    }

    /// The process is gone.
    pub fn died(&mut self) {
        self.in_flight = 0;
        self.watches.iter_mut().for_each(|watch| watch.is_live = false);
    }

    /// The clock went back: what is not written yet may go earlier than it was thought.
    pub fn went_back(&mut self) {
        let written: BTreeSet<&str> = self.order.values().filter_map(|change| change.value.as_deref()).collect();
        for (value, put) in &mut self.puts {
            if put.deadline.is_some() && !written.contains(value.as_str()) {
                put.deadline = Some(0);
            }
        }
    }

    /// Everything has come to rest: nobody waits, watches have told all, what had a deadline is gone.
    pub fn rest(&mut self) {
        if self.in_flight > 0 {
            self.violate(format!("{} operations are never answered", self.in_flight));
        }
        let known = self.known;
        for watch in self.watches.iter_mut().filter(|watch| watch.is_live) {
            watch.complete = watch.complete.max(known);
        }
        let state = self.state(known);
        let left: Vec<String> = state
            .iter()
            .filter(|(_, (_, value))| self.puts.get(*value).is_some_and(|put| put.deadline.is_some()))
            .map(|(key, (revision, _))| format!("{key} of revision {revision} did not expire"))
            .collect();
        self.violations.extend(left);
    }

    /// The state at a revision: what each key holds, and since when.
    fn state(&self, at: i64) -> BTreeMap<&str, (i64, &str)> {
        let mut state = BTreeMap::new();
        for (revision, change) in self.order.range(..=at) {
            match &change.value {
                Some(value) => state.insert(change.key.as_str(), (*revision, value.as_str())),
                None => state.remove(change.key.as_str()),
            };
        }
        state
    }

    /// The store was opened: `current` is where it stands, and what is kept of the past was observed. Nothing that anybody knew may be
    /// missing.
    pub fn reopened(&mut self, current: i64) {
        if current < self.known {
            self.violate(format!("the store is at {current}, though {} was known", self.known));
        }
        self.known = self.known.max(current);
    }

    /// Looks at everything once all is known.
    pub fn check(&mut self) {
        let mut found = Vec::new();
        self.check_order(&mut found);
        for acked in &self.acked {
            self.check_precondition(acked, &mut found);
        }
        for list in &self.lists {
            self.check_list(list, &mut found);
        }
        for watch in &self.watches {
            self.check_watch(watch, &mut found);
        }
        self.violations.extend(found);
    }

    fn check_order(&self, found: &mut Vec<String>) {
        let mut used = BTreeSet::new();
        let mut held: HashMap<&str, &str> = HashMap::new();
        let mut unasked: HashMap<&str, usize> = HashMap::new();
        let mut expected = self.order.keys().next().copied().unwrap_or_default();
        for (revision, change) in &self.order {
            if *revision != expected {
                found.push(format!("revision {expected} is missing before {revision}"));
            }
            expected = revision + 1;
            let Change { key, value } = change;
            let Some(value) = value else {
                let Some(last) = held.remove(key.as_str()) else {
                    found.push(format!("{key} was deleted at {revision}, but was not there"));
                    continue;
                };
                let seen = self.seen_at.get(revision).copied().unwrap_or_default();
                let deadline = self.puts.get(last).and_then(|put| put.deadline);
                let expires = deadline.is_some_and(|deadline| deadline <= seen);
                *unasked.entry(key).or_default() += usize::from(!expires);
                continue;
            };
            if self.puts.get(value).is_none_or(|put| put.key != *key) {
                found.push(format!("nobody asked for {change:?} of revision {revision}"));
            }
            if !used.insert(value.as_str()) {
                found.push(format!("{change:?} was done twice, again at {revision}"));
            }
            held.insert(key, value);
        }
        for (key, count) in unasked {
            let asked = self.deletions.get(key).copied().unwrap_or_default();
            if count > asked {
                found.push(format!("{key} was deleted {count} times, and {asked} were asked for"));
            }
        }
    }

    fn check_precondition(&self, acked: &Acked, found: &mut Vec<String>) {
        let Acked { revision, key, expect, floor } = acked;
        let before = self.order.range(..revision).rev().find(|(_, change)| change.key == *key);
        let before =
            before.filter(|(_, change)| change.value.is_some()).map(|(revision, _)| crate::Revision(*revision));
        if !expect.holds(before) {
            found.push(format!(
                "revision {revision} of {key} expected {expect:?}, but {before:?} was there ({floor} known)"
            ));
        }
    }

    fn check_list(&self, list: &Listed, found: &mut Vec<String>) {
        let state = self.state(list.revision);
        let within = state.range(list.prefix.as_str()..).take_while(|(key, _)| key.starts_with(&list.prefix));
        let expected: Vec<_> = within.map(|(key, (at, value))| (key.to_string(), *at, value.to_string())).collect();
        if expected != list.items {
            let Listed { what, prefix, revision, items } = list;
            found.push(format!("{what} of {prefix} at {revision} shows {items:?} in place of {expected:?}"));
        }
    }

    fn check_watch(&self, watch: &Watched, found: &mut Vec<String>) {
        let last = watch.told.last().map_or(watch.complete, |told| told.revision.max(watch.complete));
        let expected = self.told(watch, last);
        if !same(&watch.told, &expected) {
            let Watched { what, prefix, colour, after, told, .. } = watch;
            found.push(format!("{what} of {prefix} {colour:?} after {after} told {told:?} in place of {expected:?}"));
        }
    }

    /// What a watch must tell up to a revision.
    pub fn told(&self, watch: &Watched, until: i64) -> Vec<Told> {
        let mut told = Vec::new();
        let mut held: HashMap<&str, (i64, &str)> = HashMap::new();
        for (revision, change) in self.order.range(..=until) {
            let before = match &change.value {
                Some(value) => held.insert(&change.key, (*revision, value)),
                None => held.remove(change.key.as_str()),
            };
            let of_colour = |value: Option<&str>| value.is_some_and(|value| colour(value) == watch.colour);
            let concerns = watch.colour.is_none()
                || of_colour(change.value.as_deref())
                || of_colour(before.map(|(_, value)| value));
            if *revision > watch.after && change.key.starts_with(&watch.prefix) && concerns {
                let previous = Some(before.map(|(revision, _)| revision));
                told.push(Told { revision: *revision, change: change.clone(), previous });
            }
        }
        told
    }
}

/// What was told is what was expected; a watch that does not tell of previous values need not.
fn same(told: &[Told], expected: &[Told]) -> bool {
    told.len() == expected.len()
        && told.iter().zip(expected).all(|(told, expected)| {
            told.revision == expected.revision
                && told.change == expected.change
                && (told.previous.is_none() || told.previous == expected.previous)
        })
}

pub fn change_of(event: &Event) -> Change {
    let value = match event {
        Event::Put { kv, .. } => Some(text(&kv.value)),
        Event::Delete { .. } => None,
    };
    Change { key: text(event.key()), value }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
