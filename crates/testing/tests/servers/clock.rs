//! A clock that tests turn: what expires, expires when they say so.

use crate::support::until;
use kubelith_meta::time::wall_time;
use kubelith_testing::{Answer, Kubelith};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

async fn post(server: &Kubelith, path: &str, object: Value) -> Answer {
    let answer = server.post(path, &object).await.unwrap();
    assert!(matches!(answer.code, 200 | 201), "{path}: {}", answer.text);
    answer
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn objects_have_the_time_of_the_clock() {
    let from = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
    let server = Kubelith::builder().manual_clock_at(from).start().await.unwrap();
    assert_eq!(server.now(), from);
    let maps = "/api/v1/namespaces/default/configmaps";
    let first = post(&server, maps, map("a")).await.body;
    assert_eq!(first["metadata"]["creationTimestamp"], "2026-01-31T12:00:00Z");
    let fork = server.fork().await.unwrap();
    server.advance(HOUR).unwrap();
    let second = post(&server, maps, map("b")).await.body;
    assert_eq!(second["metadata"]["creationTimestamp"], "2026-01-31T13:00:00Z");
    let there = post(&fork, maps, map("b")).await.body;
    assert_eq!(there["metadata"]["creationTimestamp"], "2026-01-31T12:00:00Z", "a fork has a clock of its own");
    let usual = Kubelith::start().await.unwrap();
    assert!(usual.advance(HOUR).unwrap_err().to_string().contains("--clock=manual"));
}

#[tokio::test]
async fn tokens_expire() {
    let server = Kubelith::builder().manual_clock().start().await.unwrap();
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    until("the account is there", || async { server.get(account).await.unwrap().code == 200 }).await;
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let answer = post(&server, &format!("{account}/token"), request).await;
    let token = answer.body["status"]["token"].as_str().unwrap().to_owned();
    let code = async || server.send_as(&token, "GET", "/version", "", "").await.unwrap().code;
    assert_eq!(code().await, 200);
    server.advance(HOUR / 2).unwrap();
    assert_eq!(code().await, 200);
    server.advance(HOUR).unwrap();
    assert_eq!(code().await, 401);
}

#[tokio::test]
async fn events_go_after_an_hour() {
    let server = Kubelith::builder().manual_clock().start().await.unwrap();
    let path = "/api/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "type": "Normal", "reason": "R",
    });
    post(&server, path, event).await;
    server.advance(HOUR / 2).unwrap();
    assert_eq!(server.get(&format!("{path}/e")).await.unwrap().code, 200);
    server.advance(HOUR).unwrap();
    assert_eq!(server.get(&format!("{path}/e")).await.unwrap().code, 404);
}

#[tokio::test]
async fn finished_jobs_go_when_their_time_is_over() {
    let server = Kubelith::builder().manual_clock().start().await.unwrap();
    let path = "/apis/batch/v1/namespaces/default/jobs";
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"ttlSecondsAfterFinished": 1800, "template": template},
    });
    let mut job = post(&server, path, job).await.body;
    let now = job["metadata"]["creationTimestamp"].clone();
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    job["status"] =
        json!({"startTime": now, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]});
    let finished = server.put(&format!("{path}/j/status"), &job).await.unwrap();
    assert_eq!(finished.code, 200, "{}", finished.text);
    server.advance(HOUR / 4).unwrap();
    assert_eq!(server.get(&format!("{path}/j")).await.unwrap().code, 200);
    server.advance(HOUR).unwrap();
    until("the job is gone", || async {
        let found = server.get(&format!("{path}/j")).await.unwrap();
        found.code == 404 || !found.body["metadata"]["deletionTimestamp"].is_null()
    })
    .await;
}

/// Also by a clock that begins long ago, or in times to come.
#[tokio::test]
async fn certificates_expire() {
    for from in [1_000_000_000, 3_000_000_000] {
        expire_certificates(SystemTime::UNIX_EPOCH + Duration::from_secs(from)).await;
    }
}

async fn expire_certificates(from: SystemTime) {
    let server = Kubelith::builder().manual_clock_at(from).start().await.unwrap();
    let connector = server.connector_with_certificate("carol", None).unwrap();
    let code = async || {
        let pipe = hyper_util::rt::TokioIo::new(connector.connect().unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(pipe).await.unwrap();
        let driving = tokio::spawn(connection);
        let request =
            http::Request::get("/version").header("host", "x").body(http_body_util::Empty::<bytes::Bytes>::new());
        let code = sender.send_request(request.unwrap()).await.unwrap().status().as_u16();
        driving.abort();
        code
    };
    assert_eq!(code().await, 200);
    // It is good by the time of the machine, too, whichever is later.
    let present = wall_time().max(from).duration_since(from).unwrap();
    server.advance(present + HOUR * 24 * 400).unwrap();
    assert_eq!(code().await, 401);
}

/// Those of servers that are gone go; those who live renew theirs; whoever waits for one that nobody renews gets it.
#[tokio::test]
async fn leases_expire() {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
    let server = Kubelith::builder().manual_clock_at(noon).start().await.unwrap();
    let lease = async |name: &str| server.get(&format!("{LEASES}/{name}")).await.unwrap();
    let names = async || {
        let list = server.get(LEASES).await.unwrap().body["items"].as_array().unwrap().clone();
        list.iter().map(|lease| lease["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    until("the server and its controllers have leases", || async { names().await.len() == 2 }).await;
    let own = names().await.into_iter().find(|name| name.starts_with("apiserver-")).unwrap();
    let mut others = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "apiserver-gone", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 3600, "renewTime": "2026-01-31T12:00:00.000000Z"},
    });
    post(&server, LEASES, others.clone()).await;
    server.advance(2 * HOUR).unwrap();
    until("the lease of the server that is gone is gone", || async { lease("apiserver-gone").await.code == 404 }).await;
    for name in [own.as_str(), "kube-controller-manager"] {
        until("leases are renewed", || async {
            lease(name).await.body["spec"]["renewTime"] == "2026-01-31T14:00:00.000000Z"
        })
        .await;
    }
    // Somebody else takes the controllers' lease, and lets it expire.
    others["spec"]["leaseDurationSeconds"] = 15.into();
    others["spec"]["renewTime"] = "2026-01-31T14:00:00.000000Z".into();
    until("it is taken", || async {
        let mut lease = lease("kube-controller-manager").await.body;
        lease["spec"] = others["spec"].clone();
        server.put(&format!("{LEASES}/kube-controller-manager"), &lease).await.unwrap().code == 200
    })
    .await;
    until("the controllers have seen it", || async {
        let events = server.get("/api/v1/namespaces/kube-system/events").await.unwrap().text;
        events.contains("stopped leading")
    })
    .await;
    assert_eq!(lease("kube-controller-manager").await.body["spec"]["holderIdentity"], "gone");
    until("they lead again", || async {
        server.advance(Duration::from_secs(16)).unwrap();
        lease("kube-controller-manager").await.body["spec"]["holderIdentity"] != "gone"
    })
    .await;
}
