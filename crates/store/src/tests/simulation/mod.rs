//! The embedded store, its group commit and the watch caches on one thread, with a clock and a disk that are made up.
//!
//! A seed decides everything: whose turn it is, how many requests a commit takes, what happens while the disk syncs, how time
//! passes, when the disk fails, tears or loses writes and when the process dies. What clients were told is held against a model
//! ([`model`]): acknowledged writes survive, revisions are in order, watches have no gap and nothing twice, reads are consistent,
//! and in the end everything is answered.
//!
//! Seeds from a million on are of small worlds, of which very many can be tried:
//! `KUBELITH_SEED=1000000 KUBELITH_SCHEDULES=1000000 cargo test --release -p kubelith-store --lib simulation::schedules`.
//! `KUBELITH_SEED=N KUBELITH_SCHEDULES=1` repeats one.

mod clients;
mod executor;
mod model;
mod world;

use model::Counts;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Outcome, SMALL, World};

/// What the tests of every day try.
const SCHEDULES: u64 = 300;
const SMALL_SCHEDULES: u64 = 1_000;

/// Schedules that find a mistake if it is made again: a refusal that tells of a write of the same batch which was not written (13, 22, 36, 141,
/// 150); a cache that takes over a past which ends before a gap (3301).
const FOUND: &[u64] = &[13, 22, 36, 141, 150, 3301];

fn run(seed: u64) -> Outcome {
    // A new one each time: its timers begin at zero.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    // Turns are what the schedule says, not what fits into the budget of one task.
    runtime.block_on(tokio::task::coop::unconstrained(World::run(seed)))
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn schedules_keep_every_promise() {
    match variable("KUBELITH_SCHEDULES") {
        Some(schedules) => {
            let first = variable("KUBELITH_SEED").unwrap_or(1);
            keep_every_promise(first..first + schedules);
        }
        None => keep_every_promise(1..1 + SCHEDULES),
    }
}

#[test]
fn small_schedules_keep_every_promise() {
    // Who asks for some of their own has them above.
    if variable("KUBELITH_SCHEDULES").is_none() {
        keep_every_promise(SMALL..SMALL + SMALL_SCHEDULES);
    }
}

fn keep_every_promise(seeds: Range<u64>) {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Counts::default());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    let Outcome { violations, counts, .. } = run(seed);
                    total.lock().unwrap().add(counts);
                    if !violations.is_empty() {
                        failed.lock().unwrap().push(format!("seed {seed}: {}", violations.join("\n  ")));
                    }
                }
            });
        }
    });
    println!("{} schedules from {}: {:?}", seeds.end - seeds.start, seeds.start, total.into_inner().unwrap());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn what_was_found_stays_found() {
    for seed in FOUND {
        let violations = run(*seed).violations;
        assert!(violations.is_empty(), "seed {seed}: {}", violations.join("\n  "));
    }
}

#[test]
fn a_seed_repeats() {
    for seed in (1..20).chain(SMALL..SMALL + 20) {
        assert_eq!(run(seed).fingerprint, run(seed).fingerprint, "seed {seed}");
    }
}
