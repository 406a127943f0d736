//! Memory pressure: clients without privileges fill a server with large objects until it refuses them for its memory
//! (`--memory-budget`), while lists of all of that, which it may not refuse, are taken slowly. Then the objects go, and the server must
//! serve again.
//!
//! The memory of the machine is not touched: whoever else works there would notice. What the kernel does to a process that has used up
//! its cgroup is `kill -9`, which is a fault of its own.

use crate::memory::anonymous;
use crate::site::Server;
use crate::wire::{Api, FILLER_TOKEN, TOKEN, address, request_as};
use kubelith_conformance::http::Client;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Some 40 MB more than a server needs that has seen a few thousand requests.
pub const BUDGET: u64 = 96 << 20;
/// What a server may have at most: what was let in when there was room, and what may not be refused, come on top. Of a collection 16 objects
/// are deleted at a time, each of which is held a few times over.
const MOST: u64 = BUDGET + BUDGET / 2;
/// More than this is never stored, whatever the server says. The machine has other users.
const MOST_OBJECTS: usize = 2 * (BUDGET as usize / OBJECT);
/// Of each object: nearly the most that a ConfigMap may have.
const OBJECT: usize = 900_000;
/// Not in the namespace of the history.
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FILLERS: usize = 3;
const READERS: usize = 3;
const BACK_OFF: Duration = Duration::from_millis(10);
/// Until the first one is refused, and until one is served again: a debug build on a busy machine takes seconds for each large object.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came of it.
#[derive(Debug, Default)]
pub struct Pressed {
    pub refused: usize,
    /// Bytes that the server had at most.
    pub most: u64,
    pub problems: Vec<String>,
}

#[derive(Default)]
struct Shared {
    /// The filling, and all of it.
    is_filled: AtomicBool,
    is_over: AtomicBool,
    made: AtomicUsize,
    refused: AtomicUsize,
    most: AtomicU64,
}

/// Keeps it up for `hold` after the first refusal.
pub fn press(server: &Server, hold: Duration) -> Pressed {
    let (shared, port) = (Shared::default(), server.port);
    let relieved = std::thread::scope(|scope| {
        scope.spawn(|| sample(&shared, server));
        for _ in 0..FILLERS {
            scope.spawn(|| fill(&shared, port));
        }
        for _ in 0..READERS {
            scope.spawn(|| read(&shared, port));
        }
        let (mut end, mut is_held) = (Instant::now() + PATIENCE, false);
        while Instant::now() < end {
            if !is_held && shared.refused.load(Ordering::Relaxed) > 0 {
                (end, is_held) = (Instant::now() + hold, true);
            }
            std::thread::sleep(BACK_OFF);
        }
        shared.is_filled.store(true, Ordering::Relaxed);
        let relieved = relieve(port);
        shared.is_over.store(true, Ordering::Relaxed);
        relieved
    });
    let (made, most) = (shared.made.load(Ordering::Relaxed), shared.most.load(Ordering::Relaxed));
    let mut pressed = Pressed { refused: shared.refused.load(Ordering::Relaxed), most, problems: Vec::new() };
    if pressed.refused == 0 {
        pressed.problems.push(format!("{made} large objects were taken, and nobody was refused: {most} bytes"));
    }
    if most > MOST {
        pressed.problems.push(format!("a server with a budget of {BUDGET} bytes had {most}"));
    }
    pressed.problems.extend(relieved.err());
    pressed
}

fn sample(shared: &Shared, server: &Server) {
    while !shared.is_over.load(Ordering::Relaxed) {
        shared.most.fetch_max(server.pid().and_then(anonymous).unwrap_or(0), Ordering::Relaxed);
        std::thread::sleep(BACK_OFF);
    }
}

fn fill(shared: &Shared, port: u16) {
    let mut api = Api::of(port, FILLER_TOKEN);
    let object = json!({"metadata": {"generateName": "large-", "labels": {"pressure": "yes"}}, "data": {"k": "x".repeat(OBJECT)}});
    while !shared.is_filled.load(Ordering::Relaxed) {
        let has_room = shared.made.load(Ordering::Relaxed) < MOST_OBJECTS;
        match has_room.then(|| api.send("POST", MAPS, "application/json", Some(&object))).flatten() {
            Some((201, _)) => drop(shared.made.fetch_add(1, Ordering::Relaxed)),
            Some((429, _)) => drop(shared.refused.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        std::thread::sleep(BACK_OFF);
    }
}

/// An administrator's lists are never refused.
fn read(shared: &Shared, port: u16) {
    while !shared.is_filled.load(Ordering::Relaxed) {
        let list = request_as(TOKEN, "GET", MAPS, "", None);
        let _ = Client::new(address(port)).with_timeout(PATIENCE).slowly(&list, BACK_OFF, BACK_OFF * 20);
        std::thread::sleep(BACK_OFF);
    }
}

/// Deletions are never refused, and take no memory that there is not; after them whoever was refused is served.
fn relieve(port: u16) -> Result<(), String> {
    let mut api = Api::of(port, FILLER_TOKEN);
    let (small, trial) = (json!({"metadata": {"generateName": "small-"}}), format!("{MAPS}?dryRun=All"));
    // The answer has all that was deleted, and is not looked at.
    let deletion = request_as(FILLER_TOKEN, "DELETE", &format!("{MAPS}?labelSelector=pressure%3Dyes"), "", None);
    let end = Instant::now() + PATIENCE;
    loop {
        let deleted = Client::new(address(port)).send_once(&deletion).ok().map(|answer| answer.status);
        let served = api.send("POST", &trial, "application/json", Some(&small)).map(|(code, _)| code);
        if (deleted, served) == (Some(200), Some(201)) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("after the pressure a deletion was answered {deleted:?}, and a create {served:?}"));
        }
        std::thread::sleep(BACK_OFF);
    }
}
