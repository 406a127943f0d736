//! Two servers on one etcd are restarted one after the other, or one with its own store, while clients of three kinds
//! work on them behind a load balancer. Nothing may fail but what says that it can be tried again, and no watch may miss anything.

use crate::support::client::{Connection, Failed, Protocol};
use crate::support::{LIMIT, Server};
use http_body_util::BodyExt;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::task::JoinHandle;

const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
const FLAGS: [&str; 3] =
    ["--shutdown-delay-duration=1500ms", "--shutdown-send-retry-after", "--shutdown-watch-termination-grace-period=2s"];
/// An etcd that is slow, as on a busy machine, does not make both servers unready.
const READY_PATIENCE: &str = "--etcd-readycheck-timeout=30s";
/// Thirty times in the delay before a server stops: a balancer that asks less often would send requests to one that is gone.
const PROBE: Duration = Duration::from_millis(50);
/// Of each writer, between two objects: the servers shall have time for the balancer's questions.
const PACE: Duration = Duration::from_millis(5);
const WRITERS: usize = 3;

/// Knows which servers are ready, as a load balancer does: by asking /readyz again and again.
#[derive(Clone, Default)]
struct Balancer {
    ready: Arc<RwLock<Vec<SocketAddr>>>,
    turn: Arc<AtomicUsize>,
    /// There is but one server, and none while it is restarted.
    may_be_away: bool,
}

