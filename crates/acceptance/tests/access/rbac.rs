//! RBAC and the node authorizer as clients meet them: a change counts at once, and nobody rises by their own hand.

use super::{ALICE, TOKEN, bearer, header, raw};
use crate::support::Server;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub fn a_change_counts_with_the_next_request(server: &Server) {
    let role = r#"{"metadata":{"name":"reader"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["nodes"]}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{RBAC}/clusterroles"), role).status, 201);
    let binding = r#"{"metadata":{"name":"alice"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    for _ in 0..10 {
        let made = server.as_admin("POST", &format!("{RBAC}/clusterrolebindings"), binding);
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(server.with_token(ALICE, "GET", "/api/v1/nodes/n").status, 404, "allowed, and not there");
        assert_eq!(server.as_admin("DELETE", &format!("{RBAC}/clusterrolebindings/alice"), "").status, 200);
        assert_eq!(server.with_token(ALICE, "GET", "/api/v1/nodes/n").status, 403);
    }
}

pub fn nodes_see_what_their_pods_need(server: &Server) {
    let as_node = |method: &str, path: &str| {
        let headers =
            [bearer(TOKEN), header("impersonate-user", "system:node:n1"), header("impersonate-group", "system:nodes")];
        raw::send(server.address(), None, method, path, &headers, "").status
    };
    for name in ["mine", "other"] {
        let secret = format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}"}}}}"#);
        assert_eq!(server.as_admin("POST", "/api/v1/namespaces/default/secrets", &secret).status, 201);
    }
    let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
    server.as_admin("POST", "/api/v1/namespaces/default/serviceaccounts", account);
    let secret = |name: &str| format!("/api/v1/namespaces/default/secrets/{name}");
    assert_eq!(as_node("GET", &secret("mine")), 403, "no pod yet");
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}],
        "automountServiceAccountToken":false,"volumes":[{"name":"v","secret":{"secretName":"mine"}}]}}"#;
    let made = server.as_admin("POST", "/api/v1/namespaces/default/pods", pod);
    assert_eq!(made.status, 201, "{}", made.body);
    server.wait_for("known to the node", || as_node("GET", &secret("mine")) == 200);
    assert_eq!(as_node("GET", &secret("other")), 403);
    assert_eq!(as_node("GET", "/api/v1/namespaces/default/secrets"), 403);
    assert_eq!(as_node("DELETE", &secret("mine")), 403);
    assert_eq!(as_node("GET", "/api/v1/nodes/n2"), 403);
    assert_eq!(as_node("GET", "/api/v1/nodes/n1"), 404);
    assert_eq!(as_node("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"), 200);
    assert_eq!(as_node("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"), 403);
}

/// Who may write the status of a claim, but not bind it nor speak for a driver, is told so together with all that is wrong with the claim.
pub fn claims_tell_what_is_forbidden_and_what_is_wrong(server: &Server) {
    let role = r#"{"metadata":{"name":"claims"},"rules":[{"verbs":["*"],"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/status"]}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{RBAC}/clusterroles"), role).status, 201);
    let binding = r#"{"metadata":{"name":"claims"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"claims"},
        "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(server.as_admin("POST", &format!("{RBAC}/clusterrolebindings"), binding).status, 201);
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim =
        r#"{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"k"}}]}}}"#;
    assert_eq!(server.as_admin("POST", claims, claim).status, 201);
    let patch = |token: &str, status: &str| {
        let headers = [bearer(token), header("content-type", "application/merge-patch+json")];
        let body = format!(r#"{{"status":{status}}}"#);
        raw::send(server.address(), None, "PATCH", &format!("{claims}/c/status"), &headers, &body)
    };
    let device = |name: &str, more: &str| format!(r#"{{"driver":"d.example.com","pool":"p","device":"{name}"{more}}}"#);
    let allocation = |result: &str| format!(r#""allocation":{{"devices":{{"results":[{result}]}}}}"#);
    let allocated = allocation(&device("d1", r#","request":"r""#));
    assert_eq!(patch(TOKEN, &format!("{{{allocated}}}")).status, 200);

    let causes = |status: &str| {
        let answer = patch(ALICE, status);
        assert_eq!(answer.status, 422, "{}", answer.body);
        let json = answer.json();
        let causes = json["details"]["causes"].as_array().unwrap().iter();
        let words = |cause: &serde_json::Value| {
            let message = cause["message"].as_str().unwrap().split(' ').take(2).collect::<Vec<_>>().join(" ");
            format!("{} {message}", cause["field"].as_str().unwrap())
        };
        causes.map(words).collect::<Vec<_>>()
    };
    let moved = allocation(&device("d1", r#","request":"q","adminAccess":true"#));
    let told = format!(r#""devices":[{}]"#, device("d2", ""));
    for (status, want) in [
        (format!("{{{told}}}"), &["status.devices Forbidden: changing", "status.devices[0] Invalid value:"][..]),
        (
            format!("{{{moved},{told}}}"),
            &[
                "status.allocation.devices.results[0].adminAccess Forbidden: admin",
                "status.allocation Forbidden: changing",
                "status.devices Forbidden: changing",
                "status.devices[0] Invalid value:",
                "status.allocation Invalid value:",
            ],
        ),
        (r#"{"allocation":null}"#.to_owned(), &["status.allocation Forbidden: changing"]),
    ] {
        assert_eq!(causes(&status), want, "{status}");
    }
}

/// Whoever closed discovery to strangers before the server knew the other binding has not opened that one.
#[test]
fn a_binding_that_was_split_off_keeps_the_subjects() {
    let mut server = Server::start(&["--storage-backend=embedded"]);
    let path = |name: &str| format!("{RBAC}/clusterrolebindings/{name}");
    let get = |server: &Server, name: &str| server.as_admin("GET", &path(name), "").json();
    let mut old = get(&server, "system:discovery");
    old["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false".into();
    old["subjects"] =
        serde_json::json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "friends"}]);
    assert_eq!(server.as_admin("PUT", &path("system:discovery"), &old.to_string()).status, 200);
    assert_eq!(server.as_admin("DELETE", &path("system:public-info-viewer"), "").status, 200);
    server.signal("TERM");
    server.restart(&["--storage-backend=embedded"]);
    let new = get(&server, "system:public-info-viewer");
    assert_eq!(
        (&new["subjects"], new["roleRef"]["name"].as_str()),
        (&old["subjects"], Some("system:public-info-viewer"))
    );
}
