//! Answers that depend on how a client asks: forms, odd paths and odd revisions.

use crate::support::Server;
use http::Method;
use kubelith_meta::Value;

#[tokio::test]
async fn components_are_shown_in_every_form() {
    let server = Server::start().await;
    let parsed = |bytes: &[u8]| kubelith_codec::json::parse(bytes).unwrap();
    let uri = "/api/v1/componentstatuses";
    let (code, table) = server.read_as(uri, "application/json;as=Table;g=meta.k8s.io;v=v1").await;
    let table = parsed(&table);
    assert_eq!((code, table.str_at(&["kind"])), (200, "Table"));
    let columns = table.get("columnDefinitions").and_then(Value::as_array).unwrap();
    let names: Vec<&str> = columns.iter().map(|c| c.str_at(&["name"])).collect();
    assert_eq!(names, ["Name", "Status", "Message", "Error"]);
    let rows = table.get("rows").and_then(Value::as_array).unwrap();
    let healthy = rows.iter().find(|r| r.str_at(&["object", "metadata", "name"]) == "etcd-0").unwrap();
    let cells = healthy.get("cells").and_then(Value::as_array).unwrap();
    assert_eq!(cells, ["etcd-0", "Healthy", "ok", ""].map(Value::from));
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (code, one) = server.read_as("/api/v1/componentstatuses/etcd-0", partial).await;
    assert_eq!((code, parsed(&one).str_at(&["kind"])), (200, "PartialObjectMetadata"));
    let (code, wrong) = server.read_as(uri, partial).await;
    let text = "you requested PartialObjectMetadata, but the requested object is a list (*core.ComponentStatusList)";
    assert_eq!((code, parsed(&wrong).str_at(&["message"])), (406, text));
    let (_, list) = server.send(Method::GET, "/api/v1/componentstatuses?labelSelector=a%3Db", "").await;
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(0));
}

#[tokio::test]
async fn a_cell_may_have_no_column() {
    let server = Server::start().await;
    let body =
        r#"{"metadata":{"name":"10.0.0.9"},"spec":{"parentRef":{"resource":"services","namespace":"a","name":"b"}}}"#;
    let uri = "/apis/networking.k8s.io/v1/ipaddresses";
    assert_eq!(server.send(Method::POST, uri, body).await.0, 201);
    let (_, table) = server.read_as(uri, "application/json;as=Table;g=meta.k8s.io;v=v1").await;
    let table = kubelith_codec::json::parse(&table).unwrap();
    let length = |value: Option<&Value>| value.and_then(Value::as_array).map(<[_]>::len);
    let row = table.get("rows").and_then(Value::as_array).and_then(<[_]>::first).unwrap();
    assert_eq!((length(table.get("columnDefinitions")), length(row.get("cells"))), (Some(2), Some(3)));
}

#[tokio::test]
async fn reviews_are_indented_for_those_who_want_it() {
    let server = Server::start().await;
    let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let body = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    for (query, is_indented) in [("", false), ("?pretty=true", true), ("?pretty=0", false)] {
        let (code, answer) = server.send_raw(Method::POST, &format!("{uri}{query}"), "application/json", body).await;
        assert_eq!((code, answer.starts_with(b"{\n  \"kind\"")), (201, is_indented), "{query}: {answer:?}");
    }
}

#[tokio::test]
async fn namespaces_that_lead_elsewhere_are_no_keys() {
    let server = Server::start().await;
    for (method, path, key) in [
        (Method::GET, "../deployments", "/deployments/.."),
        (Method::DELETE, "./deployments", "/deployments/."),
        (Method::GET, "../deployments?watch=true", "/deployments/.."),
        (Method::GET, "../deployments/x", "/deployments/../x"),
        (Method::DELETE, "../deployments/x", "/deployments/../x"),
    ] {
        let (code, status) = server.send(method, &format!("/apis/apps/v1/namespaces/{path}"), "").await;
        assert_eq!((code, status.str_at(&["message"])), (500, format!("invalid key: \"{key}\"").as_str()));
        assert_eq!(status.str_at(&["reason"]), "");
    }
    let (_, status) = server.send(Method::GET, "/api/v1/namespaces/../services/x", "").await;
    assert_eq!(status.str_at(&["message"]), "invalid key: \"/services/specs/../x\"");
}

#[tokio::test]
async fn revisions_of_any_size_are_waited_for() {
    let server = Server::start().await;
    let uris = ["/api/v1/pods", "/api/v1/namespaces/default/pods/x"];
    let revisions = ["9223372036854775807", "9223372036854775808", "18446744073709551615"];
    let server = &server;
    let asked = uris.iter().flat_map(|uri| revisions.map(|revision| (uri, revision)));
    let asked = asked.map(|(uri, revision)| async move {
        let (code, status) = server.send(Method::GET, &format!("{uri}?resourceVersion={revision}"), "").await;
        let begin = format!("Timeout: Too large resource version: {revision}, current: ");
        assert_eq!((code, status.str_at(&["message"]).starts_with(&begin)), (504, true), "{status:?}");
    });
    futures::future::join_all(asked).await;
    let (code, _) = server.send(Method::GET, "/api/v1/pods?resourceVersion=18446744073709551616", "").await;
    assert_eq!(code, 400);
}

#[tokio::test]
async fn questions_are_where_they_are_asked() {
    let server = Server::start().await;
    let body = r#"{"metadata":{"namespace":"x","uid":"u","creationTimestamp":"2020-01-01T00:00:00Z"},
                   "spec":{"user":"a","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}}"#;
    let cluster = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let (code, answer) = server.send(Method::POST, cluster, body).await;
    assert_eq!((code, answer.meta().namespace(), answer.meta().uid()), (201, "", ""), "{answer:?}");
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let (code, status) = server.send(Method::POST, local, body).await;
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((code, status.str_at(&["message"])), (400, text));
    let (code, answer) = server.send(Method::POST, local, &body.replace("\"x\"", "\"\"")).await;
    assert_eq!((code, answer.meta().namespace()), (201, "default"), "{answer:?}");
}
