//! Webhooks and policies from files: in force from the first request on, replaced while the server runs, and out of reach of
//! the API.

use super::policies::{create, policy};
use super::{CONFIGURATIONS, World};
use crate::support::Server;
use serde_json::{Value, json};
use std::path::Path;

const GATE: &str = "--feature-gates=ManifestBasedAdmissionControlConfig=true";
const POLICY: &str = "ValidatingAdmissionPolicy";

/// The flag for a file that gives `plugin` a folder of manifests.
fn configuration(folder: &Path, plugin: &str) -> String {
    let kind = match plugin.ends_with("Webhook") {
        true => "WebhookAdmissionConfiguration".to_owned(),
        false => format!("{plugin}Configuration"),
    };
    let manifests = folder.join("manifests");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: {plugin}\n  \
         configuration:\n    apiVersion: apiserver.config.k8s.io/v1\n    kind: {kind}\n    staticManifestsDir: {}\n",
        manifests.display()
    );
    let _ = std::fs::create_dir(&manifests);
    std::fs::write(folder.join("admission.yaml"), text).unwrap();
    format!("--admission-control-config-file={}", folder.join("admission.yaml").display())
}

fn put(folder: &Path, name: &str, documents: &[Value]) {
    let texts: Vec<String> = documents.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("manifests").join(name), texts.join("\n---\n")).unwrap();
}

fn typed(kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = "x.static.k8s.io".into();
    object
}

fn denying(resources: &[&str], message: &str) -> [Value; 2] {
    let validation = json!({"validations": [{"expression": "false", "message": message}]});
    [
        typed(POLICY, policy(resources, validation)),
        typed(
            "ValidatingAdmissionPolicyBinding",
            json!({"spec": {"policyName": "x.static.k8s.io", "validationActions": ["Deny"]}}),
        ),
    ]
}

#[test]
fn policies_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let flag = configuration(folder.path(), POLICY);
    put(folder.path(), "a.yaml", &denying(&["configmaps", "validatingadmissionpolicies"], "first"));
    let server = Server::start(&[GATE, &flag]);
    let denied = |message: &str| {
        format!(
            "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'x.static.k8s.io' with binding 'x.static.k8s.io' \
             denied request: {message}"
        )
    };
    assert_eq!(create(&server), (422, denied("first")));
    // They judge policies, too.
    let other = policy(&["secrets"], json!({"validations": [{"expression": "true"}]})).to_string();
    let path = format!("{CONFIGURATIONS}/validatingadmissionpolicies");
    assert_eq!(server.post(&path, &other).unwrap().status, 422);
    // Neither do they show, nor can anybody else have their names.
    assert_eq!(server.get(&format!("{path}/x.static.k8s.io")).unwrap().status, 404);
    put(folder.path(), "a.yaml", &denying(&["configmaps"], "second"));
    server.wait_for("replaced", || create(&server) == (422, denied("second")));
    let mut own = policy(&["secrets"], json!({"validations": [{"expression": "true"}]}));
    own["metadata"]["name"] = "y.static.k8s.io".into();
    let answer = server.post(&path, &own.to_string()).unwrap();
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    let reserved = "metadata.name: Invalid value: \"y.static.k8s.io\": names ending with \".static.k8s.io\" are reserved for \
                    static manifest-based configurations and cannot be managed via the API";
    assert!(answer["message"].as_str().is_some_and(|message| message.ends_with(reserved)), "{answer}");
    // What cannot be used changes nothing; what is gone is gone.
    std::fs::write(folder.path().join("manifests/b.yaml"), "no: kind\n").unwrap();
    let reloads = "apiserver_manifest_admission_config_controller_automatic_reloads_total{apiserver_id_hash=\"sha256:";
    let counted = |status: &str| {
        let metrics = server.get("/metrics").unwrap();
        let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
        let labels = format!("plugin=\"{POLICY}\",status=\"{status}\"}}");
        metrics.lines().any(|line| line.starts_with(reloads) && line.contains(&labels))
    };
    server.wait_for("counted", || counted("failure"));
    assert!(counted("success"));
    assert_eq!(create(&server), (422, denied("second")));
    for name in ["a.yaml", "b.yaml"] {
        std::fs::remove_file(folder.path().join("manifests").join(name)).unwrap();
    }
    server.wait_for("gone", || create(&server).0 == 201);
}

#[test]
fn webhooks_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let flag = configuration(folder.path(), "ValidatingAdmissionWebhook");
    let world = World::start(&[GATE, &flag]);
    assert_eq!(world.create("a").0, 201);
    let hooks = json!({"webhooks": [world.hook("static", "deny", json!({}))]});
    put(folder.path(), "hooks.json", &[typed("ValidatingWebhookConfiguration", hooks)]);
    world.server.wait_for("in force", || world.create("a").0 == 403);
}

#[test]
fn no_server_starts_with_manifests_that_are_wrong() {
    let service = json!({"service": {"namespace": "n", "name": "s"}});
    let hook = json!({
        "name": "a.b.c", "clientConfig": service, "admissionReviewVersions": ["v1"], "sideEffects": "None",
    });
    let [mut unnamed, binding] = denying(&["configmaps"], "x");
    unnamed["metadata"]["name"] = "plain".into();
    for (plugin, document, why) in [
        (POLICY, unnamed, "\"plain\" in file \"F\" must have a name ending with \".static.k8s.io\"".to_owned()),
        (POLICY, json!({"apiVersion": "v1", "kind": "Pod"}), {
            let scheme = "pkg/admission/plugin/policy/manifest/loader/validating_loader.go:35";
            format!("no kind \"Pod\" is registered for version \"v1\" in scheme \"{scheme}\"")
        }),
        (
            "ValidatingAdmissionWebhook",
            typed("ValidatingWebhookConfiguration", json!({"webhooks": [hook]})),
            "webhook \"a.b.c\" in \"x.static.k8s.io\" (file \"F\"): clientConfig.service is not supported for static \
             manifests; use clientConfig.url instead"
                .to_owned(),
        ),
        (
            "MutatingAdmissionWebhook",
            typed(POLICY, json!({})),
            "unsupported resource type *v1.ValidatingAdmissionPolicy".to_owned(),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let flag = configuration(folder.path(), plugin);
        put(folder.path(), "m.yaml", &[document]);
        let mut server = Server::launch(&[GATE, &flag], &[]);
        assert!(!server.ended().success());
        let (file, dir) = (folder.path().join("manifests/m.yaml"), folder.path().join("manifests"));
        let (file, dir) = (file.display().to_string(), dir.display().to_string());
        let word = if plugin == POLICY { "policy" } else { "webhook" };
        let want = format!(
            "failed to apply admission: failed to initialize admission plugin \"{plugin}\": failed to load static {word} \
             manifests from \"{dir}\": error loading {file}: {}",
            why.replace("\"F\"", &format!("\"{file}\""))
        );
        // The log quotes what it tells.
        let log = server.log().replace("\\\"", "\"");
        assert!(log.contains(&want), "{want}\n{log}");
    }
    let folder = tempfile::tempdir().unwrap();
    let flag = configuration(folder.path(), POLICY);
    put(folder.path(), "m.yaml", &[binding]);
    for (flags, why) in [
        (vec![GATE, &flag], "references policy \"x.static.k8s.io\" which does not exist in the manifest directory"),
        (
            vec![flag.as_str()],
            "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature \
             gate to be enabled",
        ),
    ] {
        let mut server = Server::launch(&flags, &[]);
        assert!(!server.ended().success());
        let log = server.log().replace("\\\"", "\"");
        assert!(log.contains(why), "{log}");
    }
}
