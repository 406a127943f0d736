//! Authorizers other than RBAC: a policy file, a webhook that hangs, fails and lies, and a file that is followed.

use super::stub::{Reply, Stub};
use super::{ALICE, server};
use crate::support::LIMIT;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_webhook_decides_or_fails() {
    const ALLOW: u8 = 0;
    let mood = Arc::new(AtomicU8::new(ALLOW));
    let current = mood.clone();
    let hook = Stub::start(move |_, body| {
        let asked: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(asked["spec"]["user"], "alice");
        let answer = |status: &str| {
            let kind = r#""apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview""#;
            Reply::Json(200, format!(r#"{{{kind},"status":{status}}}"#))
        };
        match current.load(Ordering::SeqCst) {
            ALLOW => answer(r#"{"allowed":true,"reason":"hook"}"#),
            1 => answer(r#"{"allowed":false,"denied":true,"reason":"not today"}"#),
            2 => answer(r#"{"allowed":false}"#),
            3 => Reply::Hang,
            4 => Reply::Json(200, "gibberish".into()),
            5 => Reply::Json(200, r#"{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}"#.into()),
            6 => Reply::Json(400, r#"{"status":{"allowed":true}}"#.into()),
            7 => answer(r#"{"allowed":"true"}"#),
            // Both at once is a lie.
            _ => answer(r#"{"allowed":true,"denied":true}"#),
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = hook.kubeconfig(dir.path(), "hook");
    let file = dir.path().join("authz.yaml");
    let config = |webhook: &str| {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n\
             - {{type: Node, name: node}}\n- {{type: RBAC, name: rbac}}\n{webhook}"
        )
    };
    let webhook = format!(
        "- type: Webhook\n  name: hook\n  webhook:\n    timeout: 300ms\n    subjectAccessReviewVersion: v1\n    \
         matchConditionSubjectAccessReviewVersion: v1\n    cacheAuthorizedRequests: false\n    \
         cacheUnauthorizedRequests: false\n    failurePolicy: Deny\n    \
         connectionInfo: {{type: KubeConfigFile, kubeConfigFile: \"{kubeconfig}\"}}\n"
    );
    std::fs::write(&file, config(&webhook)).unwrap();
    let (server, _dir) = server(&[&format!("--authorization-config={}", file.display())]);
    let ask = || server.with_token(ALICE, "GET", "/api/v1/namespaces/default/secrets");
    assert_eq!(ask().status, 200);
    mood.store(1, Ordering::SeqCst);
    let denied = ask();
    assert_eq!(denied.status, 403);
    assert!(denied.message().ends_with(": not today"), "{}", denied.message());
    for lie in 2..=8 {
        mood.store(lie, Ordering::SeqCst);
        let answer = ask();
        assert!(matches!(answer.status, 403 | 500), "{lie}: {} {}", answer.status, answer.body);
    }
    // The group that is always allowed does not depend on a webhook.
    assert_eq!(server.as_admin("GET", "/api/v1/namespaces/default/secrets", "").status, 200);

    // Without the webhook in the file the server stops asking it; a file that loses RBAC is not taken over.
    mood.store(ALLOW, Ordering::SeqCst);
    assert_eq!(ask().status, 200);
    let bad = config("").replace("- {type: RBAC, name: rbac}\n", "- {type: AlwaysAllow, name: alwaysallow}\n");
    std::fs::write(&file, bad).unwrap();
    server.wait_for("a refused reload", || server.log().contains("missing required types"));
    assert_eq!(ask().status, 200, "still the first file");
    std::fs::write(&file, config("")).unwrap();
    let end = Instant::now() + LIMIT;
    while ask().status != 403 {
        assert!(Instant::now() < end, "the file was not read again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn match_conditions_keep_requests_from_a_webhook() {
    let hook = Stub::start(|_, body| {
        let asked: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(asked["spec"]["resourceAttributes"]["namespace"], "kept");
        let kind = r#""apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview""#;
        Reply::Json(200, format!(r#"{{{kind},"status":{{"allowed":true}}}}"#))
    });
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = hook.kubeconfig(dir.path(), "hook");
    let file = dir.path().join("authz.yaml");
    let config = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n\
         - {{type: Node, name: node}}\n- {{type: RBAC, name: rbac}}\n- type: Webhook\n  name: hook\n  webhook:\n    timeout: \
         3s\n    subjectAccessReviewVersion: v1\n    matchConditionSubjectAccessReviewVersion: v1\n    failurePolicy: \
         Deny\n    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: \"{kubeconfig}\"}}\n    matchConditions:\n    - \
         expression: has(request.resourceAttributes)\n    - expression: request.resourceAttributes.namespace == 'kept'\n"
    );
    std::fs::write(&file, config).unwrap();
    let (server, _dir) = server(&[&format!("--authorization-config={}", file.display())]);
    let ask = |path: &str| server.with_token(ALICE, "GET", path).status;
    assert_eq!(ask("/api/v1/namespaces/kept/secrets"), 200);
    assert_eq!(ask("/api/v1/namespaces/other/secrets"), 403);
    let metrics = server.as_admin("GET", "/metrics", "").body;
    let name = "apiserver_authorization_match_condition_exclusions_total{name=\"hook\",type=\"Webhook\"}";
    assert!(metrics.lines().any(|line| line.starts_with(name)), "{metrics}");
    assert!(metrics.contains("apiserver_authorization_match_condition_evaluation_seconds_count"), "{metrics}");
    for line in [
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"hook\",type=\"Webhook\"} 1",
        "apiserver_authorization_webhook_evaluations_total{name=\"hook\",result=\"success\"} 1",
        "apiserver_authorization_webhook_duration_seconds_count{name=\"hook\",result=\"success\"} 1",
    ] {
        assert!(metrics.lines().any(|shown| shown == line), "{line} is missing in {metrics}");
    }
}

#[test]
fn abac_and_the_order_of_modes() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("abac.jsonl");
    let line = r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"default","resource":"pods","readonly":true}}"#;
    std::fs::write(&policy, line).unwrap();
    let (server, _dir) =
        server(&["--authorization-mode=ABAC,RBAC", &format!("--authorization-policy-file={}", policy.display())]);
    let ask = |method: &str, path: &str| server.with_token(ALICE, method, path).status;
    assert_eq!(ask("GET", "/api/v1/namespaces/default/pods"), 200);
    assert_eq!(ask("DELETE", "/api/v1/namespaces/default/pods/x"), 403);
    assert_eq!(ask("GET", "/api/v1/namespaces/other/pods"), 403);
    assert_eq!(ask("GET", "/api/v1/namespaces/default/secrets"), 403);
    assert_eq!(ask("GET", "/api/v1/namespaces/default/pods/x/log"), 404, "in ABAC subresources go with their resource");
}
