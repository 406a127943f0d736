//! Requests grown from the recorded exchanges, thrown at a server: none may panic, hang, end it or make it grow without
//! bound, and errors of its own (5xx) are shown one by one.

mod compare;
mod corpus;
mod guide;
mod mutate;
mod words;

pub use guide::Feedback;

use crate::plan::{Plan, Store};
use crate::site::Site;
use crate::wire::{TOKEN, address};
use compare::{Differences, Other};
use corpus::Seed;
use guide::Guide;
use kubelith_conformance::http::{Address, Client, Request, Response};
use kubelith_store::random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request that takes half of it hangs, also in a debug build on a machine that is busy with other things.
const HANG: Duration = Duration::from_secs(60);
/// What a server that has seen so many requests may use, in bytes.
const MOST_MEMORY: u64 = 1500 << 20;
/// After so many requests a server has stored much nonsense, and the next one begins anew.
const REQUESTS_PER_SERVER: usize = 30_000;
/// Bodies that the server gave, kept to be sent back changed.
const KEPT: usize = 300;
const LARGEST_KEPT: usize = 20_000;
/// Errors of a server (5xx) that kube-apiserver answers as well, by what they say.
const EXPECTED: [&str; 15] = [
    // Apply: what does not fit the schema is no bad request there.
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    "Too large resource version",
    // timeout=1s, on a busy machine.
    "request did not complete within",
    "strconv.ParseUint",
    // Of a Binding, and of a strategic patch: errors without a code.
    "target.name: Required value",
    "target.kind: Unsupported value",
    "unknown patch type",
    "list element types are not identical",
    "does not contain declared merge key",
    "but received a",
    "unable to find api field in struct",
    // The namespace `.`, looked for by admission.
    "invalid resource name",
    // A namespace as `..`.
    "invalid key",
    "does not reference that secret",
];

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
    /// Another server that gets the same requests; the administrator's token must be known there.
    pub against: Option<Address>,
}

#[derive(Debug, Default)]
pub struct Found {
    pub requests: usize,
    pub servers: usize,
    /// How often each code was answered.
    pub codes: BTreeMap<u16, usize>,
    /// The most that a server used.
    pub most_memory: u64,
    /// Errors of the server, by what it said, with an example.
    pub errors: BTreeMap<String, String>,
    pub expected_errors: usize,
    /// Kinds of answers, and requests that led to a new one.
    pub kinds: usize,
    pub grown: usize,
    pub differences: Differences,
    /// Panics, hangs, ends, growth.
    pub problems: Vec<String>,
}

impl Found {
    pub fn text(&self) -> String {
        let mut text =
            format!("{} requests to {} servers, at most {} MB\n", self.requests, self.servers, self.most_memory >> 20);
        text.push_str(&format!("{} kinds of answers, {} requests led to a new one\n", self.kinds, self.grown));
        for (code, count) in &self.codes {
            text.push_str(&format!("{count:>9} × {code}\n"));
        }
        for (said, example) in &self.errors {
            text.push_str(&format!("ERROR {said}\n      {example}\n"));
        }
        text.push_str(&self.differences.text());
        for problem in &self.problems {
            text.push_str(&format!("PROBLEM {problem}\n"));
        }
        let (errors, problems) = (self.errors.len(), self.problems.len());
        let expected = self.expected_errors;
        text.push_str(&format!("{expected} expected 5xx, {errors} unexpected kinds of them, {problems} problems\n"));
        text
    }
}

/// What the clients of a server share.
struct Shared<'a> {
    seeds: &'a [Seed],
    guide: &'a Guide,
    against: Option<&'a Address>,
    port: u16,
    stop: AtomicBool,
    left: AtomicUsize,
    found: Mutex<Found>,
    /// Bodies in protobuf or CBOR that the server gave.
    bodies: Mutex<Vec<Arc<Vec<u8>>>>,
}

