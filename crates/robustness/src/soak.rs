//! Hours of mixed work in which everything that can come and go does: definitions, aggregated APIs, webhooks, policies, requests for
//! certificates, tokens, connections, the certificate that it serves with. What the server takes for it must not grow.

use crate::fuzz;
use crate::memory::resident;
use crate::plan::{Plan, Store};
use crate::serving::{Serving, is_served};
use crate::site::{Server, Site};
use crate::wire::{Api, NAMESPACE, TOKEN, address, request, request_as};
use kubelith_conformance::http::Client;
use kubelith_store::random::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Names come again: a series for each name that ever was is no leak.
const NAMES: usize = 8;
/// So many samples are taken.
const SAMPLES: u32 = 120;
/// The first part of the time is not looked at: caches fill, and what is made on demand is made.
const WARM_UP: f64 = 0.3;
const JSON: &str = "application/json";
/// For what takes effect a little later.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two turns of a churner.
const PACE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));

/// Between two looks at a certificate, each of which is a connection.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct Options {
    pub program: PathBuf,
    pub seed: u64,
    pub duration: Duration,
    pub flags: Vec<String>,
}

/// What a server took at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    pub seconds: u64,
    pub memory: u64,
    /// Of that, what watch caches say that they keep: objects, their past and indexes.
    pub kept: u64,
    pub descriptors: u64,
    pub threads: u64,
    /// Lines of /metrics that are no comments.
    pub series: u64,
}

#[derive(Debug, Default)]
pub struct Soaked {
    pub samples: Vec<Sample>,
    /// What was done, and how often it was answered as it should be.
    pub done: BTreeMap<&'static str, (usize, usize)>,
    pub problems: Vec<String>,
}

/// A quantity that must not grow: its name, how it is taken, and what may come and go of it.
type Quantity = (&'static str, fn(&Sample) -> u64, u64);

const QUANTITIES: [Quantity; 4] = [
    // Events are kept for an hour, as they are in any cluster: what is left without them must not grow.
    ("bytes of memory beside what caches keep", |sample| sample.memory.saturating_sub(sample.kept), 24 << 20),
    ("descriptors", |sample| sample.descriptors, 24),
    ("threads", |sample| sample.threads, 8),
    ("metric series", |sample| sample.series, 60),
];

impl Soaked {
    /// What grew between the time after the warm-up and the end, on average, by more than a tenth and what may come and go.
    pub fn grown(&self) -> Vec<String> {
        let settled = &self.samples[(self.samples.len() as f64 * WARM_UP) as usize..];
        let part = (settled.len() / 3).max(1);
        let (first, last) = (&settled[..part.min(settled.len())], &settled[settled.len().saturating_sub(part)..]);
        let mean = |samples: &[Sample], of: fn(&Sample) -> u64| {
            samples.iter().map(of).sum::<u64>() / samples.len().max(1) as u64
        };
        let grown = QUANTITIES.iter().filter_map(|(name, of, slack)| {
            let (before, after) = (mean(first, *of), mean(last, *of));
            (after > before + before / 10 + slack).then(|| format!("{name} grew from {before} to {after}"))
        });
        grown.collect()
    }

    pub fn text(&self) -> String {
        let mut text = String::from("seconds  memory MB  kept MB  descriptors  threads  series\n");
        for sample in self.samples.iter().step_by((self.samples.len() / 20).max(1)) {
            let Sample { seconds, memory, kept, descriptors, threads, series } = sample;
            let (memory, kept) = (memory >> 20, kept >> 20);
            text += &format!("{seconds:>7}  {memory:>9}  {kept:>7}  {descriptors:>11}  {threads:>7}  {series:>6}\n");
        }
        for (what, (good, all)) in &self.done {
            text += &format!("{good:>9} of {all} {what}\n");
        }
        for problem in self.problems.iter().chain(&self.grown()) {
            text += &format!("PROBLEM {problem}\n");
        }
        text
    }
}

/// What the churners share.
struct Shared {
    port: u16,
    stop: AtomicBool,
    done: Mutex<BTreeMap<&'static str, (usize, usize)>>,
    /// A request for a certificate, in PEM and base64.
    signing_request: Value,
    serving: Serving,
}

/// One that makes and unmakes something; true if all went as it should.
type Churn = fn(&Shared, &mut Api, &mut Random) -> bool;

const CHURNS: [(&str, Churn); 10] = [
    ("definitions with objects", definitions),
    ("aggregated APIs", aggregated),
    ("webhooks", webhooks),
    ("policies", policies),
    ("requests for certificates", signing_requests),
    ("serving certificates", serving_certificates),
    ("service accounts with tokens", tokens),
    ("connections", connections),
    ("watches", watches),
    ("objects", objects),
];

pub fn run(options: &Options) -> Result<Soaked, String> {
    let mut plan = Plan::new(options.program.clone(), Store::Embedded, options.seed);
    let serving = Serving::new()?;
    plan.flags = [&options.flags[..], &serving.flags()].concat();
    let mut site = Site::start(&plan)?;
    let signing_request = fuzz::signing_request().ok_or("no recorded request for a certificate")?;
    let (port, stop, done) = (site.servers[0].port, AtomicBool::new(false), Mutex::default());
    let shared = Shared { port, stop, done, signing_request, serving };
    let mut soaked = Soaked::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for (part, (what, churn)) in CHURNS.into_iter().enumerate() {
            let (shared, random) = (&shared, Random::new(options.seed, part as u64));
            scope.spawn(move || repeat(shared, what, churn, random));
        }
        while begin.elapsed() < options.duration && soaked.problems.is_empty() {
            std::thread::sleep(options.duration / SAMPLES);
            if site.servers[0].has_ended() {
                soaked.problems.push(format!("the server ended: {}", site.servers[0].tail()));
            }
            soaked.samples.extend(sample(&site.servers[0], begin.elapsed().as_secs()));
        }
        shared.stop.store(true, Ordering::Relaxed);
    });
    soaked.done = shared.done.into_inner().map_err(|_| "a churner panicked".to_owned())?;
    // Now and then something comes in between, as a request that a busy machine does not answer in time; mostly not.
    let failed = soaked.done.iter().filter(|(_, (good, all))| all - good > 1 + all / 10);
    let failed = failed.map(|(what, (good, all))| format!("{what}: {good} of {all} went as they should"));
    soaked.problems.extend(failed.collect::<Vec<_>>());
    soaked.problems.extend(site.servers[0].panics());
    soaked.problems.extend(site.servers[0].stop().err());
    soaked.problems.extend(site.check_store().err());
    Ok(soaked)
}

