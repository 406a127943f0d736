//! What people try who have no business here. None of it may work, and the server must go on.

use super::authority::Authority;
use super::raw::{self, Identity};
use super::{ALICE, TOKEN, bearer, header, server, whose};
use crate::support::Server;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn with_secret(server: &Server) {
    let body = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"hidden-value"}}"#;
    let made = server.as_admin("POST", SECRETS, body).status;
    assert!(matches!(made, 201 | 409), "{made}");
}

#[test]
fn a_front_proxy_is_believed_by_its_certificate_alone() {
    let (proxies, strangers) = (Authority::new(), Authority::new());
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("proxy-ca.crt");
    std::fs::write(&ca, proxies.pem()).unwrap();
    let (server, _dir) = server(&[
        &format!("--requestheader-client-ca-file={}", ca.display()),
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]);
    let claim = [header("x-remote-user", "root"), header("x-remote-group", "system:masters")];
    let ask = |identity: Option<&Identity>, headers: &[(String, String)]| {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        whose(&raw::send(server.address(), identity, "POST", path, headers, "{}"))
    };
    let proxy = proxies.issue("front-proxy", "x");
    assert_eq!(ask(Some(&proxy), &claim), Ok("root system:masters,system:authenticated".into()));
    assert_eq!(ask(None, &claim), Err(403), "anonymous");
    assert_eq!(ask(Some(&proxies.issue("somebody", "x")), &claim), Err(401), "not one of the allowed names");
    assert_eq!(ask(Some(&strangers.issue("front-proxy", "x")), &claim), Err(401), "another authority");
    assert_eq!(ask(Some(&strangers.issue("root", "system:masters")), &[]), Err(401), "groups of one's own making");
    // With a good credential of one's own, the headers are nothing.
    let mut both = claim.to_vec();
    both.push(bearer(ALICE));
    assert_eq!(ask(None, &both), Ok("alice devs,system:authenticated".into()));
    let doubled = [header("x-remote-user", "bob"), header("x-remote-user", "root"), header("x-remote-group", "g")];
    assert_eq!(ask(Some(&proxy), &doubled), Ok("bob g,system:authenticated".into()), "the first name counts");
}

pub fn paths_lead_nowhere_else(server: &Server) {
    with_secret(server);
    let role = r#"{"metadata":{"name":"pods","namespace":"default"},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]}"#;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    assert_eq!(server.as_admin("POST", roles, role).status, 201);
    let binding = r#"{"metadata":{"name":"pods"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"pods"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(server.as_admin("POST", &roles.replace("roles", "rolebindings"), binding).status, 201);
    assert_eq!(server.with_token(ALICE, "GET", "/api/v1/namespaces/default/pods").status, 200);
    for path in [
        "/api/v1/namespaces/default/secrets/s",
        "//api/v1/namespaces/default/secrets/s",
        "/api//v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default//secrets/s",
        "/api/v1/namespaces/default/pods/../secrets/s",
        "/api/v1/namespaces/default/pods/..%2fsecrets/s",
        "/api/v1/namespaces/default/pods/%2e%2e/secrets/s",
        "/api/v1/namespaces/default/pods%2f..%2fsecrets/s",
        "/api/v1/namespaces/default/pods/./../secrets/s",
        "/version/../api/v1/namespaces/default/secrets/s",
        "/healthz/..//api/v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/secrets./s",
        "/api/v1/namespaces/default./secrets/s",
        "/api/v1/namespaces/default/secrets/s.",
        "/api/v1/namespaces/default/secrets/s/",
        "/api/v1/namespaces/default/SECRETS/s",
        "/api/v1/namespaces/default/secrets%00/s",
        "/api/v1/namespaces/default/pods;/secrets/s",
        "/api/v1/proxy/namespaces/default/secrets/s",
        "/api/v1/watch/namespaces/default/secrets",
        "/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=1",
        "/api/v1/secrets?fieldSelector=metadata.namespace%3Ddefault",
        "/apis//v1/namespaces/default/secrets/s",
        "/apis/%2fapi/v1/namespaces/default/secrets/s",
        "https://localhost/api/v1/namespaces/default/secrets/s",
    ] {
        let answer = server.with_token(ALICE, "GET", path);
        assert!(answer.status >= 300 && answer.status != 500, "{path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains("aGlkZGVuLXZhbHVl"), "{path} shows the secret");
    }
    assert_eq!(server.as_admin("GET", "/api/v1/namespaces/default/secrets/s", "").status, 200);
}

pub fn verbs_are_what_the_method_says(server: &Server) {
    with_secret(server);
    let role = r#"{"metadata":{"name":"one"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["s"]},
        {"verbs":["delete"],"apiGroups":[""],"resources":["configmaps"]}]}"#;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    assert_eq!(server.as_admin("POST", &format!("{rbac}/roles"), role).status, 201);
    let binding = r#"{"metadata":{"name":"one"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"one"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{rbac}/rolebindings"), binding).status, 201);
    let one = format!("{SECRETS}/s");
    assert_eq!(server.with_token(ALICE, "GET", &one).status, 200);
    for (method, path) in [
        ("GET", SECRETS.to_owned()),
        ("GET", format!("{SECRETS}?fieldSelector=metadata.name%3Ds")),
        ("GET", format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Ds")),
        ("GET", format!("{SECRETS}/")),
        ("GET", format!("{SECRETS}/t")),
        ("PUT", one.clone()),
        ("PATCH", one.clone()),
        ("DELETE", one.clone()),
        ("DELETE", SECRETS.to_owned()),
        ("DELETE", "/api/v1/namespaces/default/configmaps".to_owned()),
        ("POST", SECRETS.to_owned()),
        ("get", one.clone()),
        ("HEAD", SECRETS.to_owned()),
        ("OPTIONS", SECRETS.to_owned()),
    ] {
        let answer = server.with_token(ALICE, method, &path);
        assert!(matches!(answer.status, 400..=499), "{method} {path}: {}", answer.status);
        assert!(!answer.body.contains("aGlkZGVuLXZhbHVl"), "{method} {path} shows the secret");
    }
    // A header cannot make another method of it.
    let tricked = [bearer(ALICE), header("x-http-method-override", "GET"), header("x-method-override", "GET")];
    assert_eq!(raw::send(server.address(), None, "DELETE", &one, &tricked, "").status, 403);
}

