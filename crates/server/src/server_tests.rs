//! The frame over a real socket: TLS, users, the chain's answers, and the way it stops.
use crate::lifecycle::PostStartHook;
use crate::testing::{ADMIN_TOKEN, TestServer, USER_TOKEN, request};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_http::{Body, BoxHandler, Reply, Request, Response, respond};
use kubelith_tls::Trust;
use std::sync::Arc;
use std::time::Duration;

fn handler(f: impl Fn(Request) -> Reply + Send + Sync + 'static) -> BoxHandler {
    Arc::new(f)
}

/// Answers with who asks for what.
fn echo() -> BoxHandler {
    handler(|request| {
        let user = request.user().map_or("nobody", |u| u.name.as_str());
        let text = format!("{user} {} {}", request.info().verb, request.info().path);
        request.warnings().add("careful");
        Reply::Ready(respond::text(StatusCode::OK, text))
    })
}

#[test]
fn the_order_of_the_filters_is_this() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let names = runtime.block_on(async {
        let mut names = Vec::new();
        let configure = |c: &mut crate::ServerConfig| {
            c.chain.send_retry_after = true;
            c.chain.goaway_chance = 0.01;
            c.chain.hsts_directives = vec!["max-age=1".into()];
            c.chain.cors_allowed_origins = vec![regex::Regex::new("x").unwrap()];
            let metrics =
                kubelith_observe::metrics::audit::AuditMetrics::new(&kubelith_observe::metrics::Registry::new());
            let pass = |name| Some(crate::filters::Layer::from_fn(name, |r, next| next.handle(r)));
            c.chain.audit = Some(Arc::new(crate::filters::audit::Audit {
                policy: Default::default(),
                backends: Arc::new(kubelith_observe::audit::Backends::new(&metrics)),
                metrics: Arc::new(metrics),
            }));
            c.chain.service_quality = pass("service-quality");
            c.chain.flow_control = pass("priority-and-fairness");
        };
        let server = TestServer::start_with(configure, |b| b).await;
        names.extend(server.filter_names.iter().copied());
        names
    });
    let want = [
        "audit-id",
        "panic-recovery",
        "request-info",
        "latency-trackers",
        "http-logging",
        "retry-after",
        "hsts",
        "cache-control",
        "goaway",
        "watch-termination",
        "wait-group",
        "request-deadline",
        "timeout",
        "warnings",
        "cors",
        "authentication",
        "audit",
        "impersonation",
        "service-quality",
        "priority-and-fairness",
        "authorization",
        "instrument",
    ];
    assert_eq!(names, want);
}

#[tokio::test]
async fn users_and_errors() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let ok = server.get("/api/v1/pods", ADMIN_TOKEN).await;
    assert_eq!((ok.status, ok.text()), (200, "admin list /api/v1/pods"));
    assert_eq!(ok.header("cache-control"), "no-cache, private");
    assert_eq!(ok.header("warning"), "299 - \"careful\"");
    assert_eq!(ok.header("audit-id").len(), 36);
    let by_cert = server.get_as_admin("/x").await;
    assert_eq!((by_cert.status, by_cert.text()), (200, "kubernetes-admin get /x"));

    let wrong = server.get("/version", "nonsense").await;
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    assert_eq!((wrong.status, wrong.text().trim_end()), (401, status));

    let anonymous = server.get("/", "").await;
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"system:anonymous\" cannot get path \"/\"","reason":"Forbidden","details":{},"code":403}"#;
    assert_eq!((anonymous.status, anonymous.text().trim_end()), (403, status));
    assert_eq!(anonymous.header("x-content-type-options"), "nosniff");

    let alice = server.get("/apis/apps/v1/namespaces/n/deployments/d/scale", USER_TOKEN).await;
    let message = r#""message":"deployments.apps \"d\" is forbidden: User \"alice\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"n\"","reason":"Forbidden","details":{"name":"d","group":"apps","kind":"deployments"}"#;
    assert!(alice.text().contains(message), "{}", alice.text());

    let bad = server.get("/x?timeout=soon", ADMIN_TOKEN).await;
    assert_eq!(bad.status, 400);
    assert!(bad.text().contains("invalid timeout specified in the request URL - time: invalid duration \\\"soon\\\""));
}

