//! The built-in resources over the memory store, from request to response, without sockets and filters.

use crate::support::Server;
use http::Method;
use kubelith_catalog::RuntimeConfig;
use kubelith_codec::json;
use kubelith_kube::Install;
use kubelith_meta::Value;
use kubelith_schema::Encoding;
use kubelith_store::embedded::fault::FaultyDisk;
use kubelith_store::{EmbeddedOptions, EmbeddedStore, Expect, MemoryStore, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

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
async fn objects_are_read_in_any_form_and_written_in_one() {
    let store = Arc::new(MemoryStore::default());
    let proto = Server::on(store.clone()).await;
    let json = Server::with(store.clone(), |install| Install { stored_as: Encoding::Json, ..install }).await;
    let served = Server::with(store.clone(), |install| Install { served_by: Some(1), ..install }).await;
    let by_other_rules = Server::with(store.clone(), |install| Install { served_by: Some(2), ..install }).await;
    let readers = [&proto, &json, &served, &by_other_rules];
    for (server, name, start) in [(&json, "j", "{\""), (&proto, "p", "k8s\0"), (&served, "s", "klj\0")] {
        let pods = "/api/v1/namespaces/default/pods";
        let container = r#"{"name":"c","image":"i","resources":{"requests":{"cpu":"0.5"}},"env":[{"name":"A"}]}"#;
        let object = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"a":"b"}}}},"spec":{{"nodeName":"n","containers":[{container}]}}}}"#
        );
        let (code, made) = server.send(Method::POST, pods, &object).await;
        assert_eq!(code, 201, "{made:?}");
        let stored = store.get(format!("/registry/pods/default/{name}").into(), None).await.unwrap().item.unwrap();
        assert!(stored.value.starts_with(start.as_bytes()), "{:?}", stored.value);
        for reader in readers {
            assert_eq!(reader.send(Method::GET, &format!("{pods}/{name}"), "").await, (200, made.clone()));
            let selected = format!("{pods}?labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dn,metadata.name%3D{name}");
            let (_, list) = reader.send(Method::GET, &selected, "").await;
            assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(1), "{list:?}");
        }
    }
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml, namespace: default}\ndata: {k: v}\n";
    let key = "/registry/configmaps/default/yaml";
    store.put(key.into(), yaml.into(), Expect::Absent, None).await.unwrap();
    let (code, got) = json.send(Method::GET, &format!("{MAPS}/yaml"), "").await;
    assert_eq!((code, got.str_at(&["data", "k"])), (200, "v"), "{got:?}");
    let service = r#"{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30001}]}}"#;
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(json.send(Method::POST, services, service).await.0, 201);
    let (code, refused) = proto.send(Method::POST, services, &service.replace("\"s\"", "\"t\"")).await;
    assert_eq!(code, 422, "the other server knows that the port is taken: {refused:?}");
}

