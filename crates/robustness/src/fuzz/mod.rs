//! Requests grown from the recorded exchanges, thrown at a server: none may panic, hang, end it or make it grow without
//! bound, and errors of its own (5xx) are shown one by one.

mod compare;
mod corpus;
mod guide;
mod mutate;
mod notes;
mod pipe;
pub mod within;
mod words;

pub use guide::{Count, Feedback};
pub use notes::Found;

use crate::memory::resident;
use crate::plan::{Plan, Store};
use crate::site::Site;
use crate::wire::{TOKEN, address};
use compare::Other;
use corpus::Seed;
use guide::Guide;
use kubelith_conformance::http::{Address, Client};
use kubelith_store::random::Random;
use notes::{Notes, shown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A request that takes half of it hangs, also in a debug build on a machine that is busy with other things.
const HANG: Duration = Duration::from_secs(60);
/// What a server that has seen so many requests may use, in bytes.
const MOST_MEMORY: u64 = 1500 << 20;
/// After so many requests a server has stored much nonsense, and the next one begins anew.
const REQUESTS_PER_SERVER: usize = 30_000;
#[derive(Debug, Clone)]
pub struct Options {
    pub program: PathBuf,
    /// tests/conformance.
    pub corpus: PathBuf,
    pub seed: u64,
    pub clients: usize,
    pub duration: Duration,
    pub requests: usize,
    pub feedback: Feedback,
    /// Counts the edges of the code that were passed: only of servers within an instrumented program.
    pub edges: Option<Count>,
    /// Another server that gets the same requests; the administrator's token must be known there.
    pub against: Option<Address>,
}

/// What the clients of a server share.
struct Shared<'a> {
    seeds: &'a [Seed],
    guide: &'a Guide,
    against: Option<&'a Address>,
    port: u16,
    stop: AtomicBool,
    left: AtomicUsize,
    notes: Notes,
}

pub fn run(options: &Options) -> Result<Found, String> {
    let seeds = corpus::load(&options.corpus)?;
    if seeds.is_empty() {
        return Err(format!("{} has no exchanges", options.corpus.display()));
    }
    let end = Instant::now() + options.duration;
    let mut all = Found::default();
    let guide = Guide::new(options.feedback, None);
    while Instant::now() < end && all.requests < options.requests && all.problems.is_empty() {
        let mut plan = Plan::new(options.program.clone(), Store::Memory, options.seed);
        plan.faults.clear();
        let mut site = Site::start(&plan)?;
        let left = REQUESTS_PER_SERVER.min(options.requests - all.requests);
        let shared = Shared {
            seeds: &seeds,
            guide: &guide,
            against: options.against.as_ref(),
            port: site.servers[0].port,
            stop: AtomicBool::new(false),
            left: AtomicUsize::new(left),
            notes: Notes::new(std::mem::take(&mut all)),
        };
        let round = shared.notes.found.lock().map_or(0, |found| found.servers);
        std::thread::scope(|scope| {
            for client in 0..options.clients {
                let random = Random::new(options.seed, (round * 1000 + client) as u64);
                let shared = &shared;
                scope.spawn(move || one_client(shared, random));
            }
            watch_over(&shared, &mut site, end);
        });
        all = shared.notes.found.into_inner().map_err(|_| "a client panicked".to_owned())?;
        all.servers += 1;
        all.problems.extend(site.servers[0].panics());
        all.problems.extend(site.servers[0].stop().err());
    }
    (all.kinds, all.grown) = guide.seen();
    Ok(all)
}

/// Looks after the server until its clients are done.
fn watch_over(shared: &Shared<'_>, site: &mut Site, end: Instant) {
    while shared.left.load(Ordering::Relaxed) > 0 && !shared.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let server = &mut site.servers[0];
        let memory = server.pid().and_then(resident).unwrap_or(0);
        let Ok(mut found) = shared.notes.found.lock() else { return };
        found.most_memory = found.most_memory.max(memory);
        if memory > MOST_MEMORY {
            found.problems.push(format!("the server uses {memory} bytes"));
        }
        if server.has_ended() {
            found.problems.push(format!("the server ended: {}", server.tail()));
        }
        if Instant::now() > end || !found.problems.is_empty() {
            shared.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn one_client(shared: &Shared<'_>, mut random: Random) {
    let mut client = Client::new(address(shared.port)).with_timeout(HANG);
    let mut other = shared.against.map(|address| Other::new(address, HANG));
    while !shared.stop.load(Ordering::Relaxed) {
        let took = shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if took.is_err() {
            return;
        }
        let kept = shared.notes.body(&mut random);
        let base = shared.guide.base(&mut random);
        let mut request = mutate::grow(&mut random, base.as_deref(), shared.seeds, kept.as_deref());
        request.headers.push(("Authorization".to_owned(), format!("Bearer {TOKEN}")));
        let begin = Instant::now();
        let answer = client.send_once(&request);
        if let Ok(answer) = &answer {
            shared.guide.learn(&request, answer, base.as_deref());
            if let Some(Ok(theirs)) = other.as_mut().map(|other| other.ask(&request))
                && let Ok(mut found) = shared.notes.found.lock()
            {
                found.differences.note(&request.method, answer, &theirs, || shown(&request));
            }
        }
        shared.notes.note(&request, begin.elapsed(), answer);
    }
}

/// A request for a certificate, as somebody recorded one.
pub(crate) fn signing_request() -> Option<serde_json::Value> {
    let seeds = corpus::load(&default_corpus()).ok()?;
    let found = seeds.iter().filter(|seed| seed.path.contains("/certificatesigningrequests") && seed.method == "POST");
    let mut requests = found.filter_map(|seed| seed.body.as_ref()).map(|body| body["spec"]["request"].clone());
    requests.find(|request| {
        request
            .as_str()
            .is_some_and(|text| text.starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNU") && text.len() > 800)
    })
}

/// Where the recorded exchanges are, seen from a program of the workspace.
pub fn default_corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}
