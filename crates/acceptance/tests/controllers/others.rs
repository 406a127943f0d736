//! Accounts, certificates, roles, quotas, jobs and volumes.

use super::api::Api;
use crate::support::Server;
use serde_json::{Value, json};

fn is(path: &'static [&'static str], want: Value) -> impl Fn(Option<&Value>) -> bool {
    move |object| {
        let found = object.map(|o| path.iter().fold(o, |value, key| &value[*key]));
        found == Some(&want)
    }
}

#[tokio::test]
async fn namespaces_have_accounts_and_certificates() {
    let server = Server::start(&["--controllers=*"]);
    let mut api = Api::of(&server).await;
    api.create("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let there = |o: Option<&Value>| o.is_some();
    for namespace in ["default", "n"] {
        let base = format!("/api/v1/namespaces/{namespace}");
        let account = format!("{base}/serviceaccounts/default");
        let first = api.until(&server, &account, there).await.unwrap();
        api.delete(&account, "").await;
        let new = |o: Option<&Value>| o.is_some_and(|o| o["metadata"]["uid"] != first["metadata"]["uid"]);
        api.until(&server, &account, new).await;
        let map = format!("{base}/configmaps/kube-root-ca.crt");
        let published = api.until(&server, &map, there).await.unwrap();
        let pem = published["data"]["ca.crt"].as_str().unwrap().to_owned();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
        api.change(&map, |o| o["data"] = json!({"ca.crt": "wrong", "more": "x"})).await;
        api.until(&server, &map, is(&["data"], json!({"ca.crt": pem}))).await;
        api.delete(&map, "").await;
        api.until(&server, &map, there).await;
    }
    // Pods need nothing else to be made.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.create("/api/v1/namespaces/n/pods", pod).await;
    // With all controllers a namespace goes with its account, map and pod.
    api.delete("/api/v1/namespaces/n", "").await;
    api.gone(&server, "/api/v1/namespaces/n").await;
}

#[tokio::test]
async fn roles_are_made_of_others() {
    let server = Server::start(&["--controllers=clusterrole-aggregation-controller"]);
    let mut api = Api::of(&server).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let filled = |o: Option<&Value>| o.is_some_and(|o| o["rules"].as_array().is_some_and(|r| r.len() > 5));
    api.until(&server, &format!("{roles}/admin"), filled).await;
    let sum = json!({"metadata": {"name": "sum"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
    api.create(roles, sum).await;
    let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
    for (name, resource) in [("b", "pods"), ("a", "secrets"), ("c", "pods")] {
        let part = json!({"metadata": {"name": name, "labels": {"part": "yes"}}, "rules": [rule(resource)]});
        api.create(roles, part).await;
    }
    let want = json!([rule("secrets"), rule("pods")]);
    let made = api.until(&server, &format!("{roles}/sum"), is(&["rules"], want)).await.unwrap();
    let managers = made["metadata"]["managedFields"].as_array().unwrap();
    let apply = |m: &Value| m["manager"] == "clusterrole-aggregation-controller" && m["operation"] == "Apply";
    assert!(managers.iter().any(apply), "{managers:?}");
    for name in ["a", "b", "c"] {
        api.delete(&format!("{roles}/{name}"), "").await;
    }
    api.until(&server, &format!("{roles}/sum"), |o| o.is_some_and(|o| o["rules"].as_array().is_none_or(Vec::is_empty)))
        .await;
}

#[tokio::test]
async fn quotas_know_what_is_used() {
    let server = Server::start(&["--controllers=resourcequota-controller"]);
    let mut api = Api::of(&server).await;
    let base = "/api/v1/namespaces/default";
    api.create(&format!("{base}/configmaps"), json!({"metadata": {"name": "before"}})).await;
    let hard = json!({"configmaps": "2", "count/secrets": "5", "requests.storage": "10Gi"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    api.create(&format!("{base}/resourcequotas"), quota).await;
    let path = format!("{base}/resourcequotas/q");
    let used = |maps: &str| json!({"configmaps": maps, "count/secrets": "0", "requests.storage": "0"});
    let quota = api.until(&server, &path, is(&["status", "used"], used("1"))).await.unwrap();
    assert_eq!(quota["status"]["hard"], hard);
    api.create(&format!("{base}/configmaps"), json!({"metadata": {"name": "second"}})).await;
    let third = json!({"metadata": {"name": "third"}});
    let (status, _) = api.send("POST", &format!("{base}/configmaps"), Some(third.clone())).await;
    assert_eq!(status, 403);
    // What goes is given back.
    api.delete(&format!("{base}/configmaps/before"), "").await;
    api.until(&server, &path, is(&["status", "used"], used("1"))).await;
    api.create(&format!("{base}/configmaps"), third).await;
}

#[tokio::test]
async fn finished_jobs_and_unused_claims_go() {
    let server = Server::start(&["--controllers=ttl-after-finished,pv-protection,pvc-protection,garbagecollector"]);
    let mut api = Api::of(&server).await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"ttlSecondsAfterFinished": 0, "template": template}});
    let mut job = api.create(jobs, job).await;
    let time = "2026-01-01T00:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time, "lastProbeTime": time});
    job["status"] = json!({"startTime": time, "completionTime": time, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    let (status, answer) = api.send("PUT", &format!("{jobs}/j/status"), Some(job)).await;
    assert_eq!(status, 200, "{answer}");
    api.gone(&server, &format!("{jobs}/j")).await;

    let base = "/api/v1/namespaces/default";
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    api.create(&format!("{base}/persistentvolumeclaims"), claim).await;
    api.create(&format!("{base}/serviceaccounts"), json!({"metadata": {"name": "default"}})).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "node", "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}});
    api.create(&format!("{base}/pods"), pod).await;
    let path = format!("{base}/persistentvolumeclaims/c");
    api.delete(&path, "").await;
    // A look at the claim by everybody else first: it is still there for the pod.
    let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    api.create("/api/v1/persistentvolumes", volume).await;
    api.delete("/api/v1/persistentvolumes/v", "").await;
    api.gone(&server, "/api/v1/persistentvolumes/v").await;
    assert!(api.get(&path).await.is_some());
    let now = json!({"gracePeriodSeconds": 0});
    let (status, answer) = api.send("DELETE", &format!("{base}/pods/p"), Some(now)).await;
    assert_eq!(status, 200, "{answer}");
    api.gone(&server, &path).await;
}

/// A request in PEM, in base64.
fn request(common_name: &str, organization: &str) -> String {
    use base64::Engine;
    use rcgen::{CertificateParams, DnType, KeyPair};
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    base64::engine::general_purpose::STANDARD.encode(pem)
}

#[tokio::test]
async fn kubelets_and_approved_clients_get_certificates() {
    let server = Server::start(&["--controllers=csrapproving,csrsigning,csrcleaner"]);
    let mut api = Api::of(&server).await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let object = |name: &str, signer: &str, request: String, usages: &[&str]| {
        json!({"metadata": {"name": name},
            "spec": {"signerName": format!("kubernetes.io/{signer}"), "request": request, "usages": usages}})
    };
    let client = ["client auth", "digital signature"];
    let issued = |o: Option<&Value>| o.is_some_and(|o| !o["status"]["certificate"].is_null());
    // Whoever may, gets a kubelet's certificate without anybody's help.
    let kubelet = request("system:node:n", "system:nodes");
    let mut kubelet = object("kubelet", "kube-apiserver-client-kubelet", kubelet, &client);
    kubelet["spec"]["expirationSeconds"] = json!(3600);
    api.create(requests, kubelet).await;
    let kubelet = api.until(&server, &format!("{requests}/kubelet"), issued).await.unwrap();
    let approved = &kubelet["status"]["conditions"][0];
    assert_eq!((&approved["type"], &approved["reason"]), (&json!("Approved"), &json!("AutoApproved")));
    assert_eq!(approved["message"], "Auto approving kubelet client certificate after SubjectAccessReview.");
    let metrics = api.text("/metrics").await;
    for counted in ["requested", "honored"] {
        let series = "duration_total{signerName=\"kubernetes.io/kube-apiserver-client-kubelet\"} 1";
        let series = format!("apiserver_certificates_registry_csr_{counted}_{series}");
        assert!(metrics.contains(&series), "{series}");
    }
    // Others need somebody's approval.
    let approve = |object: &mut Value| {
        object["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "Test"}]);
    };
    for (name, usages) in [("good", &client[..]), ("bad", &["client auth", "server auth"][..])] {
        let object = object(name, "kube-apiserver-client", request("user", "devs"), usages);
        let mut made = api.create(requests, object).await;
        assert!(made["status"]["certificate"].is_null());
        approve(&mut made);
        let (status, answer) = api.send("PUT", &format!("{requests}/{name}/approval"), Some(made)).await;
        assert_eq!(status, 200, "{answer}");
    }
    api.until(&server, &format!("{requests}/good"), issued).await;
    let failed = |o: Option<&Value>| o.is_some_and(|o| o["status"]["conditions"][1]["type"] == "Failed");
    let bad = api.until(&server, &format!("{requests}/bad"), failed).await.unwrap();
    let why = &bad["status"]["conditions"][1];
    assert_eq!(why["reason"], "SignerValidationFailure");
    assert_eq!(why["message"], "invalid usage for client certificate: server auth");
}

#[tokio::test]
async fn secrets_get_the_tokens_of_their_accounts() {
    let server = Server::start(&["--controllers=serviceaccount-token-controller"]);
    let mut api = Api::of(&server).await;
    let base = "/api/v1/namespaces/default";
    let account = json!({"metadata": {"name": "robot"}, "secrets": [{"name": "robot-token"}]});
    let account = api.create(&format!("{base}/serviceaccounts"), account).await;
    let secret = |name: &str| {
        json!({"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token"})
    };
    api.create(&format!("{base}/secrets"), secret("robot-token")).await;
    let path = format!("{base}/secrets/robot-token");
    let filled = |o: Option<&Value>| o.is_some_and(|o| !o["data"]["token"].is_null());
    let made = api.until(&server, &path, filled).await.unwrap();
    use base64::Engine;
    let decode = |text: &Value| base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    assert_eq!(decode(&made["data"]["namespace"]), b"default");
    assert!(decode(&made["data"]["ca.crt"]).starts_with(b"-----BEGIN CERTIFICATE-----"));
    assert_eq!(made["metadata"]["annotations"]["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);
    // The server believes it.
    let token = String::from_utf8(decode(&made["data"]["token"])).unwrap();
    let review = json!({"spec": {"token": token}});
    let review = api.create("/apis/authentication.k8s.io/v1/tokenreviews", review).await;
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:robot", "{review}");
    // A secret that goes is not named any more; secrets go with their account, and without one.
    api.delete(&path, "").await;
    let robot = format!("{base}/serviceaccounts/robot");
    api.until(&server, &robot, |o| o.is_some_and(|o| o["secrets"].as_array().is_none_or(Vec::is_empty))).await;
    api.create(&format!("{base}/secrets"), secret("second")).await;
    api.until(&server, &format!("{base}/secrets/second"), filled).await;
    api.delete(&robot, "").await;
    api.gone(&server, &format!("{base}/secrets/second")).await;
    api.create(&format!("{base}/secrets"), secret("third")).await;
    api.gone(&server, &format!("{base}/secrets/third")).await;
}
