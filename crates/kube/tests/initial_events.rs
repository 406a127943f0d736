//! What watches begin with where that is more than is read at a time: each object once, as readers get it, then the
//! bookmark where one is due, then what was written since.

use crate::support::Server;
use http::Method;
use kubelith_codec::frames;
use kubelith_codec::object::object_json;
use kubelith_kube::Install;
use kubelith_meta::time::TestClock;
use kubelith_meta::{Time, Value};
use kubelith_store::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;

const URI: &str = "/api/v1/namespaces/default/configmaps";
/// More than two of the batches (256) in which a watch reads what it begins with, and not a whole number of them.
const MAPS: usize = 600;
/// How many objects selectors find: about one batch, about two, all.
const FOUND: [usize; 6] = [255, 256, 257, 512, 513, MAPS];
/// Selectors that an index answers, and some for which objects are looked at; nothing is everything.
const SELECTORS: [&str; 9] = [
    "",
    "among-255=yes",
    "among-256=yes",
    "among-257=yes",
    "among-512=yes",
    "among-513=yes",
    "among-600=yes",
    "among-257",
    "among-513,!nothing",
];

/// Whether a watch says when it has told of all that there was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Told,
    Untold,
}

/// The ways to ask for what there is: by the parameters, or by the old paths, where nobody tells of an end.
const STARTS: [(&str, &str, End); 5] = [
    ("", "watch=true", End::Untold),
    ("", "watch=true&allowWatchBookmarks=true", End::Told),
    ("", "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", End::Untold),
    ("", "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", End::Told),
    ("/watch", "allowWatchBookmarks=true", End::Untold),
];

/// A change of an object, and the revision that it made.
struct Change {
    before: Option<Value>,
    after: Option<Value>,
    revision: String,
}

impl Change {
    /// What a watch says of it.
    fn told(&self, selector: &str) -> Option<Vec<u8>> {
        let before = self.before.as_ref().filter(|object| is_selected(object, selector));
        let after = self.after.as_ref().filter(|object| is_selected(object, selector));
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(event("ADDED", after)),
            (Some(_), Some(after)) => Some(event("MODIFIED", after)),
            (Some(before), None) => {
                let mut last = before.clone();
                last.set_at(&["metadata", "resourceVersion"], Value::from(self.revision.as_str()));
                Some(event("DELETED", &last))
            }
        }
    }
}

/// An event as it goes to clients.
fn event(kind: &str, object: &Value) -> Vec<u8> {
    frames::json_event(kind).with(&object_json(object))
}

fn is_selected(object: &Value, selector: &str) -> bool {
    let label = selector.split(['=', ',']).next().unwrap_or_default();
    label.is_empty() || object.at(&["metadata", "labels", label]).is_some()
}

