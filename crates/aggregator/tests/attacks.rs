//! Clients and servers that mean harm, or are just broken.

use crate::support::raw::{Body, RawServer, full};
use crate::support::{Cluster, PATIENCE, eventually, insecure, value};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use kubelith_meta::Value;
use kubelith_server::testing::{ADMIN_TOKEN, Answer, USER_TOKEN};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

const ROOT: &str = "/apis/echo.test/v1";

/// Says what it was asked, line by line.
async fn echo(request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut lines = vec![format!("{} {}", parts.method, parts.uri)];
    lines.extend(parts.headers.iter().map(|(k, v)| format!("{k}: {}", String::from_utf8_lossy(v.as_bytes()))));
    lines.push(String::from_utf8_lossy(&crate::support::rest(body).await).into_owned());
    Response::new(full(lines.join("\n")))
}

async fn cluster_with(server: &RawServer) -> Cluster {
    let cluster = Cluster::start().await;
    cluster.register("echo.test", "v1", server.port, insecure()).await;
    cluster.until_available("v1.echo.test", "True").await;
    cluster
}

fn ask(path: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut builder = Request::builder().uri(path).header("host", "api.test");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::default()).unwrap()
}

fn has(answer: &Answer, line: &str) -> bool {
    answer.text().lines().any(|l| l == line)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_smuggles_an_identity() {
    let server = RawServer::http(echo).await;
    let cluster = cluster_with(&server).await;
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [
        ("authorization", token.as_str()),
        ("x-remote-user", "root"),
        ("X-Remote-Group", "evil"),
        ("x-remote-uid", "0"),
        ("x-remote-extra-scopes", "all"),
        // Asks us to drop the headers that say who asks.
        ("connection", "x-remote-user, x-remote-group, keep-alive"),
        ("x-forwarded-for", "192.0.2.9"),
        ("transfer-encoding", "identity"),
        ("proxy-authorization", "Basic eA=="),
        ("x-kept", "yes"),
    ];
    let answer = cluster.server.send(ask(&format!("{ROOT}/things?a=1&watch=0"), &headers)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(has(&answer, "GET /apis/echo.test/v1/things?a=1&watch=0"), "{}", answer.text());
    for line in [
        "x-remote-user: admin",
        "x-remote-group: system:masters",
        "x-remote-group: system:authenticated",
        "x-kept: yes",
        "x-forwarded-for: 192.0.2.9, 127.0.0.1",
    ] {
        assert!(has(&answer, line), "{line} missing in\n{}", answer.text());
    }
    for gone in ["root", "evil", "scopes", "authorization", "connection: x", ADMIN_TOKEN] {
        assert!(!answer.text().contains(gone), "{gone} in\n{}", answer.text());
    }
    assert!(has(&answer, &format!("host: localhost:{}", server.port)), "{}", answer.text());
    // A user who may not is refused before anything is sent.
    let headers = [("authorization", &*format!("Bearer {USER_TOKEN}")), ("x-remote-group", "system:masters")];
    assert_eq!(cluster.server.send(ask(&format!("{ROOT}/things"), &headers)).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_that_was_authorized_is_the_path_that_is_asked_for() {
    let server = RawServer::http(echo).await;
    let cluster = cluster_with(&server).await;
    let answer = cluster.get(&format!("{ROOT}/namespaces/n/things/a%20b%2Fc")).await;
    assert!(has(&answer, "GET /apis/echo.test/v1/namespaces/n/things/a%20b/c"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_lead_nowhere() {
    let server = RawServer::http(|request| async move {
        let mut response = Response::new(full("moved"));
        if request.uri().path().ends_with("/moved") {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert("location", "https://elsewhere.test/".parse().unwrap());
        }
        response
    })
    .await;
    let cluster = cluster_with(&server).await;
    let answer = cluster.get(&format!("{ROOT}/moved")).await;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.text(), "the backend attempted to redirect this request, which is not permitted");
    assert_eq!(answer.header("location"), "");
    assert_eq!(cluster.get(&format!("{ROOT}/here")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_an_error_and_not_more() {
    for (answer, want) in [
        (&b"SSH-2.0-OpenSSH\r\n"[..], "error trying to reach service: "),
        (&b""[..], "error trying to reach service: EOF"),
        (
            &b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"[..],
            "backend tried to switch",
        ),
        (&b"HTTP/1.1 999999 No\r\n\r\n"[..], "error trying to reach service: "),
    ] {
        let server = RawServer::bytes("/garbage", answer).await;
        let cluster = cluster_with(&server).await;
        let got = cluster.get(&format!("{ROOT}/garbage")).await;
        assert_eq!(got.status, 503, "{}", got.text());
        assert!(got.text().starts_with(want), "{}", got.text());
    }
}

/// Tells when it goes.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_takes_no_memory_and_ends_with_the_client() {
    let gone = Arc::new(Notify::new());
    let told = gone.clone();
    let server = RawServer::http(move |request| {
        let told = told.clone();
        async move {
            if !request.uri().path().ends_with("/endless") {
                return Response::new(full("{}"));
            }
            let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
            let guard = OnDrop(told);
            let endless = futures::stream::repeat_with(move || {
                let _wanted = &guard;
                Ok::<_, std::convert::Infallible>(Frame::data(chunk.clone()))
            });
            Response::new(StreamBody::new(endless).boxed_unsync())
        }
    })
    .await;
    let cluster = cluster_with(&server).await;
    let stream = cluster.server.connect(b"http/1.1", true).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let response = sender.send_request(ask(&format!("{ROOT}/endless"), &[])).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut read = 0;
    while read < 32 * 1024 * 1024 {
        read += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    drop((body, sender));
    driver.abort();
    tokio::time::timeout(PATIENCE, gone.notified()).await.expect("the other side stops, too");
    assert_eq!(cluster.get("/api/v1/namespaces").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_slows_nobody_else() {
    let slow = RawServer::http(|request: Request<Incoming>| async move {
        if request.uri().path() != "/apis/slow.test/v1" {
            std::future::pending::<()>().await;
        }
        Response::new(full("{}"))
    })
    .await;
    let quick = RawServer::http(echo).await;
    let cluster = Cluster::start().await;
    cluster.register("slow.test", "v1", slow.port, insecure()).await;
    cluster.register("hung.test", "v1", slow.port, insecure()).await;
    cluster.register("quick.test", "v1", quick.port, insecure()).await;
    eventually("the slow one", || async { cluster.available("v1.slow.test").await.0 == "True" }).await;
    cluster.until_available("v1.quick.test", "True").await;
    let waiting = futures::future::join_all((0..50).map(|_| cluster.get("/apis/slow.test/v1/things")));
    let served = async {
        for _ in 0..20 {
            assert_eq!(cluster.get("/apis/quick.test/v1/things").await.status, 200);
        }
    };
    tokio::select! {
        _ = waiting => panic!("nobody answers these"),
        () = served => {}
    }
    // A discovery document has five seconds.
    eventually("the hung one", || async { cluster.available("v1.hung.test").await.0 == "False" }).await;
    let (_, reason, message) = cluster.available("v1.hung.test").await;
    assert_eq!(reason, "FailedDiscoveryCheck");
    assert!(message.contains("context deadline exceeded"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_joins_the_connections() {
    let server = RawServer::http(|request: Request<Incoming>| async move {
        if !request.headers().contains_key("upgrade") {
            return Response::new(full("plain"));
        }
        let user = request.headers()["x-remote-user"].to_str().unwrap().to_owned();
        if request.uri().path().ends_with("/refused") {
            let mut response = Response::new(full("not you"));
            *response.status_mut() = StatusCode::FORBIDDEN;
            return response;
        }
        if request.uri().path().ends_with("/ignored") {
            return Response::new(full("no upgrade here"));
        }
        tokio::spawn(async move {
            let mut stream = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            stream.write_all(format!("hello {user};").as_bytes()).await.unwrap();
            let mut buffer = [0; 4];
            stream.read_exact(&mut buffer).await.unwrap();
            stream.write_all(&buffer).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", "Upgrade".parse().unwrap());
        response.headers_mut().insert("upgrade", "SPDY/3.1".parse().unwrap());
        response
    })
    .await;
    let cluster = cluster_with(&server).await;
    let upgrade = |path: &str| {
        ask(
            &format!("{ROOT}{path}"),
            &[
                ("connection", "Upgrade"),
                ("upgrade", "SPDY/3.1"),
                ("authorization", &format!("Bearer {ADMIN_TOKEN}")),
                ("x-remote-user", "root"),
            ],
        )
    };
    let stream = cluster.server.connect(b"http/1.1", false).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(upgrade("/exec")).await.unwrap();
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["upgrade"], "SPDY/3.1");
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"ping").await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "hello admin;ping");

    let refused = cluster.server.send(upgrade("/refused")).await;
    assert_eq!((refused.status, refused.text()), (403, "not you"));
    let ignored = cluster.server.send(upgrade("/ignored")).await;
    assert_eq!((ignored.status, ignored.text()), (503, "invalid upgrade response: status code 200\n"));
}

/// CVE-2018-1002105: an upgrade that the other server refused left a way to it, with our identity, on which anything could be
/// asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upgrade_leaves_no_way_behind() {
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    let server = RawServer::http(move |request: Request<Incoming>| {
        let seen = seen.clone();
        async move {
            seen.lock().unwrap().push(request.uri().path().to_owned());
            let mut response = Response::new(full("no"));
            if request.headers().contains_key("upgrade") {
                *response.status_mut() = StatusCode::BAD_REQUEST;
            }
            response
        }
    })
    .await;
    let cluster = cluster_with(&server).await;
    let mut stream = cluster.server.connect(b"http/1.1", false).await.unwrap();
    let upgrade = format!(
        "GET {ROOT}/exec HTTP/1.1\r\nhost: api.test\r\nauthorization: Bearer {ADMIN_TOKEN}\r\nconnection: Upgrade\r\n\
         upgrade: SPDY/3.1\r\n\r\n"
    );
    let behind = format!("GET {ROOT}/behind HTTP/1.1\r\nhost: api.test\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{upgrade}{behind}").as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.starts_with("HTTP/1.1 400"), "{heard}");
    let asked = asked.lock().unwrap();
    assert!(asked.contains(&format!("{ROOT}/exec")) && !asked.contains(&format!("{ROOT}/behind")), "{asked:?} {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_of_a_watch_arrives_in_order() {
    const EVENTS: usize = 10_000;
    let server = RawServer::http(|request: Request<Incoming>| async move {
        if !request.uri().query().unwrap_or("").contains("watch") {
            return Response::new(full("{}"));
        }
        let events = (0..EVENTS).map(|i| {
            let line = format!("{{\"type\":\"ADDED\",\"object\":{{\"n\":{i}}}}}\n");
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(line)))
        });
        Response::new(StreamBody::new(futures::stream::iter(events)).boxed_unsync())
    })
    .await;
    let cluster = cluster_with(&server).await;
    let things = kubelith_meta::GroupVersionResource::new("echo.test", "v1", "things");
    let mut watch = cluster.client.watch(&kubelith_server::loopback::ResourceRef::new(&things)).await.unwrap();
    for i in 0..EVENTS {
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event.object.get("n"), Some(&Value::Int(i as i64)));
    }
    assert!(watch.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_goes_through_whole() {
    let server = RawServer::http(|request: Request<Incoming>| async move {
        let mut length = 0_usize;
        let mut body = request.into_body();
        while let Some(frame) = body.frame().await {
            length += frame.unwrap().into_data().map_or(0, |d| d.len());
        }
        Response::new(full(format!("{{\"length\":{length}}}")))
    })
    .await;
    let cluster = cluster_with(&server).await;
    let size = 8 * 1024 * 1024;
    let answer = cluster.send("POST", &format!("{ROOT}/things"), &"x".repeat(size)).await;
    assert_eq!(value(&answer).get("length"), Some(&Value::Int(size as i64)));
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_servers_are_fine() {
    let server = RawServer::http(echo).await;
    let cluster = Cluster::start().await;
    for i in 0..100 {
        cluster.register(&format!("g{i}.test"), "v1", server.port, insecure()).await;
    }
    for i in 0..100 {
        let name = format!("v1.g{i}.test");
        eventually(&name, || async { cluster.available(&name).await.0 == "True" }).await;
    }
    let groups = value(&cluster.get("/apis").await);
    let count = groups.at(&["groups"]).unwrap().as_array().unwrap();
    assert_eq!(count.iter().filter(|g| g.str_at(&["name"]).ends_with(".test")).count(), 100);
    assert_eq!(cluster.get("/apis/g57.test/v1/things").await.status, 200);
}