#[tokio::test]
async fn fields_are_owned_in_versions_that_had_to_be_asked_for() {
    let server = Server::with(Arc::new(MemoryStore::default()), |install| {
        let all = BTreeMap::from([("api/all".to_owned(), "true".to_owned())]);
        Install { runtime_config: RuntimeConfig::parse(install.catalog, &all).unwrap(), ..install }
    })
    .await;
    let path = |version: &str| format!("/apis/storage.k8s.io/{version}/volumeattributesclasses");
    let class = r#"{"metadata":{"name":"c"},"driverName":"d","parameters":{"a":"b"}}"#;
    let (code, made) = server.send(Method::POST, &path("v1beta1"), class).await;
    let versions = |object: &Value| -> Vec<String> {
        let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or(&[]);
        entries.iter().map(|entry| entry.str_at(&["apiVersion"]).to_owned()).collect()
    };
    assert_eq!((code, versions(&made)), (201, vec!["storage.k8s.io/v1beta1".to_owned()]));
    // Who writes in another version leaves it to its owner.
    let uri = format!("{}/c?fieldManager=other", path("v1"));
    let label = r#"{"metadata":{"labels":{"x":"y"}}}"#;
    let (code, patched) = server.send_as(Method::PATCH, &uri, "application/merge-patch+json", label).await;
    let mut owners = versions(&patched);
    owners.sort();
    assert_eq!(
        (code, owners.as_slice()),
        (200, &["storage.k8s.io/v1".to_owned(), "storage.k8s.io/v1beta1".to_owned()][..])
    );
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn on_disk(disk: &FaultyDisk) -> Arc<dyn Store> {
    let options = EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new("") };
    Arc::new(EmbeddedStore::open_on(Arc::new(disk.clone()), options).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_nothing_else() {
    let disk = FaultyDisk::new();
    let server = Server::on(on_disk(&disk)).await;
    let (_, made) = server.send(Method::POST, MAPS, r#"{"metadata":{"name":"a"}}"#).await;
    disk.set_capacity(Some(disk.used()));
    for (method, uri, body) in [
        (Method::POST, MAPS.to_owned(), r#"{"metadata":{"name":"b"}}"#),
        (Method::PUT, format!("{MAPS}/a"), r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#),
    ] {
        let (code, status) = server.send(method, &uri, body).await;
        assert_eq!((code, status.str_at(&["kind"]), status.str_at(&["reason"])), (500, "Status", "InternalError"));
        let message = status.str_at(&["message"]);
        assert!(message.starts_with("Internal error occurred: no space left in the store"), "{message}");
    }
    assert_eq!(server.send(Method::GET, &format!("{MAPS}/a"), "").await, (200, made));
    assert_eq!(server.send(Method::GET, MAPS, "").await.0, 200);
    disk.set_capacity(None);
    assert_eq!(server.send(Method::POST, MAPS, r#"{"metadata":{"name":"b"}}"#).await.0, 201, "there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_acknowledges_nothing() {
    let disk = FaultyDisk::new();
    let server = Server::on(on_disk(&disk)).await;
    assert_eq!(server.send(Method::POST, MAPS, r#"{"metadata":{"name":"a"}}"#).await.0, 201);
    disk.fail_syncs();
    for _ in 0..2 {
        let (code, status) = server.send(Method::POST, MAPS, r#"{"metadata":{"name":"b"}}"#).await;
        assert_eq!((code, status.str_at(&["kind"])), (500, "Status"), "{status:?}");
    }
    drop(server);
    // What the next process finds: all that was acknowledged.
    let server = Server::on(on_disk(&disk.kill())).await;
    assert_eq!(server.send(Method::GET, &format!("{MAPS}/a"), "").await.0, 200);
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

/// Who owns what is kept as text and unfolded only for patches that speak of it, however they spell it.
#[tokio::test]
async fn patches_reach_into_managed_fields() {
    let server = Server::start().await;
    let uri = "/api/v1/namespaces/default/configmaps/a";
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let (code, made) = server.send(Method::POST, "/api/v1/namespaces/default/configmaps?fieldManager=m", body).await;
    assert_eq!(code, 201, "{made:?}");
    for path in ["/metadata/managedFields", r"/metadata/m\u0061nagedFields"] {
        let test = |value: &str| format!(r#"[{{"op":"test","path":"{path}/0/fieldsV1/f:data/f:k","value":{value}}}]"#);
        let (code, got) = server.send_as(Method::PATCH, uri, "application/json-patch+json", &test("{}")).await;
        assert_eq!((code, got.str_at(&["message"])), (200, ""), "{path}");
        let (code, _) = server.send_as(Method::PATCH, uri, "application/json-patch+json", &test(r#"{"x":1}"#)).await;
        assert_eq!(code, 422, "{path}");
    }
}

/// What a patch does not touch is not looked at again; the outcome is the same as that of sending all of it.
#[tokio::test]
async fn patches_leave_the_rest_as_it_is() {
    let server = Server::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}"}},
            "spec":{{"containers":[{{"name":"c","image":"i","env":[{{"name":"E","value":""}}]}}],"volumes":[]}}}}"#
        )
    };
    for name in ["patched", "put"] {
        let (code, made) = server.send(Method::POST, &format!("{pods}?fieldManager=m"), &pod(name)).await;
        assert_eq!(code, 201, "{made:?}");
    }
    let kinds = ["application/merge-patch+json", "application/strategic-merge-patch+json"];
    for (kind, label) in kinds.into_iter().zip(["a", "b"]) {
        let patch = format!(r#"{{"metadata":{{"labels":{{"l":"{label}"}}}}}}"#);
        let (code, patched) =
            server.send_as(Method::PATCH, &format!("{pods}/patched?fieldManager=m"), kind, &patch).await;
        assert_eq!(code, 200, "{patched:?}");
        let (_, mut sent) = server.send(Method::GET, &format!("{pods}/put"), "").await;
        sent.set_at(&["metadata", "labels", "l"], label.into());
        let (code, put) =
            server.send(Method::PUT, &format!("{pods}/put?fieldManager=m"), &kubelith_meta::text::json(&sent)).await;
        assert_eq!(code, 200, "{put:?}");
        for key in ["spec", "status"] {
            assert_eq!(patched.get(key), put.get(key), "{kind} {key}");
        }
        let fields = |v: &Value| v.at(&["metadata", "managedFields"]).map(kubelith_meta::text::json);
        assert_eq!(fields(&patched), fields(&put), "{kind}");
        let (_, read) = server.send(Method::GET, &format!("{pods}/patched"), "").await;
        assert_eq!(read, patched, "{kind}");
    }
}

/// What is known of a stored part holds where it is stored. A patch can put it where it is something else.
#[tokio::test]
async fn patches_can_move_parts_to_where_they_are_something_else() {
    let server = Server::start().await;
    let uri = "/apis/apps/v1/namespaces/default/deployments";
    let probe = r#"{"httpGet":{"path":"/","port":80,"httpHeaders":[{"name":"a","value":"b"}]},"periodSeconds":7}"#;
    let body = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d"}},"spec":{{
            "selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{
            "containers":[{{"name":"c","image":"i","livenessProbe":{probe},"readinessProbe":{probe}}}]}}}}}}}}"#
    );
    let (code, made) = server.send(Method::POST, uri, &body).await;
    assert_eq!(code, 201, "{made:?}");
    let container = "/spec/template/spec/containers/0";
    let patch = format!(
        r#"[{{"op":"add","path":"{container}/lifecycle","value":{{}}}},
            {{"op":"copy","from":"{container}/livenessProbe","path":"{container}/lifecycle/postStart"}},
            {{"op":"move","from":"{container}/readinessProbe","path":"{container}/lifecycle/preStop"}}]"#
    );
    let (code, patched) =
        server.send_as(Method::PATCH, &format!("{uri}/d"), "application/json-patch+json", &patch).await;
    assert_eq!(code, 200, "{patched:?}");
    let containers = patched.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap();
    let hook = Value::from([("httpGet", containers[0].at(&["livenessProbe", "httpGet"]).unwrap().clone())]);
    for handler in ["postStart", "preStop"] {
        assert_eq!(containers[0].at(&["lifecycle", handler]), Some(&hook), "{handler}");
    }
    assert_eq!(containers[0].get("readinessProbe"), None);
}