impl Balancer {
    async fn connect(&self, protocol: Protocol) -> Connection {
        loop {
            let address = {
                let ready = self.ready.read().unwrap();
                assert!(!ready.is_empty() || self.may_be_away, "one of two servers is always ready");
                ready.get(self.turn.fetch_add(1, Ordering::Relaxed) % ready.len().max(1)).copied()
            };
            // A connection that cannot be made has sent nothing.
            if let Some(address) = address
                && let Ok(connection) = Connection::open(address, protocol).await
            {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Takes the server in or out by what /readyz says.
    async fn watch(self, address: SocketAddr, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::Relaxed) {
            let probe =
                async { Connection::open(address, Protocol::Http1).await.ok()?.send("GET", "/readyz", "").await.ok() };
            let is_ready = probe.await.is_some_and(|a| a.status == 200);
            {
                let mut ready = self.ready.write().unwrap();
                ready.retain(|known| *known != address);
                if is_ready {
                    ready.push(address);
                }
            }
            tokio::time::sleep(PROBE).await;
        }
    }
}

/// Writes and reads until told to stop; answers how many objects it made, by its own count.
async fn work(balancer: Balancer, protocol: Protocol, name: String, stop: Arc<AtomicBool>) -> usize {
    let mut connection = balancer.connect(protocol).await;
    let mut made = 0;
    while !stop.load(Ordering::Relaxed) {
        let object = format!(r#"{{"metadata":{{"name":"{name}-{made}"}},"data":{{"n":"{made}"}}}}"#);
        let answer = demand(&balancer, protocol, &mut connection, "POST", COLLECTION, &object).await;
        assert_eq!(answer, 201, "{name}-{made}");
        let path = format!("{COLLECTION}/{name}-{made}");
        assert_eq!(demand(&balancer, protocol, &mut connection, "GET", &path, "").await, 200, "{name}-{made}");
        made += 1;
        tokio::time::sleep(PACE).await;
    }
    made
}

/// Sends a request until it is answered. Only what was not sent, or was refused with "try again", is tried again.
async fn demand(
    balancer: &Balancer,
    protocol: Protocol,
    connection: &mut Connection,
    method: &str,
    path: &str,
    body: &str,
) -> u16 {
    loop {
        match connection.send(method, path, body).await {
            Ok(answer) => {
                let retry = answer.retry;
                if retry || answer.closes {
                    *connection = balancer.connect(protocol).await;
                }
                if !retry {
                    return answer.status;
                }
            }
            Err(Failed::NotSent) => *connection = balancer.connect(protocol).await,
            Err(Failed::Lost(why)) => panic!("{protocol:?} {method} {path}: {why}"),
        }
    }
}

/// Follows the collection over all restarts and counts the creation of each object.
async fn follow(balancer: Balancer, protocol: Protocol, from: String, seen: Seen) {
    let mut version = from;
    loop {
        let mut connection = balancer.connect(protocol).await;
        let path = format!("{COLLECTION}?watch=true&resourceVersion={version}");
        let Ok(response) = connection.start("GET", &path, "").await else { continue };
        if response.status() == 429 {
            continue;
        }
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        let mut pending = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            pending.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
            while let Some(end) = pending.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let event: serde_json::Value = serde_json::from_slice(&line).unwrap();
                assert_eq!(event["type"], "ADDED", "{event}");
                let meta = &event["object"]["metadata"];
                version = meta["resourceVersion"].as_str().unwrap().to_owned();
                *seen.write().unwrap().entry(meta["name"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
}

async fn version(server: &Server) -> String {
    let mut connection = Connection::open(server.address(), Protocol::Http1).await.unwrap();
    let list = connection.send("GET", COLLECTION, "").await.unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.body).unwrap();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// How often a watcher saw each object.
type Seen = Arc<RwLock<BTreeMap<String, usize>>>;

/// Clients of all kinds at work.
struct Load {
    balancer: Balancer,
    stop: Arc<AtomicBool>,
    workers: Vec<(String, JoinHandle<usize>)>,
    watchers: Vec<(JoinHandle<()>, Seen)>,
}

impl Load {
    async fn start(servers: &[&Server], may_be_away: bool) -> Load {
        let (balancer, stop) = (Balancer { may_be_away, ..Balancer::default() }, Arc::new(AtomicBool::new(false)));
        balancer.ready.write().unwrap().extend(servers.iter().map(|server| server.address()));
        for server in servers {
            tokio::spawn(balancer.clone().watch(server.address(), stop.clone()));
        }
        let from = version(servers[0]).await;
        let mut watchers = Vec::new();
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let seen = Seen::default();
            let task = tokio::spawn(follow(balancer.clone(), protocol, from.clone(), seen.clone()));
            watchers.push((task, seen));
        }
        let mut workers = Vec::new();
        for (kind, protocol) in [("plain", Protocol::Http1), ("h2", Protocol::Http2)] {
            for n in 0..WRITERS {
                let name = format!("{kind}-{n}");
                workers.push((name.clone(), tokio::spawn(work(balancer.clone(), protocol, name, stop.clone()))));
            }
        }
        Load { balancer, stop, workers, watchers }
    }

    /// All requests were answered, and every object was seen by every watcher, once.
    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut made = BTreeMap::new();
        for (name, worker) in self.workers {
            let count = worker.await.unwrap();
            assert!(count > 10, "{name} made only {count}");
            made.extend((0..count).map(|n| (format!("{name}-{n}"), 1)));
        }
        for (task, seen) in self.watchers {
            wait_until("everything is seen", || seen.read().unwrap().len() >= made.len() || task.is_finished()).await;
            assert_eq!(*seen.read().unwrap(), made, "each object once");
            task.abort();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices() {
    let etcd = crate::support::etcd();
    let etcd = format!("--etcd-servers={}", etcd.url);
    let flags: Vec<&str> = FLAGS.into_iter().chain([READY_PATIENCE, etcd.as_str()]).collect();
    let start = || async {
        let flags: Vec<String> = flags.iter().map(|f| (*f).to_owned()).collect();
        let started = move || Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        tokio::task::spawn_blocking(started).await.unwrap()
    };
    let mut servers = vec![start().await, start().await];
    let load = Load::start(&servers.iter().collect::<Vec<_>>(), false).await;
    for old in &mut servers {
        let new = start().await;
        let address = new.address();
        tokio::spawn(load.balancer.clone().watch(address, load.stop.clone()));
        let is_ready = || load.balancer.ready.read().unwrap().contains(&address);
        wait_until("the new server gets requests", is_ready).await;
        let mut leaving = std::mem::replace(old, new);
        let status = tokio::task::spawn_blocking(move || {
            leaving.signal("TERM");
            let status = leaving.ended();
            (status, leaving.log())
        });
        let (status, log) = status.await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
    }
    load.end().await;
}

/// One server with its own store: clients wait for it, and nothing that it took is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_server_comes_back() {
    let flags: Vec<&str> = FLAGS.into_iter().chain(["--storage-backend=embedded"]).collect();
    let mut server = Server::start(&flags);
    let load = Load::start(&[&server], true).await;
    let address = server.address();
    for _ in 0..2 {
        let seen = || load.watchers[0].1.read().unwrap().len();
        let before = seen();
        wait_until("work goes on", || seen() > before + 50).await;
        tokio::task::block_in_place(|| {
            server.signal("TERM");
            assert_eq!(server.ended().code(), Some(0), "{}", server.log());
            server.restart(&flags);
        });
        wait_until("it gets requests", || load.balancer.ready.read().unwrap().contains(&address)).await;
    }
    load.end().await;
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + LIMIT;
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
