//! What servers make up, of a seed: two runs that do the same have the same objects, byte for byte.

use crate::support::until;
use kubelith_testing::{Controllers, Kubelith};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

async fn start(seed: u64) -> Kubelith {
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
    let builder = Kubelith::builder().controllers(Controllers::Off).seed(seed).manual_clock_at(noon);
    builder.flag("--service-cluster-ip-range=10.0.0.0/16,fd00::/108").start().await.unwrap()
}

/// Everything that gets something nobody asked for: addresses, ports, names, volumes.
async fn work(server: &Kubelith) {
    let post = async |plural: &str, object: Value| {
        let made = server.post(&format!("{NAMESPACE}/{plural}"), &object).await.unwrap();
        assert_eq!(made.code, 201, "{}", made.text);
    };
    post("serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    for name in ["one", "two"] {
        let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        let spec = json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "ipFamilyPolicy": "RequireDualStack", "ports": ports
        });
        post("services", json!({"metadata": {"name": name}, "spec": spec})).await;
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        post("pods", json!({"metadata": {"generateName": "pod-"}, "spec": spec})).await;
    }
    post("limitranges", json!({"spec": {"limits": []}})).await;
}

/// All objects by their place, but for the lists of those who know them: what was written when is another matter.
async fn objects(server: &Kubelith) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for path in [
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/limitranges",
        "/api/v1/namespaces/default/serviceaccounts",
        "/apis/networking.k8s.io/v1/ipaddresses",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/coordination.k8s.io/v1/leases",
        SCHEMAS,
    ] {
        let list = server.get(path).await.unwrap().body;
        for mut item in list["items"].as_array().unwrap().clone() {
            item["metadata"]["resourceVersion"].take();
            found.insert(format!("{path}/{}", item["metadata"]["name"].as_str().unwrap()), item);
        }
    }
    found
}

#[tokio::test]
async fn two_runs_have_the_same_objects() {
    let run = async |seed: u64| {
        let server = start(seed).await;
        work(&server).await;
        until("the lease of the server is there", || async {
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
            !server.get(path).await.unwrap().body["items"].as_array().unwrap().is_empty()
        })
        .await;
        until("flow schemas say what becomes of them, at the time of the clock", || async {
            let list = server.get(SCHEMAS).await.unwrap().body;
            let time = |item: &Value| item["status"]["conditions"][0]["lastTransitionTime"].clone();
            list["items"].as_array().unwrap().iter().all(|item| time(item) == "2026-01-31T12:00:00Z")
        })
        .await;
        (objects(&server).await, server.token().to_owned())
    };
    let (first, again, other) = (run(7).await, run(7).await, run(8).await);
    assert!(first.0.keys().eq(again.0.keys()), "{:?} {:?}", first.0.keys(), again.0.keys());
    for (path, object) in &first.0 {
        assert_eq!(object, &again.0[path], "{path}");
    }
    assert_eq!(first.1, again.1);
    let port = |run: &BTreeMap<String, Value>| {
        let spec = &run["/api/v1/namespaces/default/services/one"]["spec"];
        (spec["ports"].clone(), spec["healthCheckNodePort"].clone(), spec["clusterIPs"].clone())
    };
    let (ports, others) = (port(&first.0), port(&other.0));
    assert!(ports.0 != others.0 && ports.1 != others.1 && ports.2 != others.2 && first.1 != other.1);
}

#[tokio::test]
async fn a_generated_name_is_one_that_nothing_has() {
    let maps = format!("{NAMESPACE}/configmaps");
    let make = async |server: &Kubelith, metadata: Value| {
        let made = server.post(&maps, &json!({"metadata": metadata})).await.unwrap();
        assert_eq!(made.code, 201, "{}", made.text);
        made.body["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let generated = json!({"generateName": "map-"});
    let (one, two) = (start(5).await, start(5).await);
    let (first, second) = (make(&one, generated.clone()).await, make(&one, generated.clone()).await);
    make(&two, json!({"name": first})).await;
    assert_eq!(make(&two, generated).await, second, "the first name of this seed is taken");
}
