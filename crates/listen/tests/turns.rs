//! When more is read from a connection, where those who ask there have turns.

use bytes::Bytes;
use futures::channel::mpsc;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_http::askers::Asker;
use kubelith_http::turns::Turns;
use kubelith_http::{Body, BoxHandler, Reply, Request, Response};
use kubelith_server::testing::{ADMIN_TOKEN, TestServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Mutex;

/// More than are let in while a request comes in, also where that takes long.
const CROWD: usize = 10_000;

/// Those who waited before a request that is sent then.
#[derive(Default)]
struct Level {
    turns: Arc<Turns>,
    done: Arc<AtomicUsize>,
}

impl Level {
    fn crowd(&self) {
        for _ in 0..CROWD {
            let (turn, done) = (self.turns.again().unwrap(), self.done.clone());
            tokio::spawn(async move {
                turn.await;
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Notes who asks, as flow control does. Answers how many were before; a watch has events of a channel.
    fn handler(self: &Arc<Self>, asker: Asker, events: mpsc::UnboundedReceiver<Bytes>) -> BoxHandler {
        let (level, events) = (self.clone(), Arc::new(Mutex::new(Some(events))));
        Arc::new(move |request: Request| -> Reply {
            request.connection().unwrap().askers.ask(asker.clone());
            let (before, events) = (level.done(), events.clone());
            Reply::pending(async move {
                Response::new(match request.uri().path() {
                    "/api/v1/nodes" => Body::stream(futures::StreamExt::map(events.lock().await.take().unwrap(), Ok)),
                    _ => Body::from(before.to_string()),
                })
            })
        })
    }
}

fn get(path: &str) -> http::Request<Empty<Bytes>> {
    let request = http::Request::get(format!("https://localhost{path}")).header("host", "localhost");
    request.header("authorization", format!("Bearer {ADMIN_TOKEN}")).body(Empty::new()).unwrap()
}

async fn number(response: http::Response<hyper::body::Incoming>) -> usize {
    let text = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&text).parse().unwrap()
}

/// How many had their turn before the second request of a connection was read.
async fn read_after(asker: impl FnOnce(&Level) -> Asker) -> usize {
    let level = Arc::new(Level::default());
    let handler = level.handler(asker(&level), mpsc::unbounded().1);
    let server = TestServer::start(|b| b.delegate(handler)).await;
    let stream = TokioIo::new(server.connect(b"http/1.1", false).await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(number(sender.send_request(get("/x")).await.unwrap()).await, 0);
    level.crowd();
    number(sender.send_request(get("/x")).await.unwrap()).await
}

#[tokio::test]
async fn a_connection_is_read_in_a_turn_of_the_one_level_that_asks_there() {
    assert_eq!(read_after(|level| Asker::Limited(level.turns.clone())).await, CROWD);
    for other in [Asker::Unlimited, Asker::Limited(Arc::default())] {
        assert!(read_after(|_| other).await < CROWD, "others do not wait for them");
    }
}

/// Only reading waits.
#[tokio::test]
async fn a_watch_goes_on_while_its_connection_waits_for_a_turn() {
    let level = Arc::new(Level::default());
    let (events, come) = mpsc::unbounded();
    let handler = level.handler(Asker::Limited(level.turns.clone()), come);
    let server = TestServer::start(|b| b.delegate(handler)).await;
    let stream = TokioIo::new(server.connect(b"h2", false).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut watch = sender.send_request(get("/api/v1/nodes?watch=1")).await.unwrap().into_body();
    level.crowd();
    let read = tokio::spawn(sender.send_request(get("/x")));
    for event in ["one", "two"] {
        events.unbounded_send(Bytes::from(event)).unwrap();
        assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), event);
        assert!(level.done() < CROWD);
    }
    assert_eq!(number(read.await.unwrap().unwrap()).await, CROWD);
}
