//! How many instructions the hot paths take, from request to response: a change that makes them dearer does not go unnoticed.
//!
//! The test runs itself once more under callgrind, which counts instructions whatever else the machine does, and compares with
//! `instructions.txt`. Counts are those of a build for tests, so they say nothing of how fast a server is; but what is added to
//! a path is added there, too. `BLESS=1 cargo test -p kubelith-kube --test instructions` writes them anew. Where there is no
//! valgrind, nothing is compared.

mod support;

use futures::future;
use http::Method;
use kubelith_admission::Switches;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_kube::Install;
use kubelith_store::MemoryStore;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::{Events, Server};
use tokio::runtime::Runtime;

/// Counts differ from run to run, by where hash maps put things and when timers are looked at.
const TOLERANCE_PERCENT: u64 = 5;
/// Requests of each kind that are counted.
const RUNS: usize = 8;
/// Pods that there are when reads are counted.
const PODS: usize = 64;
/// Watches that a write is delivered to, half of them with a selector. With so many, half of what is counted is for them.
const WATCHES: usize = 64;

const OPERATIONS: [&str; 9] = ["get", "create", "patch", "list", "page", "select", "deliver", "admitted", "judged"];

fn pod(name: &str) -> String {
    let env: Vec<String> = (0..12).map(|i| format!(r#"{{"name":"SETTING_{i}","value":"value-{i}"}}"#)).collect();
    let container = |name: &str| {
        format!(
            r#"{{"name":"{name}","image":"registry.example/app:1","env":[{}],"ports":[{{"containerPort":8080}}]}}"#,
            env.join(",")
        )
    };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"a","name":"{name}"}}}},
            "spec":{{"nodeName":"node-1","containers":[{},{}]}}}}"#,
        container("app"),
        container("sidecar")
    )
}

const URI: &str = "/api/v1/namespaces/default/pods";

async fn send(server: &Server, method: Method, uri: &str, content_type: &str, body: &str) {
    let (code, answer) = server.send_raw(method, uri, content_type, body).await;
    assert!((200..300).contains(&code), "{uri}: {}", String::from_utf8_lossy(&answer));
}

/// Runs requests. Each operation has a function of its own, by whose name callgrind's figures are found.
fn all<F: Future<Output = ()>>(runtime: &Runtime, server: &Server, request: impl Fn(usize) -> F) {
    runtime.block_on(async {
        for i in 0..RUNS {
            request(i).await;
        }
        // What a write left for later belongs to it.
        server.settle().await;
    });
}

#[inline(never)]
fn counted_get(runtime: &Runtime, server: &Server) {
    all(runtime, server, |i| async move { send(server, Method::GET, &format!("{URI}/pod-{i}"), "", "").await });
}

#[inline(never)]
fn counted_create(runtime: &Runtime, server: &Server) {
    all(runtime, server, |i| async move {
        send(server, Method::POST, URI, "application/json", &pod(&format!("new-{i}"))).await;
    });
}

