//! The embedded store, its group commit and the watch caches on one thread, with a clock and a disk that are made up.
//!
//! A seed decides everything: whose turn it is, how many requests a commit takes, what happens while the disk syncs, how time
//! passes, when the disk fails, tears or loses writes and when the process dies. What clients were told is held against a model
//! ([`model`]): acknowledged writes survive, revisions are in order, watches have no gap and nothing twice, reads are consistent,
//! and in the end everything is answered.
//!
//! `KUBELITH_SCHEDULES=1000000 cargo test -p kubelith-store --lib simulation` tries many, faster
//! with `--config profile.dev.package.kubelith-store.opt-level=2`;
//! `KUBELITH_SEED=N KUBELITH_SCHEDULES=1` repeats one.

mod clients;
mod executor;
mod model;
mod world;

use model::Counts;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Outcome, World};

/// What the tests of every day try.
const SCHEDULES: u64 = 300;

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
    let first = variable("KUBELITH_SEED").unwrap_or(1);
    let last = first + variable("KUBELITH_SCHEDULES").unwrap_or(SCHEDULES);
    let next = AtomicU64::new(first);
    let total = Mutex::new(Counts::default());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last || failed.lock().unwrap().len() >= 5 {
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
    println!("{} schedules from {first}: {:?}", last - first, total.into_inner().unwrap());
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
    for seed in 1..20 {
        assert_eq!(run(seed).fingerprint, run(seed).fingerprint, "seed {seed}");
    }
}
