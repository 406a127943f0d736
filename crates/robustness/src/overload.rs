//! Ten times what the machine can do, by clients that misbehave: what those who behave notice of it, with priority and
//! fairness and without, and how much memory the server takes.

use crate::plan::{Plan, Store};
use crate::site::Site;
use crate::wire::{Api, LEADER_TOKEN, STORM_TOKEN, TOKEN, address, allow_storm, request_as};
use kubelith_conformance::http::{Client, Response};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OBJECTS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
/// Between two requests of those who behave.
const PACE: Duration = Duration::from_millis(10);

/// Between two looks of a slow reader at what has come.
const SLOW: Duration = Duration::from_millis(200);

/// All objects, and the bookmark that ends them.
const INITIAL_EVENTS: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
const BOOKMARK: &[u8] = br#"{"type":"BOOKMARK""#;

/// Of a client of the storm that was refused, or found nobody.
const REFUSED: Duration = Duration::from_millis(100);

/// What the storm does, without pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storm {
    Lists,
    /// Watches that begin with all objects and are left then.
    Watches,
    Events,
    /// Lists that are read so slowly that the server has to keep them.
    SlowReaders,
}

impl Storm {
    const ALL: [(&'static str, Storm); 4] = [
        ("lists", Storm::Lists),
        ("watches", Storm::Watches),
        ("events", Storm::Events),
        ("slow-readers", Storm::SlowReaders),
    ];

    pub fn parse(text: &str) -> Result<Storm, String> {
        let found = Storm::ALL.iter().find(|(name, _)| *name == text).map(|(_, storm)| *storm);
        found.ok_or_else(|| format!("unknown storm {text:?}: lists, watches, events, slow-readers"))
    }

    fn name(self) -> &'static str {
        Storm::ALL.iter().find(|(_, storm)| *storm == self).map_or("", |(name, _)| name)
    }
}

/// Who runs where. Apart, what the storm takes of the machine is not taken from the server, and what is left is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processors {
    Shared,
    /// The server has the first one, clients the second.
    Apart,
}

impl Processors {
    /// Of this process, and of what it starts from now on.
    fn stay_on(self, processor: &str) -> Result<(), String> {
        if self == Processors::Shared {
            return Ok(());
        }
        let own = std::process::id().to_string();
        let set = Command::new("taskset").args(["-a", "-c", "-p", processor, &own]).stdout(Stdio::null()).status();
        match set {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("taskset: {other:?}")),
        }
    }

    /// Lets this process, which measures, run as soon as it is answered: a kernel may leave a processor to the storm for
    /// milliseconds more. Whoever may not ask for that has those in the figures.
    fn go_first(self) {
        let own = std::process::id().to_string();
        let set =
            || Command::new("chrt").args(["--all-tasks", "--fifo", "--pid", "1", &own]).stderr(Stdio::null()).status();
        if self == Processors::Apart && !set().is_ok_and(|status| status.success()) {
            println!("clients do not go first: the storm's delays on their processor are in the figures");
        }
    }
}

#[derive(Debug, Clone)]
pub struct Options {
    pub program: PathBuf,
    pub clients: usize,
    pub duration: Duration,
    /// That a list has, and the bytes of each.
    pub objects: usize,
    pub bytes: usize,
    pub storm: Storm,
    pub processors: Processors,
    pub flags: Vec<String>,
}

/// How long requests took.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn percentile(&self, percent: usize) -> Duration {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or_default()
    }

    fn sorted(mut self) -> Latencies {
        self.0.sort_unstable();
        self
    }
}

#[derive(Debug)]
pub struct Measured {
    pub administrator: Latencies,
    pub leader: Latencies,
    /// Answers that those who behave got, by code.
    pub codes: BTreeMap<u16, usize>,
    pub most_memory: u64,
    /// What the storm says of itself.
    pub storm: String,
}

impl Measured {
    pub fn text(&self) -> String {
        let row = |who: &str, l: &Latencies| {
            format!("  {who:<14} p50 {:>8.1?}  p99 {:>8.1?}  of {}\n", l.percentile(50), l.percentile(99), l.0.len())
        };
        let Measured { administrator, leader, codes, most_memory, storm } = self;
        let rows = row("administrator", administrator) + &row("leader's lease", leader);
        format!("{rows}  codes {codes:?}, at most {} MB, storm: {}\n", most_memory >> 20, storm.trim())
    }
}

