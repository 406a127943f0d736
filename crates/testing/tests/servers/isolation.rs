//! A property: whatever is done to forks and forks of forks, none sees anything of another. Each is compared with a model.

use kubelith_testing::{Controllers, Kubelith, Snapshot};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
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
    /// A service that wants one address, which it gets if nobody in the same plane has it.
    Service(u8),
    Lease(u8),
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
        2 => (0..3u8).prop_map(Op::Lease),
    ];
    prop::collection::vec((any::<usize>(), op), 1..24)
}

/// What is there, by path.
type Model = BTreeMap<String, Value>;

struct Place {
    server: Kubelith,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

impl Place {
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

    async fn act(&mut self, op: Op) -> Option<Place> {
        match op {
            Op::Fork => {
                let server = self.server.fork().await.unwrap();
                return Some(Place { server, model: self.model.clone(), snapshots: Vec::new() });
            }
            Op::Snapshot => self.snapshots.push((self.server.snapshot().await.unwrap(), self.model.clone())),
            Op::Reset(which) => {
                if let Some((snapshot, model)) = self.snapshots.get(which % self.snapshots.len().max(1)) {
                    self.server.reset(snapshot).await.unwrap();
                    self.model = model.clone();
                }
            }
            Op::Put(name, value) => {
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value.to_string()}});
                self.put(MAPS, &format!("map-{name}"), object).await;
            }
            Op::Delete(name) => {
                let path = format!("{MAPS}/map-{name}");
                let wanted = if self.model.remove(&path).is_some() { 200 } else { 404 };
                assert_eq!(self.server.delete(&path).await.unwrap().code, wanted, "{path}");
            }
            Op::Service(name) => {
                let path = format!("{SERVICES}/service-{name}");
                if !self.model.contains_key(&path) {
                    let spec = json!({"clusterIP": format!("10.0.0.{}", 100 + name), "ports": [{"port": 80}]});
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
}

async fn case(base: &Kubelith, ops: Vec<(usize, Op)>) {
    let server = base.fork().await.unwrap();
    let mut places = vec![Place { server, model: Model::new(), snapshots: Vec::new() }];
    for (at, op) in ops {
        if matches!(op, Op::Fork) && places.len() >= MAX_PLANES {
            continue;
        }
        let count = places.len();
        let forked = places[at % count].act(op).await;
        places.extend(forked);
    }
    for place in &places {
        place.check().await;
    }
}

#[test]
fn forks_do_not_see_each_other() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let base = Kubelith::builder().controllers(Controllers::Off).flag("--service-cluster-ip-range=10.0.0.0/24").start();
    let base = runtime.block_on(base).unwrap();
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&ops(), |ops| {
        runtime.block_on(case(&base, ops));
        Ok(())
    });
    outcome.unwrap();
    // What all of them came from is as it was.
    let untouched = Place { server: base, model: Model::new(), snapshots: Vec::new() };
    runtime.block_on(untouched.check());
}
