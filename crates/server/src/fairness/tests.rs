//! Requests through the whole chain: whose turn it is, who is refused, and what is told about it. Handlers stop
//! at a gate that the test opens, so the order is the test's and not the machine's.

use super::*;
use crate::filters::priority_and_fairness;
use crate::testing::{ADMIN_TOKEN, TestServer, USER_TOKEN};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use kubelith_auth::authz::builtin::AlwaysAllow;
use kubelith_codec::json;
use kubelith_http::askers::Askers;
use kubelith_http::connection::ConnectionInfo;
use kubelith_http::{Handler, Reply, RequestBody, Response, respond};
use kubelith_meta::Str;
use kubelith_observe::metrics::Metrics;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

/// Says who runs, and lets them end one by one.
struct Gate {
    entered: mpsc::UnboundedSender<Str>,
    open: Arc<Semaphore>,
}

impl Handler for Gate {
    fn handle(&self, request: Request) -> Reply {
        let user = request.user().map(|u| u.name.clone()).unwrap_or_default();
        let (entered, open) = (self.entered.clone(), self.open.clone());
        Reply::pending(async move {
            let _ = entered.send(user);
            open.acquire().await.expect("the gate stays").forget();
            respond::json(StatusCode::OK, "{}")
        })
    }
}

struct Frame {
    fairness: Arc<Fairness>,
    metrics: Metrics,
    handler: kubelith_http::BoxHandler,
    entered: mpsc::UnboundedReceiver<Str>,
    open: Arc<Semaphore>,
}

impl Frame {
    /// `concurrency` seats, shared by one level per name and number of shares. Each schema is for the group of its name.
    fn new(concurrency: u32, levels: &[(&str, u32, &str)]) -> Frame {
        Frame::seeded(concurrency, levels, 0)
    }

    fn seeded(concurrency: u32, levels: &[(&str, u32, &str)], seed: u64) -> Frame {
        let metrics = Metrics::new();
        let fairness = Fairness::seeded(concurrency, &metrics.registry, seed);
        fairness.configure(objects(levels));
        let (entered, receiver) = mpsc::unbounded_channel();
        let open = Arc::new(Semaphore::new(0));
        let gate = Arc::new(Gate { entered, open: open.clone() });
        let timeout = Duration::from_secs(60);
        let layer = priority_and_fairness::layer(fairness.clone(), timeout, metrics.requests.clone());
        let handler = crate::filters::request_info::layer().wrap(layer.wrap(gate));
        Frame { fairness, metrics, handler, entered: receiver, open }
    }

    fn send(&self, user: &str, group: &str, path: &str) -> JoinHandle<Response> {
        self.send_by(None, user, group, path)
    }

    fn send_by(
        &self,
        connection: Option<&Arc<ConnectionInfo>>,
        user: &str,
        group: &str,
        path: &str,
    ) -> JoinHandle<Response> {
        let mut request = Request::from(http::Request::get(path).body(RequestBody::Full(None)).unwrap());
        let user = User::named(user).with_groups(&[group, "system:authenticated"]);
        request.context_mut().user = Some(Arc::new(user));
        request.context_mut().connection = connection.cloned();
        tokio::spawn(self.handler.handle(request).into_future())
    }

    async fn next(&mut self) -> Str {
        self.entered.recv().await.expect("a request runs")
    }

    fn let_out(&self, count: usize) {
        self.open.add_permits(count);
    }

    fn totals(&self, level: &str) -> kubelith_fairness::queue_set::Totals {
        self.fairness.config.load().levels[level].level.lock().queues.totals()
    }

    /// Until so many wait in the level.
    async fn waiting(&self, level: &str, count: u32) {
        while self.totals(level).waiting != count {
            tokio::task::yield_now().await;
        }
    }
}

