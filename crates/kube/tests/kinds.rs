//! What single kinds do beyond the generic life cycle, from request to response.

use crate::support::Server;
use http::Method;
use kubelith_store::{Expect, MemoryStore, Store};
use std::sync::Arc;

const MERGE: &str = "application/merge-patch+json";

#[tokio::test]
async fn the_status_of_a_flow_schema_is_no_way_to_its_metadata() {
    let server = Server::start().await;
    let api = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let schema =
        r#"{"metadata":{"name":"a"},"spec":{"matchingPrecedence":7,"priorityLevelConfiguration":{"name":"exempt"}}}"#;
    let level = r#"{"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}"#;
    for (plural, object) in [("flowschemas", schema), ("prioritylevelconfigurations", level)] {
        let uri = format!("{api}/{plural}");
        let (code, made) = server.send(Method::POST, &uri, object).await;
        assert_eq!(code, 201, "{made:?}");
        let patch = r#"{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["a.b/c"]},
            "status":{"conditions":[{"type":"T","status":"True"}]}}"#;
        let (code, patched) = server.send_as(Method::PATCH, &format!("{uri}/a/status"), MERGE, patch).await;
        assert_eq!(code, 200, "{patched:?}");
        for key in ["labels", "annotations", "finalizers"] {
            assert_eq!(patched.at(&["metadata", key]), None, "{plural}");
        }
        assert!(patched.at(&["status", "conditions"]).is_some());
    }
}

#[tokio::test]
async fn services_of_old_releases_are_completed() {
    let store = Arc::new(MemoryStore::default());
    let stored = |name: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}","namespace":"default","uid":"1",
                "creationTimestamp":"2018-01-01T00:00:00Z"}},"spec":{spec}}}"#
        )
    };
    let ports = r#""ports":[{"port":1,"protocol":"TCP","targetPort":1}],"sessionAffinity":"None""#;
    let cases = [
        ("headful", r#""type":"ClusterIP","clusterIP":"10.0.0.9""#, r#"["10.0.0.9"]"#, r#"["IPv4"]"#, "SingleStack"),
        (
            "headless",
            r#""type":"ClusterIP","clusterIP":"None","selector":{"a":"b"}"#,
            r#"["None"]"#,
            r#"["IPv4"]"#,
            "SingleStack",
        ),
        (
            "selectorless",
            r#""type":"ClusterIP","clusterIP":"None""#,
            r#"["None"]"#,
            r#"["IPv4","IPv6"]"#,
            "RequireDualStack",
        ),
    ];
    for (name, spec, ..) in &cases {
        let object = stored(name, &format!("{{{spec},{ports}}}"));
        let key = format!("/registry/services/specs/default/{name}");
        store.put(key.into(), object.into(), Expect::Absent, None).await.unwrap();
    }
    let server = Server::on(store).await;
    for (name, _, addresses, families, policy) in cases {
        let uri = format!("/api/v1/namespaces/default/services/{name}");
        let (_, got) = server.send(Method::GET, &uri, "").await;
        let shown = |key: &str| got.at(&["spec", key]).map(kubelith_meta::text::json).unwrap_or_default();
        assert_eq!((shown("clusterIPs").as_str(), shown("ipFamilies").as_str()), (addresses, families), "{name}");
        assert_eq!(got.str_at(&["spec", "ipFamilyPolicy"]), policy);
        let (code, patched) = server.send_as(Method::PATCH, &uri, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
        assert_eq!(code, 200, "{patched:?}");
    }
}

#[tokio::test]
async fn claims_of_old_releases_name_their_source_twice() {
    let store = Arc::new(MemoryStore::default());
    let claim = r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","namespace":"default"},
        "spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"b"}}}"#;
    let key = "/registry/persistentvolumeclaims/default/a";
    store.put(key.into(), claim.into(), Expect::Absent, None).await.unwrap();
    let server = Server::on(store).await;
    let (_, got) = server.send(Method::GET, "/api/v1/namespaces/default/persistentvolumeclaims/a", "").await;
    assert_eq!(got.str_at(&["spec", "dataSourceRef", "name"]), "b");
}
