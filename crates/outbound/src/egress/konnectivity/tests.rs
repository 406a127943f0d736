use super::packets::{CLOSE_REQUEST, CloseDial, CloseResponse, DIAL_REQUEST, DialResponse};
use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Mutex;
use tokio::sync::Notify;

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

fn framed(packet: &Packet) -> Frame<Bytes> {
    // A message in gRPC: a byte for compression, four for the length.
    let message = packet.encode_to_vec();
    let mut frame = vec![0];
    frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
    frame.extend_from_slice(&message);
    Frame::data(frame.into())
}

/// What the proxy answers to a packet: it knows one address, and says everything back.
fn answer(packet: &Packet) -> Option<Packet> {
    match packet.kind {
        DIAL_REQUEST => {
            let asked = packet.dial_request.clone()?;
            let error = match asked.address.as_str() {
                "10.0.0.1:443" => String::new(),
                "silent:1" => return None,
                "closed:1" => {
                    let close_dial = Some(CloseDial { random: asked.random });
                    return Some(Packet { kind: DIAL_CLOSED, close_dial, ..Packet::default() });
                }
                _ => "no such host".to_owned(),
            };
            // An answer to somebody else ends the tunnel.
            let random = if asked.address == "confused:1" { 0 } else { asked.random };
            let response = DialResponse { error, connection: 7, random };
            Some(Packet { kind: DIAL_RESPONSE, dial_response: Some(response), ..Packet::default() })
        }
        DATA => Some(packet.clone()).filter(|p| p.data.as_ref().is_some_and(|d| d.connection == 7)),
        CLOSE_REQUEST => {
            let close_response = Some(CloseResponse { error: String::new(), connection: 7 });
            Some(Packet { kind: CLOSE_RESPONSE, close_response, ..Packet::default() })
        }
        _ => None,
    }
}

async fn proxy(request: http::Request<Incoming>) -> Result<http::Response<Body>, Infallible> {
    assert_eq!(request.uri().path(), METHOD);
    let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(PACKETS);
    tokio::spawn(async move {
        let (mut body, mut bytes) = (request.into_body(), bytes::BytesMut::new());
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
            while bytes.len() >= 5 {
                let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
                if bytes.len() < 5 + length {
                    break;
                }
                let message = bytes.split_to(5 + length).freeze().slice(5..);
                if let Some(packet) = answer(&Packet::decode(message).unwrap()) {
                    let _ = send.send(Ok(framed(&packet))).await;
                }
            }
        }
        let _ = send
            .send(Ok(Frame::trailers(http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), 0.into())]))))
            .await;
    });
    let frames = futures::stream::unfold(receive, |mut from| async move { Some((from.recv().await?, from)) });
    let body = StreamBody::new(frames).boxed_unsync();
    Ok(http::Response::builder().header("content-type", "application/grpc").body(body).unwrap())
}

/// Who refuses every stream.
async fn refuse(_: http::Request<Incoming>) -> Result<http::Response<Body>, Infallible> {
    let answer = http::Response::builder().header("content-type", "application/grpc").header("grpc-status", "14");
    Ok(answer.body(http_body_util::Empty::new().boxed_unsync()).unwrap())
}

/// A socket behind which `serve` answers.
fn listen<F>(folder: &Path, serve: fn(http::Request<Incoming>) -> F) -> PathBuf
where
    F: Future<Output = Result<http::Response<Body>, Infallible>> + Send + 'static,
{
    let socket = folder.join("proxy.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), hyper::service::service_fn(serve));
            tokio::spawn(connection);
        }
    });
    socket
}

/// What was told, each as a line, and how often.
#[derive(Debug, Default)]
struct Told {
    lines: Mutex<BTreeMap<String, i64>>,
    changed: Notify,
}

impl Told {
    fn add(&self, line: String, change: i64) {
        *self.lines.lock().unwrap().entry(line).or_default() += change;
        self.changed.notify_waiters();
    }

    /// Waits until no tunnel is left, and says what was told, but for nothing.
    async fn when_over(&self) -> Vec<String> {
        loop {
            let changed = self.changed.notified();
            let lines = self.lines.lock().unwrap().clone();
            if lines.iter().all(|(line, count)| !line.starts_with("in ") || *count == 0) {
                return lines.iter().filter(|(_, n)| **n != 0).map(|(line, n)| format!("{line} {n}")).collect();
            }
            changed.await;
        }
    }
}

