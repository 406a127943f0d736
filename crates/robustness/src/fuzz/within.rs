//! The same with servers of this process, which is many times quicker: no sockets, no encryption, no process to start. Each processor
//! has a lane: a thread with a server and its clients. After some requests a lane goes on with a fork of its first server, so
//! that what was stored neither piles up nor makes lists longer and longer.
//!
//! Many clients of a lane wait at the same time, since a watch takes a second, and none of them costs anything meanwhile.

use super::corpus::{self, Seed};
use super::guide::Guide;
use super::notes::{Edges, Found, Notes, shown};
use super::pipe::Client;
use super::{HANG, MOST_MEMORY, Options, mutate};
use crate::memory::resident;
use crate::wire::TOKEN;
use kubelith::plane::{Doorway, Plane};
use kubelith_conformance::http::Request;
use kubelith_store::random::Random;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Of one server, before a fork takes its place.
const REQUESTS_PER_FORK: usize = 4_000;
/// As the program has it: objects may be nested deeply.
const STACK_BYTES: usize = 64 << 20;
const LOOK: Duration = Duration::from_millis(100);
/// Between lines that tell how far it is.
const TELL: Duration = Duration::from_secs(60);
/// A lane that answers nothing for so long does not end, also on a machine that is busy with other things.
const STUCK: Duration = Duration::from_secs(300);
/// Panics that are told.
const MOST_PANICS: usize = 20;

/// What all lanes share.
struct Shared {
    seeds: Vec<Seed>,
    guide: Guide,
    notes: Notes,
    left: AtomicUsize,
    stop: AtomicBool,
    panics: Arc<Mutex<Vec<String>>>,
    /// How many edges of the code had been passed when the first server was ready.
    edges: OnceLock<usize>,
    lanes: Vec<Lane>,
}

/// What can be seen of a lane from outside, also when it is stuck.
struct Lane {
    answered: AtomicUsize,
    /// What each client waits for.
    waiting: Vec<Mutex<Option<Arc<Request>>>>,
}

impl Lane {
    fn new(clients: usize) -> Lane {
        Lane { answered: AtomicUsize::new(0), waiting: (0..clients).map(|_| Mutex::default()).collect() }
    }

