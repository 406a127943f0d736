//! From hyper's requests to the chain and back: adds what is known of the connection, turns `Connection:
//! close` into a GOAWAY on HTTP/2, keeps bodies out of answers to HEAD.

use super::activity::{ActiveRequest, Activity};
use super::control::{Control, Order};
use crate::http::{Body, BoxError, BoxHandler, Request, RequestBody, Response};
use crate::respond;
use crate::tls::PeerCertificates;
use crate::upgrade::UpgradeSlot;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONNECTION, UPGRADE};
use http::{Method, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// What is known of a request's connection; in its extensions as `Arc<ConnectionInfo>`.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub remote: SocketAddr,
    pub local: SocketAddr,
    pub peer_certificates: Option<PeerCertificates>,
    pub(super) control: Arc<Control>,
}

#[derive(Clone)]
pub struct ConnectionService {
    handler: BoxHandler,
    connection: Arc<ConnectionInfo>,
    pub(super) activity: Arc<Activity>,
    /// Of the request that asks for an upgrade; HTTP/1.1 has one request at a time.
    upgrade: Arc<Mutex<Option<UpgradeSlot>>>,
}

impl ConnectionService {
    pub fn new(handler: BoxHandler, connection: Arc<ConnectionInfo>, activity: Arc<Activity>) -> ConnectionService {
        ConnectionService { handler, connection, activity, upgrade: Arc::default() }
    }

    /// Whoever wants the connection, now that HTTP is done with it.
    pub(super) fn take_upgrade(&self) -> Option<UpgradeSlot> {
        self.upgrade.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    fn offer_upgrade(&self, request: &mut Request) {
        if request.version() < Version::HTTP_2 && request.headers().contains_key(UPGRADE) {
            let slot = UpgradeSlot::new();
            *self.upgrade.lock().unwrap_or_else(|e| e.into_inner()) = Some(slot.clone());
            request.extensions_mut().insert(slot);
        }
    }
}

impl hyper::service::Service<http::Request<Incoming>> for ConnectionService {
    type Response = http::Response<CountedBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let active = self.activity.begin_request();
        let connection = self.connection.clone();
        let mut request = request.map(RequestBody::Incoming);
        request.extensions_mut().insert(connection.clone());
        self.offer_upgrade(&mut request);
        let is_head = request.method() == Method::HEAD;
        let version = request.version();
        let upgrade = self.upgrade.clone();
        let response = self.handler.handle(request);
        Box::pin(async move {
            let mut response = response.await;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                // Nobody gets a connection on which HTTP goes on.
                upgrade.lock().unwrap_or_else(|e| e.into_inner()).take();
            }
            if version == Version::HTTP_2 {
                close_like_http1(&mut response, &connection);
            }
            if is_head {
                response = respond::without_body(response);
            }
            Ok(response.map(|body| CountedBody { body, _active: active }))
        })
    }
}

/// HTTP/2 knows no `Connection` header; as in Go's server, `close` means: no new streams on this connection.
fn close_like_http1(response: &mut Response, connection: &ConnectionInfo) {
    let Some(value) = response.headers_mut().remove(CONNECTION) else { return };
    if value.as_bytes().eq_ignore_ascii_case(b"close") {
        connection.control.order(Order::Leave);
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // A handler that upgrades without looking at the version; HTTP/2 has no 101.
        response.headers_mut().remove(UPGRADE);
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
}

/// A body that keeps its connection busy until it was sent.
pub struct CountedBody {
    body: Body,
    _active: ActiveRequest,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