/// What makes the figures worthless: those who behave were not served where nothing else went on, or there was no storm.
pub fn problems(idle: &Measured, stormy: &Measured) -> Vec<String> {
    let mut problems = Vec::new();
    if idle.codes.keys().any(|code| *code != 200) {
        problems.push(format!("idle, not all were answered: {:?}", idle.codes));
    }
    for (when, measured) in [("idle", idle), ("in the storm", stormy)] {
        for (who, latencies) in [("administrator", &measured.administrator), ("leader", &measured.leader)] {
            if latencies.0.is_empty() {
                problems.push(format!("{when} the {who} asked nothing"));
            }
        }
    }
    if !["200: ", "201: "].iter().any(|code| stormy.storm.contains(code)) {
        problems.push(format!("there was no storm: {:?}", stormy.storm));
    }
    problems
}

/// Idle, then in a storm.
pub fn run(options: &Options) -> Result<(Measured, Measured), String> {
    let mut plan = Plan::new(options.program.clone(), Store::Memory, 1);
    plan.flags.clone_from(&options.flags);
    options.processors.stay_on("0")?;
    let site = Site::start(&plan)?;
    options.processors.stay_on("1")?;
    options.processors.go_first();
    prepare(&site, options)?;
    let idle = measure(&site, options, 0)?;
    let stormy = measure(&site, options, options.clients)?;
    let mut site = site;
    site.servers[0].stop()?;
    Ok((idle, stormy))
}

fn prepare(site: &Site, options: &Options) -> Result<(), String> {
    let mut api = Api::new(site.servers[0].port);
    allow_storm(&mut api)?;
    let mut make = |path: &str, body: &serde_json::Value| match api.send("POST", path, "application/json", Some(body)) {
        Some((201, _)) => Ok(()),
        other => Err(format!("{path}: {other:?}")),
    };
    make(LEASES, &json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "one"}}))?;
    for i in 0..options.objects {
        make(OBJECTS, &json!({"metadata": {"name": format!("o{i}")}, "data": {"k": "x".repeat(options.bytes)}}))?;
    }
    Ok(())
}

/// A storm of so many clients, in a process of its own that runs when nobody else would: it stands for machines elsewhere.
fn measure(site: &Site, options: &Options, clients: usize) -> Result<Measured, String> {
    let port = site.servers[0].port;
    let seconds = options.duration.as_secs().to_string();
    let storm = (clients > 0).then(|| {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        Command::new("chrt")
            .args(["--idle", "0"])
            .arg(own)
            .args(["storm", &port.to_string(), &clients.to_string(), &seconds, options.storm.name()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())
    });
    let storm = storm.transpose()?;
    if storm.is_some() {
        // Until it blows.
        std::thread::sleep(options.duration / 5);
    }
    let (stop, codes) = (AtomicBool::new(false), Mutex::new(BTreeMap::new()));
    let mut most_memory = 0;
    let (administrator, leader) = std::thread::scope(|scope| {
        let administrator = scope
            .spawn(|| repeat(port, &stop, &codes, |_| request_as(TOKEN, "GET", &format!("{OBJECTS}/o0"), "", None)));
        let leader = scope.spawn(|| {
            let path = format!("{LEASES}/leader");
            // What was answered is written again, with one more transition.
            repeat(port, &stop, &codes, |last| {
                let mut lease: serde_json::Value = serde_json::from_slice(last).unwrap_or_default();
                if lease["kind"] != "Lease" {
                    return request_as(LEADER_TOKEN, "GET", &path, "", None);
                }
                let count = lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
                lease["spec"]["leaseTransitions"] = (count + 1).into();
                request_as(LEADER_TOKEN, "PUT", &path, "application/json", Some(&lease))
            })
        });
        let end = Instant::now() + options.duration * 3 / 5;
        while Instant::now() < end {
            most_memory = most_memory.max(site.servers[0].pid().and_then(crate::memory::resident).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        (administrator.join().unwrap_or_default(), leader.join().unwrap_or_default())
    });
    let storm = match storm {
        Some(storm) => storm.wait_with_output().map_err(|error| error.to_string())?.stdout,
        None => b"none".to_vec(),
    };
    Ok(Measured {
        administrator: administrator.sorted(),
        leader: leader.sorted(),
        codes: codes.into_inner().map_err(|_| "a client panicked".to_owned())?,
        most_memory,
        storm: String::from_utf8_lossy(&storm).into_owned(),
    })
}

fn repeat(
    port: u16,
    stop: &AtomicBool,
    codes: &Mutex<BTreeMap<u16, usize>>,
    request: impl Fn(&[u8]) -> kubelith_conformance::http::Request,
) -> Latencies {
    let mut client = Client::new(address(port));
    let (mut latencies, mut last) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let request = request(&last);
        let begin = Instant::now();
        let answer = client.send_once(&request);
        latencies.push(begin.elapsed());
        let code = answer.as_ref().map_or(0, |answer| answer.status);
        last = answer.map_or_else(|_| Vec::new(), |answer| answer.body);
        if let Ok(mut codes) = codes.lock() {
            *codes.entry(code).or_default() += 1;
        }
        std::thread::sleep(PACE);
    }
    Latencies(latencies)
}

/// The process of the storm: requests, one after another, by each client.
pub fn storm(port: u16, clients: usize, duration: Duration, storm: Storm) -> String {
    let end = Instant::now() + duration;
    let codes: Mutex<BTreeMap<u16, usize>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::new(address(port)).with_timeout(Duration::from_secs(60));
                while Instant::now() < end {
                    let answer = blow(&mut client, storm);
                    let code = answer.map_or(0, |answer| answer.status);
                    if let Ok(mut codes) = codes.lock() {
                        *codes.entry(code).or_default() += 1;
                    }
                    if !matches!(code, 200..=299) {
                        std::thread::sleep(REFUSED);
                    }
                }
            });
        }
    });
    codes.into_inner().map_or_else(|_| String::new(), |codes| format!("{codes:?}"))
}

