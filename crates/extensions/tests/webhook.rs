//! Conversion by webhook: what it does well, and what it cannot do to stored objects however badly it behaves.

use crate::common::{Server, definition, definitions, in_memory, start_with, things, value};
use http_body_util::BodyExt;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_codec::json;
use kubelith_http::{Body, Handler, Reply, Request, Response};
use kubelith_meta::{Status, Value};
use kubelith_observe::metrics::prometheus::TextEncoder;
use kubelith_server::loopback::{ResourceRef, WatchEvent, WatchKind};
use kubelith_server::testing::TestServer;
use kubelith_store::MemoryStore;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const VERSIONS: &str = r#"[
    {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{"host":{"type":"string"},"port":{"type":"string"}}}}}}},
    {"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{"address":{"type":"string"}}}}}}}]"#;

/// `None`: it never answers.
type Answer = Arc<dyn Fn(&Value) -> Option<Vec<u8>> + Send + Sync>;

/// A webhook that answers reviews as it is told to.
struct Hook {
    frame: TestServer,
    answer: Arc<Mutex<Answer>>,
}

struct Reviews(Arc<Mutex<Answer>>);

impl Handler for Reviews {
    fn handle(&self, request: Request) -> Reply {
        let answer = self.0.lock().unwrap().clone();
        Reply::pending(async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review = json::parse(&body).unwrap();
            match answer(&review) {
                Some(answer) => Response::new(Body::from(bytes::Bytes::from(answer))),
                None => std::future::pending().await,
            }
        })
    }
}

impl Hook {
    async fn start() -> Hook {
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Arc::new(|review| Some(well(review, |_| {})))));
        let handler: Arc<dyn Handler> = Arc::new(Reviews(answer.clone()));
        let allow = |config: &mut kubelith_server::ServerConfig| config.chain.authorizer = Arc::new(AlwaysAllow);
        let frame = TestServer::start_with(allow, |builder| builder.delegate(handler)).await;
        Hook { frame, answer }
    }

    fn behave(&self, answer: impl Fn(&Value) -> Vec<u8> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(move |review| Some(answer(review)));
    }

    fn hang(&self) {
        *self.answer.lock().unwrap() = Arc::new(|_| None);
    }

    /// `spec.conversion` that leads here.
    fn conversion(&self) -> Value {
        let ca = std::fs::read(self.frame.pki_dir().join("ca.crt")).unwrap();
        let mut conversion = value(r#"{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}}"#);
        let url = format!("https://localhost:{}/convert", self.frame.address.port());
        conversion.set_at(&["webhook", "clientConfig", "url"], url.into());
        conversion.set_at(&["webhook", "clientConfig", "caBundle"], kubelith_codec::base64::encode(&ca).into());
        conversion
    }
}