#[inline(never)]
fn counted_patch(runtime: &Runtime, server: &Server) {
    all(runtime, server, |i| async move {
        let patch = format!(r#"{{"metadata":{{"labels":{{"step":"{i}"}}}}}}"#);
        send(server, Method::PATCH, &format!("{URI}/pod-{i}"), "application/merge-patch+json", &patch).await;
    });
}

#[inline(never)]
fn counted_list(runtime: &Runtime, server: &Server) {
    all(runtime, server, |_| async move { send(server, Method::GET, URI, "", "").await });
}

#[inline(never)]
fn counted_page(runtime: &Runtime, server: &Server) {
    all(runtime, server, |_| async move { send(server, Method::GET, &format!("{URI}?limit=2"), "", "").await });
}

#[inline(never)]
fn counted_select(runtime: &Runtime, server: &Server) {
    all(runtime, server, |i| async move {
        send(server, Method::GET, &format!("{URI}?labelSelector=name%3Dpod-{i}"), "", "").await;
    });
}

/// A small write, and what each watch that waits for it gets.
#[inline(never)]
fn counted_deliver(runtime: &Runtime, server: &Server, watches: &mut [Events]) {
    runtime.block_on(async {
        for i in 0..RUNS {
            deliver(server, watches, &i.to_string()).await;
        }
        server.settle().await;
    });
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn deliver(server: &Server, watches: &mut [Events], step: &str) {
    let (uri, patch) = (format!("{MAPS}/watched"), format!(r#"{{"data":{{"step":"{step}"}}}}"#));
    let write = send(server, Method::PATCH, &uri, "application/merge-patch+json", &patch);
    let (pieces, ()) = future::join(future::join_all(watches.iter_mut().map(Events::piece)), write).await;
    let is_one = |piece: &[u8]| piece.starts_with(br#"{"type":"MODIFIED""#) && piece.ends_with(b"}\n");
    assert!(pieces.iter().all(|piece| is_one(piece)), "{pieces:?}");
}

/// Watches that have told of what there was.
async fn watches(server: &Server) -> Vec<Events> {
    let map = r#"{"metadata":{"name":"watched","labels":{"app":"a"}}}"#;
    send(server, Method::POST, MAPS, "application/json", map).await;
    let mut watches = Vec::new();
    for i in 0..WATCHES {
        let uri = if i % 2 == 0 { "/api/v1/configmaps?" } else { "/api/v1/configmaps?labelSelector=app%3Da&" };
        let mut events = server.watch(&format!("{uri}watch=true")).await;
        events.piece().await;
        watches.push(events);
    }
    watches
}

/// A create with the admission plugins that are on by default.
#[inline(never)]
fn counted_admitted(runtime: &Runtime, server: &Server) {
    all(runtime, server, |_| async move { dry_run(server).await });
}

/// The same, with a policy.
#[inline(never)]
fn counted_judged(runtime: &Runtime, server: &Server) {
    all(runtime, server, |_| async move { dry_run(server).await });
}

async fn dry_run(server: &Server) {
    send(server, Method::POST, &format!("{URI}?dryRun=All"), "application/json", &pod("pod-new")).await;
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICY: &str = r#"{"metadata":{"name":"p"},"spec":{
    "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},
    "validations":[{"expression":"object.metadata.name.startsWith('pod-')"},{"expression":"object.spec.containers.size() <= 10"},
        {"expression":"has(object.metadata.labels) && 'app' in object.metadata.labels"}]}}"#;
const BINDING: &str = r#"{"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}}"#;

/// A server with the admission plugins that are on by default, and what pods need.
async fn guarded() -> Server {
    let server = Server::with(Arc::new(MemoryStore::default()), |install| {
        let gates = install.gates.clone();
        let config = support::admitted::config(&install.objects, Arc::new(AlwaysAllow), gates);
        let chain = kubelith_admission::build(&config, &Switches::default()).unwrap();
        Install { admission: Arc::new(chain), ..install }
    })
    .await;
    for (uri, body) in [
        ("/api/v1/namespaces", r#"{"metadata":{"name":"default"}}"#),
        ("/api/v1/namespaces/default/serviceaccounts", r#"{"metadata":{"name":"default"}}"#),
    ] {
        send(&server, Method::POST, uri, "application/json", body).await;
    }
    server
}

/// What is counted: run under callgrind by the test below.
#[test]
#[ignore = "a part of the test below"]
fn counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = Server::start().await;
        for i in 0..PODS {
            send(&server, Method::POST, URI, "application/json", &pod(&format!("pod-{i}"))).await;
        }
        // The first request of a kind makes things that later ones find.
        let last = format!("{URI}/pod-{}", PODS - 1);
        let label = r#"{"metadata":{"labels":{"step":"first"}}}"#;
        send(&server, Method::GET, &last, "", "").await;
        send(&server, Method::PATCH, &last, "application/merge-patch+json", label).await;
        for query in ["", "?limit=2", "?labelSelector=app%3Dnobody"] {
            send(&server, Method::GET, &format!("{URI}{query}"), "", "").await;
        }
        server
    });
    for count in [counted_get, counted_create, counted_patch, counted_list, counted_page, counted_select] {
        count(&runtime, &server);
    }
    let mut watches = runtime.block_on(async {
        let mut watches = watches(&server).await;
        deliver(&server, &mut watches, "first").await;
        watches
    });
    counted_deliver(&runtime, &server, &mut watches);
    let server = runtime.block_on(async {
        let server = guarded().await;
        dry_run(&server).await;
        server
    });
    counted_admitted(&runtime, &server);
    runtime.block_on(async {
        for (plural, body) in [("policies", POLICY), ("policybindings", BINDING)] {
            let uri = format!("{ADMISSION}/validatingadmission{plural}");
            send(&server, Method::POST, &uri, "application/json", body).await;
        }
        dry_run(&server).await;
    });
    counted_judged(&runtime, &server);
}

/// Instructions of each operation, with all that was done for it.
fn read(profile: &str) -> BTreeMap<&'static str, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut sums = BTreeMap::new();
    let mut callee = "";
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        let named = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn="));
        if let Some((id, name)) = named.map(|named| named.split_once(' ').unwrap_or((named, ""))) {
            if !name.is_empty() {
                names.insert(id, name);
            }
            if line.starts_with("cfn=") {
                callee = names.get(id).copied().unwrap_or("");
            }
        }
        if line.starts_with("calls=") {
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|cost| cost.parse::<u64>().ok());
            let is_it = |operation: &&&str| callee.contains(&format!("counted_{operation}"));
            if let (Some(operation), Some(cost)) = (OPERATIONS.iter().find(is_it), cost) {
                // A closure of it is called by others, and counted with it.
                let sum = sums.entry(*operation).or_insert(0);
                *sum = cost.max(*sum);
            }
        }
    }
    sums.into_iter().map(|(operation, cost)| (operation, cost / RUNS as u64)).collect()
}

