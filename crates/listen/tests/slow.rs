//! Clients that hold a connection and do not get on with it are cut after a while, wherever they stop.

use bytes::Bytes;
use http_body_util::BodyExt;
use kubelith_http::{Body, BoxHandler, Reply, Request, Response};
use kubelith_server::testing::{ADMIN_TOKEN, TestServer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// More than sockets hold between them.
const LARGE: usize = 32 << 20;

/// Reads the request, then answers much: at once, or piece by piece.
fn much() -> BoxHandler {
    Arc::new(|request: Request| -> Reply {
        Reply::pending(async move {
            let piecewise = request.uri().path() == "/api/v1/nodes";
            let _ = request.into_body().collect().await;
            let piece = Bytes::from(vec![b'x'; LARGE / 64]);
            Response::new(if piecewise {
                Body::stream(futures::stream::iter((0..64).map(move |_| Ok(piece.clone()))))
            } else {
                Body::from(vec![b'x'; LARGE])
            })
        })
    })
}

/// Time passes, and the server gets its turns.
async fn pass(time: Duration) {
    tokio::time::pause();
    for _ in 0..100 {
        tokio::time::advance(time / 100).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
}

#[tokio::test]
async fn a_handshake_that_does_not_end() {
    let server = TestServer::start(|b| b.delegate(much())).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&[0x16, 3, 1]).await.unwrap();
    let begin = Instant::now();
    tokio::time::pause();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(server.stats.tls_handshake_errors.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_body_that_trickles() {
    let server = TestServer::start(|b| b.delegate(much())).await;
    let mut slow = server.connect(b"http/1.1", false).await.unwrap();
    let head =
        format!("POST /x HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_TOKEN}\r\ncontent-length: 100\r\n\r\n");
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(b"some").await.unwrap();
    let begin = Instant::now();
    tokio::time::pause();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 504 ") || answer.is_empty(), "{answer}");
    // As long as a request may take, and then as long as a connection may be silent.
    assert!(begin.elapsed() < Duration::from_secs(180), "{:?} {answer}", begin.elapsed());
}

#[tokio::test]
async fn an_answer_that_is_not_read() {
    let cases = [("/x", 100, false), ("/api/v1/nodes?watch=1", 100, true), ("/api/v1/nodes?watch=1", 1000, false)];
    for (path, seconds, is_whole) in cases {
        let server = TestServer::start(|b| b.delegate(much())).await;
        let mut slow = server.connect(b"http/1.1", false).await.unwrap();
        let get = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_TOKEN}\r\nconnection: close\r\n\r\n"
        );
        slow.write_all(get.as_bytes()).await.unwrap();
        let mut answer = vec![slow.read_u8().await.unwrap()];
        pass(Duration::from_secs(seconds)).await;
        let _ = slow.read_to_end(&mut answer).await;
        assert_eq!(answer.len() > LARGE, is_whole, "{path} {seconds} s: {}", answer.len());
    }
}