    fn shown(&self) -> String {
        let requests = self.waiting.iter().filter_map(|slot| slot.lock().ok()?.as_deref().map(shown));
        requests.map(|request| format!("\n      {request}")).collect()
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn problem(&self, what: String) {
        self.stop.store(true, Ordering::Relaxed);
        if let Ok(mut found) = self.notes.found.lock() {
            found.problems.push(what);
        }
    }
}

/// `options.clients` are those of each lane.
pub fn run(options: &Options, lanes: usize) -> Result<Found, String> {
    let seeds = corpus::load(&options.corpus)?;
    if seeds.is_empty() {
        return Err(format!("{} has no exchanges", options.corpus.display()));
    }
    let shared = Arc::new(Shared {
        seeds,
        guide: Guide::new(options.feedback, options.edges),
        notes: Notes::default(),
        left: AtomicUsize::new(options.requests),
        stop: AtomicBool::new(false),
        panics: Arc::default(),
        edges: OnceLock::new(),
        lanes: (0..lanes).map(|_| Lane::new(options.clients)).collect(),
    });
    hear_panics(shared.panics.clone());
    let threads: Vec<_> = (0..lanes)
        .map(|number| {
            let (shared, seed) = (shared.clone(), options.seed);
            std::thread::spawn(move || {
                if let Err(why) = lane(&shared, number, seed) {
                    shared.problem(why);
                }
            })
        })
        .collect();
    let is_stuck = watch_over(&shared, &threads, options.duration);
    if !is_stuck {
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
    drop(std::panic::take_hook());
    let mut found = Found::default();
    if let Ok(mut noted) = shared.notes.found.lock() {
        found = std::mem::take(&mut noted);
    }
    if let Ok(panics) = shared.panics.lock() {
        found.problems.extend(panics.iter().cloned());
    }
    (found.kinds, found.grown) = shared.guide.seen();
    if let Some(count) = options.edges {
        let before = shared.edges.get().copied().unwrap_or(0);
        found.edges = Some(Edges { all: kubelith_coverage::all(), before, seen: count() });
        // Requests that pass nothing which a start does not are none, or nobody counts.
        if count() <= before {
            found.problems.push("no edge of the code was passed by a request".to_owned());
        }
    }
    Ok(found)
}

/// A server answers after a panic of a request; that there was one is heard here.
fn hear_panics(panics: Arc<Mutex<Vec<String>>>) {
    std::panic::set_hook(Box::new(move |panic| {
        if let Ok(mut panics) = panics.lock()
            && panics.len() < MOST_PANICS
        {
            panics.push(format!("panic: {panic}"));
        }
    }));
}

/// Looks after the lanes until they end; whether one of them does not.
fn watch_over(shared: &Shared, threads: &[std::thread::JoinHandle<()>], duration: Duration) -> bool {
    let begin = Instant::now();
    let (mut told, mut told_requests) = (begin, 0);
    let mut progress: Vec<(usize, Instant)> = shared.lanes.iter().map(|_| (0, begin)).collect();
    while !threads.iter().all(|thread| thread.is_finished()) {
        std::thread::sleep(LOOK);
        let memory = resident(std::process::id()).unwrap_or(0);
        let requests = shared.notes.found.lock().map_or(0, |mut found| {
            found.most_memory = found.most_memory.max(memory);
            found.requests
        });
        if memory > MOST_MEMORY && !shared.is_over() {
            shared.problem(format!("the process uses {memory} bytes"));
        }
        if shared.panics.lock().is_ok_and(|panics| !panics.is_empty()) && !shared.is_over() {
            let waiting: String = shared.lanes.iter().map(Lane::shown).collect();
            shared.problem(format!("these were under way shortly after a panic:{waiting}"));
        }
        for ((lane, thread), (answered, at)) in shared.lanes.iter().zip(threads).zip(&mut progress) {
            let now = lane.answered.load(Ordering::Relaxed);
            if now != *answered {
                (*answered, *at) = (now, Instant::now());
            } else if at.elapsed() > STUCK && !thread.is_finished() {
                shared.problem(format!("nothing was answered for {STUCK:?}; under way are{}", lane.shown()));
                return true;
            }
        }
        if begin.elapsed() > duration {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if told.elapsed() > TELL {
            let rate = (requests - told_requests) as f64 / told.elapsed().as_secs_f64();
            let (kinds, _) = shared.guide.seen();
            let edges =
                shared.edges.get().filter(|edges| **edges > 0).map(|_| format!(", {} edges", shared.guide.begin()));
            let edges = edges.unwrap_or_default();
            println!("{requests} requests, {rate:.0}/s, {} MB, {kinds} kinds of answers{edges}", memory >> 20);
            (told, told_requests) = (Instant::now(), requests);
        }
    }
    false
}

/// A runtime with one thread: nothing is handed from one processor to another. Of the kind that has many, since some code of the server
/// asks for that.
fn lane(shared: &Arc<Shared>, number: usize, seed: u64) -> Result<(), String> {
    let folder = tempfile::Builder::new().prefix("kubelith-").tempdir().map_err(|error| error.to_string())?;
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, format!("{TOKEN},admin,u,\"system:masters\"\n")).map_err(|error| error.to_string())?;
    let flags = vec![
        "--storage-backend=memory".to_owned(),
        "--controllers=-*".to_owned(),
        format!("--data-dir={}", folder.path().join("data").display()),
        format!("--token-auth-file={}", tokens.display()),
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let rounds = runtime.spawn(rounds(shared.clone(), number, seed, flags));
    let outcome = runtime.block_on(rounds).map_err(|error| error.to_string());
    runtime.shutdown_background();
    outcome?
}

async fn rounds(shared: Arc<Shared>, lane: usize, seed: u64, flags: Vec<String>) -> Result<(), String> {
    let first = Plane::start(&flags).await?;
    let snapshot = first.seed().snapshot().await?;
    let mut round = 0;
    while !shared.is_over() && shared.left.load(Ordering::Relaxed) > 0 {
        let plane = first.seed().fork(snapshot.clone()).await?;
        plane.ready().await?;
        shared.edges.get_or_init(|| shared.guide.begin());
        let (end, ended) = watch::channel(false);
        let left = Arc::new(AtomicUsize::new(REQUESTS_PER_FORK));
        let clients: Vec<_> = (0..shared.lanes[lane].waiting.len())
            .map(|client| {
                let random = Random::new(seed, ((lane as u64) << 48) | (round << 16) | client as u64);
                let one = OneClient { shared: shared.clone(), lane, client, left: left.clone(), ended: ended.clone() };
                tokio::spawn(one.run(plane.doorway(), random))
            })
            .collect();
        drop(ended);
        // The first that finds nothing left to do ends the watches of the others.
        for (index, client) in clients.into_iter().enumerate() {
            client.await.map_err(|error| format!("a client: {error}"))?;
            if index == 0 {
                end.send_replace(true);
            }
        }
        if let Ok(mut found) = shared.notes.found.lock() {
            found.servers += 1;
        }
        round += 1;
    }
    Ok(())
}

struct OneClient {
    shared: Arc<Shared>,
    lane: usize,
    client: usize,
    /// Of the server.
    left: Arc<AtomicUsize>,
    ended: watch::Receiver<bool>,
}

impl OneClient {
    /// Whether there is one more request to send.
    fn takes(&self) -> bool {
        let take =
            |left: &AtomicUsize| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        !self.shared.is_over() && take(&self.left).is_ok() && take(&self.shared.left).is_ok()
    }

    async fn run(mut self, doorway: Doorway, mut random: Random) {
        let shared = self.shared.clone();
        let lane = &shared.lanes[self.lane];
        let mut client = Client::new(doorway);
        while self.takes() {
            let kept = shared.notes.body(&mut random);
            let base = shared.guide.base(&mut random);
            let mut request = mutate::grow(&mut random, base.as_deref(), &shared.seeds, kept.as_deref());
            request.headers.push(("Authorization".to_owned(), format!("Bearer {TOKEN}")));
            let request = Arc::new(request);
            let remember = |request| lane.waiting[self.client].lock().map(|mut slot| *slot = request);
            drop(remember(Some(request.clone())));
            let (begin, starved) = (Instant::now(), starved());
            let is_watch = request.path.contains("watch");
            let answer = tokio::select! {
                biased;
                answer = client.send(&request) => answer,
                _ = self.ended.wait_for(|ended| *ended), if is_watch => Err(io::ErrorKind::Interrupted.into()),
                () = tokio::time::sleep(STUCK) => Err(io::ErrorKind::TimedOut.into()),
            };
            drop(remember(None));
            if let Ok(answer) = &answer {
                shared.guide.learn(&request, answer, base.as_deref());
            }
            let mut took = begin.elapsed();
            if took > HANG / 2 {
                // What the thread waited for a processor is not the server's doing.
                took = took.saturating_sub(self::starved().saturating_sub(starved));
                shared.stop.fetch_or(took > HANG / 2, Ordering::Relaxed);
            }
            shared.notes.note(&request, took, answer);
            lane.answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How long this thread has waited for a processor, as Linux counts it.
fn starved() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(counted.split(' ').nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0))
}
