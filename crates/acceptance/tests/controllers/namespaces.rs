//! Namespaces that are deleted go.

use super::api::{Api, condition, config_map};
use crate::support::Server;
use serde_json::json;

const ON: &str = "--controllers=namespace-controller";

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let server = Server::start(&[ON]);
    let mut api = Api::of(&server).await;
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let base = "/api/v1/namespaces/a";
    for i in 0..20 {
        api.create(&format!("{base}/configmaps"), config_map(&format!("c{i}"), &[])).await;
        api.create(&format!("{base}/secrets"), json!({"metadata": {"name": format!("s{i}")}})).await;
    }
    let claim = json!({"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("widgets")).await;
    let widgets = "/apis/example.com/v1/namespaces/a/widgets";
    api.until(&server, widgets, |list| list.is_some()).await;
    api.create(widgets, json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})).await;
    api.delete(base, "").await;
    api.gone(&server, base).await;
    assert_eq!(api.names("/apis/example.com/v1/widgets").await, [""; 0]);
    assert_eq!(api.names("/api/v1/secrets").await, [""; 0]);
    // Another of the same name is empty.
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    assert_eq!(api.names(&format!("{base}/configmaps")).await, [""; 0]);
    // A finalizer that nobody removes here: the namespace says what it waits for.
    api.create(&format!("{base}/persistentvolumeclaims"), claim).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    api.create(&format!("{base}/configmaps"), held).await;
    api.delete(base, "").await;
    let says = |reason: &'static str| {
        move |n: Option<&serde_json::Value>| {
            n.is_some_and(|n| condition(n, "NamespaceContentRemaining")["reason"] == reason)
        }
    };
    let namespace = api.until(&server, base, says("SomeResourcesRemain")).await.unwrap();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(
        condition(&namespace, "NamespaceContentRemaining")["message"],
        "Some resources are remaining: configmaps. has 1 resource instances, persistentvolumeclaims. has 1 resource \
         instances"
    );
    assert_eq!(
        condition(&namespace, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances, \
         kubernetes.io/pvc-protection in 1 resource instances"
    );
    for (kind, reason) in [
        ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions"),
        ("NamespaceDeletionContentFailure", "ContentDeleted"),
    ] {
        let found = condition(&namespace, kind);
        assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!(reason)), "{kind}");
    }
    let manager = |m: &serde_json::Value| m["manager"] == "kube-controller-manager" && m["subresource"] == "status";
    assert!(namespace["metadata"]["managedFields"].as_array().unwrap().iter().any(manager), "{namespace:#}");
    for path in ["configmaps/held", "persistentvolumeclaims/claim"] {
        api.change(&format!("{base}/{path}"), |o| o["metadata"]["finalizers"] = json!([])).await;
    }
    api.gone(&server, base).await;
}

#[tokio::test]
async fn pods_go_first_and_other_finalizers_stay() {
    let server = Server::start(&[ON]);
    let mut api = Api::of(&server).await;
    let namespace = json!({"metadata": {"name": "p"}, "spec": {"finalizers": ["kubernetes", "example.com/last"]}});
    api.create("/api/v1/namespaces", namespace).await;
    let base = "/api/v1/namespaces/p";
    api.create(&format!("{base}/serviceaccounts"), json!({"metadata": {"name": "default"}})).await;
    let pod = json!({"metadata": {"name": "pod", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.create(&format!("{base}/pods"), pod).await;
    api.create(&format!("{base}/configmaps"), config_map("c", &[])).await;
    api.delete(base, "").await;
    // Everything else waits for pods; what remains is not counted before everything was tried.
    let told = |n: Option<&serde_json::Value>| n.is_some_and(|n| !condition(n, "NamespaceContentRemaining").is_null());
    let namespace = api.until(&server, base, told).await.unwrap();
    assert_eq!(condition(&namespace, "NamespaceContentRemaining")["reason"], "ContentRemoved");
    assert!(api.get(&format!("{base}/configmaps/c")).await.is_some());
    api.change(&format!("{base}/pods/pod"), |pod| pod["metadata"]["finalizers"] = json!([])).await;
    api.gone(&server, &format!("{base}/configmaps/c")).await;
    let only =
        |n: Option<&serde_json::Value>| n.is_some_and(|n| n["spec"]["finalizers"] == json!(["example.com/last"]));
    api.until(&server, base, only).await;
    let mut last = api.get(base).await.unwrap();
    last["spec"]["finalizers"] = json!([]);
    api.send("PUT", &format!("{base}/finalize"), Some(last)).await;
    api.gone(&server, base).await;
}

/// What is being deleted when the server stops is deleted when it is back; no lease keeps it waiting.
#[tokio::test]
async fn a_restart_goes_on() {
    let flags = ["--storage-backend=embedded", "--controllers=*"];
    let mut server = Server::start(&["--storage-backend=embedded", "--controllers=-*"]);
    let mut api = Api::of(&server).await;
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "r"}})).await;
    api.create("/api/v1/namespaces/r/configmaps", config_map("c", &[])).await;
    api.delete("/api/v1/namespaces/r", "").await;
    for _ in 0..2 {
        server.signal("KILL");
        server.restart(&flags);
        let mut api = Api::of(&server).await;
        api.gone(&server, "/api/v1/namespaces/r").await;
        api.create("/api/v1/namespaces", json!({"metadata": {"name": "r"}})).await;
        api.delete("/api/v1/namespaces/r", "").await;
    }
}

pub fn definition(plural: &str) -> serde_json::Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..plural.len() - 1]);
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}
