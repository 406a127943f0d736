//! Flags whose effect shows in what the API does.

use crate::support::Server;
use kubelith_meta::time::wall_time;
use serde_json::{Value, json};

fn get(server: &Server, path: &str) -> (u16, Value) {
    let answer = server.get(path).unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn post(server: &Server, path: &str, object: &Value) -> (u16, Value) {
    let answer = server.post(path, &object.to_string()).unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn pod(privileged: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i", "securityContext": {"privileged": privileged}}]
        }
    })
}

#[test]
fn plugins_are_configured_by_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("admission.yaml");
    let inner = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce: \
                 baseline}\nexemptions: {namespaces: [free]}\n";
    std::fs::write(dir.path().join("pods.yaml"), inner).unwrap();
    let outer = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- {name: PodSecurity, \
                 path: pods.yaml}\n";
    std::fs::write(&file, outer).unwrap();
    let server = Server::start(&[
        &format!("--admission-control-config-file={}", file.display()),
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged",
    ]);
    for namespace in ["free", "strict"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        assert_eq!(post(&server, "/api/v1/namespaces", &object).0, 201);
    }
    for (namespace, privileged, code) in [("strict", true, 403), ("strict", false, 201), ("free", true, 201)] {
        let (got, answer) = post(&server, &format!("/api/v1/namespaces/{namespace}/pods"), &pod(privileged));
        assert_eq!(got, code, "{namespace}: {answer}");
        if code == 403 {
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("violates PodSecurity \"baseline:latest\": privileged"), "{message}");
        }
    }
    let metrics = String::from_utf8(server.get("/metrics").unwrap().body).unwrap();
    for line in [
        r#"pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 1"#,
        r#"apiserver_admission_controller_admission_duration_seconds_count{name="PodSecurity",operation="CREATE",rejected="true",type="validate"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[test]
fn clients_are_told_the_host_that_is_named() {
    let server = Server::start(&["--external-hostname=kubernetes.example"]);
    let (_, versions) = get(&server, "/api");
    let address = versions["serverAddressByClientCIDRs"][0]["serverAddress"].as_str().unwrap_or_default();
    assert!(address.starts_with("kubernetes.example:"), "{versions}");
}

#[test]
fn an_emulated_release_has_its_own_apis_and_gates() {
    let server = Server::start(&["--emulated-version=1.33", "--runtime-config=api/beta=true"]);
    for (path, code) in [
        ("/apis/resource.k8s.io/v1/deviceclasses", 404),
        ("/apis/resource.k8s.io/v1beta1/deviceclasses", 200),
        ("/apis/storage.k8s.io/v1/volumeattributesclasses", 404),
        ("/apis/storage.k8s.io/v1/storageclasses", 200),
        ("/flagz", 404),
    ] {
        assert_eq!(get(&server, path).0, code, "{path}");
    }
    let (_, version) = get(&server, "/version");
    assert_eq!((version["emulationMinor"].as_str(), version["minor"].as_str()), (Some("33"), Some("36")));
    let metrics = String::from_utf8(server.get("/metrics").unwrap().body).unwrap();
    assert!(metrics.contains(r#"kubernetes_feature_enabled{name="APIServerTracing",stage="BETA"} 1"#));
    assert!(!metrics.contains(r#"kubernetes_feature_enabled{name="AtomicFIFO""#), "it did not exist");
}

#[test]
fn leaders_are_elected_and_storage_versions_kept_with_their_gates() {
    let server = Server::start(&[
        "--feature-gates=CoordinatedLeaderElection=true,StorageVersionAPI=true",
        "--runtime-config=coordination.k8s.io/v1beta1=true,internal.apiserver.k8s.io/v1alpha1=true",
    ]);
    let (code, version) = get(&server, "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/apps.deployments");
    assert_eq!((code, version["status"]["commonEncodingVersion"].as_str()), (200, Some("apps/v1")), "{version}");
    // Its lease was there before its versions: nobody takes them for those of a server that is gone.
    let server_id = version["status"]["storageVersions"][0]["apiServerID"].as_str().unwrap();
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{server_id}");
    let (code, lease) = get(&server, &lease);
    assert_eq!(code, 200, "{lease}");
    let made = |object: &Value| object["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
    assert!(made(&lease) <= made(&version));
    let now = kubelith_meta::time::Time::from(wall_time()).rfc3339_micro();
    for (name, emulated) in [("newer", "1.36.0"), ("older", "1.35.0")] {
        let candidate = json!({
            "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": {"name": name},
            "spec": {
                "leaseName": "component", "binaryVersion": "1.36.0", "emulationVersion": emulated,
                "strategy": "OldestEmulationVersion", "renewTime": now
            }
        });
        let path = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";
        let (code, answer) = post(&server, path, &candidate);
        assert_eq!(code, 201, "{answer}");
    }
    server.wait_for("a leader", || {
        let (_, lease) = get(&server, "/apis/coordination.k8s.io/v1/namespaces/default/leases/component");
        let (holder, preferred) = (&lease["spec"]["holderIdentity"], &lease["spec"]["preferredHolder"]);
        // Whoever came first may have it already, and is asked to step back.
        holder == "older" || preferred == "older"
    });
}

/// A moment after a server begins to elect, and not only half an hour later.
#[test]
fn candidates_that_are_gone_are_collected_by_a_new_leader() {
    const FLAGS: [&str; 3] = [
        "--storage-backend=embedded",
        "--feature-gates=CoordinatedLeaderElection=true",
        "--runtime-config=coordination.k8s.io/v1beta1=true",
    ];
    let mut server = Server::start(&FLAGS);
    let folder = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";
    let candidate = json!({
        "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": {"name": "gone"},
        "spec": {
            "leaseName": "component", "binaryVersion": "1.36.0", "emulationVersion": "1.36.0",
            "strategy": "OldestEmulationVersion", "renewTime": "2020-01-01T00:00:00.000000Z"
        }
    });
    let (code, answer) = post(&server, folder, &candidate);
    assert_eq!(code, 201, "{answer}");
    server.signal("TERM");
    server.restart(&FLAGS);
    server.wait_for("collected", || get(&server, &format!("{folder}/gone")).0 == 404);
}
