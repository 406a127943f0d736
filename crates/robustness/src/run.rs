//! A run from its start to the verdict.

use crate::checker::{self, Report};
use crate::faults::{Injected, Injector};
use crate::history::{Call, Freshness, History, Outcome, Revision};
use crate::isolation::{self, Failure};
use crate::load::{Shared, Writer, operate};
use crate::plan::Plan;
use crate::site::Site;
use crate::watchers::Watcher;
use crate::wire::{Api, Content, RESOURCES, STORM_TOKEN, TOKEN};
use kubelith_store::random::Random;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What watches get to come to the last revision, and the last write to succeed.
const CATCH_UP: Duration = Duration::from_secs(30);
/// Between two looks at whether a server is ready.
const PROBE_EVERY: Duration = Duration::from_millis(100);
const NOTHING: Content = Content { color: 0, padding: 0 };

#[derive(Debug)]
pub struct Verdict {
    pub report: Report,
    pub injected: Injected,
    pub took: Duration,
    pub checked_in: Duration,
}

impl Verdict {
    pub fn is_good(&self) -> bool {
        self.report.violations.is_empty() && self.injected.problems.is_empty()
    }

    /// Figures, and what is wrong, for people.
    pub fn text(&self) -> String {
        const SHOWN: usize = 20;
        let mut text = format!("ran {:.1?}, checked in {:.1?}\n", self.took, self.checked_in);
        for (what, count) in self.report.counts.iter().chain(&self.injected.counts) {
            text.push_str(&format!("{count:>9} {what}\n"));
        }
        for violation in self.report.violations.iter().take(SHOWN) {
            text.push_str(&format!("VIOLATION {violation}\n"));
        }
        for problem in &self.injected.problems {
            text.push_str(&format!("PROBLEM {problem}\n"));
        }
        text.push_str(&format!("{} violations\n", self.report.violations.len() + self.injected.problems.len()));
        text
    }
}

/// Runs the plan. An error is a run that could not be made, or a server that did not come back.
pub fn run(plan: &Plan) -> Result<Verdict, String> {
    let begin = Instant::now();
    let mut site = Site::start(plan)?;
    let token = if plan.is_short_of_memory() { STORM_TOKEN } else { TOKEN };
    let shared = Shared::new(site.servers.iter().map(|server| server.port).collect(), token);
    let mut history = History { bases: bases(&shared)?, ..History::default() };
    let finals: Mutex<Vec<Revision>> = Mutex::default();
    let mut injected = std::thread::scope(|scope| {
        let random = |part: usize| Random::new(plan.seed, part as u64);
        let writers: Vec<_> = (0..plan.writers)
            .map(|part| Writer::new(&shared, random(part)))
            .map(|writer| scope.spawn(|| writer.run(&shared)))
            .collect();
        let mut watchers = Vec::new();
        for (resource, base) in history.bases.iter().copied().enumerate() {
            let (shared, finals) = (&shared, &finals);
            let auditor = Watcher::new(shared, random(1000 + resource), resource, resource);
            let last = move || finals.lock().ok()?.get(resource).copied();
            watchers.push(scope.spawn(move || auditor.audit(base, &last, CATCH_UP)));
            for roamer in 0..plan.roamers {
                let number = 100 + resource * plan.roamers + roamer;
                let roamer = Watcher::new(shared, random(1000 + number), resource, number);
                watchers.push(scope.spawn(move || roamer.roam()));
            }
        }
        for port in shared.ports.clone() {
            let shared = &shared;
            scope.spawn(move || probe(shared, port));
        }
        let injected = Injector::new(plan, &mut site, &shared).run();
        shared.stop.store(true, Ordering::Relaxed);
        for writer in writers {
            history.operations.extend(writer.join().expect("a client does not panic"));
        }
        // A server that does not come back says more than the writes that fail for it.
        let injected = injected?;
        *finals.lock().expect("nobody panicked") = end(&shared, &mut history)?;
        for watcher in watchers {
            let record = watcher.join().expect("a client does not panic");
            history.watched.extend(record.watched);
            history.operations.extend(record.operations);
        }
        Ok::<Injected, String>(injected)
    })?;
    history.finals = finals.into_inner().expect("nobody panicked");
    if plan.is_isolated() {
        let failures = shared.failures();
        injected.problems.extend(isolation::unexplained(&failures, &injected.outages));
        injected.counts.insert("failures at servers that were down", failures.len());
    }
    injected.counts.insert("probes that found a server ready", shared.ready.load(Ordering::Relaxed) as usize);
    injected.problems.extend(site.servers.iter().flat_map(|server| server.panics()));
    for server in &mut site.servers {
        injected.problems.extend(server.stop().err());
    }
    injected.problems.extend(site.check_store().err());
    let (took, checking) = (begin.elapsed(), Instant::now());
    let report = checker::check(&history);
    Ok(Verdict { report, injected, took, checked_in: checking.elapsed() })
}

/// Asks a server again and again whether it is ready.
fn probe(shared: &Shared, port: u16) {
    while !shared.is_over() {
        let start = shared.now();
        let what = match Api::new(port).get("/readyz") {
            Some((200, _)) => {
                shared.ready.fetch_add(1, Ordering::Relaxed);
                None
            }
            Some((code, _)) => Some(format!("/readyz answered {code}")),
            None => Some("/readyz had no answer".to_owned()),
        };
        if let Some(what) = what {
            shared.failed(Failure { port, connected: start, end: shared.now(), what });
        }
        std::thread::sleep(PROBE_EVERY);
    }
}

/// The revisions at which all is empty.
fn bases(shared: &Shared) -> Result<Vec<Revision>, String> {
    let mut api = Api::new(shared.ports[0]);
    let list = |resource| {
        let call = Call::List { fresh: Freshness::Consistent, color: None };
        match operate(shared, &mut api, resource, call, NOTHING, None).outcome {
            Outcome::Pages(pages) => Ok(pages[0].revision),
            other => Err(format!("the first list was {other:?}")),
        }
    };
    (0..RESOURCES.len()).map(list).collect()
}

/// A last write to each resource, and a list of each from every server.
fn end(shared: &Shared, history: &mut History) -> Result<Vec<Revision>, String> {
    let mut finals = Vec::new();
    let limit = Instant::now() + CATCH_UP;
    for resource in 0..RESOURCES.len() {
        loop {
            let call = Call::Apply { name: "the-last".to_owned(), mark: shared.mark() };
            let operation = operate(shared, &mut Api::new(shared.ports[0]), resource, call, NOTHING, None);
            let outcome = operation.outcome.clone();
            history.operations.push(operation);
            match outcome {
                Outcome::Object(version) => break finals.push(version.revision),
                other if Instant::now() > limit => return Err(format!("the last write was {other:?}")),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        for port in &shared.ports {
            let call = Call::List { fresh: Freshness::Consistent, color: None };
            history.operations.push(operate(shared, &mut Api::new(*port), resource, call, NOTHING, None));
        }
    }
    Ok(finals)
}
