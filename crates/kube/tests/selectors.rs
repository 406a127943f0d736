//! What lists and watches with selectors answer is what looking at every object gives, whichever way it was found.

use crate::support::Server;
use http::Method;
use kubelith_meta::{FieldSelector, LabelSelector, Value};

const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];
const PODS: usize = 20;

async fn fill(server: &Server) {
    for (n, namespace) in NAMESPACES.iter().enumerate() {
        for i in 0..PODS {
            let pod = format!(
                r#"{{"metadata":{{"name":"p-{i:02}","labels":{{"app":"app-{}","shard":"{}","tier":"x"}}}},
                    "spec":{{"nodeName":"node-{}","containers":[{{"name":"c","image":"i"}}]}}}}"#,
                i % 7,
                i % 10 + n,
                (i + n) % 9,
            );
            let (code, made) = server.send(Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await;
            assert_eq!(code, 201, "{made:?}");
        }
    }
}

fn key(object: &Value) -> String {
    format!("{}/{}", object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]))
}

fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).unwrap_or(&[])
}

/// The keys of all pods that match, by looking at each.
fn expected(all: &[Value], namespace: &str, labels: &str, fields: &str) -> Vec<String> {
    let labels = LabelSelector::parse(labels).unwrap();
    let fields = FieldSelector::parse(fields).unwrap();
    let matches = |pod: &&Value| {
        let own = pod.at(&["metadata", "labels"]).and_then(Value::as_object);
        let values: Vec<(&str, &str)> = ["metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"]
            .iter()
            .map(|field| (*field, pod.str_at(&field.split('.').collect::<Vec<_>>())))
            .collect();
        (namespace.is_empty() || pod.str_at(&["metadata", "namespace"]) == namespace)
            && own.is_some_and(|own| labels.matches(own))
            && fields.matches(&values[..])
    };
    all.iter().filter(matches).map(key).collect()
}

/// The keys that a list answers, page by page, and how many of the list were left at each.
async fn listed(server: &Server, uri: &str, limit: usize) -> (Vec<String>, Vec<Option<i64>>) {
    let (mut keys, mut left, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = format!("{uri}&limit={limit}&continue={token}");
        let (code, list) = server.send(Method::GET, &page, "").await;
        assert_eq!(code, 200, "{page}: {list:?}");
        keys.extend(items(&list).iter().map(key));
        left.push(list.at(&["metadata", "remainingItemCount"]).and_then(Value::as_i64));
        token = list.str_at(&["metadata", "continue"]).to_owned();
        if token.is_empty() {
            return (keys, left);
        }
    }
}

const LABELS: [&str; 12] = [
    "",
    "app=app-3",
    "app==app-3,tier=x",
    "app in (app-1,app-2),shard=2",
    "app in (app-1,app-2,app-3,app-4,app-5,app-6)",
    "app=nobody",
    "app!=app-3",
    "app notin (app-1),shard in (3,4)",
    "app",
    "!app",
    "shard>9",
    "tier=x",
];
const FIELDS: [&str; 8] = [
    "",
    "spec.nodeName=node-4",
    "spec.nodeName!=node-4",
    "metadata.name=p-03",
    "metadata.namespace=a",
    "metadata.namespace=a-b,spec.nodeName=node-2",
    "metadata.name=p-05,metadata.namespace=b",
    "metadata.name!=p-05,spec.nodeName=node-1",
];

#[tokio::test]
async fn lists_with_selectors_have_what_matches() {
    let server = Server::start().await;
    fill(&server).await;
    let (_, list) = server.send(Method::GET, "/api/v1/pods", "").await;
    let all = items(&list).to_vec();
    assert_eq!(all.len(), NAMESPACES.len() * PODS);
    let revision = list.str_at(&["metadata", "resourceVersion"]).to_owned();
    // Later changes are not part of a list as of then.
    for (name, labels) in [("p-03", r#"{"app":"app-1"}"#), ("p-04", r#"{"app":"other"}"#)] {
        let patch = format!(r#"{{"metadata":{{"labels":{labels}}}}}"#);
        let uri = format!("/api/v1/namespaces/a/pods/{name}");
        let (code, _) = server.send_as(Method::PATCH, &uri, "application/merge-patch+json", &patch).await;
        assert_eq!(code, 200);
    }
    let (code, _) = server.send(Method::DELETE, "/api/v1/namespaces/b/pods/p-05?gracePeriodSeconds=0", "").await;
    assert_eq!(code, 200);
    let now = items(&server.send(Method::GET, "/api/v1/pods", "").await.1).to_vec();
    for (labels, fields) in LABELS.iter().flat_map(|labels| FIELDS.map(|fields| (*labels, fields))) {
        for namespace in ["", "a", "b"] {
            let path = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
            let escaped = |text: &str| text.replace('=', "%3D").replace('>', "%3E").replace(' ', "%20");
            let uri = format!("/api/v1{path}/pods?labelSelector={}&fieldSelector={}", escaped(labels), escaped(fields));
            let wanted = expected(&now, namespace, labels, fields);
            for limit in [0, 3, 500] {
                let (keys, left) = listed(&server, &uri, limit).await;
                assert_eq!(keys, wanted, "{uri} by {limit}");
                let is_everything = labels.is_empty() && fields.is_empty();
                let mut rest = wanted.len();
                for left in &left[..left.len() - 1] {
                    rest -= limit;
                    assert_eq!(*left, is_everything.then_some(rest as i64), "{uri} by {limit}");
                }
            }
            let then = format!("{uri}&resourceVersion={revision}&resourceVersionMatch=Exact");
            let (_, list) = server.send(Method::GET, &then, "").await;
            let keys: Vec<String> = items(&list).iter().map(key).collect();
            assert_eq!(keys, expected(&all, namespace, labels, fields), "{then}");
            let watch = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            let mut events = server.watch(&format!("{uri}&{watch}")).await.ready();
            assert_eq!(events.pop().map(|(kind, _)| kind).as_deref(), Some("BOOKMARK"), "{uri}");
            let keys: Vec<String> = events.iter().map(|(_, object)| key(object)).collect();
            assert_eq!(keys, wanted, "{uri}: initial events");
        }
    }
}