fn repeat(shared: &Shared, what: &'static str, churn: Churn, mut random: Random) {
    let mut api = Api::new(shared.port);
    while !shared.stop.load(Ordering::Relaxed) {
        let went_well = churn(shared, &mut api, &mut random);
        if let Ok(mut done) = shared.done.lock() {
            let (good, all) = done.entry(what).or_default();
            *good += usize::from(went_well);
            *all += 1;
        }
        std::thread::sleep(random.between(PACE.0, PACE.1));
    }
}

fn sample(server: &Server, seconds: u64) -> Option<Sample> {
    let pid = server.pid()?;
    let metrics = Client::new(address(server.port)).send_once(&request("GET", "/metrics", "", None)).ok()?;
    let (series, kept) = read(&String::from_utf8_lossy(&metrics.body));
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.count() as u64;
    Some(Sample { seconds, memory: resident(pid)?, kept, descriptors: server.open_files()?, threads, series })
}

/// How many series metrics have, and the bytes that watch caches keep by them.
fn read(metrics: &str) -> (u64, u64) {
    let series = metrics.lines().filter(|line| !line.starts_with('#'));
    let kept = series.clone().filter(|line| line.starts_with("kubelith_watch_cache_bytes{"));
    let bytes = kept.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    (series.count() as u64, bytes.sum::<f64>() as u64)
}

fn makes(api: &mut Api, path: &str, body: &Value) -> bool {
    matches!(api.send("POST", path, JSON, Some(body)), Some((200..=299, _)))
}

fn unmakes(api: &mut Api, path: &str) -> bool {
    matches!(api.send("DELETE", path, "", None), Some((200..=299, _)))
}

