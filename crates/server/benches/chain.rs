//! What the filter chain costs a request: `cargo bench -p kubelith-server --bench chain`.
//!
//! Requests enter without a socket as an administrator and end in a handler that does nothing, so all that is
//! measured is filters and metrics.

use http::StatusCode;
use kubelith_http::{Reply, Request, RequestBody, respond};
use kubelith_server::testing::TestServer;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: u32 = 100_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = TestServer::start(|builder| {
            builder.delegate(Arc::new(|_: Request| -> Reply {
                Reply::pending(async { respond::json(StatusCode::OK, "{}") })
            }))
        })
        .await;
        for (name, path) in [
            ("get", "/api/v1/namespaces/default/pods/web-0"),
            ("list", "/apis/apps/v1/namespaces/default/deployments?limit=500"),
            ("healthz", "/healthz"),
        ] {
            let request = || Request::from(http::Request::get(path).body(RequestBody::Full(None)).expect("a request"));
            for _ in 0..1000 {
                server.loopback.send(request()).await;
            }
            let started = Instant::now();
            for _ in 0..ROUNDS {
                server.loopback.send(request()).await;
            }
            println!("{name}: {:.2} µs per request", started.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
        }
    });
}
