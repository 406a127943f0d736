//! A property: whatever is done to forks and forks of forks, none sees anything of another: no write, no event of a watch, no token, no
//! lease, no address and no port. Each is compared with a model.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use kubelith_testing::{Controllers, Kubelith, Snapshot};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
/// Planes of one case, so that it ends.
const MAX_PLANES: usize = 6;

#[derive(Debug, Clone)]
enum Op {
    Fork,
    Snapshot,
    /// To any snapshot that was taken of the same plane.
    Reset(usize),
    /// Creates the map, or changes it.
    Put(u8, u8),
    Delete(u8),
    /// A service that wants one address and one port, which it gets if nobody in the same plane has them.
    Service(u8),
    DeleteService(u8),
    Lease(u8),
    Token,
}

/// Where, as a place among the planes there are, and what.
fn ops() -> impl Strategy<Value = Vec<(usize, Op)>> {
    let op = prop_oneof![
        2 => Just(Op::Fork),
        1 => Just(Op::Snapshot),
        1 => any::<usize>().prop_map(Op::Reset),
        6 => (0..4u8, any::<u8>()).prop_map(|(name, value)| Op::Put(name, value)),
        3 => (0..4u8).prop_map(Op::Delete),
        2 => (0..3u8).prop_map(Op::Service),
        1 => (0..3u8).prop_map(Op::DeleteService),
        2 => (0..3u8).prop_map(Op::Lease),
        2 => Just(Op::Token),
    ];
    prop::collection::vec((any::<usize>(), op), 1..24)
}

/// What is there, by path.
type Model = BTreeMap<String, Value>;

struct Place {
    /// No other has it.
    name: String,
    server: Kubelith,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    /// Which this one believes: its own, and those that were there when it was forked.
    tokens: BTreeSet<String>,
    /// What maps were like in the beginning, when that was, and the values they have had since.
    began: (Model, String),
    values: BTreeSet<String>,
}

impl Place {
    async fn new(name: String, server: Kubelith, model: Model, tokens: BTreeSet<String>) -> Place {
        let list = server.get(MAPS).await.unwrap().body;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let began = (maps(&model), version);
        let values = began.0.values().map(value).collect();
        Place { name, server, model, snapshots: Vec::new(), tokens, began, values }
    }

    async fn put(&mut self, collection: &str, name: &str, mut object: Value) {
        object["metadata"] = json!({"name": name});
        let path = format!("{collection}/{name}");
        let answer = match self.model.contains_key(&path) {
            true => self.server.put(&path, &object).await.unwrap(),
            false => self.server.post(collection, &object).await.unwrap(),
        };
        assert!(matches!(answer.code, 200 | 201), "{path}: {}", answer.text);
        self.model.insert(path, object);
    }

    async fn delete(&mut self, path: &str) {
        let wanted = if self.model.remove(path).is_some() { 200 } else { 404 };
        assert_eq!(self.server.delete(path).await.unwrap().code, wanted, "{path}");
    }