/// What a write answers is what readers get.
#[tokio::test]
async fn writes_answer_what_is_read() {
    let server = Server::start().await;
    let uri = "/api/v1/namespaces/default/configmaps/a";
    let apply = format!("{uri}?fieldManager=m&force=true");
    let kind = r#""apiVersion":"v1","kind":"ConfigMap""#;
    let cases = [
        (
            apply.as_str(),
            "application/apply-patch+yaml",
            format!(r#"{{{kind},"metadata":{{"name":"a"}},"data":{{"k":"v"}}}}"#),
            201,
        ),
        (
            apply.as_str(),
            "application/apply-patch+yaml",
            format!(r#"{{{kind},"metadata":{{"name":"a"}},"data":{{"k":"v"}}}}"#),
            200,
        ),
        (
            apply.as_str(),
            "application/apply-patch+yaml",
            format!(r#"{{{kind},"metadata":{{"name":"a"}},"data":{{"k":"w"}}}}"#),
            200,
        ),
        // Looks like what the answer is told apart by.
        (
            uri,
            "application/merge-patch+json",
            r#"{"metadata":{"annotations":{"resourceVersion":"1","x":"\"resourceVersion\":\"1\""}}}"#.into(),
            200,
        ),
        (uri, "application/strategic-merge-patch+json", r#"{"data":{"l":"é<\n"}}"#.into(), 200),
        (uri, "application/json-patch+json", r#"[{"op":"remove","path":"/data/l"}]"#.into(), 200),
    ];
    for (uri, content_type, body, expected) in cases {
        let (code, written) = server.send_raw(Method::PATCH, uri, content_type, &body).await;
        let (_, read) = server.send_raw(Method::GET, uri, "", "").await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!((code, text(&written)), (expected, text(&read)), "{body}");
    }
}

#[tokio::test]
async fn each_version_has_forms_of_its_own() {
    let server = Server::start().await;
    let scaler = r#"{"metadata":{"name":"NAME"},"spec":{"maxReplicas":2,"scaleTargetRef":
        {"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}"#;
    let event = r#"{"metadata":{"name":"NAME"},"involvedObject":{"namespace":"default"},"reason":"r","message":"m"}"#;
    let cases = [
        (event, "events", ["v1", "events.k8s.io/v1"]),
        (scaler, "horizontalpodautoscalers", ["autoscaling/v2", "autoscaling/v1"]),
    ];
    for (object, plural, versions) in cases {
        let of = |version: &str| {
            let root = if version.contains('/') { "apis" } else { "api" };
            format!("/{root}/{version}/namespaces/default/{plural}")
        };
        // Whichever is asked first.
        for (name, order) in [("a", versions), ("b", [versions[1], versions[0]])] {
            let (code, made) = server.send(Method::POST, &of(versions[0]), &object.replace("NAME", name)).await;
            assert_eq!(code, 201, "{made:?}");
            for accept in ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"] {
                for version in order {
                    let one = server.read_as(&format!("{}/{name}", of(version)), accept).await;
                    let all = server.read_as(&of(version), accept).await;
                    for (code, body) in [one, all] {
                        let says = match accept {
                            "application/json" => body_at(&body, &format!("\",\"apiVersion\":\"{version}\"")) < 60,
                            "application/yaml" => body.starts_with(format!("apiVersion: {version}\n").as_bytes()),
                            // Magic, the length of the type, that of its version.
                            _ => body[8..].starts_with(version.as_bytes()) && usize::from(body[7]) == version.len(),
                        };
                        assert!(code == 200 && says, "{version} as {accept}: {}", String::from_utf8_lossy(&body));
                    }
                }
            }
        }
    }
}

/// Where a text begins in a body.
fn body_at(body: &[u8], text: &str) -> usize {
    String::from_utf8_lossy(body).find(text).unwrap_or(usize::MAX)
}

#[tokio::test]
async fn the_old_paths_of_watches_begin_with_what_there_is() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        let (code, made) = server.send(Method::POST, MAPS, &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).await;
        assert_eq!(code, 201, "{made:?}");
    }
    let (code, _) = server.send(Method::POST, "/api/v1/namespaces", r#"{"metadata":{"name":"a"}}"#).await;
    assert_eq!(code, 201);
    // Any state will do with a version of 0; now it is the newest.
    server.send(Method::GET, MAPS, "").await;
    let cases: [(&str, &[&str]); 6] = [
        ("/api/v1/watch/configmaps", &["a", "b"]),
        ("/api/v1/watch/namespaces/default/configmaps", &["a", "b"]),
        ("/api/v1/watch/namespaces/other/configmaps", &[]),
        ("/api/v1/watch/namespaces/default/configmaps/b", &["b"]),
        ("/api/v1/watch/namespaces", &["a"]),
        ("/api/v1/watch/namespaces/a", &["a"]),
    ];
    for (path, names) in cases {
        // Nobody hears that these were all.
        for query in ["", "?resourceVersion=0", "?resourceVersion=&allowWatchBookmarks=true", "?watch=false"] {
            let mut events = server.watch(&format!("{path}{query}")).await;
            let got = events.ready();
            let got: Vec<_> = got.iter().map(|(kind, o)| (kind.as_str(), o.str_at(&["metadata", "name"]))).collect();
            let want: Vec<_> = names.iter().map(|name| ("ADDED", *name)).collect();
            assert_eq!(got, want, "{path}{query}");
        }
        let mut events = server.watch(&format!("{path}?resourceVersion=1")).await;
        assert_eq!(events.ready().len(), names.len(), "{path} from a version");
    }
}

/// A client may know more than the cache that it asks.
#[tokio::test]
async fn a_watch_does_not_repeat_what_its_client_has_seen() {
    let server = Server::start().await;
    for (n, path) in [MAPS, "/api/v1/watch/configmaps"].into_iter().enumerate() {
        let (_, list) = server.send(Method::GET, MAPS, "").await;
        let next = list.str_at(&["metadata", "resourceVersion"]).parse::<i64>().unwrap() + 1;
        let mut events = server.watch(&format!("{path}?watch=1&resourceVersion={next}")).await;
        for name in ["seen", "new"] {
            server.send(Method::POST, MAPS, &format!(r#"{{"metadata":{{"name":"{name}{n}"}}}}"#)).await;
        }
        server.send(Method::GET, MAPS, "").await;
        let got: Vec<_> = events.ready().iter().map(|(_, o)| o.str_at(&["metadata", "name"]).to_owned()).collect();
        assert_eq!(got, [format!("new{n}")], "{path}");
    }
}

#[tokio::test]
async fn watches_that_cannot_be_shown_as_asked_are_refused_or_end() {
    let server = Server::start().await;
    server.send(Method::POST, MAPS, r#"{"metadata":{"name":"a"}}"#).await;
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1");
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let (code, body) = server.read_as(&format!("{watch}&includeObject=All"), table).await;
    let want = r#"Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty"#;
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(code == 400 && body.contains(want), "{code} {body}");
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(server.read_as(&watch, list).await, (200, Default::default()));
}

/// What this process judged and nobody changed is not judged again; what it did not judge is, whatever was changed.
#[tokio::test]
async fn a_spec_that_breaks_rules_in_the_store_is_judged_by_every_update() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = Server::on(store.clone()).await;
    let env: Vec<String> = (0..20).map(|i| format!(r#"{{"name":"E{i}","value":"v"}}"#)).collect();
    let pod = format!(
        r#"{{"metadata":{{"name":"good"}},"spec":{{"containers":[{{"name":"a","image":"i","env":[{}]}}]}}}}"#,
        env.join(",")
    );
    assert_eq!(server.send(Method::POST, PODS, &pod).await.0, 201);
    let (_, mut bad) = server.send(Method::GET, &format!("{PODS}/good"), "").await;
    bad.set_at(&["metadata", "name"], "bad".into());
    bad.set_at(&["spec", "restartPolicy"], "Sometimes".into());
    bad.remove_at(&["metadata", "resourceVersion"]);
    let key = "/registry/pods/default/bad";
    store.put(key.into(), json::to_vec(&bad).into(), Expect::Absent, None).await.unwrap();
    let label = |i: i32| format!(r#"{{"metadata":{{"labels":{{"step":"{i}"}}}}}}"#);
    let patch = async |name: &str, part: &str, body: &str| {
        server.send_as(Method::PATCH, &format!("{PODS}/{name}{part}"), "application/merge-patch+json", body).await
    };
    for i in 0..2 {
        assert_eq!(patch("good", "", &label(i)).await.0, 200);
        let (code, status) = patch("bad", "", &label(i)).await;
        let message = status.str_at(&["message"]).to_owned();
        assert!(code == 422 && message.contains("Sometimes"), "{code} {message}");
        // Writing its status, which has rules of its own, does not make the spec a good one.
        let running = format!(r#"{{"status":{{"message":"{i}"}}}}"#);
        assert_eq!(patch("bad", "/status", &running).await.0, 200);
        assert_eq!(patch("good", "/status", &running).await.0, 200);
    }
    // A spec that changes is judged, whether the one before it was or not.
    let (code, _) = patch("good", "", r#"{"spec":{"activeDeadlineSeconds":-1}}"#).await;
    assert_eq!(code, 422);
}
