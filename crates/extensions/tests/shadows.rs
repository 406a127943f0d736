//! Definitions in the place of built-in resources: the built-in ones stay as they are.

use crate::common::{Server, definitions, in_memory, value};
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::loopback::ResourceRef;
use kubelith_server::testing::ADMIN_TOKEN;

const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// A definition of a resource in some group, cluster-wide.
fn shadow(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Value {
    let schema = r#"{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}"#;
    let versions: Vec<String> = versions
        .iter()
        .enumerate()
        .map(|(i, v)| format!(r#"{{"name":"{v}","served":true,"storage":{},"schema":{schema}}}"#, i == 0))
        .collect();
    value(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{{"name":"{plural}.{group}","finalizers":["example.com/keep"],
                "annotations":{{"api-approved.kubernetes.io":"unapproved"}}}},
            "spec":{{"group":"{group}","scope":"Cluster","names":{{"plural":"{plural}","kind":"{kind}"}},
                     "versions":[{}]}}}}"#,
        versions.join(",")
    ))
}

async fn resources(server: &Server, path: &str) -> Vec<(String, String)> {
    let list = server.document(path).await;
    let resources = list.at(&["resources"]).and_then(Value::as_array).unwrap_or(&[]);
    resources.iter().map(|r| (r.str_at(&["name"]).to_owned(), r.str_at(&["kind"]).to_owned())).collect()
}

fn terminating(definition: &Value) -> (&str, &str, &str) {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
    let found = conditions.iter().find(|c| c.str_at(&["type"]) == "Terminating").expect("it has the condition");
    (found.str_at(&["status"]), found.str_at(&["reason"]), found.str_at(&["message"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_objects_outlive_a_definition_that_is_stored_among_them() {
    let server = in_memory().await;
    let api_services = GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices");
    let object = value(
        r#"{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.org"},
            "spec":{"group":"example.org","version":"v1","groupPriorityMinimum":1000,"versionPriority":15}}"#,
    );
    server.client.create(&ResourceRef::new(&api_services), &object).await.unwrap();
    let table = [
        ("apiregistration.k8s.io", "apiservices", "Shadow"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "Shadow"),
    ];
    for (group, plural, kind) in table {
        let version = format!("/apis/{group}/v1");
        let (documents, listed) = (format!("/openapi/v3{version}"), resources(&server, &version).await);
        let described = server.document(&documents).await;
        server.define(&shadow(group, plural, kind, &["v1", "v7"])).await;
        assert_eq!(resources(&server, &version).await, listed);
        assert_eq!(server.document(&documents).await, described);
        assert_eq!(
            server.document(&format!("{version}/{plural}")).await.str_at(&["apiVersion"]),
            format!("{group}/v1")
        );
        let elsewhere = server.frame.get(&format!("/apis/{group}/v7/{plural}"), ADMIN_TOKEN).await;
        assert_eq!(elsewhere.status, 404);

        let gone = server.undefine(&format!("{plural}.{group}")).await;
        let why = "instances overlap with built-in resources in storage";
        assert_eq!(terminating(&gone), ("False", "OverlappingBuiltInResource", why));
        assert_eq!(server.document(APISERVICES).await.at(&["items"]).and_then(Value::as_array).unwrap().len(), 1);
        assert_eq!(resources(&server, &version).await, listed);
        assert_eq!(server.document(&documents).await, described);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_group_version_is_described_by_the_built_in_server_alone() {
    let server = in_memory().await;
    let (group, version) = ("networking.k8s.io", "/apis/networking.k8s.io/v1");
    let listed = resources(&server, version).await;
    let described = server.document("/openapi/v3/apis/networking.k8s.io/v1").await;
    server.define(&shadow(group, "foos", "Foo", &["v1", "v7"])).await;
    assert_eq!(resources(&server, version).await, listed);
    assert_eq!(server.document("/openapi/v3/apis/networking.k8s.io/v1").await, described);
    let groups = server.discovery.groups();
    let versions = |name: &str| -> Vec<String> {
        let found = groups.iter().find(|g| g.name == name).expect("the group");
        found.versions.iter().map(|v| v.name.to_string()).collect()
    };
    assert!(versions(group).contains(&"v7".to_owned()), "{:?}", versions(group));
    for path in ["/apis/networking.k8s.io/v1/foos", "/apis/networking.k8s.io/v7/foos", "/apis/networking.k8s.io/v7"] {
        assert_eq!(server.frame.get(path, ADMIN_TOKEN).await.status, 404, "{path}");
    }
    assert_eq!(terminating(&server.undefine("foos.networking.k8s.io").await).1, "InstanceDeletionCompleted");
    assert_eq!(resources(&server, version).await, listed);
    let resource = definitions();
    assert!(server.client.list(&ResourceRef::new(&resource)).await.is_ok());
}
