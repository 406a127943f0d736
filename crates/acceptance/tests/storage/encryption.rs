//! Encryption at rest: what is on disk, rotated keys, reloads, unreadable objects.

use super::support::{Api, Site, wait_until};
use kubelith_store::embedded::EmbeddedStore;
use kubelith_store::{EmbeddedOptions, Store};
use serde_json::{Value, json};
use std::path::Path;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const GATE: &str = "--feature-gates=AllowUnsafeMalformedObjectDeletion=true";

/// Providers in order: names of AES-GCM keys, or `identity`.
fn write_config(path: &Path, providers: &[&str]) {
    let provider = |name: &&str| match *name {
        "identity" => "{identity: {}}".to_owned(),
        // 16 bytes that follow from the name.
        name => format!("{{aesgcm: {{keys: [{{name: {name}, secret: MDEyMzQ1Njc4OTAxMjM0N{}==}}]}}}}", &name[..1]),
    };
    let providers = providers.iter().map(provider).collect::<Vec<_>>().join(", ");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets, \
         '*.example.com']\n  providers: [{providers}]\n"
    );
    std::fs::write(path, text).unwrap();
}

fn site(providers: &[&str], more: &[&str]) -> Site {
    let mut site = Site::new(more);
    let config = site.folder.path().join("encryption.yaml");
    write_config(&config, providers);
    site.flags.push(format!("--encryption-provider-config={}", config.display()));
    site
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": "tell-nobody"}})
}

/// What is stored under a key, while no server runs.
fn stored(site: &Site, key: &str) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EmbeddedStore::open(EmbeddedOptions::new(site.data().join("store"))).unwrap();
        let item = store.get(key.to_owned().into(), None).await.unwrap().item.expect("a stored value");
        store.close().await;
        item.value.to_vec()
    })
}

fn key_of(name: &str) -> String {
    format!("/registry/secrets/default/{name}")
}

/// Writes an object again without changing it.
fn rewrite(api: &mut Api, name: &str) -> (Value, Value) {
    let path = format!("{SECRETS}/{name}");
    let (code, object) = api.get(&path);
    assert_eq!(code, 200, "{object}");
    let (code, written) = api.send("PUT", &path, Some(&object));
    assert_eq!(code, 200, "{written}");
    (object, written)
}

#[test]
fn secrets_are_not_plain_on_disk_and_keys_rotate() {
    let site = site(&["A", "identity"], &[]);
    let server = site.start();
    server.client().create(SECRETS, &secret("s"));
    server.client().create("/api/v1/namespaces/default/configmaps", &super::support::config_map("c", "plain"));
    server.stop();
    let file = std::fs::read(site.data().join("store").join("store.redb")).unwrap();
    let holds = |text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds("tell-nobody"), "the secret is readable");
    assert!(holds("k8s:enc:aesgcm:v1:A:") && holds("plain"));

    // A new key first: what the old one wrote is readable, and the next write, even of the same, is by the new one.
    write_config(&site.folder.path().join("encryption.yaml"), &["Q", "A"]);
    let server = site.start();
    let mut api = server.client();
    let (before, after) = rewrite(&mut api, "s");
    let metrics = api.text("/metrics");
    for (way, prefix, status) in [
        ("to_storage", "k8s:enc:aesgcm:v1:", "OK"),
        ("to_storage", "Q:", "OK"),
        ("from_storage", "k8s:enc:aesgcm:v1:", "unknown-non-grpc"),
        ("from_storage", "A:", "OK"),
    ] {
        let series = format!(
            "apiserver_storage_transformation_operations_total{{resource=\"secrets\",status=\"{status}\",\
             transformation_type=\"{way}\",transformer_prefix=\"{prefix}\"}}"
        );
        assert!(metrics.contains(&series), "{series}");
    }
    assert!(
        metrics.contains("apiserver_storage_transformation_duration_seconds_count{transformation_type=\"to_storage\"")
    );
    assert_eq!(before["data"], after["data"]);
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "it was stale");
    let (before, after) = rewrite(&mut api, "s");
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "nothing is stale now");
    server.stop();
    assert!(stored(&site, &key_of("s")).starts_with(b"k8s:enc:aesgcm:v1:Q:"));
}

