//! Weaknesses that kube-apiserver had, tried here. Each function names the CVE or the class; docs/SECURITY.md has the whole
//! list with the tests of other files.

use super::raw::{self, Answer};
use super::stub::{Reply, Stub};
use super::{ALICE, bearer, header, server};
use crate::support::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What one request may take of a debug build on a busy machine; bombs took minutes.
const IN_TIME: Duration = Duration::from_secs(20);
/// What the server may grow by, whatever it is sent.
const MOST_GROWTH: u64 = 300 << 20;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const HIDDEN: &str = "hidden-value";

#[test]
fn weaknesses_of_others_are_none_here() {
    let (server, _dir) = server(&[]);
    bombs_are_refused_in_time(&server);
    patches_do_not_multiply(&server);
    scopes_are_not_confused(&server);
    names_lead_to_no_other_resource(&server);
    policies_see_what_a_node_was(&server);
    secrets_that_may_not_be_mounted_are_not(&server);
    proxies_lead_to_no_place_of_ours(&server);
    bytes_behind_a_request_are_nobody_s(&server);
}

fn make(server: &Server, path: &str, body: &Value) -> Value {
    let answer = server.as_admin("POST", path, &body.to_string());
    assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    answer.json()
}

fn send_as(server: &Server, media_type: &str, method: &str, path: &str, body: &str) -> Answer {
    let headers = [bearer(super::TOKEN), header("content-type", media_type)];
    raw::send(server.address(), None, method, path, &headers, body)
}

