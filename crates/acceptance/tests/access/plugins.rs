//! Admission plugins that run when they are asked for: each rule with a request that passes and one that does not.

use super::{bearer, header, raw};
use crate::support::{Server, TOKEN};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// Everybody may everything: what is refused, admission refuses.
fn server() -> Server {
    let server = Server::start(&[
        "--authorization-mode=AlwaysAllow",
        "--enable-admission-plugins=NodeRestriction,AlwaysPullImages,DenyServiceExternalIPs,LimitPodHardAntiAffinityTopology,NamespaceExists",
        "--disable-admission-plugins=ServiceAccount",
    ]);
    server.wait_for("namespaces", || {
        server.get("/api/v1/namespaces/kube-node-lease").is_ok_and(|r| r.status == 200)
            && server.get("/api/v1/namespaces/default").is_ok_and(|r| r.status == 200)
    });
    server
}

pub fn send(server: &Server, node: Option<&str>, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut headers = vec![bearer(TOKEN)];
    if let Some(node) = node {
        headers.push(header("impersonate-user", &format!("system:node:{node}")));
        headers.push(header("impersonate-group", "system:nodes"));
    }
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    headers.push(header("content-type", kind));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = raw::send(server.address(), None, method, path, &headers, &body);
    (answer.status, answer.json())
}

/// As the administrator; must succeed.
pub fn make(server: &Server, path: &str, body: &Value) -> Value {
    let (code, made) = send(server, None, "POST", path, body);
    assert!(code < 300, "{path}: {made}");
    made
}

pub fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    })
}

pub fn merged(mut base: Value, more: &Value) -> Value {
    match (&mut base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                let old = base.get(key).cloned().unwrap_or_default();
                base.insert(key.clone(), merged(old, value));
            }
        }
        (base, more) => *base = more.clone(),
    }
    base
}

/// Method, path, body, and what the refusal must say; empty if there is none.
type Case<'a> = (&'a str, &'a str, Value, &'a str);

