//! What a connection and a watch cost the server in memory. Most of an API server's connections are silent, and
//! there are many of them.

use crate::support::Server;
use crate::support::client::{Connection, Failed, Protocol};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Of each idle connection and each watch of a connection that has others.
const MOST_BYTES: u64 = 20 * 1024;
/// Of a watch with the connection that it has for itself. The first of them find what the start left over: how much that is
/// belongs to this figure, too.
const MOST_BYTES_OF_BOTH: u64 = 24 * 1024;
/// As client-go: many watches share a connection.
const WATCHES_PER_CONNECTION: usize = 50;
/// Connections that are opened at the same time.
const AT_ONCE: usize = 2;
/// The server ends connections that have asked nothing for so long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const WATCH: &str = "/api/v1/namespaces/default/pods?watch=1";

#[derive(Debug, Clone, Copy)]
enum Kind {
    Http1,
    Http2,
    /// Answers have used up some of the window that every connection begins with.
    Http2FirstWindow,
    /// Many on a connection.
    Watches,
    /// Each on its own connection.
    LoneWatches,
}

struct Held {
    connection: Connection,
    _watches: Vec<hyper::Response<hyper::body::Incoming>>,
}

/// Memory of the process that no file backs.
fn anonymous_bytes(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", server.pid())).unwrap();
    let line = text.lines().find(|l| l.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

async fn open(address: SocketAddr, kind: Kind, watches: usize) -> Held {
    let mut connection = match kind {
        Kind::Http1 => Connection::open(address, Protocol::Http1).await,
        Kind::Http2FirstWindow => Connection::open_with_first_window(address).await,
        Kind::Http2 | Kind::Watches | Kind::LoneWatches => Connection::open(address, Protocol::Http2).await,
    }
    .unwrap();
    let answer = connection.send("GET", "/version", "").await.unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(answer.status, 200);
    let mut open = Vec::new();
    for _ in 0..watches {
        let watch = connection.start("GET", WATCH, "").await.unwrap();
        assert_eq!(watch.status(), 200);
        open.push(watch);
    }
    Held { connection, _watches: open }
}

/// So many of a kind, each of which has had a request.
async fn hold(address: SocketAddr, kind: Kind, count: usize) -> Vec<Held> {
    let (connections, watches) = match kind {
        Kind::Http1 | Kind::Http2 | Kind::Http2FirstWindow => (count, 0),
        Kind::Watches => (count / WATCHES_PER_CONNECTION, WATCHES_PER_CONNECTION),
        Kind::LoneWatches => (count, 1),
    };
    let tasks = (0..connections).map(|_| tokio::spawn(open(address, kind, watches)));
    stream::iter(tasks).buffer_unordered(AT_ONCE).try_collect().await.unwrap()
}

/// A server of its own, and those of each kind in turn; all stay until the end, so that none has what another one gave
/// back. Answers what all of them together took.
fn measure(load: &[(Kind, usize)]) -> u64 {
    let server = Server::start(&[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let hold = |kind, count| runtime.block_on(hold(server.address(), kind, count));
    // What the first ones need is not theirs alone. They leave: what they give back is no gain of others.
    for (kind, _) in load {
        drop(hold(*kind, WATCHES_PER_CONNECTION));
    }
    let begun = Instant::now();
    let all_before = anonymous_bytes(&server);
    let mut all = Vec::new();
    for (kind, count) in load {
        let before = anonymous_bytes(&server);
        all.extend(hold(*kind, *count));
        let each = || anonymous_bytes(&server).saturating_sub(before) / *count as u64;
        println!("{count} {kind:?}: {} bytes each at first", each());
        // A connection is put aside some seconds after its last request.
        let most = if matches!(kind, Kind::LoneWatches) { MOST_BYTES_OF_BOTH } else { MOST_BYTES };
        server.wait_for(&format!("below {most} bytes for each {kind:?}: {}", each()), || each() < most);
        println!("{count} {kind:?}: {} bytes each", each());
    }
    let count: usize = load.iter().map(|(_, count)| count).sum();
    let each = (anonymous_bytes(&server) - all_before) / count as u64;
    println!("{count} of all: {each} bytes each");
    assert!(begun.elapsed() < IDLE_TIMEOUT, "too slow to tell: the first ones are gone");
    runtime.block_on(ask_all(all, begun));
    each
}

/// Every one is still there, and serves.
async fn ask_all(held: Vec<Held>, begun: Instant) {
    let ask = |mut held: Held| async move {
        match held.connection.send("GET", "/version", "").await {
            Ok(answer) => assert_eq!(answer.status, 200),
            Err(Failed::NotSent) if begun.elapsed() > IDLE_TIMEOUT => {}
            Err(why) => panic!("{why:?}"),
        }
    };
    stream::iter(held).for_each_concurrent(AT_ONCE, ask).await;
}

#[test]
fn idle_connections_and_watches_take_little() {
    measure(&[(Kind::Http1, 300), (Kind::Watches, 500)]);
}

#[test]
fn idle_http2_connections_take_little() {
    measure(&[(Kind::Http2, 300)]);
}

#[test]
fn watches_on_their_own_connections_take_little() {
    measure(&[(Kind::LoneWatches, 300)]);
}

/// None of them has what another kind has given back.
#[test]
#[ignore = "takes minutes"]
fn five_thousand_of_each_kind_alone_take_little() {
    for kind in [Kind::Http2, Kind::LoneWatches, Kind::Http2FirstWindow, Kind::Http1, Kind::Watches] {
        measure(&[(kind, 5000)]);
    }
}

/// Needs 15,000 file descriptors for a process.
#[test]
#[ignore = "takes minutes"]
fn ten_thousand_connections_and_five_thousand_watches_take_little() {
    let each = measure(&[
        (Kind::Http2, 3000),
        (Kind::LoneWatches, 2500),
        (Kind::Http2FirstWindow, 3000),
        (Kind::Http1, 4000),
        (Kind::Watches, 2500),
    ]);
    assert!(each < MOST_BYTES, "{each}");
}
