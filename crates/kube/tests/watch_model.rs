//! Watches against a model: after any mix of writes, restarts and compactions, what a watcher has put together from its
//! events is what a list with the same selectors says.

use crate::support::{Events, Server};
use http::Method;
use kubelith_meta::Value;
use kubelith_store::embedded::fault::FaultyDisk;
use kubelith_store::{EmbeddedOptions, EmbeddedStore, Revision, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

const STEPS: usize = 120;
const MAX_WATCHERS: usize = 6;

/// What watchers look at: everything, a namespace, labels, fields with and without an index, one name.
const SCOPES: [(&str, &str); 10] = [
    ("/api/v1/configmaps", ""),
    ("/api/v1/namespaces/a/configmaps", ""),
    ("/api/v1/configmaps", "labelSelector=color%3Dred"),
    ("/api/v1/configmaps", "labelSelector=color%21%3Dred%2Csize"),
    ("/api/v1/namespaces/b/configmaps", "fieldSelector=metadata.name%3Dn1"),
    ("/api/v1/pods", ""),
    ("/api/v1/pods", "fieldSelector=spec.nodeName%3Dnode1"),
    ("/api/v1/namespaces/a/pods", "fieldSelector=status.phase%3DRunning"),
    ("/api/v1/pods", "fieldSelector=spec.nodeName%3Dnode1%2Cstatus.phase%21%3DRunning"),
    ("/api/v1/namespaces/a/pods", "labelSelector=color+in+%28red%2Cblue%29"),
];

#[tokio::test]
async fn watchers_see_what_lists_say() {
    for seed in 1..=5 {
        Run::start(seed).await.go().await;
    }
}

struct Run {
    seed: u64,
    random: u64,
    disk: FaultyDisk,
    store: EmbeddedStore,
    server: Server,
    watchers: Vec<Watcher>,
}

struct Watcher {
    scope: (&'static str, &'static str),
    events: Events,
    view: BTreeMap<String, Value>,
    /// Where it would go on.
    revision: u64,
}

impl Run {
    async fn start(seed: u64) -> Run {
        let disk = FaultyDisk::new();
        let store = open(&disk);
        let server = Server::on(Arc::new(store.clone())).await;
        Run { seed, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, disk, store, server, watchers: Vec::new() }
    }

    async fn go(mut self) {
        for _ in 0..STEPS {
            match self.below(20) {
                0..=11 => self.write().await,
                12..=14 => self.watch().await,
                15..=17 => self.check().await,
                18 => self.compact().await,
                _ if self.below(3) == 0 => self = self.restart().await,
                _ => self.check().await,
            }
        }
        self.check().await;
        assert!(!self.watchers.is_empty(), "seed {}", self.seed);
    }

    /// A number below `n` (xorshift).
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Creates, changes or deletes; what the object is already, it stays.
    async fn write(&mut self) {
        let namespace = self.pick(&["a", "b"]);
        let plural = self.pick(&["configmaps", "pods"]);
        let name = self.pick(&["n1", "n2", "n3", "n4"]);
        let labels = self.pick(&["null", r#"{"color":"red"}"#, r#"{"color":"blue"}"#, r#"{"size":"big"}"#]);
        let uri = format!("/api/v1/namespaces/{namespace}/{plural}");
        let merge = "application/merge-patch+json";
        match self.below(6) {
            0 | 1 => {
                let node = self.pick(&["", "node1", "node2"]);
                let spec = match plural {
                    "pods" => format!(r#","spec":{{"nodeName":"{node}","containers":[{{"name":"c","image":"i"}}]}}"#),
                    _ => String::new(),
                };
                let body = format!(r#"{{"metadata":{{"name":"{name}","labels":{labels}}}{spec}}}"#);
                let (code, answer) = self.server.send(Method::POST, &uri, &body).await;
                assert!(matches!(code, 201 | 409), "{answer:?}");
            }
            2 => {
                let (code, answer) =
                    self.server.send(Method::DELETE, &format!("{uri}/{name}?gracePeriodSeconds=0"), "").await;
                assert!(matches!(code, 200 | 404), "{answer:?}");
            }
            3 if plural == "pods" => {
                let phase = self.pick(&["Pending", "Running", "Succeeded"]);
                let body = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
                self.server.send_as(Method::PATCH, &format!("{uri}/{name}/status"), merge, &body).await;
            }
            _ => {
                let body = format!(r#"{{"metadata":{{"labels":{labels}}}}}"#);
                let (code, answer) = self.server.send_as(Method::PATCH, &format!("{uri}/{name}"), merge, &body).await;
                assert!(matches!(code, 200 | 404), "{answer:?}");
            }
        }
    }

    /// A new watcher in place of the oldest, in one of the ways in which clients begin.
    async fn watch(&mut self) {
        let scope = self.pick(&SCOPES);
        let watcher = match self.below(3) {
            0 => {
                // The server sends what is there.
                let query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
                let events = self.server.watch(&format!("{}?watch=1&{query}&{}", scope.0, scope.1)).await;
                Watcher { scope, events, view: BTreeMap::new(), revision: 0 }
            }
            1 => {
                let events = self.server.watch(&format!("{}?watch=1&{}", scope.0, scope.1)).await;
                Watcher { scope, events, view: BTreeMap::new(), revision: 0 }
            }
            _ => list_and_watch(&self.server, scope).await,
        };
        self.watchers.push(watcher);
        if self.watchers.len() > MAX_WATCHERS {
            self.watchers.remove(0);
        }
    }

    async fn check(&mut self) {
        for watcher in &mut self.watchers {
            let (items, revision) = list(&self.server, watcher.scope).await;
            if watcher.read(self.seed) == Ended::TooOld {
                *watcher = list_and_watch(&self.server, watcher.scope).await;
            }
            assert_eq!(watcher.view, items, "seed {}: {:?} at {revision}", self.seed, watcher.scope);
        }
    }

    /// Forgets the past, or part of it.
    async fn compact(&mut self) {
        let current = self.store.current_revision().await.unwrap().0;
        let at = current - self.below(10) as i64;
        match self.store.compact(Revision(at)).await {
            Ok(()) | Err(StoreError::Compacted { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    /// The server ends and starts again on the same disk; watchers go on from where they were.
    async fn restart(self) -> Run {
        let Run { seed, random, disk, store, server, mut watchers } = self;
        for watcher in &mut watchers {
            watcher.read(seed);
        }
        server.stop().await;
        drop(store);
        let store = open(&disk);
        let server = Server::on(Arc::new(store.clone())).await;
        for watcher in &mut watchers {
            // One that saw nothing yet has no place to go on from.
            if watcher.revision == 0 {
                *watcher = list_and_watch(&server, watcher.scope).await;
                continue;
            }
            let (path, selector) = watcher.scope;
            let uri = format!("{path}?watch=1&resourceVersion={}&{selector}", watcher.revision);
            watcher.events = server.watch(&uri).await;
        }
        Run { seed, random, disk, store, server, watchers }
    }
}

#[derive(PartialEq, Eq)]
enum Ended {
    No,
    TooOld,
}

impl Watcher {
    /// Takes in what came. Each event must make sense after those before it.
    fn read(&mut self, seed: u64) -> Ended {
        for (kind, object) in self.events.ready() {
            let case = format!("seed {seed}: {kind} {object:?} for {:?}", self.scope);
            if kind == "ERROR" {
                assert_eq!(object.str_at(&["reason"]), "Expired", "{case}");
                return Ended::TooOld;
            }
            let revision: u64 = object.str_at(&["metadata", "resourceVersion"]).parse().unwrap();
            let (key, object) = entry(object);
            let before = self.view.get(&key).map(revision_of);
            match kind.as_str() {
                "BOOKMARK" => {}
                "ADDED" => assert!(before.is_none(), "{case}"),
                "MODIFIED" | "DELETED" => assert!(before.is_some_and(|before| before < revision), "{case}"),
                _ => panic!("{case}"),
            }
            match kind.as_str() {
                "BOOKMARK" => {}
                "DELETED" => drop(self.view.remove(&key)),
                _ => drop(self.view.insert(key, object)),
            }
            // Initial events come in the order of their keys; the rest in that of their revisions.
            self.revision = self.revision.max(revision);
        }
        Ended::No
    }
}

async fn list_and_watch(server: &Server, scope: (&'static str, &'static str)) -> Watcher {
    let (view, revision) = list(server, scope).await;
    let events = server.watch(&format!("{}?watch=1&resourceVersion={revision}&{}", scope.0, scope.1)).await;
    Watcher { scope, events, view, revision }
}

async fn list(server: &Server, (path, selector): (&str, &str)) -> (BTreeMap<String, Value>, u64) {
    let (code, list) = server.send(Method::GET, &format!("{path}?{selector}"), "").await;
    assert_eq!(code, 200, "{list:?}");
    let revision = list.str_at(&["metadata", "resourceVersion"]).parse().unwrap();
    let items = list.get("items").and_then(Value::as_array).unwrap();
    (items.iter().cloned().map(entry).collect(), revision)
}

/// Items of lists have no kind of their own.
fn entry(mut object: Value) -> (String, Value) {
    object.make_object().remove("kind");
    object.make_object().remove("apiVersion");
    let key = format!("{}/{}", object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
    (key, object)
}

fn revision_of(object: &Value) -> u64 {
    object.str_at(&["metadata", "resourceVersion"]).parse().unwrap()
}

fn open(disk: &FaultyDisk) -> EmbeddedStore {
    let options = EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new("") };
    EmbeddedStore::open_on(Arc::new(disk.clone()), options).unwrap()
}
