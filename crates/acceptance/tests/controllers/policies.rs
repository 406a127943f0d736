//! Types of policies, storage versions, and quotas of custom resources.

use super::api::Api;
use crate::support::Server;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

fn policy(name: &str, rule: Value, validations: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"failurePolicy": "Fail", "validations": validations,
        "matchConstraints": {"resourceRules": [rule]}}})
}

fn rule(group: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]})
}

fn observed(generation: i64) -> impl Fn(Option<&Value>) -> bool {
    move |policy| policy.is_some_and(|policy| policy["status"]["observedGeneration"] == generation)
}

#[tokio::test]
async fn expressions_of_policies_are_checked() {
    let server = Server::start(&["--controllers=validatingadmissionpolicy-status-controller"]);
    let mut api = Api::of(&server).await;
    let wrong = json!([
        {"expression": "object.spec.replicas <= 5"},
        {"expression": "object.spec.replicas.small == 1", "messageExpression": "string(object.absent)"},
        {"expression": "object.spec.template.spec.containers.all(c, c.image == 1)"}
    ]);
    api.create(POLICIES, policy("wrong", rule("apps", "deployments"), wrong)).await;
    let path = format!("{POLICIES}/wrong");
    let found = api.until(&server, &path, observed(1)).await.unwrap();
    let warning = |field: &str, text: &str| json!({"fieldRef": field, "warning": text});
    assert_eq!(
        found["status"]["typeChecking"]["expressionWarnings"],
        json!([
            warning(
                "spec.validations[1].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:21: type 'int' does not support field selection\n | \
                 object.spec.replicas.small == 1\n | ....................^\n"
            ),
            warning(
                "spec.validations[1].messageExpression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:14: undefined field 'absent'\n | \
                 string(object.absent)\n | .............^\n"
            ),
            warning(
                "spec.validations[2].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:53: found no matching overload for '_==_' applied to \
                 '(string, int)'\n | object.spec.template.spec.containers.all(c, c.image == 1)\n | \
                 ....................................................^\n"
            ),
        ])
    );
    let managers: Vec<&str> =
        found["metadata"]["managedFields"].as_array().unwrap().iter().filter_map(|m| m["manager"].as_str()).collect();
    assert!(managers.contains(&"validatingadmissionpolicy-status"), "{managers:?}");
    // Once it is right, nothing is said.
    api.change(&path, |policy| policy["spec"]["validations"] = json!([{"expression": "object.spec.paused == true"}]))
        .await;
    let found = api.until(&server, &path, observed(2)).await.unwrap();
    assert_eq!(found["status"]["typeChecking"]["expressionWarnings"], json!(null));

    // Of one that was always right it is said that it was looked at.
    let right = json!([{"expression": "object.spec.replicas <= 5"}]);
    api.create(POLICIES, policy("right", rule("apps", "deployments"), right)).await;
    let found = api.until(&server, &format!("{POLICIES}/right"), observed(1)).await.unwrap();
    assert_eq!(found["status"], json!({"observedGeneration": 1, "typeChecking": {}}));

    // Custom resources have types as well.
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "port": {"x-kubernetes-int-or-string": true}}}}});
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    api.until(&server, "/apis/example.com/v1/gadgets", |list| list.is_some()).await;
    let validations = json!([{"expression": "object.spec.size == 'x'"}, {"expression": "object.spec.port == 'x'"}]);
    api.create(POLICIES, policy("custom", rule("example.com", "gadgets"), validations)).await;
    let found = api.until(&server, &format!("{POLICIES}/custom"), observed(1)).await.unwrap();
    let warnings = found["status"]["typeChecking"]["expressionWarnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let text = warnings[0]["warning"].as_str().unwrap();
    assert!(text.starts_with("example.com/v1, Kind=Gadget: ERROR: <input>:1:18: found no matching overload"), "{text}");
}

#[tokio::test]
async fn entries_of_servers_that_are_gone_leave_storage_versions() {
    let server = Server::start(&[
        "--controllers=storage-version-gc",
        "--feature-gates=StorageVersionAPI=true",
        "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true",
    ]);
    let mut api = Api::of(&server).await;
    let versions = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    let entries = |o: Option<&Value>| o.and_then(|o| o["status"]["storageVersions"].as_array().map(Vec::len));
    let path = format!("{versions}/apps.deployments");
    api.until(&server, &path, |o| entries(o) == Some(1)).await;
    let other = json!({"apiServerID": "gone", "encodingVersion": "apps/v1", "decodableVersions": ["apps/v1"],
        "servedVersions": ["apps/v1"]});
    let mut object = api.get(&path).await.unwrap();
    object["status"]["storageVersions"].as_array_mut().unwrap().push(other.clone());
    let (status, answer) = api.send("PUT", &format!("{path}/status"), Some(object)).await;
    assert_eq!(status, 200, "{answer}");
    let kept = api.until(&server, &path, |o| entries(o) == Some(1)).await.unwrap();
    assert_eq!(kept["status"]["commonEncodingVersion"], "apps/v1");
    // Without any server it goes.
    let mut object = api.create(versions, json!({"metadata": {"name": "g.absent"}, "spec": {}})).await;
    object["status"] = json!({"storageVersions": [other], "commonEncodingVersion": "apps/v1"});
    let (status, answer) = api.send("PUT", &format!("{versions}/g.absent/status"), Some(object)).await;
    assert_eq!(status, 200, "{answer}");
    api.gone(&server, &format!("{versions}/g.absent")).await;
}

#[tokio::test]
async fn custom_resources_give_their_quota_back() {
    let server = Server::start(&["--controllers=resourcequota-controller"]);
    let mut api = Api::of(&server).await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    api.create(quotas, json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/gadgets.example.com": "5"}}})).await;
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    api.until(&server, gadgets, |list| list.is_some()).await;
    let used = |count: &'static str| {
        move |quota: Option<&Value>| quota.is_some_and(|q| q["status"]["used"]["count/gadgets.example.com"] == count)
    };
    let path = format!("{quotas}/q");
    api.until(&server, &path, used("0")).await;
    for name in ["a", "b"] {
        let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}});
        api.create(gadgets, gadget).await;
    }
    api.until(&server, &path, used("2")).await;
    api.delete(&format!("{gadgets}/a"), "").await;
    api.until(&server, &path, used("1")).await;
}
