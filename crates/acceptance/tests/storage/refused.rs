//! A webhook that refuses everything, the server's own writes among it, does not keep a server from starting again.

use super::support::Site;
use serde_json::json;

#[test]
fn a_server_starts_though_nothing_may_be_written() {
    let site = Site::new(&[]);
    let server = site.start();
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]});
    let service = json!({"namespace": "default", "name": "nobody"});
    let webhook = json!({
        "name": "broken.example.com", "clientConfig": {"service": service}, "rules": [rule], "failurePolicy": "Fail",
        "sideEffects": "None", "admissionReviewVersions": ["v1"]
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "broken"}, "webhooks": [webhook]
    });
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.client().create(configurations, &configuration);
    drop(server);
    let server = site.start();
    let mut api = server.client();
    assert_eq!(api.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical").0, 200);
    assert_eq!(api.get(&format!("{configurations}/broken")).0, 200);
}
