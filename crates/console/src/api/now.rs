//! `GET /kubelith/v1/now`: who is being served and who waits, and what was counted since the start. Counts only grow, so that who
//! asks twice knows the rates between.

use super::figures::{Distribution, Figures, label};
use super::{Outcome, Sources, json, millis, recent};
use kubelith_meta::time::wall_time;
use kubelith_server::fairness::{LevelNow, RequestNow};
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests of a level that are told one by one.
const MAX_REQUESTS: usize = 200;
/// Sorts of requests that are told.
const MAX_SORTS: usize = 1_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    time: u64,
    process: Process,
    levels: Vec<Level>,
    running: Vec<Running>,
    long_running: Vec<LongRunning>,
    requests: Vec<Sort>,
    latency: BTreeMap<String, Distribution>,
    phases: Vec<Phase>,
    slow: Vec<recent::Slow>,
    refused: Vec<recent::Refused>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    started: f64,
    cpu_seconds: f64,
    resident_bytes: f64,
    open_files: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Level {
    name: String,
    exempt: bool,
    nominal_seats: u32,
    seats: u32,
    seats_in_use: u32,
    executing: u32,
    waiting: u32,
    dispatched: u64,
    rejected: u64,
    timed_out: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    level: String,
    schema: String,
    waiting: bool,
    seats: u32,
    age_ms: f64,
    waited_ms: f64,
    #[serde(flatten)]
    asked: recent::Asked,
}

#[derive(Serialize)]
struct LongRunning {
    verb: String,
    group: String,
    resource: String,
    count: f64,
}

#[derive(Serialize)]
struct Sort {
    verb: String,
    group: String,
    resource: String,
    code: String,
    count: f64,
}

#[derive(Serialize)]
struct Phase {
    name: &'static str,
    count: u64,
    seconds: f64,
}

pub fn serve(sources: &Sources) -> Outcome {
    let figures = Figures::of(&sources.metrics);
    let levels = sources.fairness.as_ref().map(|fairness| fairness.look(MAX_REQUESTS)).unwrap_or_default();
    let lists = sources.metrics.requests.recent.lists();
    json(&Now {
        time: millis(wall_time()),
        process: Process {
            started: figures.gauge("process_start_time_seconds"),
            cpu_seconds: figures.counter("process_cpu_seconds_total"),
            resident_bytes: figures.gauge("process_resident_memory_bytes"),
            open_files: figures.gauge("process_open_fds"),
        },
        running: levels.iter().flat_map(|level| level.requests.iter().map(|r| running(level, r))).collect(),
        levels: levels.iter().map(shown).collect(),
        long_running: long_running(&figures),
        requests: requests(&figures),
        latency: latency(&figures),
        phases: phases(&figures, sources.store_name()),
        slow: lists.slow.iter().rev().map(|slow| recent::Slow::of(slow, sources.store_name())).collect(),
        refused: lists.refused.iter().rev().map(recent::Refused::of).collect(),
    })
}

fn shown(level: &LevelNow) -> Level {
    Level {
        name: level.name.to_string(),
        exempt: level.exempt,
        nominal_seats: level.nominal,
        seats: level.limit,
        seats_in_use: level.totals.seats_in_use,
        executing: level.totals.executing,
        waiting: level.totals.waiting,
        dispatched: level.totals.dispatched,
        rejected: level.totals.rejected,
        timed_out: level.totals.timed_out,
    }
}

fn running(level: &LevelNow, request: &RequestNow) -> Running {
    Running {
        level: level.name.to_string(),
        schema: request.schema.to_string(),
        waiting: request.queue.is_some(),
        seats: request.seats,
        age_ms: request.age.as_secs_f64() * 1e3,
        waited_ms: request.waited.as_secs_f64() * 1e3,
        asked: recent::Asked::of(&request.user, &request.info),
    }
}

fn long_running(figures: &Figures) -> Vec<LongRunning> {
    let mut sums = BTreeMap::<[&str; 3], f64>::new();
    for metric in figures.series("apiserver_longrunning_requests") {
        let key = ["verb", "group", "resource"].map(|name| label(metric, name));
        *sums.entry(key).or_default() += metric.get_gauge().get_value();
    }
    let shown = sums.into_iter().filter(|(_, count)| *count > 0.0);
    let shown = shown.map(|([verb, group, resource], count)| LongRunning {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        count,
    });
    shown.take(MAX_SORTS).collect()
}

fn requests(figures: &Figures) -> Vec<Sort> {
    let mut sums = BTreeMap::<[&str; 4], f64>::new();
    for metric in figures.series("apiserver_request_total") {
        let key = ["verb", "group", "resource", "code"].map(|name| label(metric, name));
        *sums.entry(key).or_default() += metric.get_counter().get_value();
    }
    let mut sorts: Vec<Sort> = sums
        .into_iter()
        .map(|([verb, group, resource, code], count)| Sort {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            code: code.into(),
            count,
        })
        .collect();
    sorts.sort_by(|a, b| b.count.total_cmp(&a.count));
    sorts.truncate(MAX_SORTS);
    sorts
}

fn latency(figures: &Figures) -> BTreeMap<String, Distribution> {
    let mut by_verb = BTreeMap::<String, Distribution>::new();
    for metric in figures.series("apiserver_request_duration_seconds") {
        // How long these take is up to the client.
        if !matches!(label(metric, "verb"), "WATCH" | "CONNECT") {
            by_verb.entry(label(metric, "verb").to_owned()).or_default().add(metric);
        }
    }
    by_verb
}

/// Where the time of all requests went. Webhooks and expressions are parts of admission.
fn phases(figures: &Figures, store: &'static str) -> Vec<Phase> {
    let filter = |wanted: &'static str| {
        figures.distribution("apiserver_request_filter_duration_seconds", |m| label(m, "filter") == wanted)
    };
    let all = |name: &str| figures.distribution(name, |_| true);
    let mut expressions = all("apiserver_validating_admission_policy_check_duration_seconds");
    let mutating = all("apiserver_mutating_admission_policy_check_duration_seconds");
    expressions.count += mutating.count;
    expressions.sum += mutating.sum;
    let parts = [
        ("authentication", filter("authentication")),
        ("authorization", filter("authorization")),
        ("queue", all("apiserver_flowcontrol_request_wait_duration_seconds")),
        ("admission", all("apiserver_admission_step_admission_duration_seconds")),
        ("webhooks", all("apiserver_admission_webhook_admission_duration_seconds")),
        ("expressions", expressions),
        (store, all("etcd_request_duration_seconds")),
    ];
    parts.into_iter().map(|(name, of)| Phase { name, count: of.count, seconds: of.sum }).collect()
}