fn objects(levels: &[(&str, u32, &str)]) -> Objects {
    let level = |(name, shares, response): &(&str, u32, &str)| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"uid-{name}"}},"spec":{{"type":"Limited","limited":
                {{"nominalConcurrencyShares":{shares},"borrowingLimitPercent":0,"limitResponse":{response}}}}}}}"#
        );
        PriorityLevel::parse(&json::parse(text.as_bytes()).unwrap()).unwrap()
    };
    let schema = |(name, ..): &(&str, u32, &str)| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"schema-{name}"}},"spec":{{"matchingPrecedence":100,
                "priorityLevelConfiguration":{{"name":"{name}"}},"distinguisherMethod":{{"type":"ByUser"}},
                "rules":[{{"subjects":[{{"kind":"Group","group":{{"name":"{name}"}}}}],"resourceRules":[{{"verbs":["*"],
                "apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}}]}}]}}}}"#
        );
        FlowSchema::parse(&json::parse(text.as_bytes()).unwrap())
    };
    Objects { levels: levels.iter().map(level).collect(), schemas: levels.iter().map(schema).collect() }
}

const REJECT: &str = r#"{"type":"Reject"}"#;
const HAND: u32 = 6;
const QUEUE: &str = r#"{"type":"Queue","queuing":{"queues":64,"handSize":6,"queueLengthLimit":50}}"#;
const SHORT_QUEUE: &str = r#"{"type":"Queue","queuing":{"queues":1,"handSize":1,"queueLengthLimit":1}}"#;
const PODS: &str = "/api/v1/namespaces/ns/pods/p";

async fn body(response: Response) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("<none>", |v| v.to_str().unwrap())
}

#[tokio::test]
async fn answers_say_how_the_request_was_classified() {
    let frame = Frame::new(10, &[("devs", 5, REJECT)]);
    frame.let_out(10);
    for (group, schema, level) in [("devs", "schema-devs", "uid-devs"), ("system:masters", "", ""), ("none", "", "")] {
        let response = frame.send("u", group, PODS).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "x-kubernetes-pf-flowschema-uid"), schema, "{group}");
        assert_eq!(header(&response, "x-kubernetes-pf-prioritylevel-uid"), level, "{group}");
    }
    // Long-running requests that are no watches pass by.
    let response = frame.send("u", "devs", "/api/v1/namespaces/ns/pods/p/log").await.unwrap();
    assert_eq!(header(&response, "x-kubernetes-pf-flowschema-uid"), "<none>");
    assert_eq!(frame.totals("devs").dispatched, 1);
}

#[tokio::test]
async fn connections_are_told_in_whose_turns_they_are_read() {
    // One seat for the level: the first request runs, the second is refused.
    let frame = Frame::new(2, &[("devs", 5, REJECT)]);
    let mut sent = Vec::new();
    for (group, level) in [("devs", Some("devs")), ("devs", Some("devs")), ("system:masters", None)] {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let askers = Askers::default();
        let connection = Arc::new(ConnectionInfo { remote: here, local: here, peer_certificates: None, askers });
        sent.push(frame.send_by(Some(&connection), "u", group, PODS));
        let expected = level.map(|level| frame.fairness.config.load().levels[level].level.turns.clone());
        let turns = connection.askers.turns();
        assert_eq!(turns.as_ref().map(Arc::as_ptr), expected.as_ref().map(Arc::as_ptr), "{group}");
    }
    frame.let_out(2);
    let answers = futures::future::join_all(sent).await.into_iter().map(|answer| answer.unwrap().status().as_u16());
    assert_eq!(answers.collect::<Vec<_>>(), [200, 429, 200]);
}

#[tokio::test]
async fn a_full_level_refuses_and_says_when_to_come_back() {
    // Two seats in all: one each for the level and the catch-all.
    let mut frame = Frame::new(2, &[("devs", 5, REJECT), ("queued", 5, SHORT_QUEUE)]);
    let running = frame.send("u", "devs", PODS);
    frame.next().await;
    let refused = frame.send("v", "devs", PODS).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "1");
    assert_eq!(header(&refused, "x-kubernetes-pf-flowschema-uid"), "schema-devs");
    assert_eq!(body(refused).await, "Too many requests, please try again later.\n");
    // Administrators are never refused.
    let admin = frame.send("admin", "system:masters", PODS);
    frame.next().await;
    // One runs, one waits, the next is too much.
    let first = frame.send("a", "queued", PODS);
    frame.next().await;
    let second = frame.send("b", "queued", PODS);
    frame.waiting("queued", 1).await;
    assert_eq!(frame.send("c", "queued", PODS).await.unwrap().status(), 429);
    frame.let_out(4);
    for request in [running, admin, first, second] {
        assert_eq!(request.await.unwrap().status(), 200);
    }
    assert!(frame.totals("queued").executing == 0 && frame.totals("devs").executing == 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused() {
    let mut frame = Frame::new(1, &[("devs", 5, QUEUE)]);
    let running = frame.send("u", "devs", PODS);
    frame.next().await;
    let started = tokio::time::Instant::now();
    let refused = frame.send("v", "devs", PODS).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(started.elapsed().as_secs(), 15);
    // Who hangs up leaves the queue.
    let gone = frame.send("w", "devs", PODS);
    frame.waiting("devs", 1).await;
    gone.abort();
    frame.waiting("devs", 0).await;
    let late = frame.send("x", "devs", PODS);
    frame.waiting("devs", 1).await;
    frame.let_out(2);
    assert_eq!(running.await.unwrap().status(), 200);
    assert_eq!(late.await.unwrap().status(), 200);
    let totals = frame.totals("devs");
    assert_eq!((totals.dispatched, totals.rejected, totals.cancelled), (2, 2, 2));
    assert_eq!((totals.seats_in_use, totals.seats_waiting), (0, 0));
}

/// Ten times more clients than seats in one flow. What the other flow asks for may wait for those that run, whose time is
/// charged only when they end, and for one more of each queue of the first flow's hand; not for the ninety others.
#[tokio::test(start_paused = true)]
async fn an_elephant_does_not_trample_a_mouse() {
    for seed in 0..20 {
        let mut frame = Frame::seeded(20, &[("devs", 5, QUEUE)], seed);
        let seats = frame.fairness.config.load().levels["devs"].level.lock().queues.limit();
        let elephants: Vec<_> = (0..seats * 10).map(|_| frame.send("elephant", "devs", PODS)).collect();
        for _ in 0..seats {
            assert_eq!(frame.next().await, "elephant");
        }
        for _ in 0..3 {
            let mouse = frame.send("mouse", "devs", PODS);
            let mut before = 0;
            loop {
                // One ends, one begins.
                tokio::time::advance(Duration::from_millis(1)).await;
                frame.let_out(1);
                if frame.next().await == "mouse" {
                    break;
                }
                before += 1;
                assert!(before <= seats + HAND, "the mouse is not served in its turn");
            }
            while !mouse.is_finished() {
                tokio::time::advance(Duration::from_millis(1)).await;
                frame.let_out(1);
                frame.next().await;
            }
            assert_eq!(mouse.await.unwrap().status(), 200);
        }
        frame.let_out(10_000);
        for request in elephants {
            assert_eq!(request.await.unwrap().status(), 200);
        }
    }
}

/// A write that many watches see keeps its seat for a while after it was answered; who waits for it is woken.
#[tokio::test(start_paused = true)]
async fn seats_are_kept_for_watches_and_then_given_on() {
    let mut frame = Frame::new(2, &[("devs", 5, QUEUE)]);
    let request = |method: &str, path: &str| {
        let mut request =
            Request::from(http::Request::builder().method(method).uri(path).body(RequestBody::Full(None)).unwrap());
        let plain = path.split('?').next().unwrap();
        let info = kubelith_http::RequestInfo::parse(request.method(), plain, request.uri()).unwrap();
        request.context_mut().info = Some(Arc::new(info));
        let user = User::named("writer").with_groups(&["devs"]);
        request.context_mut().user = Some(Arc::new(user));
        request
    };
    let watch = request("GET", "/api/v1/namespaces/ns/pods?watch=1");
    let watches: Vec<_> = (0..20).map(|_| frame.fairness.watching(&watch)).collect();
    // A kubelet's watch does not count, nor one of something else.
    let _node = frame.fairness.watching(&request("GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn"));
    let _other = frame.fairness.watching(&request("GET", "/api/v1/services?watch=1"));
    let write = tokio::spawn(frame.handler.handle(request("PUT", PODS)).into_future());
    assert_eq!(frame.next().await, "writer");
    let read = frame.send("reader", "devs", PODS);
    frame.let_out(2);
    assert_eq!(write.await.unwrap().status(), 200);
    let answered = tokio::time::Instant::now();
    assert_eq!(frame.totals("devs").executing, 0);
    assert_eq!(frame.totals("devs").seats_in_use, 1);
    assert_eq!(frame.next().await, "reader");
    // Two seats for 5 ms, on the one seat there is.
    assert_eq!(answered.elapsed().as_millis(), 10);
    assert_eq!(read.await.unwrap().status(), 200);
    drop(watches);
    let write = tokio::spawn(frame.handler.handle(request("PUT", PODS)).into_future());
    frame.let_out(1);
    assert_eq!(write.await.unwrap().status(), 200);
    assert_eq!(frame.totals("devs").seats_in_use, 0);
}

/// Leases have a level of their own: whatever the others do, leaders stay leaders.
#[tokio::test(start_paused = true)]
async fn leaders_never_starve() {
    let mut frame = Frame::new(20, &[("leader-election", 10, QUEUE), ("everybody", 90, QUEUE)]);
    let crowd: Vec<_> = (0..300).map(|i| frame.send(&format!("user-{i}"), "everybody", PODS)).collect();
    let seats = frame.fairness.config.load().levels["everybody"].level.lock().queues.limit();
    for _ in 0..seats {
        frame.next().await;
    }
    // Lending does not take a seat from those who have none to spare.
    for _ in 0..5 {
        frame.fairness.adjust_limits();
        let leader =
            frame.send("leader", "leader-election", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l");
        while frame.next().await != "leader" {}
        frame.let_out(seats as usize + 1);
        assert_eq!(leader.await.unwrap().status(), 200);
    }
    frame.let_out(10_000);
    for request in crowd {
        assert_eq!(request.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_level_that_is_deleted_stays_until_its_requests_are_done() {
    let mut frame = Frame::new(10, &[("devs", 5, QUEUE)]);
    let running = frame.send("u", "devs", PODS);
    frame.next().await;
    let level = frame.fairness.config.load().levels["devs"].level.clone();
    frame.fairness.configure(Objects::default());
    assert!(frame.fairness.config.load().levels.contains_key("devs"));
    assert!(level.quiescing.load(std::sync::atomic::Ordering::Relaxed));
    // New requests go elsewhere.
    let other = frame.send("u", "devs", PODS);
    frame.next().await;
    assert_eq!(frame.totals("devs").executing, 1);
    assert_eq!(frame.totals("catch-all").executing, 1);
    frame.let_out(2);
    running.await.unwrap();
    other.await.unwrap();
    // This is what the controller waits for.
    frame.fairness.idle.notified().await;
    frame.fairness.configure(Objects::default());
    assert!(!frame.fairness.config.load().levels.contains_key("devs"));
}

#[tokio::test]
async fn dumps_show_levels_queues_and_requests() {
    let mut frame = Frame::new(2, &[("devs", 5, SHORT_QUEUE)]);
    let first = frame.send("u", "devs", PODS);
    frame.next().await;
    let second = frame.send("v", "devs", PODS);
    frame.waiting("devs", 1).await;
    let mut routes = crate::routes::Routes::default();
    install_dumps(&frame.fairness, &mut routes);
    let routes = crate::filters::request_info::layer().wrap(routes.before(crate::installation::nobody()));
    let dump = |path: &str| {
        let path = format!("/debug/api_priority_and_fairness/{path}");
        let request = Request::from(http::Request::get(path).body(RequestBody::Full(None)).unwrap());
        let response = routes.handle(request);
        async { String::from_utf8(body(response.await).await.to_vec()).unwrap() }
    };
    let levels = dump("dump_priority_levels").await;
    let rows: Vec<Vec<&str>> = levels.lines().map(|l| l.split(',').map(str::trim).collect()).collect();
    assert_eq!(rows[0][..3], ["PriorityLevelName", "ActiveQueues", "IsIdle"]);
    assert_eq!(rows[1], ["catch-all", "0", "true", "false", "0", "0", "0", "0", "0", "0"]);
    assert_eq!(rows[2], ["devs", "1", "false", "false", "1", "1", "1", "0", "0", "0"]);
    assert_eq!(rows[3][0], "exempt");
    let queues = dump("dump_queues").await;
    let row: Vec<&str> = queues.lines().nth(1).unwrap().split(',').map(str::trim).collect();
    assert_eq!([&row[..5], &row[6..]].concat(), ["devs", "0", "1", "1", "1", "1", "1", "0.00300000ss"]);
    let requests = dump("dump_requests?includeRequestDetails=1").await;
    let rows: Vec<Vec<&str>> = requests.lines().map(|l| l.split(',').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1][..4], ["devs", "devs", "0", "0"]);
    assert_eq!(rows[1][6..10], ["1", "0", "0s", "0001-01-01T00:00:00Z"]);
    assert_eq!(rows[1][10..], ["v", "get", PODS, "ns", "p", "v1", "pods", ""]);
    assert_eq!(rows[2][..4], ["devs", "devs", "0", "-1"]);
    frame.let_out(2);
    first.await.unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn counts_under_the_reference_s_names() {
    let mut frame = Frame::new(2, &[("devs", 5, REJECT)]);
    let running = frame.send("u", "devs", PODS);
    frame.next().await;
    frame.send("u", "devs", PODS).await.unwrap();
    frame.let_out(1);
    running.await.unwrap();
    frame.fairness.adjust_limits();
    let mut text = Vec::new();
    let families = frame.metrics.registry.gather();
    prometheus::Encoder::encode(&prometheus::TextEncoder::new(), &families, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for expected in [
        r#"rejected_requests_total{flow_schema="devs",priority_level="devs",reason="concurrency-limit"} 1"#,
        r#"dispatched_requests_total{flow_schema="devs",priority_level="devs"} 1"#,
        r#"current_executing_requests{flow_schema="devs",priority_level="devs"} 0"#,
        r#"nominal_limit_seats{priority_level="devs"} 1"#,
        r#"upper_limit_seats{priority_level="devs"} 1"#,
        r#"current_limit_seats{priority_level="devs"} 1"#,
        r#"demand_seats_high_watermark{priority_level="devs"} 1"#,
        r#"request_execution_seconds_count{flow_schema="devs",priority_level="devs",type="regular"} 1"#,
        r#"work_estimated_seats_bucket{flow_schema="devs",priority_level="devs",le="1"} 2"#,
        r#"priority_level_seat_utilization_bucket{phase="executing",priority_level="devs",le="1"}"#,
        r#"priority_level_request_utilization_count{phase="waiting",priority_level="devs"}"#,
        r#"read_vs_write_current_requests_sum{phase="executing",request_kind="readOnly"}"#,
        "seat_fair_frac ",
    ] {
        assert!(text.contains(&format!("apiserver_flowcontrol_{expected}")), "{expected}\n{text}");
    }
    frame.fairness.in_flight.show(&frame.metrics.requests);
    assert_eq!(frame.metrics.requests.in_flight("readOnly").get(), 1);
}

/// Over sockets, with TLS, behind the whole chain.
#[tokio::test]
async fn works_behind_a_real_server() {
    let metrics = Metrics::new();
    let fairness = Fairness::new(2, &metrics.registry);
    fairness.configure(objects(&[("devs", 5, QUEUE)]));
    let (entered, mut receiver) = mpsc::unbounded_channel();
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::new(Gate { entered, open: open.clone() });
    let layer = priority_and_fairness::layer(fairness.clone(), Duration::from_secs(60), metrics.requests.clone());
    let server = TestServer::start_with(
        |config| {
            config.chain.authorizer = Arc::new(AlwaysAllow);
            config.chain.flow_control = Some(layer);
        },
        |builder| builder.delegate(gate as kubelith_http::BoxHandler),
    )
    .await;
    let elephant = || server.get(PODS, USER_TOKEN);
    let turns = async {
        assert_eq!(receiver.recv().await.unwrap(), "alice");
        open.add_permits(1);
        assert_eq!(receiver.recv().await.unwrap(), "alice");
        // An administrator needs no seat.
        let (admin, ()) = tokio::join!(server.get(PODS, ADMIN_TOKEN), async {
            assert_eq!(receiver.recv().await.unwrap(), "admin");
            open.add_permits(2);
        });
        assert_eq!(admin.status, 200);
    };
    let (first, second, ()) = tokio::join!(elephant(), elephant(), turns);
    for answer in [first, second] {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), "schema-devs");
    }
    assert_eq!(fairness.config.load().levels["devs"].level.lock().queues.totals().dispatched, 2);
}