#[test]
fn a_changed_file_is_taken_over_while_the_server_runs() {
    let site = site(&["A"], &["--encryption-provider-config-automatic-reload"]);
    let server = site.start();
    let mut api = server.client();
    api.create(SECRETS, &secret("s"));
    let ready = api.text("/readyz?verbose");
    assert!(ready.contains("[+]kms-providers ok") && ready.contains("[+]etcd-readiness ok"), "{ready}");
    assert!(!api.text("/livez?verbose").contains("kms-providers"));

    let config = site.folder.path().join("encryption.yaml");
    let counted = |metrics: &str, status: &str| {
        let reloads = "apiserver_encryption_config_controller_automatic_reloads_total{apiserver_id_hash=\"sha256:";
        let end = format!("status=\"{status}\"}} 1");
        metrics.lines().any(|line| line.starts_with(reloads) && line.ends_with(&end))
    };
    std::fs::write(&config, "nonsense").unwrap();
    wait_until("a bad file is counted", || counted(&api.text("/metrics"), "failure"));
    write_config(&config, &["Q", "A"]);
    wait_until("a good file is counted", || counted(&api.text("/metrics"), "success"));
    rewrite(&mut api, "s");
    server.stop();
    assert!(stored(&site, &key_of("s")).starts_with(b"k8s:enc:aesgcm:v1:Q:"));
}

#[test]
fn what_nobody_can_decrypt_is_reported_and_can_be_deleted() {
    let site = site(&["A"], &[GATE]);
    let server = site.start();
    for name in ["a", "b"] {
        server.client().create(SECRETS, &secret(name));
    }
    server.stop();
    write_config(&site.folder.path().join("encryption.yaml"), &["Q"]);
    let server = site.start();
    let mut api = server.client();

    let why = "no matching key was found for the provided AES transformer";
    let corrupt = |key: &str| {
        format!(
            "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: data from the \
             storage is not transformable revision=0: {why}"
        )
    };
    let (code, status) = api.get(&format!("{SECRETS}/a"));
    let message = format!("Internal error occurred: {}", corrupt("/secrets/default/a"));
    assert_eq!((code, &status["reason"], &status["message"]), (500, &json!("InternalError"), &json!(message)));
    let (code, status) = api.get(SECRETS);
    assert_eq!((code, &status["reason"]), (500, &json!("StorageReadError")), "{status}");
    assert_eq!(status["message"], "failed to read one or more secrets from the storage");
    let cause = |name: &str| {
        let key = key_of(name);
        json!({"reason": "UnexpectedServerResponse", "message": corrupt(&key), "field": key})
    };
    assert_eq!(status["details"], json!({"name": "list", "kind": "secrets", "causes": [cause("a"), cause("b")]}));

    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "ignoreStoreReadErrorWithClusterBreakingPotential": true});
    let (code, status) = api.send("DELETE", &format!("{SECRETS}/a"), None);
    assert_eq!((code, &status["message"]), (500, &json!(message)), "{status}");
    let (code, status) = api.send("DELETE", &format!("{SECRETS}/a"), Some(&options));
    assert_eq!((code, &status["status"]), (200, &json!("Success")), "{status}");
    assert_eq!(status["details"], json!({"name": "a", "kind": "Secret"}));
    let (code, status) = api.send("DELETE", SECRETS, Some(&options));
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
    api.create(SECRETS, &secret("c"));
    let (code, status) = api.send("DELETE", &format!("{SECRETS}/c"), Some(&options));
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "a readable object: {status}");
    assert_eq!(api.get(&format!("{SECRETS}/a")).0, 404);
    server.stop();

    // Without the gate the option is not there, and the messages are shorter.
    let plain = site.without(GATE);
    let server = plain.start();
    let mut api = server.client();
    let (code, status) = api.get(&format!("{SECRETS}/b"));
    assert_eq!((code, &status["message"]), (500, &json!(format!("Internal error occurred: {why}"))));
    let (code, status) = api.get(SECRETS);
    let message = format!("Internal error occurred: unable to transform key \"{}\": {why}", key_of("b"));
    assert_eq!((code, &status["message"]), (500, &json!(message)));
    assert_eq!(api.send("DELETE", &format!("{SECRETS}/b"), Some(&options)).0, 500);
    assert_eq!(api.get("/api/v1/namespaces/default/configmaps").0, 200, "others are readable");
}