fn count() -> Option<BTreeMap<&'static str, u64>> {
    let out = std::env::temp_dir().join(format!("kubelith-instructions-{}", std::process::id()));
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "counted", "--ignored", "--test-threads=1"])
        .stdout(Stdio::null())
        .status();
    let status = match child {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        status => status.unwrap(),
    };
    let profile = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    assert!(status.success(), "{status}");
    Some(read(&profile.unwrap()))
}

fn expectations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt")
}

#[test]
fn hot_paths_take_as_many_instructions_as_before() {
    let Some(counts) = count() else {
        // `cargo xtask test` says so, too, where nobody reads what tests that pass have to say.
        eprintln!("there is no valgrind: NOTHING WAS COUNTED");
        return;
    };
    assert_eq!(counts.len(), OPERATIONS.len(), "{counts:?}");
    if std::env::var_os("BLESS").is_some() {
        let lines: String = counts.iter().map(|(operation, count)| format!("{operation} {count}\n")).collect();
        std::fs::write(expectations(), lines).unwrap();
        return;
    }
    let known = std::fs::read_to_string(expectations()).unwrap();
    let known: HashMap<&str, u64> =
        known.lines().filter_map(|l| l.split_once(' ')).map(|(o, n)| (o, n.parse().unwrap())).collect();
    let worse = counts
        .iter()
        .filter(|(operation, count)| **count > known[**operation] + known[**operation] * TOLERANCE_PERCENT / 100);
    let worse: Vec<String> = worse.map(|(o, n)| format!("{o}: {n} instead of {}", known[*o])).collect();
    assert!(worse.is_empty(), "{worse:?}; if it has to be, bless them");
}

#[test]
fn profiles_are_read() {
    let profile = "fn=(1) main\n5 10\ncfn=(2) x::counted_get\ncalls=1 7\n9 8000\nfn=(2)\n3 4\ncfn=(3) y\ncalls=2 1\n+1 70\n\
                   fn=(1)\ncfn=(4) x::counted_list::{{closure}}\ncalls=1 7\n* 16000\n";
    assert_eq!(read(profile), BTreeMap::from([("get", 1000), ("list", 2000)]));
}
