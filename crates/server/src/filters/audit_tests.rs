use super::*;
use bytes::Bytes;
use http_body_util::BodyExt;
use kubelith_http::{Body, RequestBody, RequestInfo};
use kubelith_observe::audit::backend::Written;
use kubelith_observe::audit::{Backend, Mode};
use std::sync::Mutex;

#[derive(Default)]
struct Lines {
    lines: Mutex<Vec<String>>,
    fails: bool,
}

impl Backend for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_> {
        if self.fails {
            return Written::Now(Err("disk full".into()));
        }
        for event in events {
            let status = event.status.as_ref();
            let code = status.map_or("-".into(), |s| s.code.to_string());
            let message = status.map_or("", |s| s.message.as_str());
            let object = event.gathered.response_object.as_ref().map_or("", |o| std::str::from_utf8(o).unwrap());
            let line = format!("{} {code} {message} {object}", event.stage.name());
            self.lines.lock().unwrap().push(line.trim_end().to_owned());
        }
        Written::Now(Ok(()))
    }
}

struct Probe {
    lines: Arc<Lines>,
    audit: Arc<Audit>,
}

fn probe(rule: &str, fails: bool) -> Probe {
    let policy = Policy::parse(format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{rule}]").as_bytes());
    let metrics = Arc::new(AuditMetrics::new(&kubelith_observe::metrics::Registry::new()));
    let lines = Arc::new(Lines { fails, ..Lines::default() });
    let mut backends = Backends::new(&metrics);
    let mode = if fails { Mode::BlockingStrict } else { Mode::Blocking };
    backends.add(lines.clone(), mode, None);
    let audit = Arc::new(Audit { policy: policy.unwrap(), backends: Arc::new(backends), metrics });
    Probe { lines, audit }
}

fn request(path: &str) -> Request {
    let mut request = Request::from(http::Request::get(path).body(RequestBody::Full(None)).unwrap());
    let info = RequestInfo::parse(request.method(), request.uri().path(), request.uri()).unwrap();
    request.context_mut().info = Some(Arc::new(info));
    request
}

impl Probe {
    async fn send(&self, path: &str, answer: impl Fn() -> Response + Send + Sync + 'static) -> Response {
        let next: BoxHandler = Arc::new(move |_: Request| -> Reply {
            let response = answer();
            Reply::Ready(response)
        });
        layer(&self.audit).wrap(next).handle(request(path)).await
    }

    /// Detached events are written by tasks that are ready to run.
    async fn lines(&self) -> Vec<String> {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.lines.lines.lock().unwrap().clone()
    }
}

const POD: &str = "/api/v1/namespaces/n/pods/p";
const WATCH: &str = "/api/v1/namespaces/n/pods?watch=1";

#[tokio::test]
async fn stages_of_a_request() {
    let probe = probe("{level: Metadata}", false);
    probe.send(POD, || respond::json(http::StatusCode::OK, "{}")).await;
    assert_eq!(probe.lines().await, ["RequestReceived -", "ResponseComplete 200"]);
}

#[tokio::test]
async fn a_status_tells_more_than_its_code() {
    let probe = probe("{level: Metadata, omitStages: [RequestReceived]}", false);
    let status = || kubelith_meta::Status::bad_request("no");
    probe.send(POD, move || respond::status_json(&status())).await;
    assert_eq!(probe.lines().await, ["ResponseComplete 400 no"]);
}

#[tokio::test]
async fn answers_are_kept_without_managed_fields() {
    let probe = probe("{level: RequestResponse, omitStages: [RequestReceived], omitManagedFields: true}", false);
    let body = r#"{"kind":"PodList","items":[{"metadata":{"managedFields":[1],"name":"p"}}]}"#;
    probe.send(POD, move || respond::json(http::StatusCode::OK, body)).await;
    // And those that are streamed.
    let pieces = || futures::stream::iter([&b"{\"a\""[..], b":1}"].map(|p| Ok(Bytes::from_static(p))));
    let streamed = move || {
        let mut response = respond::json(http::StatusCode::OK, "");
        *response.body_mut() = Body::stream(pieces());
        response
    };
    let response = probe.send(POD, streamed).await;
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{\"a\":1}");
    let want = [
        r#"ResponseComplete 200  {"items":[{"metadata":{"name":"p"}}],"kind":"PodList"}"#,
        r#"ResponseComplete 200  {"a":1}"#,
    ];
    assert_eq!(probe.lines().await, want);
}

