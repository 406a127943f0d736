//! Profiles over a unix socket (`--debug-socket-path`): no TLS and no authentication, the file's permissions decide.

use crate::filters::request_info;
use crate::installation;
use crate::routes::Routes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubelith_http::upload::{Unread, Upload};
use kubelith_http::{Body, BoxHandler, RequestBody};
use kubelith_system::sockets::{UnixListener, UnixStream};
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// At a time; it is for people.
const MAX_CONNECTIONS: usize = 32;
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
/// After a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens the socket, in place of one that an earlier life has left; the future serves `routes` on it. Dropping it ends
/// the connections, too.
pub fn debug_socket(path: &Path, routes: Routes) -> io::Result<impl Future<Output = ()> + Send + 'static + use<>> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let handler = request_info::layer().wrap(routes.before(installation::nobody()));
    Ok(serve(listener, handler))
}

async fn serve(listener: UnixListener, handler: BoxHandler) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    while let Ok(place) = places.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let handler = handler.clone();
                connections.spawn(async move {
                    let _place = place;
                    serve_one(stream, handler).await;
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn serve_one(stream: UnixStream, handler: BoxHandler) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let response =
            handler.handle(request.map(|body| RequestBody::Incoming(Upload::new(body, Unread::Left))).into());
        async move { Ok::<http::Response<Body>, Infallible>(response.await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(why) = served {
        tracing::debug!(err = %why, "debug socket");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn it_takes_the_place_of_an_old_one_and_serves_what_it_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("debug.sock");
        drop(UnixListener::bind(&path).unwrap());
        let mut routes = Routes::default();
        crate::routes::install_debug(&mut routes);
        let serving = tokio::spawn(debug_socket(&path, routes).unwrap());
        for (asked, want) in
            [("/debug/flags/v", "HTTP/1.1 406"), ("/debug/flags", "HTTP/1.1 200"), ("/api", "HTTP/1.1 404")]
        {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream
                .write_all(format!("GET {asked} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
                .await
                .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(want), "{asked}: {answer}");
        }
        serving.abort();
        assert!(debug_socket(&dir.path().join("no/such/folder"), Routes::default()).is_err());
    }
}