    /// `turn` is another one each time.
    async fn act(&mut self, op: Op, turn: usize) -> Option<Place> {
        match op {
            Op::Fork => {
                let server = self.server.fork().await.unwrap();
                let name = format!("{}-{turn}", self.name);
                return Some(Place::new(name, server, self.model.clone(), self.tokens.clone()).await);
            }
            Op::Snapshot => self.snapshots.push((self.server.snapshot().await.unwrap(), self.model.clone())),
            Op::Reset(which) => {
                if let Some((snapshot, model)) = self.snapshots.get(which % self.snapshots.len().max(1)) {
                    self.server.reset(snapshot).await.unwrap();
                    self.model = model.clone();
                }
            }
            Op::Put(name, value) => {
                let value = format!("{} of {}", value, self.name);
                self.values.insert(value.clone());
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value}});
                self.put(MAPS, &format!("map-{name}"), object).await;
            }
            Op::Delete(name) => self.delete(&format!("{MAPS}/map-{name}")).await,
            Op::DeleteService(name) => self.delete(&format!("{SERVICES}/service-{name}")).await,
            Op::Token => {
                let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
                let made = self.server.post(&format!("{ACCOUNTS}/default/token"), &request).await.unwrap();
                self.tokens.insert(made.body["status"]["token"].as_str().unwrap().to_owned());
            }
            Op::Service(name) => {
                let path = format!("{SERVICES}/service-{name}");
                if !self.model.contains_key(&path) {
                    let port = json!({"port": 80, "nodePort": 30_200 + u32::from(name)});
                    let address = format!("10.0.0.{}", 100 + name);
                    let spec = json!({"type": "NodePort", "clusterIP": address, "ports": [port]});
                    let object = json!({"apiVersion": "v1", "kind": "Service", "spec": spec});
                    self.put(SERVICES, &format!("service-{name}"), object).await;
                }
            }
            Op::Lease(name) => {
                let path = format!("{LEASES}/lease-{name}");
                if !self.model.contains_key(&path) {
                    let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "x"}});
                    self.put(LEASES, &format!("lease-{name}"), object).await;
                }
            }
        }
        None
    }

    /// What is there is what was put there.
    async fn check(&self) {
        let mut found = Model::new();
        for collection in [MAPS, SERVICES, LEASES] {
            let list = self.server.get(collection).await.unwrap().body;
            for item in list["items"].as_array().unwrap() {
                let name = item["metadata"]["name"].as_str().unwrap();
                if name != "kubernetes" && name != "kube-root-ca.crt" {
                    found.insert(format!("{collection}/{name}"), item.clone());
                }
            }
        }
        assert!(found.keys().eq(self.model.keys()), "{:?} instead of {:?}", found.keys(), self.model.keys());
        for (path, wanted) in &self.model {
            assert_eq!(found[path]["data"], wanted["data"], "{path}");
            let address = &wanted["spec"]["clusterIP"];
            assert!(address.is_null() || found[path]["spec"]["clusterIP"] == *address, "{path}");
        }
    }

    /// A watch since the beginning tells of what was done here, and of nothing else.
    async fn check_watch(&mut self) {
        self.put(MAPS, END, json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": END}})).await;
        let (mut seen, version) = self.began.clone();
        for event in events(&self.server, &format!("{MAPS}?watch=true&resourceVersion={version}")).await {
            let object = &event["object"];
            let path = format!("{MAPS}/{}", object["metadata"]["name"].as_str().unwrap());
            let told = value(object);
            assert!(told == END || self.values.contains(&told), "{}: {event}", self.name);
            match event["type"].as_str() {
                Some("DELETED") => seen.remove(&path),
                _ => seen.insert(path, object.clone()),
            };
        }
        let of = |model: &Model| model.iter().map(|(path, map)| (path.clone(), value(map))).collect::<Vec<_>>();
        assert_eq!(of(&seen), of(&maps(&self.model)), "{}", self.name);
    }

    async fn check_tokens(&self, all: &BTreeSet<String>) {
        for token in all {
            let answer = self.server.send_as(token, "GET", "/version", "", "").await.unwrap();
            let wanted = if self.tokens.contains(token) { 200 } else { 401 };
            assert_eq!(answer.code, wanted, "{}", self.name);
        }
    }
}

/// The last map of a plane.
const END: &str = "end";

fn maps(model: &Model) -> Model {
    model.iter().filter(|(path, _)| path.starts_with(MAPS)).map(|(path, map)| (path.clone(), map.clone())).collect()
}

fn value(map: &Value) -> String {
    map["data"]["value"].as_str().unwrap_or_default().to_owned()
}

/// The events of a watch, up to that of the last map.
async fn events(server: &Kubelith, path: &str) -> Vec<Value> {
    let pipe = TokioIo::new(server.connector().connect().unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(pipe).await.unwrap();
    let driving = tokio::spawn(connection);
    let request = http::Request::get(path).header("host", "x");
    let request = request.header("authorization", format!("Bearer {}", server.token())).body(Empty::<Bytes>::new());
    let mut body = sender.send_request(request.unwrap()).await.unwrap().into_body();
    let (mut events, mut rest): (Vec<Value>, _) = (Vec::new(), Vec::new());
    while events.last().is_none_or(|event| event["object"]["metadata"]["name"] != END) {
        let frame = body.frame().await.expect("the last map").unwrap();
        rest.extend_from_slice(frame.data_ref().unwrap());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            events.push(serde_json::from_slice(&line).unwrap());
        }
    }
    driving.abort();
    events
}

async fn case(base: &Kubelith, ops: Vec<(usize, Op)>) {
    let server = base.fork().await.unwrap();
    let mut places = vec![Place::new("first".to_owned(), server, Model::new(), BTreeSet::new()).await];
    for (turn, (at, op)) in ops.into_iter().enumerate() {
        if matches!(op, Op::Fork) && places.len() >= MAX_PLANES {
            continue;
        }
        let count = places.len();
        let forked = places[at % count].act(op, turn).await;
        places.extend(forked);
    }
    let tokens: BTreeSet<String> = places.iter().flat_map(|place| place.tokens.clone()).collect();
    for place in &mut places {
        place.check().await;
        place.check_tokens(&tokens).await;
        place.check_watch().await;
    }
}

#[test]
fn forks_do_not_see_each_other() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let base = Kubelith::builder().controllers(Controllers::Off).flag("--service-cluster-ip-range=10.0.0.0/24").start();
    let base = runtime.block_on(base).unwrap();
    let account = json!({"metadata": {"name": "default"}});
    assert_eq!(runtime.block_on(base.post(ACCOUNTS, &account)).unwrap().code, 201);
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&ops(), |ops| {
        runtime.block_on(case(&base, ops));
        Ok(())
    });
    outcome.unwrap();
    // What all of them came from is as it was.
    runtime.block_on(async {
        let mut untouched = Place::new("base".to_owned(), base, Model::new(), BTreeSet::new()).await;
        untouched.check().await;
        untouched.check_watch().await;
    });
}
