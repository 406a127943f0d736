//! Admission webhooks of the real program: what they may do, what becomes of requests when they misbehave, and from when on a
//! configuration counts. The recorded exchanges cover contents and wording.

mod manifests;
mod misbehaving;
mod policies;
mod wild;

use crate::support::{LIMIT, Server};
use kubelith_conformance::webhook_server;
use serde_json::{Value, json};
use std::time::Instant;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct World {
    server: Server,
    port: u16,
}

impl World {
    fn start(flags: &[&str]) -> World {
        World { server: Server::start(flags), port: webhook_server::start_anywhere().unwrap() }
    }

    /// A webhook for config maps that behaves as `path` says.
    fn hook(&self, name: &str, path: &str, more: Value) -> Value {
        let mut hook = json!({
            "name": format!("{name}.example.com"),
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/{path}", self.port),
                "caBundle": kubelith_codec::base64::encode(webhook_server::AUTHORITY),
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "objectSelector": {"matchLabels": {"hooked": "yes"}},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            hook[key] = value.clone();
        }
        hook
    }

    fn configure(&self, plural: &str, name: &str, hooks: Value) {
        let body = json!({"metadata": {"name": name}, "webhooks": hooks});
        let made = self.server.post(&format!("{CONFIGURATIONS}/{plural}"), &body.to_string()).unwrap();
        assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    }

    /// Tries to create a config map, and answers the code and the body.
    fn create(&self, name: &str) -> (u16, Value) {
        let body = json!({"metadata": {"name": name, "labels": {"hooked": "yes"}}});
        let answer = self.server.post(&format!("{CONFIG_MAPS}?dryRun=All"), &body.to_string()).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    fn delete(&self, plural: &str, name: &str) {
        let gone = self.server.delete(&format!("{CONFIGURATIONS}/{plural}/{name}")).unwrap();
        assert_eq!(gone.status, 200);
    }
}

#[test]
fn a_configuration_counts_from_the_answer_on() {
    let world = World::start(&[]);
    for round in 0..10 {
        let name = format!("c-{round}");
        world.configure("validatingwebhookconfigurations", &name, json!([world.hook("deny", "deny", json!({}))]));
        assert_eq!(world.create("a").0, 403, "round {round}");
        world.delete("validatingwebhookconfigurations", &name);
        assert_eq!(world.create("a").0, 201, "round {round}");
    }
}

#[test]
fn webhooks_are_asked_in_order_and_again_if_needed() {
    let world = World::start(&[]);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    world.configure("mutatingwebhookconfigurations", "b", json!([world.hook("late", "mutate/key=late", json!({}))]));
    world.configure(
        "mutatingwebhookconfigurations",
        "a",
        json!([
            world.hook("once", "append/key=once/value=x", json!({})),
            world.hook("again", "append/key=again/value=x", again),
        ]),
    );
    let (code, made) = world.create("a");
    assert_eq!(code, 201, "{made}");
    let labels = &made["metadata"]["labels"];
    assert_eq!((&labels["once"], &labels["again"], &labels["late"]), (&json!("x"), &json!("xx"), &json!("yes")));
}

#[test]
fn whoever_misbehaves_is_told_of_in_bounded_time() {
    let world = World::start(&[]);
    let port = world.port;
    let url = |path: &str, seconds: u64| format!("Post \"https://127.0.0.1:{port}/{path}?timeout={seconds}s\"");
    let cases = [
        ("hang", json!({"timeoutSeconds": 1}), format!("failed to call webhook: {}: context deadline exceeded", url("hang", 1))),
        ("close", json!({}), format!("failed to call webhook: {}: EOF", url("close", 10))),
        (
            "empty",
            json!({}),
            "failed to call webhook: 0-length response with status code: 200 and content type: application/json".into(),
        ),
        (
            "redirect",
            json!({}),
            "failed to call webhook: the server could not find the requested resource".into(),
        ),
        (
            "allow",
            json!({"clientConfig": {"url": "https://127.0.0.1:1/x"}}),
            "failed to call webhook: Post \"https://127.0.0.1:1/x?timeout=10s\": dial tcp 127.0.0.1:1: connect: \
             connection refused"
                .into(),
        ),
        (
            "allow",
            json!({"clientConfig": {"url": format!("https://127.0.0.1:{port}/allow")}}),
            format!(
                "failed to call webhook: {}: tls: failed to verify certificate: x509: certificate signed by unknown \
                 authority",
                url("allow", 10)
            ),
        ),
        (
            "allow",
            json!({"clientConfig": {"service": {"namespace": "default", "name": "nobody", "path": "/p"}}}),
            "failed to call webhook: Post \"https://nobody.default.svc:443/p?timeout=10s\": service \"nobody\" not found"
                .into(),
        ),
    ];
    for (i, (path, more, why)) in cases.into_iter().enumerate() {
        let (closed, open) = (format!("closed-{i}"), format!("open-{i}"));
        world.configure("validatingwebhookconfigurations", &closed, json!([world.hook(&closed, path, more.clone())]));
        let began = Instant::now();
        let (code, answer) = world.create("a");
        assert_eq!(code, 500, "{answer}");
        let want = format!("Internal error occurred: failed calling webhook \"{closed}.example.com\": {why}");
        assert_eq!(answer["message"], want);
        assert!(began.elapsed() < LIMIT);
        world.delete("validatingwebhookconfigurations", &closed);
        let mut ignoring = more;
        ignoring["failurePolicy"] = "Ignore".into();
        world.configure("mutatingwebhookconfigurations", &open, json!([world.hook(&open, path, ignoring)]));
        assert_eq!(world.create("a").0, 201);
        world.delete("mutatingwebhookconfigurations", &open);
    }
    let metrics = world.server.get("/metrics").unwrap();
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    for line in [
        "apiserver_admission_webhook_fail_open_count{name=\"open-1.example.com\",type=\"admit\"} 1",
        "apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",name=\"closed-1.example.com\",\
         operation=\"CREATE\",rejection_code=\"503\",type=\"validating\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[test]
fn credentials_come_from_the_kubeconfig_file() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, "users:\n- name: \"*\"\n  user: {token: secret}\n").unwrap();
    let config = folder.path().join("admission.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: \
         ValidatingAdmissionWebhook\n  configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: \
         WebhookAdmissionConfiguration\n    kubeConfigFile: {}\n",
        kubeconfig.display()
    );
    std::fs::write(&config, text).unwrap();
    let world = World::start(&[&format!("--admission-control-config-file={}", config.display())]);
    world.configure("validatingwebhookconfigurations", "c", json!([world.hook("who", "authorization", json!({}))]));
    let (_, answer) = world.create("a");
    assert_eq!(answer["message"], "admission webhook \"who.example.com\" denied the request: Bearer secret");
}

/// The client's time is up before the webhook's: the server says so, whatever the webhook's failure means, and stores nothing.
#[test]
fn a_webhook_that_outlasts_a_request_ends_with_it() {
    let world = World::start(&[]);
    let cases =
        ["validating", "mutating"].into_iter().flat_map(|power| ["Fail", "Ignore"].map(|policy| (power, policy)));
    for (i, (power, policy)) in cases.enumerate() {
        let (plural, name) = (format!("{power}webhookconfigurations"), format!("late-{i}"));
        let more = json!({"timeoutSeconds": 20, "failurePolicy": policy});
        world.configure(&plural, &name, json!([world.hook(&name, "hang", more)]));
        let body = json!({"metadata": {"name": name, "labels": {"hooked": "yes"}}}).to_string();
        let answer = world.server.post(&format!("{CONFIG_MAPS}?timeout=300ms"), &body).unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == 504 && text.contains("within the allotted timeout"), "{power} {policy}: {text}");
        world.delete(&plural, &name);
    }
    let lines = [
        "apiserver_request_post_timeout_total{source=\"rest-handler\",status=\"error\"} 4\n",
        "apiserver_request_post_timeout_total{source=\"timeout-handler\",status=\"ok\"} 4\n",
    ];
    world.server.wait_for("what became of them", || {
        let metrics = world.server.get("/metrics").unwrap();
        let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
        lines.iter().all(|line| metrics.contains(line))
    });
    let left = world.server.get(CONFIG_MAPS).unwrap();
    assert!(!String::from_utf8_lossy(&left.body).contains("\"late-"));
}
