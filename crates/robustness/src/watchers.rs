//! Clients that watch. Auditors follow everything from the first revision on; roamers begin anywhere.

use crate::history::{Begin, Call, End, Freshness, Notice, Operation, Outcome, Revision, Watched};
use crate::isolation::Failure;
use crate::load::{Apis, COLORS, Shared, operate};
use crate::wire::{Content, Line, address, line, path_of, request_as};
use kubelith_conformance::http::Client;
use kubelith_store::random::Random;
use std::time::{Duration, Instant};

/// Seconds that a watch asks for at most.
const LONGEST: usize = 6;
/// More than a watch asks for: then something hangs, and the next one begins.
const PATIENCE: Duration = Duration::from_secs(15);
const BACK_OFF: Duration = Duration::from_millis(20);
/// Of revisions that a roamer remembers, to begin there again.
const REMEMBERED: usize = 200;
const NOTHING: Content = Content { color: 0, padding: 0 };

/// What a watcher recorded.
#[derive(Default)]
pub struct Record {
    pub watched: Vec<Watched>,
    pub operations: Vec<Operation>,
}

pub struct Watcher<'a> {
    shared: &'a Shared,
    random: Random,
    resource: usize,
    watcher: usize,
    apis: Apis,
    record: Record,
}

impl<'a> Watcher<'a> {
    pub fn new(shared: &'a Shared, random: Random, resource: usize, watcher: usize) -> Watcher<'a> {
        Watcher { shared, random, resource, watcher, apis: Apis::new(shared), record: Record::default() }
    }

    /// One that misses nothing: goes on where it was cut, and lists anew only after a 410. Comes to the last revision after
    /// the others have stopped, if it can.
    pub fn audit(mut self, base: Revision, last: &dyn Fn() -> Option<Revision>, patience: Duration) -> Record {
        let mut at = base;
        let mut end: Option<Instant> = None;
        loop {
            if self.shared.is_over() {
                let limit = *end.get_or_insert_with(|| Instant::now() + patience);
                // After a 410 a list tells where the end is; a watch has to begin there, or what lies between is nobody's gap.
                let is_followed = self.record.watched.last().is_none_or(|watched| watched.end != End::Gone);
                if is_followed && last().is_some_and(|last| at >= last) || Instant::now() > limit {
                    return self.record;
                }
            }
            let seconds = 1 + self.random.below(LONGEST);
            match self.watch(Begin::After(at), None, seconds) {
                End::Gone => at = self.list(Freshness::Consistent).unwrap_or(at),
                _ => at = at.max(self.position().unwrap_or(at)),
            }
        }
    }

    pub fn roam(mut self) -> Record {
        let mut seen: Vec<Revision> = Vec::new();
        while !self.shared.is_over() {
            let color = self.random.one_in(2).then(|| self.random.below(COLORS.into()) as u8);
            let begin = match self.random.below(6) {
                0 => Begin::Initial,
                1 | 2 if !seen.is_empty() => Begin::After(self.random.pick(&seen)),
                3 => match self.list(Freshness::Any) {
                    Some(revision) => Begin::After(revision),
                    None => continue,
                },
                _ => match self.list(Freshness::Consistent) {
                    Some(revision) => Begin::After(revision),
                    None => continue,
                },
            };
            let seconds = 1 + self.random.below(LONGEST);
            self.watch(begin, color, seconds);
            let notices = self.record.watched.last().map_or(&[][..], |watched| &watched.notices);
            seen.extend(notices.iter().map(revision_of));
            let excess = seen.len().saturating_sub(REMEMBERED);
            seen.drain(..excess);
        }
        self.record
    }

    fn list(&mut self, fresh: Freshness) -> Option<Revision> {
        let call = Call::List { fresh, color: None };
        let api = self.apis.any(&mut self.random);
        let operation = operate(self.shared, api, self.resource, call, NOTHING, None);
        let revision = match &operation.outcome {
            Outcome::Pages(pages) => pages.first().map(|page| page.revision),
            _ => None,
        };
        self.record.operations.push(operation);
        if revision.is_none() {
            std::thread::sleep(BACK_OFF);
        }
        revision
    }

    /// How far the last watch came.
    fn position(&self) -> Option<Revision> {
        self.record.watched.last()?.notices.last().map(revision_of)
    }

    fn watch(&mut self, begin: Begin, color: Option<u8>, seconds: usize) -> End {
        let path = path_of(self.resource);
        let mut path = format!("{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        path.push_str(&match begin {
            Begin::After(revision) => format!("&resourceVersion={revision}"),
            Begin::Initial => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        });
        path.extend(color.map(|color| format!("&labelSelector=color%3Dc{color}")));
        let port = self.random.pick(&self.shared.ports);
        let start = self.shared.now();
        let request = request_as(self.shared.token, "GET", &path, "", None);
        let answer = Client::new(address(port)).lines(&request, usize::MAX, PATIENCE);
        let cut = |what: &str| {
            let (connected, what) = (start, what.to_owned());
            self.shared.failed(Failure { port, connected, end: self.shared.now(), what });
        };
        let Ok((response, lines)) = answer else {
            cut("a watch was refused or broken off");
            std::thread::sleep(BACK_OFF);
            return End::Cut;
        };
        let (mut notices, mut end) = (Vec::new(), End::Cut);
        match response.status {
            200 => {}
            410 => end = End::Gone,
            // Not yet, or not now.
            code => {
                cut(&format!("a watch was answered with {code}"));
                std::thread::sleep(BACK_OFF);
            }
        }
        for text in lines {
            match line(&text) {
                Line::Notice(notice) => notices.push(notice),
                Line::Gone => end = End::Gone,
                // A server that loses its store or ends says so in the stream; what was delivered until then holds.
                Line::Error(error) if error.contains("\"code\":5") => cut(&format!("a watch ended with {error}")),
                Line::Error(error) => end = End::Error(error),
                Line::Other => {}
            }
        }
        if response.status == 200 || end == End::Gone {
            let (resource, watcher) = (self.resource, self.watcher);
            self.record.watched.push(Watched { resource, watcher, start, begin, color, notices, end: end.clone() });
        }
        end
    }
}

fn revision_of(notice: &Notice) -> Revision {
    match notice {
        Notice::Change(_, version) => version.revision,
        Notice::Bookmark(revision) | Notice::InitialEnd(revision) => *revision,
    }
}