#[tokio::test]
async fn a_panic_is_a_500_for_its_request_alone() {
    let server = TestServer::start(|b| b.delegate(handler(|_| panic!("oops")))).await;
    let text = server.get("/x", ADMIN_TOKEN).await;
    assert_eq!(text.text(), "This request caused apiserver to panic. Look in the logs for details.\n");
    let status = server.get("/api/v1/pods", ADMIN_TOKEN).await;
    assert_eq!((text.status, status.status), (500, 500));
    assert!(status.text().contains(r#""reason":"InternalError""#), "{}", status.text());
    assert_eq!(server.get("/healthz", ADMIN_TOKEN).await.status, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_a_504() {
    let server = TestServer::start(|b| b.delegate(handler(|_| Reply::pending(std::future::pending())))).await;
    let late = server.get("/x?timeout=20ms", ADMIN_TOKEN).await;
    let status = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    assert_eq!((late.status, late.text().trim_end()), (504, status));
    assert_eq!(late.header("content-type"), "text/plain; charset=utf-8");
    let metrics = server.get("/metrics", ADMIN_TOKEN).await;
    let line = "apiserver_request_post_timeout_total{source=\"timeout-handler\",status=\"ok\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

/// As one whose time is up: nobody gets an answer.
#[tokio::test]
async fn a_client_that_leaves_is_counted() {
    let came = Arc::new(tokio::sync::Notify::new());
    let tell = came.clone();
    let never = handler(move |_| {
        tell.notify_one();
        Reply::pending(std::future::pending())
    });
    let server = TestServer::start(|b| b.delegate(never)).await;
    let connection = server.connect(b"http/1.1", false).await.unwrap();
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(connection)).await.unwrap();
    let driver = tokio::spawn(driver);
    let asking = sender.send_request(request("GET", "/x", ADMIN_TOKEN));
    tokio::select! { _ = asking => unreachable!("nobody answers"), () = came.notified() => {} }
    driver.abort();
    let counted = ["request_post_timeout_total{source=\"timeout-handler\"", "request_terminations_total{code=\"504\""];
    loop {
        let metrics = server.get("/metrics", ADMIN_TOKEN).await;
        if counted.iter().all(|name| metrics.text().contains(name)) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn root_paths() {
    let server = TestServer::start(|b| b.listed_paths(|| vec!["/api".into()])).await;
    let index = server.get("/", ADMIN_TOKEN).await;
    assert!(index.text().starts_with("{\n  \"paths\": [\n    \"/api\",\n    \"/healthz\","), "{}", index.text());
    let version = server.get("/version", ADMIN_TOKEN).await;
    assert!(version.text().contains("\"gitVersion\": \"v1.36"), "{}", version.text());
    assert_eq!(server.send(request("POST", "/version", ADMIN_TOKEN)).await.status, 405);
    let unknown = server.get("/nosuch", ADMIN_TOKEN).await;
    assert_eq!((unknown.status, unknown.text()), (404, "404 page not found\n"));
    let metrics = server.get("/metrics", ADMIN_TOKEN).await;
    let line = "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"\",\
                scope=\"\",subresource=\"/version\",verb=\"GET\",version=\"\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
    let head = server.send(request("HEAD", "/healthz", ADMIN_TOKEN)).await;
    assert_eq!((head.status, head.text()), (200, ""));
}

#[tokio::test]
async fn hooks_are_checks_until_they_are_done() {
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let hook = PostStartHook::new("slow", |context| async move {
        finished.await.map_err(|e| e.to_string())?;
        let answer = context.client.get_path("/healthz/ping").await.map_err(|e| e.message)?;
        if answer.status() == 200 { Ok(()) } else { Err("no ping".into()) }
    });
    let server = TestServer::start(|b| b.post_start_hook(hook)).await;
    assert_eq!(server.get("/readyz", ADMIN_TOKEN).await.status, 500);
    finish.send(()).unwrap();
    while server.get("/readyz", ADMIN_TOKEN).await.status != 200 {
        tokio::task::yield_now().await;
    }
    let verbose = server.get("/readyz?verbose", ADMIN_TOKEN).await;
    assert_eq!(
        verbose.text(),
        "[+]ping ok\n[+]log ok\n[+]poststarthook/slow ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_hook_ends_the_server() {
    let hook = PostStartHook::new("broken", |_| async { Err("no luck".to_owned()) });
    let server = TestServer::start(|b| b.post_start_hook(hook)).await;
    assert_eq!(server.ended().await.unwrap_err().to_string(), "PostStartHook \"broken\" failed: no luck");
}

type H2Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

async fn h2(server: &TestServer) -> (H2Sender, tokio::task::JoinHandle<hyper::Result<()>>) {
    let stream = server.connect(b"h2", true).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

/// A watch that sends one event and goes on.
fn watch() -> BoxHandler {
    handler(|_| {
        let events = stream::iter([Ok(Bytes::from_static(b"{}\n"))]).chain(stream::pending());
        Reply::Ready(Response::new(Body::stream(events)))
    })
}

#[tokio::test]
async fn stopping_ends_watches_and_connections() {
    let server = TestServer::start(|b| b.delegate(watch())).await;
    let (mut sender, driver) = h2(&server).await;
    let response = sender.send_request(request("GET", "/api/v1/pods?watch=1", "")).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{}\n");
    server.stop().await.unwrap();
    let rest = body.collect().await.expect("a regular end").to_bytes();
    assert!(rest.is_empty(), "{rest:?}");
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn stopping_answers_what_is_under_way() {
    let (started, mut is_started) = tokio::sync::mpsc::channel(1);
    let slow = handler(move |_| {
        let started = started.clone();
        Reply::pending(async move {
            started.send(()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            respond::text(StatusCode::OK, "done")
        })
    });
    let server = TestServer::start(|b| b.delegate(slow)).await;
    let (mut sender, _driver) = h2(&server).await;
    let answer = tokio::spawn(sender.send_request(request("GET", "/x", "")));
    is_started.recv().await.unwrap();
    server.stop().await.unwrap();
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn strangers_get_one_request_per_http2_connection() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let stream = server.connect(b"h2", false).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let refused = sender.send_request(request("GET", "/x", "")).await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(refused.headers().get("connection").is_none());
    drop(refused);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn new_certificates_are_served_to_new_connections() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let first = server.connect(b"h2", true).await.unwrap();
    let serial = |s: &tokio_rustls::client::TlsStream<_>| s.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let old = serial(&first);
    std::fs::remove_file(server.pki_dir().join("apiserver.crt")).unwrap();
    let names = kubelith_tls::PkiOptions::all(["localhost", "new"], ["127.0.0.1".parse().unwrap()]);
    kubelith_tls::Pki::open(server.pki_dir(), names).unwrap();
    server.tls.reload().unwrap();
    assert_ne!(serial(&server.connect(b"h2", true).await.unwrap()), old);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(first)).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(sender.send_request(request("GET", "/x", "")).await.unwrap().status(), 200, "old connections live");
}

#[tokio::test]
async fn while_stopping_new_requests_are_sent_elsewhere() {
    let (release, released) = tokio::sync::watch::channel(false);
    let slow = handler(move |_| {
        let mut released = released.clone();
        Reply::pending(async move {
            let _ = released.wait_for(|done| *done).await;
            respond::text(StatusCode::OK, "done")
        })
    });
    let configure = |c: &mut crate::ServerConfig| c.chain.send_retry_after = true;
    let server = TestServer::start_with(configure, |b| b.delegate(slow)).await;
    let (mut sender, _driver) = h2(&server).await;
    let answer = tokio::spawn(sender.send_request(request("GET", "/x", "")));
    while server.get("/metrics", ADMIN_TOKEN).await.text().find("request_kind=\"readOnly\"} 2").is_none() {
        tokio::task::yield_now().await;
    }
    server.begin_stop();
    server.lifecycle.not_accepting_new_requests.cancelled().await;

    let refused = server.get("/api/v1/pods", ADMIN_TOKEN).await;
    assert_eq!(refused.text(), "The apiserver is shutting down, please try again later.\n");
    assert_eq!((refused.status, refused.header("retry-after"), refused.header("connection")), (429, "5", "close"));
    let ready = server.get("/readyz", ADMIN_TOKEN).await;
    assert!(ready.text().contains("[-]shutdown failed: reason withheld\n"), "{}", ready.text());
    assert_eq!(server.get("/livez", ADMIN_TOKEN).await.status, 200);

    release.send(true).unwrap();
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn pre_shutdown_hooks_run_while_the_server_serves() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let server = TestServer::start(|b| b.delegate(echo()));
    let server = server.await;
    let client = server.loopback.clone();
    let hook = crate::lifecycle::PreShutdownHook::new("leave", move || async move {
        let answer = client.get_path("/x").await.map_err(|e| e.message)?;
        tell.send(answer.status()).map_err(|_| "nobody listens".to_owned())
    });
    // A second server, whose hook calls the first one, which still serves.
    let leaving = TestServer::start(|b| b.pre_shutdown_hook(hook)).await;
    leaving.stop().await.unwrap();
    assert_eq!(told.await.unwrap(), 200);
}

#[tokio::test]
async fn users_act_as_others_if_they_may() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let send = |token: &str, name: &str, value: &str| {
        let mut request = request("GET", "/version", token);
        request.headers_mut().insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        server.send(request)
    };
    // Administrators may; the one they become may not.
    let alice = send(ADMIN_TOKEN, "impersonate-user", "alice").await;
    let message = r#"User \"alice\" cannot get path \"/version\""#;
    assert!(alice.status == 403 && alice.text().contains(message), "{}", alice.text());
    let refused = send(USER_TOKEN, "impersonate-user", "admin").await;
    assert!(refused.status == 403 && refused.text().contains("impersonat"), "{}", refused.text());
    let nameless = send(ADMIN_TOKEN, "impersonate-group", "system:masters").await;
    assert_eq!(nameless.status, 400, "{}", nameless.text());

    let answer = server.send(request("GET", "/metrics", ADMIN_TOKEN)).await;
    let metrics = answer.text();
    for line in [
        r#"attempts_total{decision="allowed",mode="user-info"} 1"#,
        r#"attempts_total{decision="denied",mode=""} 1"#,
        r#"attempts_duration_seconds_count{decision="denied",mode=""} 1"#,
        r#"authorization_attempts_total{decision="allowed",mode="user-info"} 2"#,
        r#"authorization_attempts_total{decision="denied",mode="user-info"} 1"#,
        r#"authorization_attempts_total{decision="denied",mode="legacy"} 1"#,
        r#"authorization_attempts_duration_seconds_count{decision="denied",mode="legacy"} 1"#,
    ] {
        assert!(metrics.contains(&format!("\napiserver_impersonation_{line}\n")), "{line}: {metrics}");
    }
    server.send(request("DELETE", "/metrics", ADMIN_TOKEN)).await;
    let answer = server.send(request("GET", "/metrics", ADMIN_TOKEN)).await;
    assert!(!answer.text().contains("apiserver_impersonation_attempts_total{"), "counted from the beginning again");
}

#[tokio::test]
async fn certificates_are_chosen_by_name() {
    use kubelith_tls::{CertKeyFiles, DynamicTls, Pki, PkiOptions, SniCertKey, SuiteOrder, TlsOptions, TlsPolicy};
    use rustls::pki_types::ServerName;
    let dir = tempfile::tempdir().unwrap();
    let files = |name: &str| {
        let options = PkiOptions::all([name], []);
        let pki = Pki::open(dir.path().join(name), options).unwrap();
        CertKeyFiles { cert: pki.serving_cert(), key: pki.serving_key() }
    };
    let tls = DynamicTls::load(TlsOptions {
        serving: files("default.test"),
        sni: vec![
            SniCertKey { files: files("own.test"), names: Vec::new() },
            SniCertKey { files: files("wild.test"), names: vec!["*.wild.test".into(), "127.0.0.9".into()] },
        ],
        client_ca_files: Vec::new(),
        policy: TlsPolicy::default(),
        alpn: Vec::new(),
    })
    .unwrap();

    let serve = |server_name: &'static str, local: &'static str| {
        let config = tls.config_for(local.parse().unwrap(), SuiteOrder::Server);
        async move {
            let (client, server) = tokio::io::duplex(16 * 1024);
            let accept = tokio::spawn(async move {
                let _ = tokio_rustls::TlsAcceptor::from(config).accept(server).await;
            });
            let config = Trust::Anyone.client().unwrap().with_no_client_auth();
            let name = ServerName::try_from(server_name).unwrap();
            let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, client).await.unwrap();
            let der = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            accept.await.unwrap();
            String::from_utf8_lossy(&der).into_owned()
        }
    };
    for (name, local, want) in [
        ("other.test", "127.0.0.1", "default.test"),
        ("own.test", "127.0.0.1", "own.test"),
        ("a.wild.test", "127.0.0.1", "wild.test"),
        // An address is no server name, so the client sends none.
        ("127.0.0.9", "127.0.0.9", "wild.test"),
        ("127.0.0.1", "127.0.0.1", "default.test"),
    ] {
        assert!(serve(name, local).await.contains(want), "{name} at {local}");
    }
}

/// As Go's servers choose: AES-GCM with the shorter key, but what the client likes best if that is ChaCha20.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[tokio::test]
async fn the_server_chooses_among_suites_with_aes() {
    use rustls::crypto::aws_lc_rs::{self, cipher_suite::*};
    use rustls::{SupportedCipherSuite, version};
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let (aes_128, aes_256) = (TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384);
    let of_12 = [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];
    for (listed, want) in [
        (&[aes_256, aes_128, TLS13_CHACHA20_POLY1305_SHA256][..], aes_128),
        (&[TLS13_CHACHA20_POLY1305_SHA256, aes_256, aes_128], TLS13_CHACHA20_POLY1305_SHA256),
        (&[aes_256, TLS13_CHACHA20_POLY1305_SHA256], aes_256),
        (&of_12, of_12[1]),
        (&of_12[..1], of_12[0]),
    ] {
        let provider =
            rustls::crypto::CryptoProvider { cipher_suites: listed.to_vec(), ..aws_lc_rs::default_provider() };
        let version = if want.tls13().is_some() { &version::TLS13 } else { &version::TLS12 };
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(server.roots().unwrap())
            .with_no_client_auth();
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        let chosen = stream.get_ref().1.negotiated_cipher_suite().map(|suite: SupportedCipherSuite| suite.suite());
        assert_eq!(chosen, Some(want.suite()), "of {listed:?}");
    }
}

#[tokio::test]
async fn a_silent_connection_is_put_aside_and_picked_up_again() {
    use std::sync::atomic::Ordering;
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let stream = server.connect(b"http/1.1", true).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for round in 0..3 {
        let response = sender.send_request(request("GET", "/x", "")).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "kubernetes-admin get /x");
        assert_eq!(server.stats.parked.load(Ordering::Relaxed), round);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(5)).await;
        while server.stats.parked.load(Ordering::Relaxed) == round {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_connection_can_be_taken_over() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let upper = handler(|mut request| {
        let Some(connection) = kubelith_http::upgrade::on(&mut request) else {
            return Reply::Ready(respond::text(StatusCode::BAD_REQUEST, "no upgrade"));
        };
        tokio::spawn(async move {
            let mut connection = connection.await.unwrap();
            let mut word = [0; 5];
            connection.read_exact(&mut word).await.unwrap();
            connection.write_all(&word.map(|b| b.to_ascii_uppercase())).await.unwrap();
            connection.shutdown().await.unwrap();
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", http::HeaderValue::from_static("Upgrade"));
        response.headers_mut().insert("upgrade", http::HeaderValue::from_static("SPDY/3.1"));
        Reply::Ready(response)
    });
    let server = TestServer::start(|b| b.delegate(upper)).await;
    let mut stream = server.connect(b"http/1.1", true).await.unwrap();
    // The first bytes of the new protocol come with the request: none may be lost.
    let request_text = "POST /api/v1/namespaces/n/pods/p/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello";
    stream.write_all(request_text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n") && answer.ends_with("\r\n\r\nHELLO"),
        "{answer}"
    );
    assert_eq!(server.get("/x", ADMIN_TOKEN).await.text(), "no upgrade");
}

/// Whoever sends a request's head byte by byte holds no connection for long; whoever is idle between requests does.
#[tokio::test]
async fn slow_heads_are_cut() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut slow = server.connect(b"http/1.1", false).await.unwrap();
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    slow.flush().await.unwrap();
    let mut idle = server.connect(b"http/1.1", false).await.unwrap();
    let get = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut buffer = [0; 4096];
    idle.write_all(get).await.unwrap();
    assert!(idle.read(&mut buffer).await.unwrap() > 0);
    // By now the server has read what the slow one sent: both are served by this thread, in turn.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(40)).await;
    let end = slow.read(&mut buffer).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    tokio::time::resume();
    idle.write_all(get).await.unwrap();
    assert!(idle.read(&mut buffer).await.unwrap() > 0);
}
