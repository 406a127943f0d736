//! What an aggregated request costs this server: CPU time of the thread that runs it, with the extension server on another
//! one. Once for small requests, filters included, and once for large bodies.
//!
//! `cargo bench -p kubelith-aggregator`

#[path = "../tests/support/mod.rs"]
mod support;

use bytes::Bytes;
use http_body_util::BodyExt;
use std::time::{Duration, Instant};
use support::raw::{RawServer, full};
use support::{Cluster, insecure};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SMALL_REQUESTS: u32 = 5_000;
const LARGE_BODY: usize = 64 * 1024 * 1024;
const LARGE_REQUESTS: usize = 4;

fn main() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let large = Bytes::from(vec![b'x'; LARGE_BODY]);
            let server = RawServer::http(move |request| {
                let body =
                    if request.uri().path().ends_with("/large") { large.clone() } else { Bytes::from_static(b"{}") };
                async move { http::Response::new(full(body)) }
            })
            .await;
            tell.send(server.port).expect("somebody listens");
            std::future::pending::<()>().await;
        });
    });
    let port = told.recv().expect("the server starts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(port));
}

async fn measure(port: u16) {
    let cluster = Cluster::start().await;
    cluster.register("echo.test", "v1", port, insecure()).await;
    cluster.until_available("v1.echo.test", "True").await;
    // The connection is there, and so is everything that is made on first use.
    for _ in 0..200 {
        get(&cluster, "/apis/echo.test/v1/things").await;
    }
    let before = cpu_time();
    for _ in 0..SMALL_REQUESTS {
        get(&cluster, "/apis/echo.test/v1/things").await;
    }
    println!("small request: {:?} of CPU", (cpu_time() - before) / SMALL_REQUESTS);

    let before = cpu_time();
    let began = Instant::now();
    let mut bytes = 0;
    for _ in 0..LARGE_REQUESTS {
        bytes += get(&cluster, "/apis/echo.test/v1/large").await;
    }
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let (cpu, wall) = (cpu_time() - before, began.elapsed());
    println!("large bodies: {:.0} MB/s, {:.0} MB per second of CPU", rate(wall), rate(cpu));
}

async fn get(cluster: &Cluster, path: &str) -> usize {
    let response = cluster.client.get_path(path).await.expect("a request");
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.expect("the body comes whole").data_ref().map_or(0, Bytes::len);
    }
    length
}

/// What this thread has computed so far.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    Duration::from_nanos(nanos)
}