impl DialObserver for Told {
    fn started(&self, _: Way) {}
    fn done(&self, _: Way, _: Duration) {}
    fn failed(&self, way: Way, stage: Stage) {
        self.add(format!("{}: {stage:?}", way.protocol), 1);
    }
    fn packet(&self, segment: Segment, kind: &'static str) {
        self.add(format!("{segment:?} {kind}"), 1);
    }
    fn stream_failed(&self, code: Code) {
        self.add(format!("error {code:?}"), 1);
    }
    fn tunnel_failed(&self, reason: Reason) {
        self.add(format!("failed {reason:?}"), 1);
    }
    fn tunnels(&self, state: State, change: i64) {
        self.add(format!("in {state:?}"), change);
    }
}

#[tokio::test]
async fn bytes_go_through_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, told) = (listen(folder.path(), proxy), Arc::new(Told::default()));
    let mut tunnel = connect(&socket, "10.0.0.1:443", Some(told.clone())).await.unwrap();
    tunnel.write_all(b"hello").await.unwrap();
    let mut back = [0; 5];
    tunnel.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"hello");
    assert_eq!(told.lines.lock().unwrap().get("in Ok"), Some(&1));
    drop(tunnel);
    let want =
        ["FromClient CLOSE_REQ", "FromClient DATA", "FromClient DIAL_REQ", "ToClient CLOSE_RSP", "ToClient DATA"];
    let want: Vec<String> = want.iter().chain(&["ToClient DIAL_RSP"]).map(|line| format!("{line} 1")).collect();
    assert_eq!(told.when_over().await, want);
    let (stage, nobody) = connect(&folder.path().join("nobody"), "10.0.0.1:443", None).await.err().unwrap();
    assert_eq!(stage, Stage::Connect);
    assert!(nobody.starts_with("dial unix "), "{nobody}");
}

#[tokio::test]
async fn a_connection_that_is_not_made_says_why_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let socket = listen(folder.path(), proxy);
    for (target, why, want) in [
        ("elsewhere:1", "no such host", &["failed Endpoint 1", "FromClient DIAL_REQ 1", "ToClient DIAL_RSP 1"][..]),
        ("closed:1", "dial closed", &["failed DialClosed 1", "FromClient DIAL_REQ 1", "ToClient DIAL_CLS 1"]),
        ("confused:1", "tunnel closed", &["failed TunnelClosed 1", "FromClient DIAL_REQ 1", "ToClient DIAL_RSP 1"]),
    ] {
        let told = Arc::new(Told::default());
        let failed = connect(&socket, target, Some(told.clone())).await.err().unwrap();
        assert_eq!(failed, (Stage::Proxy, why.to_owned()));
        let mut lines = told.when_over().await;
        lines.sort_by_key(|line| line.to_lowercase());
        assert_eq!(lines, want, "{target}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_counted_by_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, told) = (listen(folder.path(), refuse), Arc::new(Told::default()));
    let failed = connect(&socket, "10.0.0.1:443", Some(told.clone())).await.err().unwrap();
    assert_eq!(failed, (Stage::Proxy, "tunnel closed".to_owned()));
    assert_eq!(told.when_over().await, ["FromClient DIAL_REQ 1", "error Unavailable 1", "failed TunnelClosed 1"]);
}

/// A connection that is asked for and never made.
async fn unanswered(socket: &Path, told: &Arc<Told>) -> impl Future<Output = Result<DuplexStream, Failure>> + Unpin {
    let (socket, observer) = (socket.to_owned(), told.clone());
    let mut waiting = Box::pin(async move { connect(&socket, "silent:1", Some(observer)).await });
    loop {
        let changed = told.changed.notified();
        if told.lines.lock().unwrap().contains_key("FromClient DIAL_REQ") {
            return waiting;
        }
        tokio::select! { _ = &mut waiting => unreachable!("nobody answers"), () = changed => {} }
    }
}

#[tokio::test]
async fn the_proxy_is_told_when_nobody_waits_any_longer() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, told) = (listen(folder.path(), proxy), Arc::new(Told::default()));
    drop(unanswered(&socket, &told).await);
    let want = ["FromClient DIAL_CLS 1", "FromClient DIAL_REQ 1", "failed Context 1", "grpc: Proxy 1"];
    assert_eq!(told.when_over().await, want);
}

#[tokio::test]
async fn a_proxy_has_half_a_minute_to_connect() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, told) = (listen(folder.path(), proxy), Arc::new(Told::default()));
    let waiting = unanswered(&socket, &told).await;
    tokio::time::pause();
    let failed = waiting.await.err().unwrap();
    assert_eq!(failed, (Stage::Proxy, "dial timeout, backstop".to_owned()));
    let lines = told.when_over().await;
    assert!(lines.contains(&"failed Timeout 1".to_owned()), "{lines:?}");
}