pub fn run(options: &Options) -> Result<Found, String> {
    let seeds = corpus::load(&options.corpus)?;
    if seeds.is_empty() {
        return Err(format!("{} has no exchanges", options.corpus.display()));
    }
    let end = Instant::now() + options.duration;
    let mut all = Found::default();
    let guide = Guide::new(options.feedback);
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
            found: Mutex::new(std::mem::take(&mut all)),
            bodies: Mutex::default(),
        };
        let round = shared.found.lock().map_or(0, |found| found.servers);
        std::thread::scope(|scope| {
            for client in 0..options.clients {
                let random = Random::new(options.seed, (round * 1000 + client) as u64);
                let shared = &shared;
                scope.spawn(move || one_client(shared, random));
            }
            watch_over(&shared, &mut site, end);
        });
        all = shared.found.into_inner().map_err(|_| "a client panicked".to_owned())?;
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
        let Ok(mut found) = shared.found.lock() else { return };
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

pub fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

fn one_client(shared: &Shared<'_>, mut random: Random) {
    let mut client = Client::new(address(shared.port)).with_timeout(HANG);
    let mut other = shared.against.map(|address| Other::new(address, HANG));
    while !shared.stop.load(Ordering::Relaxed) {
        let took = shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if took.is_err() {
            return;
        }
        let kept = {
            let Ok(bodies) = shared.bodies.lock() else { return };
            (!bodies.is_empty()).then(|| bodies[random.below(bodies.len())].clone())
        };
        let base = shared.guide.base(&mut random);
        let mut request = mutate::grow(&mut random, base.as_deref(), shared.seeds, kept.as_deref());
        request.headers.push(("Authorization".to_owned(), format!("Bearer {TOKEN}")));
        let begin = Instant::now();
        let answer = client.send_once(&request);
        if let Ok(answer) = &answer {
            shared.guide.learn(&request, answer, base.as_deref());
            if let Some(Ok(theirs)) = other.as_mut().map(|other| other.ask(&request))
                && let Ok(mut found) = shared.found.lock()
            {
                found.differences.note(&request.method, answer, &theirs, || shown(&request));
            }
        }
        note(shared, &request, begin.elapsed(), answer);
    }
}

fn shown(request: &Request) -> String {
    let body = request.body.as_deref().unwrap_or_default();
    let body: String = String::from_utf8_lossy(body).chars().take(600).collect();
    let headers: Vec<_> = request.headers.iter().filter(|(name, _)| name != "Authorization").collect();
    format!("{} {} {headers:?} {body}", request.method, request.path)
}

fn note(shared: &Shared<'_>, request: &Request, took: Duration, answer: std::io::Result<Response>) {
    let Ok(mut found) = shared.found.lock() else { return };
    found.requests += 1;
    match answer {
        Ok(answer) => {
            *found.codes.entry(answer.status).or_default() += 1;
            if answer.status >= 500 {
                let said = String::from_utf8_lossy(&answer.body);
                let is_expected = EXPECTED.iter().any(|expected| said.contains(expected));
                let said: String = said.chars().take(300).collect();
                if is_expected {
                    found.expected_errors += 1;
                } else {
                    let key = normalised(&format!("{} {} {said}", answer.status, request.method));
                    found.errors.entry(key).or_insert_with(|| shown(request));
                }
            }
            drop(found);
            let is_binary = answer.body.starts_with(b"k8s\0") || answer.body.starts_with(&[0xd9, 0xd9, 0xf7]);
            if is_binary
                && answer.body.len() < LARGEST_KEPT
                && let Ok(mut bodies) = shared.bodies.lock()
            {
                if bodies.len() >= KEPT {
                    bodies.remove(0);
                }
                bodies.push(Arc::new(answer.body));
            }
        }
        // A connection that the server closed for what came on it is an answer, too.
        Err(_) => *found.codes.entry(0).or_default() += 1,
    }
    if took > HANG / 2
        && let Ok(mut found) = shared.found.lock()
    {
        found.problems.push(format!("{took:?} for {}", shown(request)));
    }
}

/// Without what differs from request to request.
fn normalised(text: &str) -> String {
    let (status, text) = text.split_at_checked(3).unwrap_or(("", text));
    let mut out = status.to_owned();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(c == '0' && out.ends_with('0')) {
            out.push(c);
        }
    }
    // What comes after is often the name or the value that was sent.
    out.chars().take(160).collect()
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