/// The answer of a webhook that knows its work, spoilt by `spoil`.
fn well(review: &Value, spoil: impl Fn(&mut Value)) -> Vec<u8> {
    let wanted = review.str_at(&["request", "desiredAPIVersion"]);
    let objects = review.at(&["request", "objects"]).and_then(Value::as_array).unwrap();
    let convert = |object: &Value| {
        let mut object = object.clone();
        object.set_at(&["apiVersion"], wanted.into());
        let spec = object.get("spec").cloned().unwrap_or_default();
        let spec = match wanted.ends_with("v2") {
            true => {
                let address = format!("{}:{}", spec.str_at(&["host"]), spec.str_at(&["port"]));
                Value::from([("address", address)])
            }
            false => {
                let (host, port) = spec.str_at(&["address"]).split_once(':').unwrap_or(("", ""));
                Value::from([("host", host), ("port", port)])
            }
        };
        object.set_at(&["spec"], spec);
        object
    };
    let response = Value::from([
        ("uid", Value::from(review.str_at(&["request", "uid"]))),
        ("result", Value::from([("status", "Success")])),
        ("convertedObjects", Value::Array(objects.iter().map(convert).collect())),
    ]);
    let mut answer = value(r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#);
    answer.set_at(&["response"], response);
    spoil(&mut answer);
    json::to_vec(&answer)
}

fn first(answer: &mut Value) -> &mut Value {
    &mut answer.at_mut(&["response", "convertedObjects"]).and_then(Value::as_array_mut).unwrap()[0]
}

async fn defined(hook: &Hook) -> Server {
    defined_on(in_memory().await, hook).await
}

async fn defined_on(server: Server, hook: &Hook) -> Server {
    let mut definition = definition(VERSIONS);
    definition.set_at(&["spec", "conversion"], hook.conversion());
    server.define(&definition).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","labels":{"l":"1"}},
                     "spec":{"host":"h","port":"80"}}"#;
    server.create("v1", object).await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_converted_both_ways() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    assert_eq!(server.get("v2", "a").await.unwrap().str_at(&["spec", "address"]), "h:80");
    let object = r#"{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"b"},"spec":{"address":"x:1"}}"#;
    let created = server.create("v2", object).await.unwrap();
    assert_eq!(created.str_at(&["spec", "address"]), "x:1");
    assert_eq!(server.get("v1", "b").await.unwrap().get("spec"), Some(&value(r#"{"host":"x","port":"1"}"#)));
    let resource = things("v2");
    let list = server.client.list(&ResourceRef::new(&resource)).await.unwrap();
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_webhook_fails_requests_and_damages_nothing() {
    type Spoil = fn(&mut Value);
    let cases: [(&str, Spoil); 13] = [
        ("failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion", |a| {
            a.set_at(&["apiVersion"], "apiextensions.k8s.io/v1beta1".into());
        }),
        ("returned invalid metadata: metadata.labels[l] must be a string, but is int64 in converted object", |a| {
            first(a).set_at(&["metadata", "labels", "l"], Value::Int(1));
        }),
        ("returned invalid metadata: invalid metadata.labels of type string in converted object", |a| {
            first(a).set_at(&["metadata", "labels"], "l".into());
        }),
        ("returned invalid metadata: invalid metadata.annotations of type bool in converted object", |a| {
            first(a).set_at(&["metadata", "annotations"], true.into());
        }),
        ("expected response.uid=", |a| a.set_at(&["response", "uid"], "another".into())),
        ("no response provided", |a| drop(a.remove_at(&["response"]))),
        ("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview", |a| {
            a.set_at(&["kind"], "Other".into());
        }),
        ("out of order", |a| {
            a.set_at(&["response", "result"], value(r#"{"status":"Failure","message":"out of order"}"#))
        }),
        ("response.result.status was '', not 'Success'", |a| drop(a.remove_at(&["response", "result"]))),
        ("returned 0 objects, expected 1", |a| drop(a.remove_at(&["response", "convertedObjects"]))),
        ("must have the same name: a != z", |a| first(a).set_at(&["metadata", "name"], "z".into())),
        ("must have the same UID", |a| first(a).set_at(&["metadata", "uid"], "z".into())),
        ("invalid groupVersion (expected example.com/v2, received example.com/v3)", |a| {
            first(a).set_at(&["apiVersion"], "example.com/v3".into());
        }),
    ];
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    let before = server.get("v1", "a").await.unwrap();
    for (wanted, spoil) in cases {
        hook.behave(move |review| well(review, spoil));
        let refused: Status = server.get("v2", "a").await.unwrap_err();
        assert_eq!(refused.code, 500, "{wanted}");
        assert!(
            refused.message.starts_with("conversion webhook for example.com/v1, Kind=Thing"),
            "{}",
            refused.message
        );
        assert!(refused.message.contains(wanted), "{wanted}: {}", refused.message);
        let object =
            r#"{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"n"},"spec":{"address":"x:1"}}"#;
        assert!(server.create("v2", object).await.is_err(), "{wanted}");
        assert_eq!(server.get("v1", "n").await.unwrap_err().code, 404, "{wanted}");
    }
    let unreadable: [(&[u8], &str); 5] = [
        (b"", "0-length response with status code: 200 and content type: "),
        (
            b"{no",
            "couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key",
        ),
        (
            b"no JSON",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type",
        ),
        (b"[]", "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type"),
        (b"\0", "yaml: control characters are not allowed"),
    ];
    for (body, wanted) in unreadable {
        hook.behave(move |_| body.to_vec());
        let refused = server.get("v2", "a").await.unwrap_err();
        let wanted = format!("conversion webhook for example.com/v1, Kind=Thing failed: {wanted}");
        assert!(refused.message.starts_with(&wanted), "{wanted}: {}", refused.message);
    }
    assert_eq!(server.get("v1", "a").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_is_waited_for_no_longer_than_it_may_take() {
    let hook = Hook::start().await;
    let store = Arc::new(MemoryStore::default());
    let server =
        defined_on(start_with(store, |config| config.webhook_timeout = Duration::from_millis(200)).await, &hook).await;
    hook.hang();
    let refused = server.get("v2", "a").await.unwrap_err();
    let wanted = format!(
        "conversion webhook for example.com/v1, Kind=Thing failed: \
         Post \"https://localhost:{}/convert?timeout=1s\": context deadline exceeded",
        hook.frame.address.port()
    );
    assert_eq!((refused.code, refused.message), (500, wanted));
    assert_eq!(server.get("v1", "a").await.unwrap().str_at(&["spec", "host"]), "h");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_waits_for_a_webhook_that_fails() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    let resource = things("v2");
    let collection = ResourceRef::new(&resource).with("resourceVersion", "0");
    let mut events = server.client.watch(&collection).await.unwrap();
    let shown = |event: WatchEvent| {
        assert_eq!(event.kind, WatchKind::Added);
        (event.object.meta().name().to_owned(), event.object.str_at(&["spec", "address"]).to_owned())
    };
    assert_eq!(shown(events.next().await.unwrap().unwrap()), ("a".to_owned(), "h:80".to_owned()));
    let (asked, mut heard) = tokio::sync::mpsc::unbounded_channel();
    hook.behave(move |review| {
        let _ = asked.send(());
        well(review, |answer| answer.set_at(&["response", "result", "status"], "Failure".into()))
    });
    let object =
        r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"host":"x","port":"1"}}"#;
    server.create("v1", object).await.unwrap();
    let next = tokio::spawn(async move { events.next().await.unwrap().unwrap() });
    heard.recv().await.unwrap();
    assert!(server.get("v2", "b").await.is_err(), "who reads is told");
    hook.behave(|review| well(review, |_| {}));
    assert_eq!(shown(next.await.unwrap()), ("b".to_owned(), "x:1".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_begins_while_a_webhook_fails_is_not_silent() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    let fail = || hook.behave(|review| well(review, |a| a.set_at(&["response", "result", "status"], "Failure".into())));
    let resource = things("v2");
    let collection = ResourceRef::new(&resource);
    let create = async |name: &str| {
        let object = format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{{"host":"x"}}}}"#
        );
        server.create("v1", &object).await.unwrap();
    };
    server.client.delete(&ResourceRef::new(&resource).namespace("default").name("a"), None).await.unwrap();
    fail();
    create("b").await;
    let refused = server.client.watch(&collection).await.err().unwrap();
    let wanted = "storage is (re)initializing: failed to list example.com/v2, Kind=Thing: conversion webhook for \
                  example.com/v1, Kind=Thing failed: ";
    assert_eq!(refused.code, 429);
    assert!(refused.message.starts_with(wanted), "{}", refused.message);

    hook.behave(|review| well(review, |_| {}));
    server.get("v2", "b").await.unwrap();
    fail();
    create("a").await;
    let mut events = server.client.watch(&collection).await.unwrap();
    let mut name = async || events.next().await.unwrap().unwrap().object.meta().name().to_owned();
    assert_eq!(name().await, "b", "what was converted before is there at once");
    hook.behave(|review| well(review, |_| {}));
    assert_eq!(name().await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_are_counted_by_their_outcome() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    server.get("v2", "a").await.unwrap();
    hook.behave(|_| b"no JSON".to_vec());
    let object = r#"{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"n"},"spec":{"address":"x:1"}}"#;
    server.create("v2", object).await.unwrap_err();
    let text = TextEncoder::new().encode_to_string(&server.metrics.registry.gather()).unwrap();
    for wanted in [
        r#"apiserver_conversion_webhook_request_total{failure_type="",result="success"} 1"#,
        r#"apiserver_conversion_webhook_request_total{failure_type="conversion_webhook_call_failure",result="failure"} "#,
        r#"apiserver_conversion_webhook_duration_seconds_count{failure_type="",result="success"} 1"#,
        r#"apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="things.example.com",from_version="v1",succeeded="true",to_version="v2"} 1"#,
        r#"apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="things.example.com",from_version="v2",succeeded="false",to_version="v1"} "#,
        r#"apiextensions_openapi_v2_regeneration_count{crd="things.example.com",reason="add"} 1"#,
        r#"apiextensions_openapi_v3_regeneration_count{crd="things.example.com",group="example.com",reason="add",version="v2"} 1"#,
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_metadata_only_labels_and_annotations_change() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    hook.behave(|review| {
        well(review, |answer| {
            let metadata = r#"{"labels":{"l":"2"},"annotations":{"a":"b"},"generation":99,"finalizers":["x/y"]}"#;
            for (key, member) in value(metadata).as_object().unwrap().iter() {
                first(answer).set_at(&["metadata", key], member.clone());
            }
        })
    });
    let got = server.get("v2", "a").await.unwrap();
    assert_eq!(got.at(&["metadata", "labels"]), Some(&value(r#"{"l":"2"}"#)));
    assert_eq!(got.meta().annotation("a"), Some("b"));
    assert_eq!(got.meta().generation(), 1);
    assert_eq!(got.meta().finalizers().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_an_error_with_its_address() {
    let hook = Hook::start().await;
    let server = defined(&hook).await;
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    let service = value(r#"{"name":"hook","namespace":"ns","path":"/convert","port":443}"#);
    // Its conditions may be written meanwhile.
    loop {
        let mut definition = server.client.get(&target).await.unwrap();
        definition
            .set_at(&["spec", "conversion", "webhook", "clientConfig"], Value::from([("service", service.clone())]));
        match server.client.update(&target, &definition).await {
            Err(status) if status.code == 409 => continue,
            outcome => break drop(outcome.unwrap()),
        }
    }
    let refused = server.get("v2", "a").await.unwrap_err();
    let wanted = "conversion webhook for example.com/v1, Kind=Thing failed: \
                  Post \"https://hook.ns.svc:443/convert?timeout=30s\": service \"hook\" not found";
    assert_eq!(refused.message, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_look_at_what_clients_see() {
    let hook = Hook::start().await;
    let server = in_memory().await;
    let selectable = |version: &str, path: &str| {
        let name = format!("\"name\":\"{version}\",");
        (name.clone(), format!("{name}\"selectableFields\":[{{\"jsonPath\":\"{path}\"}}],"))
    };
    let versions = [selectable("v1", ".spec.host"), selectable("v2", ".spec.address")]
        .iter()
        .fold(VERSIONS.to_owned(), |text, (name, with)| text.replace(name, with));
    let mut definition = definition(&versions);
    definition.set_at(&["spec", "conversion"], hook.conversion());
    server.define(&definition).await;
    for (name, host) in [("a", "h"), ("b", "x"), ("c", "h")] {
        let object = format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{name}"}},
                "spec":{{"host":"{host}","port":"1"}}}}"#
        );
        server.create("v1", &object).await.unwrap();
    }
    let names = async |path: &str| {
        let list = server.document(&format!("/apis/example.com/{path}")).await;
        let items = list.get("items").and_then(Value::as_array).unwrap().iter();
        items.map(|item| item.meta().name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("v1/things?fieldSelector=spec.host%3Dh").await, ["a", "c"]);
    assert_eq!(names("v2/things?fieldSelector=spec.address%3Dh:1").await, ["a", "c"]);
    assert_eq!(names("v2/things?fieldSelector=spec.address%3Dh:1&limit=1").await, ["a"]);
    assert_eq!(names("v2/things?fieldSelector=spec.address%21%3Dh:1").await, ["b"]);
    assert_eq!(names("v2/things?fieldSelector=spec.address%3Dh").await, [""; 0]);
    let resource = things("v2");
    let collection = ResourceRef::new(&resource).with("resourceVersion", "0").with("fieldSelector", "spec.address=x:1");
    let mut events = server.client.watch(&collection).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().object.meta().name(), "b");
}
