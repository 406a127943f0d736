//! Webhooks that the test answers.

use kubelith_testing::{Controllers, Decision, Kubelith, Webhook};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[tokio::test]
async fn requests_are_refused_and_changed_by_the_test() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let refuse = Webhook::validating("refuse.example.com").on(&["CREATE"], "v1", &["configmaps"]);
    let label = Webhook::mutating("label.example.com")
        .on(&["CREATE", "UPDATE"], "v1", &["configmaps"])
        .with("objectSelector", json!({"matchExpressions": [{"key": "done", "operator": "DoesNotExist"}]}));
    let server = Kubelith::builder()
        .controllers(Controllers::Off)
        .webhook(refuse, |review| match review.request["name"].as_str() {
            Some("bad") => Decision::deny("no bad maps").code(422).warning("think of another name"),
            _ => Decision::allow(),
        })
        .webhook(label, move |review| {
            count.fetch_add(1, Ordering::Relaxed);
            assert_eq!(review.request["userInfo"]["username"], "admin");
            Decision::patch(&json!([{"op": "add", "path": "/metadata/labels", "value": {"done": "yes"}}]))
        })
        .start()
        .await
        .unwrap();
    let made = server.post(MAPS, &map("good")).await.unwrap();
    assert_eq!((made.code, &made.body["metadata"]["labels"]), (201, &json!({"done": "yes"})), "{}", made.text);
    let refused = server.post(MAPS, &map("bad")).await.unwrap();
    let message = "admission webhook \"refuse.example.com\" denied the request: no bad maps";
    assert_eq!((refused.code, refused.body["message"].as_str()), (422, Some(message)));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    // Forks have them, too, also when what they were forked from is gone.
    let fork = server.fork().await.unwrap();
    drop(server);
    assert_eq!(fork.post(MAPS, &map("bad")).await.unwrap().code, 422);
    assert_eq!(fork.post(MAPS, &map("fine")).await.unwrap().code, 201);
}

/// As an operator ships them: for a service, which is not there.
#[tokio::test]
async fn configurations_come_from_manifests() {
    const MANIFEST: &str = "
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
webhooks:
- name: maps.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-maps}}
  rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
";
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let server = Kubelith::builder()
        .controllers(Controllers::Off)
        .webhook(Webhook::manifest(MANIFEST), move |review| {
            seen.lock().unwrap().push(review.path.clone());
            Decision::allow()
        })
        .start()
        .await
        .unwrap();
    assert_eq!(server.post(MAPS, &map("a")).await.unwrap().code, 201);
    assert_eq!(*paths.lock().unwrap(), ["validate-maps"]);
    let none = Kubelith::builder().webhook(Webhook::manifest("kind: Service"), |_| Decision::allow()).start().await;
    assert_eq!(none.err().unwrap().to_string(), "no configuration of webhooks was found");
}
