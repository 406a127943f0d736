use super::*;
use crate::filters::{request_info, service_quality};
use bytes::Bytes;
use http_body_util::BodyExt;
use kubelith_auth::User;
use kubelith_http::{Body, BoxHandler, Reply, RequestBody, Response};
use kubelith_observe::metrics::Metrics;

fn class(name: &str, data: &[(&'static str, &'static str)]) -> Class {
    Class::parse(name, data.iter().copied()).unwrap()
}

struct Frame {
    quality: Arc<Quality>,
    metrics: Metrics,
    handler: BoxHandler,
}

impl Frame {
    /// Lists are 3,000 bytes in three pieces; watches do not end.
    fn new(classes: &[Class]) -> Frame {
        let metrics = Metrics::new();
        let quality = Quality::new(&metrics.registry);
        classes.iter().for_each(|class| quality.put(class.clone()));
        let end: BoxHandler = Arc::new(|request: Request| -> Reply {
            let piece = || Bytes::from(vec![b'x'; 1000]);
            let body = match request.info().verb.as_str() {
                "watch" => Body::stream(futures::stream::pending()),
                "list" => Body::stream(futures::stream::iter([piece(), piece(), piece()].map(Ok))),
                _ => Body::from("{}"),
            };
            Reply::Ready(Response::new(body))
        });
        let layer = service_quality::layer(quality.clone(), metrics.requests.clone());
        let handler = request_info::layer().wrap(layer.wrap(end));
        Frame { quality, metrics, handler }
    }

    async fn get(&self, user: &str, group: &str, path: &str) -> Response {
        let mut request = Request::from(http::Request::get(path).body(RequestBody::Full(None)).unwrap());
        request.context_mut().user = Some(Arc::new(User::named(user).with_groups(&[group])));
        self.handler.handle(request).await
    }

    fn metrics(&self) -> String {
        let mut text = Vec::new();
        prometheus::Encoder::encode(&prometheus::TextEncoder::new(), &self.metrics.registry.gather(), &mut text)
            .unwrap();
        String::from_utf8(text).unwrap()
    }
}

const POD: &str = "/api/v1/namespaces/ns/pods/p";
const PODS: &str = "/api/v1/namespaces/ns/pods";
const WATCH: &str = "/api/v1/namespaces/ns/pods?watch=1";

#[tokio::test(start_paused = true)]
async fn over_budget_is_refused_with_the_name_of_the_class() {
    let frame = Frame::new(&[class("interns", &[("subjects", "group interns"), ("requests-per-second", "2")])]);
    for user in ["a", "b"] {
        assert_eq!(frame.get(user, "interns", POD).await.status(), 200);
    }
    let refused = frame.get("a", "interns", POD).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        std::str::from_utf8(&body).unwrap().trim_end(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"\"a\" is over its budget of requests per second in service quality class \"interns\"","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}"#
    );
    // Others, and administrators, are not concerned.
    assert_eq!(frame.get("a", "staff", POD).await.status(), 200);
    assert_eq!(frame.get("a", "system:masters", POD).await.status(), 200);
    tokio::time::advance(std::time::Duration::from_millis(500)).await;
    assert_eq!(frame.get("a", "interns", POD).await.status(), 200);
    let metrics = frame.metrics();
    for line in [
        r#"kubelith_service_quality_requests_total{class="interns"} 3"#,
        r#"kubelith_service_quality_refused_requests_total{budget="requests",class="interns"} 1"#,
        r#"kubelith_service_quality_class_valid{class="interns"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_charged_by_what_is_sent() {
    let frame = Frame::new(&[class("c", &[("subjects", "namespace ns"), ("list-bytes-per-second", "1000")])]);
    let list = frame.get("a", "g", PODS).await;
    assert_eq!(list.into_body().collect().await.unwrap().to_bytes().len(), 3000);
    let refused = frame.get("b", "g", PODS).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"2".parse().unwrap()));
    assert_eq!(frame.get("b", "g", POD).await.status(), 200);
    assert_eq!(frame.get("b", "g", "/api/v1/namespaces/other/pods").await.status(), 200);
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    // What the client does not take is not charged.
    let mut list = frame.get("b", "g", PODS).await.into_body();
    list.frame().await.unwrap().unwrap();
    drop(list);
    assert!(frame.metrics().contains(r#"kubelith_service_quality_list_bytes_total{class="c"} 4000"#));
}

#[tokio::test(start_paused = true)]
async fn watches_count_while_they_are_open() {
    let data = [("subjects", "serviceaccount jobs/*"), ("concurrent-watches", "1"), ("shared-by", "user")];
    let frame = Frame::new(&[class("jobs", &data)]);
    let first = frame.get("system:serviceaccount:jobs:a", "g", WATCH).await;
    assert_eq!(frame.get("system:serviceaccount:jobs:a", "g", WATCH).await.status(), 429);
    let other = frame.get("system:serviceaccount:jobs:b", "g", WATCH).await;
    assert_eq!(other.status(), 200);
    assert!(frame.metrics().contains(r#"kubelith_service_quality_watches{class="jobs"} 2"#));
    // A class that changes knows the watches that are open.
    frame.quality.put(class("jobs", &[data[0], ("concurrent-watches", "1"), data[2], ("requests-per-second", "9")]));
    assert_eq!(frame.get("system:serviceaccount:jobs:a", "g", WATCH).await.status(), 429);
    drop(first);
    let again = frame.get("system:serviceaccount:jobs:a", "g", WATCH).await;
    assert_eq!(again.status(), 200);
    drop((again, other));
    assert!(frame.metrics().contains(r#"kubelith_service_quality_watches{class="jobs"} 0"#));
}

#[tokio::test(start_paused = true)]
async fn every_class_must_have_room_and_none_pays_for_the_refusal_of_another() {
    let frame = Frame::new(&[
        class("a", &[("subjects", "user u"), ("requests-per-second", "3"), ("concurrent-watches", "5")]),
        class("b", &[("subjects", "group g"), ("requests-per-second", "1")]),
    ]);
    let _watch = frame.get("u", "g", WATCH).await;
    for _ in 0..5 {
        let refused = frame.get("u", "g", WATCH).await;
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(r#"class \"b\""#));
    }
    frame.quality.remove("b");
    assert_eq!(frame.get("u", "g", POD).await.status(), 200);
    assert_eq!(frame.get("u", "g", POD).await.status(), 200);
    assert_eq!(frame.get("u", "g", POD).await.status(), 429);
    frame.quality.invalid("a");
    assert_eq!(frame.get("u", "g", POD).await.status(), 200);
    let metrics = frame.metrics();
    assert!(metrics.contains(r#"kubelith_service_quality_class_valid{class="a"} 0"#));
    assert!(!metrics.contains(r#"class_valid{class="b"}"#));
    assert!(metrics.contains(r#"kubelith_service_quality_watches{class="a"} 1"#));
}