fn check(server: &Server, cases: &[Case<'_>]) {
    for (method, path, body, refusal) in cases {
        let (code, answer) = send(server, Some("n1"), method, path, body);
        let message = answer["message"].as_str().unwrap_or_default();
        match refusal.is_empty() {
            true => assert!(code < 300, "{method} {path} {body}: {answer}"),
            false => assert!(code == 403 && message.ends_with(refusal), "{method} {path} {body}: {code} {message}"),
        }
    }
}

#[test]
fn nodes_change_what_is_theirs() {
    let server = server();
    for name in ["n1", "n2"] {
        make(&server, "/api/v1/nodes", &json!({"metadata": {"name": name}}));
    }
    let uid = send(&server, None, "GET", "/api/v1/nodes/n1", &Value::Null).1["metadata"]["uid"].clone();
    let theirs = make(&server, PODS, &pod("theirs", "n2"));
    let mine = make(&server, PODS, &pod("mine", "n1"));
    make(&server, PODS, &pod("gone", "n1"));
    make(&server, "/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "a"}}));

    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true});
    let mirror = |change: Value| {
        let metadata = json!({
            "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]},
            "spec": {"automountServiceAccountToken": false}
        });
        merged(merged(pod("mirror", "n1"), &metadata), &change)
    };
    let owned_by = |change: Value| mirror(json!({"metadata": {"ownerReferences": [merged(owner.clone(), &change)]}}));
    let status = |change: Value| merged(mine.clone(), &change);
    let pod_path = |name: &str| format!("{PODS}/{name}");
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let token = |bound: Value, audiences: &[&str]| json!({"spec": {"boundObjectRef": bound, "audiences": audiences}});
    let bound = |pod: &Value| json!({"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]});
    let tokens = "/api/v1/namespaces/default/serviceaccounts/a/token";
    check(
        &server,
        &[
            (
                "POST",
                PODS,
                pod("plain", "n1"),
                "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods",
            ),
            (
                "POST",
                PODS,
                mirror(json!({"spec": {"nodeName": "n2"}})),
                "node \"n1\" can only create pods with spec.nodeName set to itself",
            ),
            (
                "POST",
                PODS,
                mirror(json!({"metadata": {"ownerReferences": []}})),
                "node \"n1\" can only create pods with an owner reference set to itself",
            ),
            (
                "POST",
                PODS,
                mirror(
                    json!({"metadata": {"ownerReferences": [owner, {"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "u"}]}}),
                ),
                "node \"n1\" can only create pods with a single owner reference set to itself",
            ),
            (
                "POST",
                PODS,
                owned_by(json!({"name": "n2"})),
                "node \"n1\" can only create pods with an owner reference set to itself",
            ),
            (
                "POST",
                PODS,
                owned_by(json!({"controller": false})),
                "node \"n1\" can only create pods with a controller owner reference set to itself",
            ),
            (
                "POST",
                PODS,
                owned_by(json!({"blockOwnerDeletion": true})),
                "node \"n1\" must not set blockOwnerDeletion on an owner reference",
            ),
            (
                "POST",
                PODS,
                owned_by(json!({"uid": "other"})),
                &format!("node n1 UID mismatch: expected other got {}", uid.as_str().unwrap()),
            ),
            (
                "POST",
                PODS,
                mirror(json!({"spec": {"imagePullSecrets": [{"name": "s"}]}})),
                "node \"n1\" can not create pods that reference secrets",
            ),
            ("POST", PODS, mirror(json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})), ""),
            (
                "PUT",
                &pod_path("mine"),
                status(json!({"metadata": {"labels": {"a": "b"}}})),
                "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods",
            ),
            (
                "PUT",
                &(pod_path("mine") + "/ephemeralcontainers"),
                mine.clone(),
                "unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' are allowed",
            ),
            (
                "PATCH",
                &(pod_path("mine") + "/status"),
                json!({"metadata": {"labels": {"a": "b"}}}),
                "node \"n1\" cannot update labels through pod status",
            ),
            (
                "PATCH",
                &(pod_path("theirs") + "/status"),
                json!({"status": {"reason": "x"}}),
                "node \"n1\" can only update pod status for pods with spec.nodeName set to itself",
            ),
            ("PATCH", &(pod_path("mine") + "/status"), json!({"status": {"reason": "x"}}), ""),
            (
                "POST",
                &(pod_path("theirs") + "/eviction"),
                eviction("theirs"),
                "node n1 can only evict pods with spec.nodeName set to itself",
            ),
            ("POST", &(pod_path("gone") + "/eviction"), eviction("gone"), ""),
            (
                "DELETE",
                &pod_path("theirs"),
                Value::Null,
                "node \"n1\" can only delete pods with spec.nodeName set to itself",
            ),
            ("POST", tokens, token(Value::Null, &[]), "node requested token not bound to a pod"),
            (
                "POST",
                tokens,
                token(json!({"apiVersion": "v1", "kind": "Pod", "name": "mine"}), &[]),
                "node requested token with a pod binding without a uid",
            ),
            (
                "POST",
                tokens,
                token(bound(&theirs), &[]),
                "node requested token bound to a pod scheduled on a different node",
            ),
            ("POST", tokens, token(bound(&mine), &["a", "b"]), "node may only request 0 or 1 audiences"),
            (
                "PATCH",
                "/api/v1/nodes/n2",
                json!({"metadata": {"labels": {"a": "b"}}}),
                "node \"n1\" is not allowed to modify node \"n2\"",
            ),
            (
                "PATCH",
                "/api/v1/nodes/n1",
                json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
                "node \"n1\" is not allowed to modify taints",
            ),
            (
                "PATCH",
                "/api/v1/nodes/n1",
                json!({"metadata": {"ownerReferences": [owner]}}),
                "node \"n1\" is not allowed to modify ownerReferences",
            ),
            (
                "PATCH",
                "/api/v1/nodes/n1",
                json!({"metadata": {"labels": {"node-role.kubernetes.io/x": ""}}}),
                "is not allowed to modify labels: node-role.kubernetes.io/x",
            ),
            ("PATCH", "/api/v1/nodes/n1", json!({"metadata": {"labels": {"a": "b", "kubernetes.io/os": "linux"}}}), ""),
            ("DELETE", "/api/v1/nodes/n1", Value::Null, ""),
            (
                "POST",
                "/api/v1/nodes",
                json!({"metadata": {"name": "n1", "labels": {"node-restriction.kubernetes.io/x": ""}}}),
                "node \"n1\" is not allowed to set the following labels: node-restriction.kubernetes.io/x",
            ),
            ("POST", "/api/v1/nodes", json!({"metadata": {"name": "n1"}}), ""),
            (
                "POST",
                &format!("{LEASES}/default/leases"),
                json!({"metadata": {"name": "n1"}}),
                "can only access leases in the \"kube-node-lease\" system namespace",
            ),
            (
                "POST",
                &format!("{LEASES}/kube-node-lease/leases"),
                json!({"metadata": {"name": "n2"}}),
                "can only access node lease with the same name as the requesting node",
            ),
            ("POST", &format!("{LEASES}/kube-node-lease/leases"), json!({"metadata": {"name": "n1"}}), ""),
            ("DELETE", &format!("{LEASES}/kube-node-lease/leases/n1"), Value::Null, ""),
            (
                "POST",
                "/apis/storage.k8s.io/v1/csinodes",
                json!({"metadata": {"name": "n2"}, "spec": {"drivers": []}}),
                "can only access CSINode with the same name as the requesting node",
            ),
            (
                "POST",
                "/apis/storage.k8s.io/v1/csinodes",
                json!({"metadata": {"name": "n1"}, "spec": {"drivers": []}}),
                "",
            ),
        ],
    );
}

#[test]
fn plugins_that_are_off_by_default() {
    let server = server();
    let stays = |image: Value| {
        let mut pod = pod("p", "");
        pod["metadata"] = json!({"generateName": "p-"});
        merged(pod, &json!({"spec": image}))
    };
    let (code, made) = send(
        &server,
        None,
        "POST",
        PODS,
        &stays(json!({"containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "Never"}]})),
    );
    assert_eq!((code, made["spec"]["containers"][0]["imagePullPolicy"].as_str()), (201, Some("Always")), "{made}");
    let term = |key: &str| {
        let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"a": "b"}}});
        stays(json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}))
    };
    assert_eq!(send(&server, None, "POST", PODS, &term("kubernetes.io/hostname")).0, 201);
    let (code, refused) = send(&server, None, "POST", PODS, &term("zone"));
    assert_eq!(code, 403);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message
            .ends_with("RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed"),
        "{message}"
    );
    let service = |address: &[&str]| json!({"metadata": {"name": "s"}, "spec": {"externalIPs": address, "ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    let (code, refused) = send(&server, None, "POST", services, &service(&["1.2.3.4"]));
    let want = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
    assert_eq!((code, refused["message"].as_str()), (403, Some(want)));
    assert_eq!(send(&server, None, "POST", services, &service(&[])).0, 201);
}
