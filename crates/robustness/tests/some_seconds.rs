//! Clients, faults and the checker of histories, for some seconds on each store. The long runs are made by
//! `cargo xtask robustness`; a seed that it prints repeats the plan of a run here, as `KUBELITH_ROBUSTNESS_SEED`.

use kubelith_robustness::faults::FaultKind;
use kubelith_robustness::plan::{Plan, Store};
use kubelith_robustness::run::run;
use kubelith_robustness::{fuzz, soak};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// Some faults on each store, with half the quiet of the long runs between them; the machine runs other tests meanwhile.
const DURATION: Duration = Duration::from_secs(6);
/// Until each thing that comes and goes has come and gone.
const SOAK: Duration = Duration::from_secs(8);
/// Grown ones: what some seconds are enough for where the machine has little else to do.
const REQUESTS: usize = 250;
/// Longer than that takes where it has much to do.
const LIMIT: Duration = Duration::from_secs(120);
const SEED: &str = "KUBELITH_ROBUSTNESS_SEED";

fn holds(store: Store, change: impl FnOnce(&mut Plan)) {
    let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let now = UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let mut plan = Plan::new(PathBuf::from(env!("CARGO_BIN_EXE_server-to-break")), store, given.unwrap_or(now.into()));
    plan.duration = DURATION;
    plan.quiet = (plan.quiet.0 / 2, plan.quiet.1 / 2);
    change(&mut plan);
    println!("{SEED}={}", plan.seed);
    let verdict = run(&plan).unwrap();
    println!("{}", verdict.text());
    assert!(verdict.is_good());
    assert!(verdict.report.counts["acknowledged writes"] > 0);
}

/// Requests grown from the recorded exchanges; `cargo xtask robustness fuzz` throws more.
#[test]
fn grown_requests_do_no_harm() {
    let found = fuzz::run(&fuzz::Options {
        program: PathBuf::from(env!("CARGO_BIN_EXE_server-to-break")),
        corpus: fuzz::default_corpus(),
        seed: std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(7),
        clients: 2,
        duration: LIMIT,
        requests: REQUESTS,
        feedback: fuzz::Feedback::Followed,
        edges: None,
        against: None,
    });
    let found = found.unwrap();
    println!("{}", found.text());
    assert!(found.problems.is_empty() && found.errors.is_empty() && found.requests >= REQUESTS, "{}", found.text());
}

#[test]
fn a_store_in_memory_keeps_its_promises() {
    holds(Store::Memory, |plan| plan.duration = DURATION / 2);
}

#[test]
fn an_embedded_store_keeps_its_promises_under_faults() {
    holds(Store::Embedded, |_| {});
}

#[test]
fn jumping_clocks_break_no_promise() {
    let faults = || vec![FaultKind::ClockJump, FaultKind::ClockJump, FaultKind::ClockJump, FaultKind::KillServer];
    holds(Store::Embedded, |plan| plan.faults = faults());
}

#[test]
fn short_memory_breaks_no_promise() {
    let faults = || vec![FaultKind::MemoryPressure, FaultKind::MemoryPressure, FaultKind::KillServer];
    holds(Store::Embedded, |plan| plan.faults = faults());
}

/// Too short to see a leak, long enough to see that all of it works.
#[test]
fn everything_comes_and_goes() {
    let soaked = soak::run(&soak::Options {
        program: PathBuf::from(env!("CARGO_BIN_EXE_server-to-break")),
        seed: 7,
        duration: SOAK,
        flags: Vec::new(),
    });
    let soaked = soaked.unwrap();
    println!("{}", soaked.text());
    assert!(soaked.problems.is_empty(), "{}", soaked.text());
    assert_eq!(soaked.done.len(), 10, "{}", soaked.text());
}

#[test]
fn two_servers_on_three_members_keep_their_promises_under_faults() {
    holds(Store::Etcd, |_| {});
}

#[test]
fn only_clients_of_a_killed_server_notice() {
    holds(Store::Etcd, |plan| {
        plan.servers = 3;
        plan.every = Some(Duration::from_millis(1500));
        plan.faults = vec![FaultKind::KillServer];
    });
}
