//! What a connection and a watch cost the server in memory. Most of an API server's connections are silent, and
//! there are many of them.

mod support;

use support::Server;
use support::client::{Connection, Protocol};

/// Of each idle connection and each watch.
const MOST_BYTES: u64 = 20 * 1024;
/// As client-go: many watches share a connection.
const WATCHES_PER_CONNECTION: usize = 50;

struct Load {
    http1: usize,
    http2: usize,
    watches: usize,
}

/// Memory of the process that no file backs.
fn anonymous_bytes(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", server.pid())).unwrap();
    let line = text.lines().find(|l| l.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Connections that have had one request each.
async fn idle(server: &Server, protocol: Protocol, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(server.address(), protocol).await.unwrap();
        let answer = connection.send("GET", "/version", "").await.unwrap_or_else(|why| panic!("{why:?}"));
        assert_eq!(answer.status, 200);
        connections.push(connection);
    }
    connections
}

async fn watches(server: &Server, count: usize) -> Vec<(Connection, Vec<hyper::Response<hyper::body::Incoming>>)> {
    let mut held = Vec::new();
    for at in (0..count).step_by(WATCHES_PER_CONNECTION) {
        let mut connection = Connection::open(server.address(), Protocol::Http2).await.unwrap();
        let mut open = Vec::new();
        for _ in at..count.min(at + WATCHES_PER_CONNECTION) {
            let watch = connection.start("GET", "/api/v1/namespaces/default/pods?watch=1", "").await.unwrap();
            assert_eq!(watch.status(), 200);
            open.push(watch);
        }
        held.push((connection, open));
    }
    held
}

fn measure(load: &Load) {
    let server = Server::start(&[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // What the first ones need is not theirs alone.
    let _first = runtime.block_on(async {
        let (one, two) = (idle(&server, Protocol::Http1, 50).await, idle(&server, Protocol::Http2, 50).await);
        (one, two, watches(&server, 100).await)
    });
    // All stay until the end, so that none has what another one gave back.
    let mut held = Vec::new();
    let parts = [("HTTP/1.1", load.http1), ("HTTP/2", load.http2), ("watch", load.watches)];
    for (what, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let before = anonymous_bytes(&server);
        held.push(runtime.block_on(async {
            match what {
                "HTTP/1.1" => (idle(&server, Protocol::Http1, count).await, Vec::new()),
                "HTTP/2" => (idle(&server, Protocol::Http2, count).await, Vec::new()),
                _ => (Vec::new(), watches(&server, count).await),
            }
        }));
        let each = || anonymous_bytes(&server).saturating_sub(before) / count as u64;
        // A connection is put aside some seconds after its last request.
        server.wait_for(&format!("below {MOST_BYTES} bytes for each {what}: {}", each()), || each() < MOST_BYTES);
        println!("{count} {what}: {} bytes each", each());
    }
}

#[test]
fn idle_connections_and_watches_take_little() {
    measure(&Load { http1: 300, http2: 0, watches: 500 });
}

/// Needs 10,000 file descriptors for a process.
#[test]
#[ignore = "takes minutes; HTTP/2 is not confirmed to be below the bound yet"]
fn ten_thousand_connections_and_five_thousand_watches_take_little() {
    measure(&Load { http1: 5000, http2: 5000, watches: 5000 });
}
