//! Connections put aside and taken up again, with a real client and with one that counts every frame.

mod changes;
mod early;
// The frames that this client counts are those that the server takes apart.
#[allow(dead_code)]
#[path = "../../src/parking/frames.rs"]
mod frames;
mod instructions;
mod watches;

use bytes::Bytes;
use frames::{HEAD, Head};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_http::{Body, BoxHandler, Reply, Request, Response};
use kubelith_listen::HttpOptions;
use kubelith_server::testing::{Place, TestServer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Answers with what was sent.
fn echo() -> BoxHandler {
    Arc::new(|request: Request| -> Reply {
        Reply::pending(async move {
            let tag = request.headers().get("x-tag").cloned();
            let body = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
            let mut response = Response::new(Body::from(body));
            response.headers_mut().extend(tag.map(|tag| (http::HeaderName::from_static("x-tag"), tag)));
            response
        })
    })
}

/// Lets time pass until one more connection was put aside.
async fn until_parked(server: &TestServer) {
    until_parked_after(server, server.stats.parked.load(Ordering::Relaxed)).await;
}

/// As `until_parked`, since so many were.
async fn until_parked_after(server: &TestServer, before: u64) {
    tokio::time::pause();
    while server.stats.parked.load(Ordering::Relaxed) == before {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    tokio::time::resume();
}

/// More is sent in all than the connection's window holds, so that a byte that is forgotten in each life shows.
#[tokio::test]
async fn a_client_does_not_notice() {
    const BODY: usize = 3 << 20;
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let stream = server.connect(b"h2", true).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for round in 0..10 {
        for tag in ["first", "second"] {
            let body = if tag == "first" { Bytes::from(vec![round; BODY]) } else { Bytes::new() };
            let request = http::Request::post("https://localhost/echo").header("x-tag", tag);
            let response = sender.send_request(request.body(Full::new(body.clone())).unwrap()).await.unwrap();
            assert_eq!((response.status().as_u16(), &response.headers()["x-tag"]), (200, &tag.parse().unwrap()));
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), body.len());
        }
        until_parked(&server).await;
    }
    assert_eq!(server.stats.parked.load(Ordering::Relaxed), 10);
}

/// A client that says exactly what a test wants it to.
struct Client {
    stream: TlsStream<TcpStream>,
}

/// GET https /, with `x` as authority, which the client's table takes.
const FIRST_HEADERS: &[u8] = &[0x82, 0x84, 0x87, 0x41, 0x01, b'x'];

impl Client {
    async fn new(server: &TestServer) -> Client {
        let mut client = Client::with_first_window(server).await;
        client.send(&frames::window_update(0, 1 << 20)).await;
        client
    }

    async fn with_first_window(server: &TestServer) -> Client {
        let mut client = Client { stream: server.connect(b"h2", true).await.unwrap() };
        client.send(&[frames::PREFACE, &frames::settings([(4, 1 << 20)])].concat()).await;
        client
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn ask(&mut self, stream: u32, block: &[u8]) {
        let flags = frames::END_STREAM | frames::END_HEADERS;
        self.send(&frames::frame(frames::HEADERS, flags, stream, block)).await;
    }

    /// The next frame.
    async fn hear(&mut self) -> Option<(Head, Vec<u8>)> {
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head).await.ok()?;
        let head = Head::read(head);
        let mut payload = vec![0; head.length];
        self.stream.read_exact(&mut payload).await.ok()?;
        Some((head, payload))
    }

    /// The next frame. Settings are acknowledged.
    async fn next(&mut self) -> Option<(Head, Vec<u8>)> {
        let (head, payload) = self.hear().await?;
        if head.kind == frames::SETTINGS && !head.is_ack() {
            self.send(&frames::settings_ack()).await;
        }
        Some((head, payload))
    }

    /// Frames until one of this kind, which must come.
    async fn until(&mut self, kind: u8) -> (Head, Vec<u8>, Vec<(Head, Vec<u8>)>) {
        let mut before = Vec::new();
        loop {
            let (head, payload) = self.next().await.unwrap_or_else(|| panic!("{kind} does not come: {before:?}"));
            if head.kind == kind {
                return (head, payload, before);
            }
            before.push((head, payload));
        }
    }

    /// Settings that are not acknowledged yet.
    async fn until_asked(&mut self) -> Vec<u8> {
        loop {
            let (head, payload) = self.hear().await.unwrap();
            if head.kind == frames::SETTINGS && !head.is_ack() {
                return payload;
            }
        }
    }

