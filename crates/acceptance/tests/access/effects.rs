//! Plugins that are on by default: each does something that does not happen without it.

use super::plugins::{make, merged, pod, send};
use crate::support::Server;
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/default";

/// A plugin, and whether it acts.
type Check = (&'static str, fn(&Server) -> bool);

const CHECKS: &[Check] = &[
    ("NamespaceLifecycle", |server| {
        let path = "/api/v1/namespaces/nowhere/configmaps";
        send(server, None, "POST", path, &json!({"metadata": {"name": "m"}})).0 == 404
    }),
    ("LimitRanger", |server| {
        made(server, "ranged", json!({}))["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
    }),
    ("ServiceAccount", |server| made(server, "default", json!({}))["spec"]["serviceAccountName"] == "default"),
    ("TaintNodesByCondition", |server| {
        let node = json!({"metadata": {"name": "fresh"}});
        let (_, node) = send(server, None, "POST", "/api/v1/nodes?dryRun=All", &node);
        node["spec"]["taints"][0]["key"] == "node.kubernetes.io/not-ready"
    }),
    ("PodSecurity", |server| try_pod(server, "restricted", json!({})).0 == 403),
    ("Priority", |server| {
        made(server, "default", json!({"spec": {"priorityClassName": "high"}}))["spec"]["priority"] == 5
    }),
    ("DefaultTolerationSeconds", |server| {
        made(server, "default", json!({}))["spec"]["tolerations"].as_array().is_some_and(|all| all.len() == 2)
    }),
    ("DefaultStorageClass", |server| claim(server)["spec"]["storageClassName"] == "usual"),
    ("StorageObjectInUseProtection", |server| {
        claim(server)["metadata"]["finalizers"] == json!(["kubernetes.io/pvc-protection"])
    }),
    ("PersistentVolumeClaimResize", |server| {
        let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let path = format!("{NAMESPACE}/persistentvolumeclaims/bound?dryRun=All");
        send(server, None, "PATCH", &path, &larger).0 == 403
    }),
    ("RuntimeClass", |server| {
        made(server, "default", json!({"spec": {"runtimeClassName": "heavy"}}))["spec"]["overhead"]["cpu"] == "1"
    }),
    ("CertificateSubjectRestriction", |server| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let body = json!({"metadata": {"name": "c"}, "spec": {
            "request": kubelith_codec::base64::encode(request.as_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}});
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All";
        send(server, None, "POST", path, &body).0 == 403
    }),
    ("DefaultIngressClass", |server| {
        let ingress = json!({"metadata": {"name": "i"}, "spec": {
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
        let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All";
        send(server, None, "POST", path, &ingress).1["spec"]["ingressClassName"] == "usual"
    }),
    ("PodTopologyLabels", |server| {
        let made = made(server, "default", json!({"spec": {"nodeName": "zoned"}}));
        made["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z"
    }),
    ("ResourceQuota", |server| try_pod(server, "full", json!({})).0 == 403),
];

fn try_pod(server: &Server, namespace: &str, more: Value) -> (u16, Value) {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let mut plain = pod("p", "");
    plain["spec"]["nodeName"] = Value::Null;
    send(server, None, "POST", &path, &merged(plain, &more))
}

/// A pod that must be let in.
fn made(server: &Server, namespace: &str, more: Value) -> Value {
    let (code, made) = try_pod(server, namespace, more);
    assert_eq!(code, 201, "{made}");
    made
}

fn volume_claim(name: &str) -> Value {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    json!({"metadata": {"name": name}, "spec": spec})
}

fn claim(server: &Server) -> Value {
    let path = format!("{NAMESPACE}/persistentvolumeclaims?dryRun=All");
    send(server, None, "POST", &path, &volume_claim("c")).1
}

fn prepare(server: &Server) {
    server.wait_for("namespaces", || server.get(NAMESPACE).is_ok_and(|r| r.status == 200));
    let enforce = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    for (name, labels) in [("ranged", json!({})), ("full", json!({})), ("restricted", enforce)] {
        make(server, "/api/v1/namespaces", &json!({"metadata": {"name": name, "labels": labels}}));
    }
    for namespace in ["default", "ranged", "full", "restricted"] {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let (code, _) = send(server, None, "POST", &path, &json!({"metadata": {"name": "default"}}));
        assert!(code == 201 || code == 409);
    }
    let limits = json!({"limits": [{"type": "Container", "default": {"cpu": "1"}}]});
    make(server, "/api/v1/namespaces/ranged/limitranges", &json!({"metadata": {"name": "l"}, "spec": limits}));
    let quotas = "/api/v1/namespaces/full/resourcequotas";
    let mut quota = make(server, quotas, &json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}));
    quota["status"] = json!({"hard": {"pods": "0"}, "used": {"pods": "0"}});
    assert_eq!(send(server, None, "PUT", &format!("{quotas}/q/status"), &quota).0, 200);
    let default = |key: &str| json!({"name": "usual", "annotations": {key: "true"}});
    let class = default("storageclass.kubernetes.io/is-default-class");
    make(server, "/apis/storage.k8s.io/v1/storageclasses", &json!({"metadata": class, "provisioner": "x"}));
    let class = default("ingressclass.kubernetes.io/is-default-class");
    let spec = json!({"controller": "example.com/c"});
    make(server, "/apis/networking.k8s.io/v1/ingressclasses", &json!({"metadata": class, "spec": spec}));
    let high = json!({"metadata": {"name": "high"}, "value": 5});
    make(server, "/apis/scheduling.k8s.io/v1/priorityclasses", &high);
    let heavy = json!({"metadata": {"name": "heavy"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1"}}});
    make(server, "/apis/node.k8s.io/v1/runtimeclasses", &heavy);
    let zone = json!({"name": "zoned", "labels": {"topology.kubernetes.io/zone": "z"}});
    make(server, "/api/v1/nodes", &json!({"metadata": zone}));
    let mut fixed = volume_claim("bound");
    fixed["spec"]["storageClassName"] = "usual".into();
    let claims = format!("{NAMESPACE}/persistentvolumeclaims");
    make(server, &claims, &fixed);
    let bound = json!({"status": {"phase": "Bound"}});
    let (code, answer) = send(server, None, "PATCH", &format!("{claims}/bound/status"), &bound);
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn each_plugin_makes_a_difference() {
    let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    let off = format!("--disable-admission-plugins={}", names.join(","));
    for (flags, acts) in [(vec![], true), (vec![off.as_str()], false)] {
        let mut flags = flags;
        flags.push("--authorization-mode=AlwaysAllow");
        let server = Server::start(&flags);
        prepare(&server);
        for (name, check) in CHECKS {
            assert_eq!(check(&server), acts, "{name}");
        }
    }
}
