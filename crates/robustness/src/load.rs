//! Clients that write and read as a seed tells them, and record what they were told.

use crate::history::{Call, Freshness, Mark, Moment, Operation, Outcome, Revision};
use crate::isolation::Failure;
use crate::wire::{Api, Content, RESOURCES, perform};
use kubelith_store::random::Random;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Few, so that clients meet.
const NAMES: usize = 9;
pub const COLORS: u8 = 3;
/// Between two operations of a client: the load is steady, and a long run fits into memory.
const PACE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(12));
/// After a request without an answer: the server is down for a while.
const BACK_OFF: Duration = Duration::from_millis(20);
/// One object in so many is large.
const LARGE_ONE_IN: usize = 40;
const LARGE: usize = 60_000;

/// What all of a run's threads share.
pub struct Shared {
    begin: Instant,
    pub stop: AtomicBool,
    next_mark: AtomicU64,
    /// Of the servers.
    pub ports: Vec<u16>,
    /// Of the clients.
    pub token: &'static str,
    pub done: AtomicU64,
    /// Probes that found a server ready.
    pub ready: AtomicU64,
    failures: Mutex<Vec<Failure>>,
}

impl Shared {
    pub fn new(ports: Vec<u16>, token: &'static str) -> Shared {
        Shared {
            begin: Instant::now(),
            stop: AtomicBool::new(false),
            next_mark: AtomicU64::new(1),
            ports,
            token,
            done: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    pub fn now(&self) -> Moment {
        self.begin.elapsed().as_micros() as Moment
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn failed(&self, failure: Failure) {
        self.failures.lock().expect("nobody panicked").push(failure);
    }

    /// What failed until now.
    pub fn failures(&self) -> Vec<Failure> {
        std::mem::take(&mut *self.failures.lock().expect("nobody panicked"))
    }

    pub fn mark(&self) -> Mark {
        self.next_mark.fetch_add(1, Ordering::Relaxed)
    }
}

/// Connections to all servers.
pub struct Apis(Vec<Api>);

impl Apis {
    pub fn new(shared: &Shared) -> Apis {
        Apis(shared.ports.iter().map(|port| Api::of(*port, shared.token)).collect())
    }

    pub fn any(&mut self, random: &mut Random) -> &mut Api {
        let place = random.below(self.0.len());
        &mut self.0[place]
    }
}

/// Does it and records it.
pub fn operate(
    shared: &Shared,
    api: &mut Api,
    resource: usize,
    call: Call,
    content: Content,
    limit: Option<usize>,
) -> Operation {
    let start = shared.now();
    let connected = *api.connected.get_or_insert(start);
    let outcome = perform(api, resource, &call, content, limit);
    shared.done.fetch_add(1, Ordering::Relaxed);
    if outcome == Outcome::Unknown {
        let what = format!("there was no answer, or none that tells, to {call:?}");
        shared.failed(Failure { port: api.port, connected, end: shared.now(), what });
    }
    Operation { resource, start, end: shared.now(), call, outcome }
}

pub struct Writer {
    random: Random,
    apis: Apis,
    /// What it saw last of each object: preconditions come from here, and are often out of date.
    seen: HashMap<(usize, String), Revision>,
    latest: Revision,
}

impl Writer {
    pub fn new(shared: &Shared, random: Random) -> Writer {
        Writer { random, apis: Apis::new(shared), seen: HashMap::new(), latest: 0 }
    }

    pub fn run(mut self, shared: &Shared) -> Vec<Operation> {
        let mut record = Vec::new();
        while !shared.is_over() {
            let resource = self.random.below(RESOURCES.len());
            let call = self.call(shared, resource);
            let limit = matches!(call, Call::List { .. }).then(|| self.random.below(2 * NAMES) + 1);
            let limit = limit.filter(|limit| *limit < NAMES);
            let padding = if self.random.one_in(LARGE_ONE_IN) { LARGE } else { self.random.below(600) };
            let content = Content { color: self.random.below(COLORS.into()) as u8, padding };
            let api = self.apis.any(&mut self.random);
            let operation = operate(shared, api, resource, call, content, limit);
            self.learn(&operation);
            let pause =
                if operation.outcome == Outcome::Unknown { BACK_OFF } else { self.random.between(PACE.0, PACE.1) };
            record.push(operation);
            std::thread::sleep(pause);
        }
        record
    }

    fn call(&mut self, shared: &Shared, resource: usize) -> Call {
        let name = format!("n{}", self.random.below(NAMES));
        let seen = self.seen.get(&(resource, name.clone())).copied();
        let mark = shared.mark();
        match self.random.below(100) {
            0..18 => Call::Create { name, mark },
            18..36 => match seen {
                Some(after) => Call::Update { name, mark, after },
                None => Call::Get { name, fresh: Freshness::Consistent },
            },
            36..48 => Call::Patch { name, mark, after: None },
            48..56 => Call::Patch { name, mark, after: seen },
            56..66 => Call::Apply { name, mark },
            66..74 => Call::Delete { name, after: None },
            74..78 => Call::Delete { name, after: seen },
            78..88 => {
                let fresh = self.random.pick(&[Freshness::Consistent, Freshness::Consistent, Freshness::Any]);
                Call::Get { name, fresh }
            }
            _ => {
                let latest = self.latest;
                let fresh = self.random.pick(&[
                    Freshness::Consistent,
                    Freshness::Consistent,
                    Freshness::Any,
                    Freshness::NotOlderThan(latest),
                    Freshness::Exact(latest),
                ]);
                // A revision that nobody has seen yet cannot be asked for.
                let fresh = if latest == 0 { Freshness::Consistent } else { fresh };
                let color = self.random.one_in(4).then(|| self.random.below(COLORS.into()) as u8);
                Call::List { fresh, color }
            }
        }
    }

    fn learn(&mut self, operation: &Operation) {
        match &operation.outcome {
            Outcome::Object(version) => {
                self.seen.insert((operation.resource, version.name.clone()), version.revision);
                self.latest = self.latest.max(version.revision);
            }
            Outcome::Pages(pages) => {
                for version in pages.iter().flat_map(|page| &page.items) {
                    self.seen.insert((operation.resource, version.name.clone()), version.revision);
                }
                self.latest = self.latest.max(pages.first().map_or(0, |page| page.revision));
            }
            _ => {}
        }
    }
}