    /// Until the server's wish for an empty table has come and the connection is aside.
    async fn until_parked(&mut self, server: &TestServer) {
        let before = server.stats.parked.load(Ordering::Relaxed);
        tokio::time::pause();
        let asks = async {
            loop {
                tokio::time::advance(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            (_, payload, _) = self.until(frames::SETTINGS) => {
                assert_eq!(frames::read_settings(&payload).collect::<Vec<_>>(), [(frames::HEADER_TABLE_SIZE, 0)]);
            }
            () = asks => {}
        }
        tokio::time::resume();
        until_parked_after(server, before).await;
    }
}

/// The first request of a connection: its answer, and all that comes with it.
async fn first_request(server: &TestServer) -> Client {
    let mut client = Client::new(server).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, FIRST_HEADERS).await;
    let (head, ..) = client.until(frames::HEADERS).await;
    assert_eq!(head.stream, 1);
    client
}

#[tokio::test]
async fn nothing_is_said_twice_and_late_words_about_old_streams_do_no_harm() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut client = first_request(&server).await;
    client.until_parked(&server).await;
    let late = frames::frame(frames::WINDOW_UPDATE, 0, 1, &7u32.to_be_bytes());
    // Byte by byte, so that nothing depends on where reads end.
    for byte in late {
        client.send(&[byte]).await;
    }
    // A table of no entries, then of the default size again; the same header is new.
    client.ask(3, &[&[0x20, 0x3f, 0xe1, 0x1f][..], FIRST_HEADERS].concat()).await;
    let (head, _, before) = client.until(frames::HEADERS).await;
    assert_eq!(head.stream, 3);
    let settings: Vec<_> = before.iter().filter(|(h, _)| h.kind == frames::SETTINGS).collect();
    assert_eq!(settings.len(), 1, "{before:?}");
    let expected = [(frames::HEADER_TABLE_SIZE, frames::DEFAULT_HEADER_TABLE)];
    assert_eq!(frames::read_settings(&settings[0].1).collect::<Vec<_>>(), expected);
    assert!(!before.iter().any(|(h, _)| h.kind == frames::WINDOW_UPDATE), "{before:?}");
    // The entry that was just added is known.
    client.ask(5, &[0x82, 0x84, 0x87, 0xbe]).await;
    assert_eq!(client.until(frames::HEADERS).await.0.stream, 5);
}

#[tokio::test]
async fn a_client_that_keeps_its_table_is_sent_elsewhere() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut client = first_request(&server).await;
    client.until_parked(&server).await;
    client.ask(3, &[0x82, 0x84, 0x87, 0xbe]).await;
    let (_, payload, before) = client.until(frames::GOAWAY).await;
    assert!(!before.iter().any(|(h, _)| h.kind == frames::HEADERS), "{before:?}");
    let last = u32::from_be_bytes(payload[..4].try_into().unwrap());
    let error = u32::from_be_bytes(payload[4..8].try_into().unwrap());
    assert!((1..3).contains(&last) && error == 0, "{payload:?}");
    while client.next().await.is_some() {}
}

#[tokio::test]
async fn one_that_never_had_a_table_is_served() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut client = Client::new(&server).await;
    client.until(frames::SETTINGS).await;
    let block = [0x82, 0x84, 0x87, 0x01, 0x01, b'x'];
    for stream in [1, 3] {
        client.ask(stream, &block).await;
        assert_eq!(client.until(frames::HEADERS).await.0.stream, stream);
        client.until_parked(&server).await;
    }
}

#[tokio::test]
async fn one_that_speaks_up_in_time_stays() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut client = first_request(&server).await;
    tokio::time::pause();
    let asked = async {
        loop {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        payload = client.until_asked() => assert_eq!(payload, [0, 1, 0, 0, 0, 0]),
        () = asked => {}
    }
    tokio::time::resume();
    // It still refers to its table: this is on its way before the settings are heard.
    client.ask(3, &[0x82, 0x84, 0x87, 0xbe]).await;
    client.send(&frames::settings_ack()).await;
    let (head, _, before) = client.until(frames::HEADERS).await;
    assert_eq!(head.stream, 3);
    assert!(before.iter().any(|(h, p)| h.kind == frames::SETTINGS && p[..] == [0, 1, 0, 0, 0x10, 0]), "{before:?}");
    assert_eq!(server.stats.parked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn none_is_parked_where_that_is_turned_off() {
    let http = HttpOptions { park_idle: false, ..HttpOptions::default() };
    let place = Place { http, ..Place::default() };
    let server = TestServer::start_at(place, |_| {}, |b| b.delegate(echo())).await;
    let mut client = first_request(&server).await;
    tokio::time::pause();
    for _ in 0..2000 {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    tokio::time::resume();
    // The client was not even asked to empty its table, so that it may refer to it.
    client.ask(3, &[0x82, 0x84, 0x87, 0xbe]).await;
    let (head, _, before) = client.until(frames::HEADERS).await;
    assert_eq!(head.stream, 3);
    assert!(before.iter().all(|(h, _)| h.kind != frames::SETTINGS), "{before:?}");
    assert_eq!(server.stats.parked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn farewell_reaches_a_connection_that_is_aside() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    let mut client = first_request(&server).await;
    client.until_parked(&server).await;
    server.begin_stop();
    client.until(frames::GOAWAY).await;
    drop(client);
    server.ended().await.unwrap();
}