pub fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// CVE-2019-11253 (aliases that multiply), CVE-2019-11254 (YAML that is slow to read), and nesting.
fn bombs_are_refused_in_time(server: &Server) {
    let mut laughs = String::from("apiVersion: v1\nkind: ConfigMap\ndata:\n  a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..12 {
        laughs.push_str(&format!("  a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")));
    }
    let merges = "<<: [*a, *a, *a, *a, *a, *a, *a, *a]\n".repeat(500);
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let yaml = [
        laughs,
        format!("a: &a {{b: c}}\n{merges}"),
        deep("[", "]"),
        deep("{a: ", "}"),
        "- ".repeat(50_000),
        "? ".repeat(50_000),
        "&a ".repeat(50_000),
        format!("a: \"{}\"", "\\x20".repeat(100_000)),
        format!("a: {}", ": ".repeat(50_000)),
        format!("a: |\n{}", " \n".repeat(200_000)),
        "%TAG ! tag:x,2000:\n".repeat(20_000),
        "---\n".repeat(100_000),
    ];
    let json = [deep("[", "]"), deep(r#"{"a":"#, "}"), format!(r#"{{"data":{}}}"#, "[".repeat(100_000))];
    let before = resident(server);
    let yaml = yaml.iter().map(|body| ("application/yaml", body));
    for (media_type, body) in yaml.chain(json.iter().map(|body| ("application/json", body))) {
        let begin = Instant::now();
        let answer = send_as(server, media_type, "POST", CONFIG_MAPS, body);
        let shown: String = body.chars().take(40).collect();
        assert!(matches!(answer.status, 400..=499), "{shown}: {} {}", answer.status, answer.body);
        assert!(begin.elapsed() < IN_TIME, "{shown} took {:?}", begin.elapsed());
    }
    assert!(resident(server) < before + MOST_GROWTH, "{before} {}", resident(server));
}

/// CVE-2019-1002100: a patch that is small and makes much work, or a large object.
fn patches_do_not_multiply(server: &Server) {
    make(server, CONFIG_MAPS, &json!({"metadata": {"name": "patched"}, "data": {"a": "x".repeat(1000)}}));
    let path = format!("{CONFIG_MAPS}/patched");
    let many: Vec<Value> =
        (0..10_001).map(|i| json!({"op": "add", "path": format!("/data/k{i}"), "value": "v"})).collect();
    let doubling: Vec<Value> =
        (0..60).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/k{i}")})).collect();
    let copies: Vec<Value> =
        (0..9_999).map(|i| json!({"op": "copy", "from": "/data/a", "path": format!("/data/k{i}")})).collect();
    let deep = format!("{}1{}", r#"{"data":"#.repeat(30_000), "}".repeat(30_000));
    let before = resident(server);
    for (media_type, body) in [
        ("application/json-patch+json", Value::from(many).to_string()),
        ("application/json-patch+json", Value::from(doubling).to_string()),
        ("application/json-patch+json", Value::from(copies).to_string()),
        ("application/merge-patch+json", deep.clone()),
        ("application/strategic-merge-patch+json", deep.clone()),
        ("application/apply-patch+yaml", deep),
    ] {
        let begin = Instant::now();
        let path = if media_type.contains("apply") { format!("{path}?fieldManager=m") } else { path.clone() };
        let answer = send_as(server, media_type, "PATCH", &path, &body);
        assert!(matches!(answer.status, 400..=499), "{media_type}: {} {}", answer.status, answer.body);
        assert!(begin.elapsed() < IN_TIME, "{media_type} took {:?}", begin.elapsed());
    }
    assert!(resident(server) < before + MOST_GROWTH, "{before} {}", resident(server));
}

fn define(server: &Server, plural: &str, kind: &str, scope: &str) {
    let definition = json!({
        "metadata": {"name": format!("{plural}.cve.example.com")},
        "spec": {"group": "cve.example.com", "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    make(server, CRDS, &definition);
    let path = format!("/apis/cve.example.com/v1/{plural}");
    server.wait_for("served", || server.as_admin("GET", &path, "").status == 200);
}

/// Gives alice all verbs on a resource of the group, in the whole cluster or in `default`.
fn grant(server: &Server, plural: &str, whole_cluster: &str) {
    let (base, kind) = match whole_cluster {
        "cluster" => (RBAC.to_owned(), "ClusterRole"),
        _ => (format!("{RBAC}/namespaces/default"), "Role"),
    };
    let plurals = format!("{}s", kind.to_lowercase());
    let rules = json!([{"verbs": ["*"], "apiGroups": ["cve.example.com"], "resources": [plural]}]);
    make(server, &format!("{base}/{plurals}"), &json!({"metadata": {"name": plural}, "rules": rules}));
    let binding = json!({
        "metadata": {"name": plural},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": plural},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    });
    make(server, &format!("{base}/{}", plurals.replace("roles", "rolebindings")), &binding);
}

/// CVE-2019-11247: an object of the cluster, asked for as if it were in a namespace where one has rights.
fn scopes_are_not_confused(server: &Server) {
    define(server, "globals", "Global", "Cluster");
    grant(server, "globals", "default");
    let object = |kind: &str| json!({"apiVersion": "cve.example.com/v1", "kind": kind, "metadata": {"name": "x"}, "secret": HIDDEN});
    make(server, "/apis/cve.example.com/v1/globals", &object("Global"));
    let in_namespace = "/apis/cve.example.com/v1/namespaces/default/globals";
    for (method, path, body) in [
        ("GET", format!("{in_namespace}/x"), String::new()),
        ("GET", in_namespace.to_owned(), String::new()),
        ("GET", format!("{in_namespace}?watch=1&timeoutSeconds=1"), String::new()),
        ("PUT", format!("{in_namespace}/x"), object("Global").to_string()),
        ("POST", in_namespace.to_owned(), object("Global").to_string()),
        ("DELETE", format!("{in_namespace}/x"), String::new()),
        ("DELETE", in_namespace.to_owned(), String::new()),
        ("GET", "/apis/cve.example.com/v1/globals/x".to_owned(), String::new()),
    ] {
        let answer = raw::send(server.address(), None, method, &path, &[bearer(ALICE)], &body);
        assert!(matches!(answer.status, 403..=405), "{method} {path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains(HIDDEN), "{method} {path} shows it");
    }
    assert_eq!(server.as_admin("GET", "/apis/cve.example.com/v1/globals/x", "").status, 200);
}

/// CVE-2022-3162: who may read one custom resource reads another one of the group by a path that leads out of the first.
fn names_lead_to_no_other_resource(server: &Server) {
    define(server, "reds", "Red", "Namespaced");
    define(server, "blues", "Blue", "Namespaced");
    grant(server, "reds", "cluster");
    let base = "/apis/cve.example.com/v1";
    let blue = json!({"apiVersion": "cve.example.com/v1", "kind": "Blue", "metadata": {"name": "b"}, "secret": HIDDEN});
    make(server, &format!("{base}/namespaces/default/blues"), &blue);
    for path in [
        "/reds/../blues",
        "/reds/..%2fblues",
        "/namespaces/..%2fblues/reds",
        "/namespaces/%2e%2e/reds",
        "/namespaces/..%2fblues%2fdefault/reds/b",
        "/namespaces/../reds",
        "/namespaces/..%2f..%2fcve.example.com%2fblues/reds",
        "/namespaces/default/reds/..%2f..%2fblues%2fdefault%2fb",
        "/namespaces/default/reds/%2e%2e%2f%2e%2e%2fblues%2fdefault%2fb",
        "/namespaces/default/reds/..%5c..%5cblues",
        "/namespaces//reds/b",
        "/namespaces/%00/reds/b",
        "/reds?fieldSelector=metadata.namespace%3D..%2fblues",
        "/reds?fieldSelector=metadata.namespace%3D..%2fblues%2fdefault%2Cmetadata.name%3Db",
        "/reds?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9ibHVlcy9kZWZhdWx0L2EifQ",
    ] {
        let answer = server.with_token(ALICE, "GET", &format!("{base}{path}"));
        // As the reference says it of a key that leads out of its prefix.
        let is_told = answer.status != 500 || answer.body.contains("invalid key");
        assert!(answer.status != 0 && is_told, "{path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains(HIDDEN), "{path} shows it: {}", answer.body);
    }
    assert_eq!(server.with_token(ALICE, "GET", &format!("{base}/reds")).status, 200);
}

/// CVE-2021-25735: admission saw of a node's update what the client had made of the old object.
fn policies_see_what_a_node_was(server: &Server) {
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({
        "metadata": {"name": "zones"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                "resources": ["nodes", "nodes/status"]}]},
            "validations": [{"expression": "object.metadata.labels.zone == oldObject.metadata.labels.zone"}],
        },
    });
    make(server, &format!("{policies}/validatingadmissionpolicies"), &policy);
    let binding =
        json!({"metadata": {"name": "zones"}, "spec": {"policyName": "zones", "validationActions": ["Deny"]}});
    make(server, &format!("{policies}/validatingadmissionpolicybindings"), &binding);
    let mut node = make(server, "/api/v1/nodes", &json!({"metadata": {"name": "zoned", "labels": {"zone": "a"}}}));
    node["metadata"]["labels"]["zone"] = json!("b");
    let patch = json!({"metadata": {"labels": {"zone": "b"}}}).to_string();
    for (method, path, body) in [
        ("PUT", "/api/v1/nodes/zoned", node.to_string()),
        ("PUT", "/api/v1/nodes/zoned/status", node.to_string()),
        ("PATCH", "/api/v1/nodes/zoned", patch.clone()),
        ("PATCH", "/api/v1/nodes/zoned/status", patch),
    ] {
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let answer = send_as(server, media_type, method, path, &body);
        assert_eq!(answer.status, 422, "{method} {path}: {}", answer.body);
    }
    let zone = server.as_admin("GET", "/api/v1/nodes/zoned", "").json()["metadata"]["labels"]["zone"].clone();
    assert_eq!(zone, "a");
    for path in ["validatingadmissionpolicybindings/zones", "validatingadmissionpolicies/zones"] {
        assert_eq!(server.as_admin("DELETE", &format!("{policies}/{path}"), "").status, 200);
    }
}

/// CVE-2023-2728: containers that are added to a pod later mounted what its account may not.
fn secrets_that_may_not_be_mounted_are_not(server: &Server) {
    let account =
        json!({"metadata": {"name": "careful", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
    make(server, "/api/v1/namespaces/default/serviceaccounts", &account);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, more: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"metadata": {"name": name}, "spec": {"serviceAccountName": "careful", "automountServiceAccountToken": false,
            "containers": [container]}})
    };
    let from = json!({"envFrom": [{"secretRef": {"name": "s"}}]});
    let key = json!({"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]});
    for more in [&from, &key] {
        let answer = server.as_admin("POST", pods, &pod("refused", more.clone()).to_string());
        assert_eq!(answer.status, 403, "{}", answer.body);
    }
    make(server, pods, &pod("fine", json!({})));
    for more in [&from, &key] {
        let mut container = json!({"name": "e", "image": "i"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let patch = json!({"spec": {"ephemeralContainers": [container]}}).to_string();
        let path = format!("{pods}/fine/ephemeralcontainers");
        let answer = send_as(server, "application/strategic-merge-patch+json", "PATCH", &path, &patch);
        // The reference has no code of its own for this one.
        let is_refused = matches!(answer.status, 403 | 500) && answer.body.contains("does not reference that secret");
        assert!(is_refused, "{} {}", answer.status, answer.body);
    }
}

/// CVE-2020-8562, CVE-2022-3294 and their like: a pod or node whose address is the server's own machine or its network's
/// metadata, in whatever spelling.
fn proxies_lead_to_no_place_of_ours(server: &Server) {
    let inside = Stub::start(|_, _| Reply::Json(200, format!(r#"{{"a":"{HIDDEN}"}}"#)));
    make(server, "/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "default"}}));
    let asked = || inside.asked.load(std::sync::atomic::Ordering::Relaxed);
    let addresses = [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "::1",
        "0.0.0.0",
        "::",
        "::ffff:0.0.0.0",
        "127.1.2.3",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "localhost",
    ];
    let pods = "/api/v1/namespaces/default/pods";
    for (i, address) in addresses.into_iter().enumerate() {
        let spec = json!({"nodeName": "somewhere", "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]});
        make(server, pods, &json!({"metadata": {"name": format!("p{i}")}, "spec": spec}));
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}}).to_string();
        let path = format!("{pods}/p{i}");
        // What validation refuses cannot be tried further.
        send_as(server, "application/merge-patch+json", "PATCH", &format!("{path}/status"), &status);
        let proxied = server.as_admin("GET", &format!("{pods}/http:p{i}:{}/proxy/", inside.port), "");
        assert!(proxied.status >= 400 && !proxied.body.contains(HIDDEN), "{address}: {}", proxied.body);

        make(server, "/api/v1/nodes", &json!({"metadata": {"name": format!("n{i}")}}));
        let kind = if address == "localhost" { "Hostname" } else { "InternalIP" };
        let status = json!({"status": {"addresses": [{"type": kind, "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": inside.port}}}});
        let path = format!("/api/v1/nodes/n{i}");
        send_as(server, "application/merge-patch+json", "PATCH", &format!("{path}/status"), &status.to_string());
        for id in [format!("http:n{i}:{}", inside.port), format!("n{i}:{}", inside.port), format!("n{i}")] {
            let proxied = server.as_admin("GET", &format!("/api/v1/nodes/{id}/proxy/"), "");
            assert!(proxied.status >= 400 && !proxied.body.contains(HIDDEN), "{address} {id}: {}", proxied.body);
        }
        assert_eq!(asked(), 0, "{address} was asked");
    }
}

/// Requests whose end two readers may see at different places: whatever is behind the first is asked by nobody.
fn bytes_behind_a_request_are_nobody_s(server: &Server) {
    let hidden = json!({"metadata": {"name": "smuggled"}, "data": {"k": HIDDEN}});
    make(server, CONFIG_MAPS, &hidden);
    let behind = format!("GET {CONFIG_MAPS}/smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let length = behind.len();
    let framings = [
        "content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("content-length: 0\r\ncontent-length: {length}\r\n\r\n"),
        "content-length: 0, 0\r\n\r\n".to_owned(),
        "content-length: +0\r\n\r\n".to_owned(),
        "content-length: 0x0\r\n\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n".to_owned(),
        "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n".to_owned(),
        "transfer-encoding : chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "transfer-encoding:\u{b}chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "transfer-encoding: chunked\r\n\r\n0;\n\r\n\r\n".to_owned(),
        "transfer-encoding: chunked\r\n\r\nffffffffffffffff0\r\n\r\n".to_owned(),
        "x: y\n\n".to_owned(),
        "x: y\r\n z\r\n\r\n".to_owned(),
        "x: y\0\r\n\r\n".to_owned(),
    ];
    // Side by side: where the server does not close, each waits its time.
    let (_, authorization) = bearer(super::TOKEN);
    let try_one = |framing: &str| {
        let text =
            format!("GET /version HTTP/1.1\r\nhost: localhost\r\nauthorization: {authorization}\r\n{framing}{behind}");
        let heard = raw::exchange(server.address(), text.as_bytes());
        assert!(!heard.contains(HIDDEN), "{framing:?}: {heard}");
    };
    std::thread::scope(|scope| {
        for framing in &framings {
            scope.spawn(|| try_one(framing));
        }
    });
    assert_eq!(server.as_admin("GET", "/version", "").status, 200);
}