/// Whoever has the answer of a short list finds the request in the log.
#[tokio::test]
async fn a_list_in_pieces_is_logged_before_it_is_sent() {
    let probe = probe("{level: RequestResponse, omitStages: [RequestReceived]}", false);
    let list = || {
        let mut response = respond::json(http::StatusCode::OK, "");
        *response.body_mut() = Body::Chunks([&b"[1"[..], b",2", b"]"].map(Bytes::from_static).into());
        response
    };
    let _unread = probe.send(POD, list).await;
    assert_eq!(probe.lines().await, ["ResponseComplete 200  [1,2]"]);
}

#[tokio::test]
async fn a_watch_ends_with_its_body() {
    let probe = probe("{level: Metadata, omitStages: [RequestReceived]}", false);
    let endless = || Response::new(Body::stream(futures::stream::pending()));
    let response = probe.send(WATCH, endless).await;
    assert_eq!(probe.lines().await, ["ResponseStarted 200"]);
    drop(response);
    assert_eq!(probe.lines().await, ["ResponseStarted 200", "ResponseComplete 200"]);
}

#[tokio::test]
async fn a_request_that_is_given_up_is_not_forgotten() {
    let probe = probe("{level: Metadata, omitStages: [RequestReceived]}", false);
    let next: BoxHandler = Arc::new(|_: Request| -> Reply { Reply::pending(std::future::pending()) });
    let mut waiting = layer(&probe.audit).wrap(next).handle(request(POD)).into_future();
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(waiting);
    assert_eq!(probe.lines().await, ["ResponseComplete 200 Connection closed early"]);
}

#[tokio::test]
async fn a_panic_is_an_event_and_goes_on() {
    let probe = probe("{level: Metadata, omitStages: [RequestReceived]}", false);
    let sent = AssertUnwindSafe(probe.send(POD, || panic!("boom"))).catch_unwind().await;
    assert!(sent.is_err());
    assert_eq!(probe.lines().await, ["Panic 500 APIServer panic'd: boom"]);
}

#[tokio::test]
async fn strict_refuses_what_cannot_be_written() {
    let probe = probe("{level: Metadata}", true);
    let response = probe.send(POD, || panic!("the request must not get here")).await;
    assert_eq!(response.status(), 500);
    assert_eq!(probe.audit.metrics.rejected.get(), 1);
}

#[tokio::test]
async fn level_none_costs_nothing() {
    let probe = probe("{level: None}", false);
    probe.send(POD, || respond::json(http::StatusCode::OK, "{}")).await;
    assert!(probe.lines().await.is_empty());
    assert_eq!(probe.audit.metrics.levels.with_label_values(&["None"]).get(), 1);
}

#[tokio::test]
async fn a_failed_authentication_is_one_event() {
    let probe = probe("{level: Metadata}", false);
    let failed = failed_authentication_layer(&probe.audit).wrap(super::super::authentication::unauthorized());
    assert_eq!(failed.handle(request(POD)).await.status(), 401);
    assert_eq!(probe.lines().await, ["ResponseStarted 401 Unauthorized"]);
}

#[test]
fn sources() {
    let headers = |list: &[(&'static str, &'static str)]| {
        list.iter().map(|(k, v)| (http::HeaderName::from_static(k), v.parse().unwrap())).collect::<HeaderMap>()
    };
    let remote: Option<IpAddr> = Some("10.0.0.9".parse().unwrap());
    let cases = [
        (headers(&[]), "10.0.0.9"),
        (headers(&[("x-forwarded-for", "1.1.1.1, nonsense, 2.2.2.2")]), "1.1.1.1 2.2.2.2 10.0.0.9"),
        (headers(&[("x-forwarded-for", "10.0.0.9")]), "10.0.0.9"),
        (headers(&[("x-real-ip", "3.3.3.3")]), "3.3.3.3 10.0.0.9"),
    ];
    for (headers, want) in cases {
        let got: Vec<String> = source_ips(&headers, remote).iter().map(IpAddr::to_string).collect();
        assert_eq!(got.join(" "), want);
    }
    let long = "x".repeat(2000);
    let headers = HeaderMap::from_iter([(USER_AGENT, long.parse().unwrap())]);
    assert_eq!(user_agent(&headers).len(), MAX_USER_AGENT + "...TRUNCATED".len());
}
