//! Objects of a new store that are written in one go are those that creates would make.

use crate::support::until;
use kubelith_testing::{Controllers, Kubelith};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const PATHS: [&str; 9] = [
    "/api/v1/namespaces",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    SCHEMAS,
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];
/// That many there are at least, so that the test is about something.
const FEW: usize = 150;

/// Two servers of the same seed and clock have the same uids and times.
async fn start(seed: u64, flags: &[String]) -> Kubelith {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800 + seed);
    let builder = Kubelith::builder().controllers(Controllers::Off).seed(seed).manual_clock_at(time);
    flags.iter().fold(builder, |builder, flag| builder.flag(flag)).start().await.unwrap()
}

async fn objects(server: &Kubelith) -> BTreeMap<String, Value> {
    until("flow schemas say what becomes of them", || async {
        let list = server.get(SCHEMAS).await.unwrap().body;
        list["items"].as_array().unwrap().iter().all(|item| item["status"]["conditions"].is_array())
    })
    .await;
    let mut found = BTreeMap::new();
    for path in PATHS {
        for mut item in server.get(path).await.unwrap().body["items"].as_array().unwrap().clone() {
            assert!(item["metadata"]["resourceVersion"].take().is_string());
            let place = format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
            found.insert(format!("{path}/{place}"), item);
        }
    }
    found
}

/// Whether roles came through the front door.
async fn were_created(server: &Kubelith) -> bool {
    let metrics = server.get("/metrics").await.unwrap().text;
    let is_create = |line: &str| {
        line.starts_with("apiserver_request_total")
            && line.contains("resource=\"clusterroles\"")
            && line.contains("verb=\"POST\"")
    };
    metrics.lines().any(is_create)
}

#[tokio::test]
async fn they_are_what_creates_make() {
    let files = tempfile::tempdir().unwrap();
    let policy = files.path().join("policy.yaml");
    std::fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n").unwrap();
    // Where requests are told to somebody, there are requests.
    let audited = [format!("--audit-policy-file={}", policy.display())];
    let gates = ["--feature-gates=StorageVersionHash=false".to_owned()];
    // The first one of a process finds out what the others are given.
    for (seed, flags) in [(1, &[][..]), (2, &[]), (3, &gates), (4, &[])] {
        let at_once = start(seed, flags).await;
        let one_by_one = start(seed, &[flags, &audited].concat()).await;
        assert!(!were_created(&at_once).await && were_created(&one_by_one).await);
        let (found, wanted) = (objects(&at_once).await, objects(&one_by_one).await);
        assert!(wanted.len() > FEW && found.keys().eq(wanted.keys()), "{:?}", found.keys());
        for (place, wanted) in wanted {
            assert_eq!(found[&place], wanted, "{place}");
        }
    }
}

/// What a server writes behind its hooks is there, too, so that nothing but the test's own requests reaches its webhooks and watches.
#[tokio::test]
async fn a_started_server_has_written_all() {
    const LAST: [&str; 4] = [
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/default/endpoints/kubernetes",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    ];
    for _ in 0..5 {
        let server = Kubelith::builder().controllers(Controllers::Off).start().await.unwrap();
        for path in LAST {
            assert_eq!(server.get(path).await.unwrap().code, 200, "{path}");
        }
    }
}