pub fn nobody_becomes_more_than_they_may(server: &Server) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = r#"{"metadata":{"name":"mask"},"rules":[{"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],"resourceNames":["bob"]}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{rbac}/clusterroles"), role).status, 201);
    let binding = r#"{"metadata":{"name":"mask"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"mask"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{rbac}/clusterrolebindings"), binding).status, 201);
    let alice = |more: &[(&str, &str)]| {
        let mut headers = vec![bearer(ALICE)];
        headers.extend(more.iter().map(|(k, v)| header(k, v)));
        server.who(&headers)
    };
    assert_eq!(alice(&[("impersonate-user", "bob")]), Ok("bob system:authenticated".into()));
    for more in [
        &[("impersonate-user", "admin")][..],
        &[("impersonate-user", "bob"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "bob"), ("impersonate-uid", "1")],
        &[("impersonate-user", "bob"), ("impersonate-extra-scopes", "all")],
        &[("impersonate-user", "system:serviceaccount:kube-system:default")],
        &[("impersonate-user", "system:node:n1")],
        &[("impersonate-user", "bob"), ("impersonate-user", "admin"), ("impersonate-group", "system:masters")],
        &[("Impersonate-Group", "system:masters"), ("Impersonate-User", "bob")],
    ] {
        assert_eq!(alice(more), Err(403), "{more:?}");
    }
    assert_eq!(alice(&[("impersonate-group", "system:masters")]), Err(400), "a group without a user");
    assert_eq!(alice(&[("impersonate-uid", "1")]), Err(400));
    // Nor by the groups of a review or of a token that one writes oneself.
    let review = r#"{"spec":{"user":"alice","groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"secrets"}}}"#;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(raw::send(server.address(), None, "POST", path, &[bearer(ALICE)], review).status, 403);
}

pub fn sizes_have_limits_and_the_server_goes_on(server: &Server) {
    let big = "x".repeat(2 << 20);
    let long_token = server.with_token(&big, "GET", "/version");
    assert!(matches!(long_token.status, 0 | 400 | 401 | 431), "{}", long_token.status);
    let headers: Vec<_> = (0..5000).map(|i| header(&format!("x-{i}"), "y")).chain([bearer(TOKEN)]).collect();
    let many = raw::send(server.address(), None, "GET", "/version", &headers, "");
    assert!(matches!(many.status, 0 | 400 | 431), "{}", many.status);
    let path = raw::send(server.address(), None, "GET", &format!("/{big}"), &[bearer(TOKEN)], "");
    assert!(matches!(path.status, 0 | 400 | 414 | 431), "{}", path.status);
    for groups in [10, 1000] {
        let mut headers = vec![bearer(ALICE), header("impersonate-user", "bob")];
        headers.extend((0..groups).map(|i| header("impersonate-group", &format!("g{i}"))));
        assert!(matches!(server.who(&headers), Err(403 | 431 | 400 | 0)), "{groups}");
    }
    assert_eq!(server.with_token(TOKEN, "GET", "/version").status, 200);
}