/// Asks until it is so. What was begun is brought to its end, also when the time is over.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn definitions(_: &Shared, api: &mut Api, random: &mut Random) -> bool {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let group = format!("soak{}.example.com", random.below(NAMES));
    let field = json!({"type": "string", "maxLength": 1 + random.below(1000)});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": field}}}});
    let definition = json!({"metadata": {"name": format!("things.{group}")}, "spec": {"group": group, "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let path = format!("/apis/{group}/v1/namespaces/{NAMESPACE}/things");
    let mut is_good =
        makes(api, DEFINITIONS, &definition) && until(|| api.get(&path).is_some_and(|(code, _)| code == 200));
    for i in 0..3 {
        let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": format!("t{i}")}, "spec": {"a": "x"}});
        is_good &= makes(api, &path, &thing);
    }
    let one = format!("{DEFINITIONS}/things.{group}");
    is_good &= unmakes(api, &one);
    is_good && until(|| api.get(&one).is_some_and(|(code, _)| code == 404))
}

fn aggregated(_: &Shared, api: &mut Api, random: &mut Random) -> bool {
    const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
    let group = format!("far{}.example.com", random.below(NAMES));
    let service = json!({"metadata": {"name": format!("v1.{group}")}, "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 100,
        "versionPriority": 10, "insecureSkipTLSVerify": true, "service": {"namespace": NAMESPACE, "name": "nobody"}}});
    let is_made = makes(api, SERVICES, &service);
    let is_refused = api.get(&format!("/apis/{group}/v1/things")).is_some_and(|(code, _)| code >= 400);
    unmakes(api, &format!("{SERVICES}/v1.{group}")) && is_made && is_refused
}

fn webhooks(_: &Shared, api: &mut Api, random: &mut Random) -> bool {
    const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let name = format!("hook{}", random.below(NAMES));
    // Nobody listens there, which is not minded.
    let hook = json!({"metadata": {"name": name}, "webhooks": [{"name": "soak.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"hooked": name}}, "failurePolicy": "Ignore", "sideEffects": "None", "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"]}]});
    let is_made = makes(api, HOOKS, &hook);
    let object = json!({"metadata": {"generateName": "hooked-", "labels": {"hooked": name}}});
    let is_let_through = makes(api, &format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All"), &object);
    unmakes(api, &format!("{HOOKS}/{name}")) && is_made && is_let_through
}

fn policies(_: &Shared, api: &mut Api, random: &mut Random) -> bool {
    const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
    let name = format!("policy{}", random.below(NAMES));
    let expression = format!("size(object.metadata.name) < {}", 100 + random.below(100_000));
    let policy = json!({"metadata": {"name": name}, "spec": {"validations": [{"expression": expression}],
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "objectSelector": {"matchLabels": {"ruled": name}}}}});
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    let is_made = makes(api, &format!("{ROOT}/validatingadmissionpolicies"), &policy)
        & makes(api, &format!("{ROOT}/validatingadmissionpolicybindings"), &binding);
    let object = json!({"metadata": {"name": "ruled", "labels": {"ruled": name}}});
    let is_let_through = makes(api, &format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All"), &object);
    let is_unmade = unmakes(api, &format!("{ROOT}/validatingadmissionpolicybindings/{name}"))
        & unmakes(api, &format!("{ROOT}/validatingadmissionpolicies/{name}"));
    is_made && is_let_through && is_unmade
}

fn signing_requests(shared: &Shared, api: &mut Api, random: &mut Random) -> bool {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let name = format!("csr{}", random.below(NAMES));
    let wanted = json!({"metadata": {"name": name}, "spec": {"request": shared.signing_request, "signerName": "example.com/soak",
        "usages": ["client auth"]}});
    let is_made = makes(api, REQUESTS, &wanted);
    let is_read = api.get(&format!("{REQUESTS}/{name}")).is_some_and(|(code, _)| code == 200);
    unmakes(api, &format!("{REQUESTS}/{name}")) && is_made && is_read
}

/// A connection that was there before goes on; a new one has the new certificate after a while.
fn serving_certificates(shared: &Shared, api: &mut Api, _: &mut Random) -> bool {
    let mut goes_on = || api.get("/readyz").is_some_and(|(code, _)| code == 200);
    let was_there = goes_on();
    let Ok(certificate) = shared.serving.replace() else { return false };
    let is_served = until(|| {
        std::thread::sleep(LOOK);
        is_served(shared.port, &certificate)
    });
    was_there && is_served && goes_on()
}

fn tokens(shared: &Shared, api: &mut Api, random: &mut Random) -> bool {
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let name = format!("account{}", random.below(NAMES));
    let is_made = makes(api, &accounts, &json!({"metadata": {"name": name}}));
    let wanted =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let token = api.send("POST", &format!("{accounts}/{name}/token"), JSON, Some(&wanted)).map(|(_, body)| body);
    let token = token.and_then(|body| body["status"]["token"].as_str().map(str::to_owned)).unwrap_or_default();
    let ask = || {
        let answer = Client::new(address(shared.port)).send_once(&request_as(&token, "GET", "/version", "", None));
        answer.map_or(0, |answer| answer.status)
    };
    let is_known = ask() == 200;
    let is_unmade = unmakes(api, &format!("{accounts}/{name}"));
    is_made && is_known && is_unmade
}

fn connections(shared: &Shared, _: &mut Api, random: &mut Random) -> bool {
    let open: Vec<Client> = (0..1 + random.below(10)).map(|_| Client::new(address(shared.port))).collect();
    let answers = open.into_iter().map(|mut client| client.send_once(&request_as(TOKEN, "GET", "/readyz", "", None)));
    answers.filter(|answer| answer.as_ref().is_ok_and(|answer| answer.status == 200)).count() > 0
}

fn watches(shared: &Shared, _: &mut Api, random: &mut Random) -> bool {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?watch=true&timeoutSeconds=30");
    // It is left in the midst of what it tells.
    let (lines, limit) = (1 + random.below(12), Duration::from_secs(10));
    let answer = Client::new(address(shared.port)).lines(&request("GET", &path, "", None), lines, limit);
    answer.is_ok_and(|(answer, _)| answer.status == 200)
}

fn objects(_: &Shared, api: &mut Api, random: &mut Random) -> bool {
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let name = format!("map{}", random.below(NAMES));
    let map = json!({"metadata": {"name": name}, "data": {"k": "x".repeat(random.below(4000))}});
    let is_made = makes(api, &maps, &map);
    let patch = json!({"data": {"n": random.below(1000).to_string()}});
    let one = format!("{maps}/{name}");
    let is_changed = matches!(api.send("PATCH", &one, "application/merge-patch+json", Some(&patch)), Some((200, _)));
    let event = json!({"metadata": {"generateName": "soak-"}, "involvedObject": {"namespace": NAMESPACE}, "reason": "Soak", "type": "Normal"});
    let is_told = makes(api, &format!("/api/v1/namespaces/{NAMESPACE}/events"), &event);
    unmakes(api, &one) && is_made && is_changed && is_told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_told() {
        let flat =
            |i: u64| Sample { seconds: i, memory: 100 << 20, kept: 0, descriptors: 40, threads: 10, series: 3000 };
        let soaked = |sample: fn(Sample, u64) -> Sample| Soaked {
            samples: (0..100).map(|i| sample(flat(i), i)).collect(),
            ..Soaked::default()
        };
        assert_eq!(soaked(|sample, _| sample).grown(), Vec::<String>::new());
        let leaks = soaked(|sample, i| Sample { memory: sample.memory + (i << 20), ..sample });
        assert_eq!(leaks.grown().len(), 1, "{:?}", leaks.grown());
        let events = soaked(|sample, i| Sample { memory: sample.memory + (i << 20), kept: i << 20, ..sample });
        assert_eq!(events.grown(), Vec::<String>::new(), "what caches keep is no leak");
        let series = soaked(|sample, i| Sample { series: sample.series + 20 * i, ..sample });
        assert!(series.grown()[0].starts_with("metric series grew"), "{:?}", series.grown());
        let warming = soaked(|sample, i| Sample { descriptors: i.min(25) + sample.descriptors, ..sample });
        assert_eq!(warming.grown(), Vec::<String>::new());
        let metrics = "# HELP a b\na 1\nkubelith_watch_cache_bytes{part=\"objects\",resource=\"pods\"} 5e+3\nkubelith_watch_cache_bytes{part=\"index\"} 7\n";
        assert_eq!(read(metrics), (3, 5007));
    }
}
