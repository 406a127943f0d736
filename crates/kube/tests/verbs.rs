//! The built-in resources over the memory store, from request to response, without sockets and filters.

mod support;

use http::Method;
use kubelith_meta::Value;
use support::Server;

#[tokio::test]
async fn a_config_map_lives_and_dies() {
    let server = Server::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, made) = server.send(Method::POST, maps, r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#).await;
    assert_eq!(code, 201, "{made:?}");
    assert_eq!(made.str_at(&["kind"]), "ConfigMap");
    let (code, again) = server.send(Method::POST, maps, r#"{"metadata":{"name":"a"}}"#).await;
    assert_eq!((code, again.str_at(&["reason"])), (409, "AlreadyExists"));
    let (code, got) = server.send(Method::GET, &format!("{maps}/a"), "").await;
    assert_eq!((code, &got), (200, &made));
    let (code, list) = server.send(Method::GET, maps, "").await;
    assert_eq!(code, 200);
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(1));
    let patch = r#"{"data":{"x":"y"}}"#;
    let (code, patched) =
        server.send_as(Method::PATCH, &format!("{maps}/a"), "application/merge-patch+json", patch).await;
    assert_eq!((code, patched.str_at(&["data", "x"])), (200, "y"), "{patched:?}");
    let (code, _) = server.send(Method::DELETE, &format!("{maps}/a"), "").await;
    assert_eq!(code, 200);
    let (code, _) = server.send(Method::GET, &format!("{maps}/a"), "").await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn discovery_lists_the_groups() {
    let server = Server::start().await;
    let (code, groups) = server.send(Method::GET, "/apis", "").await;
    assert_eq!(code, 200);
    let names: Vec<&str> =
        groups.get("groups").and_then(Value::as_array).unwrap().iter().map(|g| g.str_at(&["name"])).collect();
    assert_eq!(&names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
}

/// What changes nothing writes nothing: the version stays, and with it everybody's caches.
#[tokio::test]
async fn writes_that_change_nothing_are_none() {
    let server = Server::start().await;
    let apply = "application/apply-patch+yaml";
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#;
    let uri = "/api/v1/namespaces/default/configmaps/a";
    let (code, made) = server.send_as(Method::PATCH, &format!("{uri}?fieldManager=m"), apply, body).await;
    assert_eq!(code, 201, "{made:?}");
    let cases = [
        (Method::PATCH, "?fieldManager=m", apply, body),
        (Method::PATCH, "", "application/merge-patch+json", "{}"),
        (Method::PATCH, "", "application/strategic-merge-patch+json", r#"{"data":{"k":"v"}}"#),
        (Method::PATCH, "", "application/json-patch+json", r#"[{"op":"test","path":"/data/k","value":"v"}]"#),
        (Method::PUT, "?fieldManager=m", "application/json", body),
    ];
    for (method, query, content_type, body) in cases {
        let (code, got) = server.send_as(method, &format!("{uri}{query}"), content_type, body).await;
        assert_eq!((code, &got), (200, &made), "{content_type} {body}");
    }
    let (_, list) = server.send(Method::GET, "/api/v1/configmaps", "").await;
    let revision = |v: &Value| v.str_at(&["metadata", "resourceVersion"]).to_owned();
    assert_eq!(revision(&list), revision(&made), "the store was written to");
}
