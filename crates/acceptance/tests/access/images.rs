//! ImagePolicyWebhook: another server says which images may run.

use super::plugins::{merged, pod, send};
use super::stub::{Reply, Stub};
use crate::support::Server;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

const PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";

/// Judges by the name of the first image.
fn judge(body: &str) -> Reply {
    let review: Value = serde_json::from_str(body).unwrap();
    let answer = |status: Value| {
        let kind = json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "status": status});
        Reply::Json(200, kind.to_string())
    };
    match review["spec"]["containers"][0]["image"].as_str() {
        Some("good") => answer(json!({"allowed": true, "auditAnnotations": {"seen": "yes"}})),
        Some("bad") => answer(json!({"allowed": false, "reason": "not this one"})),
        Some("broken") => Reply::Json(500, "oh".to_owned()),
        Some("closed") => Reply::Close,
        _ => answer(json!({})),
    }
}

fn server(stub: &Stub, dir: &std::path::Path, default_allow: bool) -> Server {
    let config = dir.join("admission.yaml");
    let kubeconfig = stub.kubeconfig(dir, "kubeconfig");
    let text = format!(
        "imagePolicy:\n  kubeConfigFile: {kubeconfig}\n  retryBackoff: 1\n  allowTTL: 60\n  denyTTL: 60\n  defaultAllow: \
         {default_allow}\n"
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&[
        "--enable-admission-plugins=ImagePolicyWebhook",
        "--disable-admission-plugins=ServiceAccount",
        &format!("--admission-control-config-file={}", config.display()),
    ]);
    server.wait_for("namespaces", || server.get("/api/v1/namespaces/default").is_ok_and(|r| r.status == 200));
    server
}

fn of(image: &str) -> Value {
    merged(pod("p", ""), &json!({"spec": {"containers": [{"name": "c", "image": image}]}}))
}

#[test]
fn another_server_judges_images() {
    let dir = tempfile::tempdir().unwrap();
    let stub = Stub::start(|_, body| judge(body));
    let closed = server(&stub, dir.path(), false);
    let url = format!("http://127.0.0.1:{}/hook?timeout=30s", stub.port);
    for (image, asked, why) in [
        ("good", 1, ""),
        ("good", 0, ""),
        ("bad", 1, "image policy webhook backend denied one or more images: not this one"),
        ("bad", 0, "image policy webhook backend denied one or more images: not this one"),
        ("other", 1, "one or more images rejected by webhook backend"),
        // What may help is tried five times, and nothing of it is kept.
        ("broken", 5, "an error on the server (\"unknown\") has prevented the request from succeeding"),
        ("broken", 5, "an error on the server (\"unknown\") has prevented the request from succeeding"),
        ("closed", 1, &format!("Post \"{url}\": EOF")),
    ] {
        let before = stub.asked.load(Ordering::SeqCst);
        let (code, answer) = send(&closed, None, "POST", PODS, &of(image));
        let message = answer["message"].as_str().unwrap_or_default();
        match why {
            "" => assert_eq!(code, 201, "{answer}"),
            why => assert_eq!((code, message), (403, format!("pods \"p\" is forbidden: {why}").as_str())),
        }
        assert_eq!(stub.asked.load(Ordering::SeqCst) - before, asked, "{image}");
    }
    // CVE-2023-2727: containers that are added to a pod later are judged, too.
    assert_eq!(send(&closed, None, "POST", "/api/v1/namespaces/default/pods", &of("good")).0, 201);
    let (_, mut added) = send(&closed, None, "GET", "/api/v1/namespaces/default/pods/p", &Value::Null);
    added["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "bad"}]);
    let path = "/api/v1/namespaces/default/pods/p/ephemeralcontainers";
    let (code, answer) = send(&closed, None, "PUT", path, &added);
    assert_eq!(code, 403, "{answer}");
    let annotated = json!({"metadata": {"annotations": {"x.image-policy.k8s.io/a": "b", "other": "c"}}});
    send(&closed, None, "POST", PODS, &merged(of("good"), &annotated));
    let sent: Value = serde_json::from_str(stub.bodies.lock().unwrap().last().unwrap()).unwrap();
    assert_eq!(
        sent["spec"],
        json!({"containers": [{"image": "good"}], "annotations": {"x.image-policy.k8s.io/a": "b"}, "namespace": "default"})
    );
}

#[test]
fn images_may_be_allowed_when_nobody_judges() {
    let dir = tempfile::tempdir().unwrap();
    let stub = Stub::start(|_, body| judge(body));
    let open = server(&stub, dir.path(), true);
    assert_eq!(send(&open, None, "POST", PODS, &of("closed")).0, 201);
    assert_eq!(send(&open, None, "POST", PODS, &of("bad")).0, 403);
}
