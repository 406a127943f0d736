//! gRPC channels over connections of our own making, all of one type: what drives them is compiled once.

use crate::egress::{Duplex, Route};
use http::Uri;
use hyper_util::rt::TokioIo;
use kubelith_system::sockets::UnixStream;
use std::io;
use std::path::PathBuf;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt;
use tower::util::BoxService;

pub(crate) type Connector = BoxService<Uri, TokioIo<Box<dyn Duplex>>, io::Error>;

/// To whoever listens on a unix socket. It connects when it is used.
pub fn unix(path: PathBuf) -> Channel {
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(unix_connector(path))
}

pub(crate) fn unix_connector(path: PathBuf) -> Connector {
    let connect = move |_: Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(|stream| TokioIo::new(Box::new(stream) as Box<dyn Duplex>)) }
    };
    tower::service_fn(connect).boxed()
}

/// To a server by its address: straight, or through the proxy of a route. It connects when it is used.
pub fn by_route(endpoint: &Endpoint, route: &Route, default_port: u16) -> Channel {
    let Route::Through(proxy) = route.clone() else { return endpoint.connect_lazy() };
    let connect = move |at: Uri| {
        let proxy = proxy.clone();
        async move {
            let host = at.host().unwrap_or_default().trim_matches(['[', ']']);
            let tunnel = proxy.connect(host, at.port_u16().unwrap_or(default_port)).await;
            tunnel.map(TokioIo::new).map_err(io::Error::other)
        }
    };
    endpoint.connect_with_connector_lazy(tower::service_fn(connect).boxed())
}
