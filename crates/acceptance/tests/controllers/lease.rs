//! Only one acts.

use super::api::Api;
use crate::support::Server;
use serde_json::json;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

#[tokio::test]
async fn the_lease_is_taken_kept_and_given_back() {
    let etcd = crate::support::etcd();
    let etcd = format!("--etcd-servers={}", etcd.url);
    let other = Server::start(&[&etcd]);
    let mut api = Api::of(&other).await;
    assert!(api.get(LEASE).await.is_none(), "nobody asked for controllers");
    let mut first = Server::start(&[&etcd, "--controllers=*"]);
    let held = api.until(&other, LEASE, |lease| lease.is_some()).await.unwrap();
    assert_eq!(held["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(held["spec"]["leaseTransitions"], 0);
    let holder = held["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    api.until(&other, LEASE, |l| l.is_some_and(|l| l["spec"]["renewTime"] != held["spec"]["renewTime"])).await;
    // A second one waits, and takes over as soon as the first one ends.
    let second = Server::start(&[&etcd, "--controllers=*"]);
    first.signal("TERM");
    assert!(first.ended().success(), "{}", first.log());
    let taken = |l: Option<&serde_json::Value>| {
        l.is_some_and(|l| !["", &holder].contains(&l["spec"]["holderIdentity"].as_str().unwrap_or_default()))
    };
    let lease = api.until(&second, LEASE, taken).await.unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    api.delete("/api/v1/namespaces/n", "").await;
    api.gone(&second, "/api/v1/namespaces/n").await;
}

#[tokio::test]
async fn somebody_elses_lease_is_respected() {
    let server = Server::start(&["--controllers=-*", "--storage-backend=embedded"]);
    let mut api = Api::of(&server).await;
    let lease = json!({"metadata": {"name": "kube-controller-manager"}, "spec": {"holderIdentity": "someone",
        "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}});
    api.create(LEASE.trim_end_matches("/kube-controller-manager"), lease).await;
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    api.delete("/api/v1/namespaces/n", "").await;
    let mut server = server;
    server.signal("TERM");
    server.restart(&["--controllers=*", "--storage-backend=embedded"]);
    let mut api = Api::of(&server).await;
    assert!(api.get("/api/v1/namespaces/n").await.is_some());
    // Given back, it is taken at once.
    api.change(LEASE, |lease| lease["spec"]["holderIdentity"] = json!("")).await;
    api.gone(&server, "/api/v1/namespaces/n").await;
}

#[test]
fn unknown_names_are_refused() {
    let mut server = Server::launch(&["--controllers=*,-red"], &[]);
    assert_eq!(server.ended().code(), Some(1));
    assert!(server.log().contains("red\\\" is not in the list of known controllers"), "{}", server.log());
}
