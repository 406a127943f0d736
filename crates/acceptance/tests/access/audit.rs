//! The audit log on disk and at a webhook, and that nothing is lost when the server is told to stop.

use super::stub::{Reply, Stub};
use super::{ALICE, server};
use std::collections::BTreeSet;

const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
    - {level: None, users: [\"system:apiserver\"]}\n- {level: None, nonResourceURLs: [\"/readyz*\"]}\n\
    - {level: Request, resources: [{group: \"\", resources: [configmaps]}]}\n- {level: Metadata}\n";

#[test]
fn nothing_is_lost_when_the_server_stops() {
    let hook = Stub::start(|_, _| Reply::Json(200, "{}".into()));
    let dir = tempfile::tempdir().unwrap();
    let (policy, log) = (dir.path().join("policy.yaml"), dir.path().join("log").join("audit.log"));
    std::fs::write(&policy, POLICY).unwrap();
    let (mut server, _tokens) = server(&[
        &format!("--audit-policy-file={}", policy.display()),
        &format!("--audit-log-path={}", log.display()),
        "--audit-log-mode=batch",
        &format!("--audit-webhook-config-file={}", hook.kubeconfig(dir.path(), "hook")),
        "--audit-webhook-batch-max-size=7",
        "--audit-webhook-batch-max-wait=60s",
    ]);
    let made = server.as_admin(
        "POST",
        "/api/v1/namespaces/default/configmaps",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b"}}"#,
    );
    assert_eq!(made.status, 201);
    for i in 0..20 {
        server.as_admin("GET", &format!("/api/v1/namespaces/default/pods/p{i}"), "");
    }
    assert_eq!(server.with_token(ALICE, "GET", "/api/v1/secrets").status, 403);
    assert_eq!(server.with_token("wrong", "GET", "/api/v1/secrets").status, 401);
    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());

    let from_log: Vec<serde_json::Value> =
        std::fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let from_hook: Vec<serde_json::Value> = hook
        .bodies
        .lock()
        .unwrap()
        .iter()
        .flat_map(|body| {
            let list: serde_json::Value = serde_json::from_str(body).unwrap();
            list["items"].as_array().unwrap().clone()
        })
        .collect();
    let ids = |events: &[serde_json::Value]| -> BTreeSet<String> {
        events.iter().map(|e| format!("{} {}", e["auditID"], e["stage"])).collect()
    };
    assert_eq!(ids(&from_log), ids(&from_hook));
    assert_eq!(from_log.iter().filter(|e| e["verb"] == "get" && e["objectRef"]["resource"] == "pods").count(), 20);

    let find = |uri: &str| from_log.iter().filter(|e| e["requestURI"] == uri).collect::<Vec<_>>();
    let create = find("/api/v1/namespaces/default/configmaps")[0];
    assert_eq!((create["level"].as_str(), create["objectRef"]["name"].as_str()), (Some("Request"), Some("c")));
    assert_eq!(create["requestObject"]["data"]["a"], "b");
    assert!(create.get("responseObject").is_none());
    let secrets = find("/api/v1/secrets");
    assert_eq!(secrets[0]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(
        (secrets[0]["user"]["username"].as_str(), secrets[0]["responseStatus"]["code"].as_i64()),
        (Some("alice"), Some(403))
    );
    assert_eq!(
        (secrets[1]["stage"].as_str(), secrets[1]["responseStatus"]["code"].as_i64()),
        (Some("ResponseStarted"), Some(401))
    );
}