fn blow(client: &mut Client, storm: Storm) -> std::io::Result<Response> {
    match storm {
        Storm::Lists => client.send_once(&request_as(STORM_TOKEN, "GET", OBJECTS, "", None)),
        Storm::Watches => {
            let path = format!("{OBJECTS}?watch=true&{INITIAL_EVENTS}");
            let has_all = |lines: &[Vec<u8>]| lines.last().is_some_and(|line| line.starts_with(BOOKMARK));
            let watch = request_as(STORM_TOKEN, "GET", &path, "", None);
            client.lines_until(&watch, has_all, Duration::from_secs(10)).map(|(answer, _)| answer)
        }
        Storm::SlowReaders => {
            let list = request_as(STORM_TOKEN, "GET", OBJECTS, "", None);
            client.slowly(&list, SLOW, SLOW * 10)
        }
        Storm::Events => {
            let event = json!({"metadata": {"generateName": "storm-"}, "involvedObject": {"namespace": "default"}, "reason": "Storm"});
            client.send_once(&request_as(STORM_TOKEN, "POST", EVENTS, "application/json", Some(&event)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(code: u16, storm: &str) -> Measured {
        let latencies = Latencies((1..=100).map(Duration::from_millis).collect());
        let (administrator, codes) = (latencies.clone(), BTreeMap::from([(code, 100)]));
        Measured { administrator, leader: latencies, codes, most_memory: 0, storm: storm.to_owned() }
    }

    #[test]
    fn figures_without_a_storm_are_told() {
        let idle = measured(200, "none");
        assert_eq!(problems(&idle, &measured(200, "{201: 7, 429: 90}")), [""; 0]);
        assert_eq!(problems(&idle, &measured(429, "{200: 7}")), [""; 0], "that is what is measured");
        assert_eq!(problems(&idle, &measured(200, "{0: 7, 429: 90}")).len(), 1);
        assert_eq!(problems(&measured(503, "none"), &measured(200, "{200: 7}")).len(), 1);
        let silent = Measured { leader: Latencies::default(), ..measured(200, "{200: 7}") };
        assert_eq!(problems(&idle, &silent), ["in the storm the leader asked nothing"]);
        assert_eq!(idle.leader.percentile(99), Duration::from_millis(100));
    }
}