fn map(n: usize, found: &[usize]) -> String {
    let labels: Vec<String> = found.iter().map(|found| format!(r#""among-{found}":"yes""#)).collect();
    format!(r#"{{"metadata":{{"name":"map-{n:03}","labels":{{{}}}}},"data":{{"n":"{n}"}}}}"#, labels.join(","))
}

async fn create(server: &Server, uri: &str, body: &str) -> Value {
    let (code, made) = server.send(Method::POST, uri, body).await;
    assert_eq!(code, 201, "{made:?}");
    made
}

async fn revision(server: &Server) -> String {
    let (code, page) = server.send(Method::GET, &format!("{URI}?limit=1"), "").await;
    assert_eq!(code, 200, "{page:?}");
    page.str_at(&["metadata", "resourceVersion"]).to_owned()
}

async fn change(server: &Server, n: usize, method: Method, body: &str) -> Change {
    let uri = format!("{URI}/map-{n:03}");
    let read = async || match server.send(Method::GET, &uri, "").await {
        (200, object) => Some(object),
        (code, status) => {
            assert_eq!(code, 404, "{status:?}");
            None
        }
    };
    let before = read().await;
    let (to, content_type) = match method {
        Method::POST => (URI, "application/json"),
        _ => (uri.as_str(), "application/merge-patch+json"),
    };
    let (code, answer) = server.send_as(method, to, content_type, body).await;
    assert!((200..300).contains(&code), "{answer:?}");
    Change { before, after: read().await, revision: revision(server).await }
}

/// Changes of objects that a watch sends at once, and of those that it has yet to read. They are more than a watch takes over
/// at a time (256), too.
async fn changes(server: &Server) -> Vec<Change> {
    let mut changes = Vec::new();
    for n in (0..MAPS).step_by(2).chain([MAPS - 1]) {
        changes.push(change(server, n, Method::PATCH, r#"{"data":{"n":"changed"}}"#).await);
    }
    for n in [1, 254, 255, 510, 511] {
        changes.push(change(server, n, Method::DELETE, "").await);
    }
    // Some leave what is selected, and others come to it.
    for n in [2, 253, 256, 509] {
        changes.push(change(server, n, Method::PATCH, r#"{"metadata":{"labels":null}}"#).await);
    }
    let labels = map(MAPS - 2, &FOUND);
    changes.push(change(server, MAPS - 2, Method::PATCH, &labels).await);
    changes.push(change(server, MAPS, Method::POST, &map(MAPS, &FOUND)).await);
    changes
}

fn bookmark(revision: &str) -> Vec<u8> {
    let metadata =
        format!(r#"{{"annotations":{{"k8s.io/initial-events-end":"true"}},"resourceVersion":"{revision}"}}"#);
    let object = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata}}}"#);
    frames::json_event("BOOKMARK").with(object.as_bytes())
}

#[tokio::test]
async fn watches_begin_with_each_of_hundreds_of_objects_once() {
    let server = Server::start().await;
    let mut made = Vec::new();
    for n in 0..MAPS {
        let found: Vec<usize> = FOUND.into_iter().filter(|found| n < *found).collect();
        made.push(create(&server, URI, &map(n, &found)).await);
    }
    server.settle().await;
    let begin = revision(&server).await;
    let mut watches = Vec::new();
    for (root, start, end) in STARTS {
        for (namespace, from) in [("/namespaces/default", ""), ("/namespaces/default", "0"), ("", ""), ("", "0")] {
            for selector in SELECTORS {
                let path = format!("/api/v1{root}{namespace}/configmaps");
                let escaped = selector.replace('=', "%3D").replace(',', "%2C");
                let uri = format!("{path}?{start}&resourceVersion={from}&labelSelector={escaped}");
                watches.push((server.watch(&uri).await, selector, end, uri));
            }
        }
    }
    // Nobody has read anything yet.
    let changes = changes(&server).await;
    server.settle().await;
    let bookmark = bookmark(&begin);
    let told = SELECTORS.map(|selector| {
        let initial = made.iter().filter(|object| is_selected(object, selector));
        let initial: Vec<Vec<u8>> = initial.map(|object| event("ADDED", object)).collect();
        let later: Vec<Vec<u8>> = changes.iter().filter_map(|change| change.told(selector)).collect();
        (selector, (initial, later))
    });
    let told = BTreeMap::from(told);
    for (mut events, selector, end, uri) in watches {
        let (initial, later) = &told[selector];
        let bookmark = (end == End::Told).then_some(&bookmark);
        let expected: Vec<&[u8]> = initial.iter().chain(bookmark).chain(later).map(Vec::as_slice).collect();
        let sent = events.ready_bytes();
        let sent: Vec<&[u8]> = sent.split_inclusive(|b| *b == b'\n').collect();
        if let Some(n) = (0..sent.len().max(expected.len())).find(|n| sent.get(*n) != expected.get(*n)) {
            let text =
                |event: Option<&&[u8]>| String::from_utf8_lossy(event.unwrap_or(&&b"nothing\n"[..])).into_owned();
            let (is, wanted) = (text(sent.get(n)), text(expected.get(n)));
            panic!("{uri}: {} events of {}; number {n} is\n{is}and not\n{wanted}", sent.len(), expected.len());
        }
    }
}

/// Objects of the two resources whose forms are asked for: more than one batch.
const FORMED: usize = 300;

/// How objects are asked for.
const FORMS: [(&str, &str, &str); 9] = [
    (URI, JSON, ""),
    (URI, JSON, "PartialObjectMetadata"),
    (URI, JSON, "Table"),
    (URI, PROTOBUF, ""),
    (URI, PROTOBUF, "PartialObjectMetadata"),
    (EVENTS, JSON, ""),
    (EVENTS, PROTOBUF, ""),
    (EVENTS_ANEW, JSON, ""),
    (EVENTS_ANEW, PROTOBUF, ""),
];
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const EVENTS_ANEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// An event with an object as a reader gets it.
async fn read(server: &Server, uri: &str, accept: &str, kind: &str) -> Vec<u8> {
    let (code, object) = server.read_as(uri, accept).await;
    assert_eq!(code, 200, "{uri} as {accept}");
    match accept.starts_with(PROTOBUF) {
        true => frames::proto_event(kind, object.len()).with(&object),
        false => frames::json_event(kind).with(&object),
    }
}

/// Only the first table of a watch says what its columns are.
fn without_columns(table: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(table);
    let Some((before, columns)) = text.split_once(r#""columnDefinitions":["#) else { return table.to_vec() };
    let (_, after) = columns.split_once(']').unwrap();
    format!(r#"{before}"columnDefinitions":null{after}"#).into_bytes()
}

#[tokio::test]
async fn hundreds_of_objects_come_in_the_form_that_was_asked_for() {
    // Tables tell how old objects are.
    let clock = Arc::new(TestClock::new(Time::parse("2026-01-01T00:00:00Z").unwrap()));
    let server = Server::with(Arc::new(MemoryStore::default()), |install| Install { clock, ..install }).await;
    for n in 0..FORMED {
        create(&server, URI, &map(n, &[])).await;
        let about = r#""involvedObject":{"namespace":"default"},"reason":"r","message":"m""#;
        create(&server, EVENTS, &format!(r#"{{"metadata":{{"name":"map-{n:03}"}},{about}}}"#)).await;
    }
    let start = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for (step, (uri, media_type, target)) in FORMS.into_iter().enumerate() {
        let accept = match target {
            "" => media_type.to_owned(),
            _ => format!("{media_type};as={target};g=meta.k8s.io;v=v1"),
        };
        let case = format!("{uri} as {accept}");
        let mut watch = server.watch_as(&format!("{uri}?{start}"), &accept).await;
        let mut initial = read(&server, &format!("{uri}/map-000"), &accept, "ADDED").await;
        for n in 1..FORMED {
            initial.extend(without_columns(&read(&server, &format!("{uri}/map-{n:03}"), &accept, "ADDED").await));
        }
        let last = format!("{uri}/map-{:03}", FORMED - 1);
        let label = format!(r#"{{"metadata":{{"labels":{{"step":"{step}"}}}}}}"#);
        let (code, _) = server.send_as(Method::PATCH, &last, "application/merge-patch+json", &label).await;
        assert_eq!(code, 200, "{case}");
        server.settle().await;
        let later = without_columns(&read(&server, &last, &accept, "MODIFIED").await);
        let sent = watch.ready_bytes();
        let rest = sent.strip_prefix(&initial[..]).unwrap_or_else(|| panic!("{case}: the objects of the start"));
        let end = rest.strip_suffix(&later[..]).unwrap_or_else(|| panic!("{case}: what came later"));
        let count = |text: &[u8]| end.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"BOOKMARK"), count(b"k8s.io/initial-events-end")), (1, 1), "{case}");
        assert_eq!((count(b"ADDED"), count(b"MODIFIED")), (0, 0), "{case}");
    }
}
