//! From hyper's requests to the chain and back: adds what is known of the connection, turns `Connection:
//! close` into a GOAWAY on HTTP/2, keeps bodies out of answers to HEAD.

use super::activity::{ActiveRequest, Activity};
use super::control::{Control, Order};
use super::parking::{self, Begun, Held, Streams};
use super::refusal;
use bytes::Bytes;
use http::header::{CONNECTION, DATE, EXPECT, UPGRADE};
use http::{HeaderValue, Method, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use kubelith_auth::Answer;
use kubelith_http::connection::ConnectionInfo;
use kubelith_http::upgrade::UpgradeSlot;
use kubelith_http::upload::{Unread, Upload};
use kubelith_http::{Body, BoxError, BoxHandler, Request, RequestBody, Response, respond};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

#[derive(Clone)]
pub struct ConnectionService {
    handler: BoxHandler,
    connection: Arc<ConnectionInfo>,
    control: Arc<Control>,
    pub(super) activity: Arc<Activity>,
    /// Of the request that asks for an upgrade; HTTP/1.1 has one request at a time.
    upgrade: Arc<Mutex<Option<UpgradeSlot>>>,
    /// Of HTTP/2.
    streams: Option<Arc<Streams>>,
}

impl ConnectionService {
    pub fn new(
        handler: BoxHandler,
        connection: Arc<ConnectionInfo>,
        control: Arc<Control>,
        activity: Arc<Activity>,
    ) -> ConnectionService {
        ConnectionService { handler, connection, control, activity, upgrade: Arc::default(), streams: None }
    }

    /// For a life of an HTTP/2 connection.
    pub(super) fn with_streams(self, streams: Arc<Streams>) -> ConnectionService {
        ConnectionService { streams: Some(streams), ..self }
    }

    /// Whoever wants the connection, now that HTTP is done with it.
    pub(super) fn take_upgrade(&self) -> Option<UpgradeSlot> {
        self.upgrade.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    fn offer_upgrade(&self, request: &mut Request) {
        if request.version() < Version::HTTP_2 && request.headers().contains_key(UPGRADE) {
            let slot = UpgradeSlot::default();
            *self.upgrade.lock().unwrap_or_else(|e| e.into_inner()) = Some(slot.clone());
            request.extensions_mut().insert(slot);
        }
    }
}

impl hyper::service::Service<http::Request<Incoming>> for ConnectionService {
    type Response = http::Response<CountedBody>;
    type Error = Infallible;
    type Future = <Answer<'static, Result<Self::Response, Infallible>> as IntoFuture>::IntoFuture;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let streams = match self.streams.as_ref().map(|streams| (streams, streams.begin())) {
            Some((_, Begun::Resumed(held))) => return Answer::Ready(Ok(go_on(held))).into_future(),
            Some((streams, Begun::New(nth))) => Some((streams.clone(), nth)),
            None => None,
        };
        let active = self.activity.begin_request();
        if request.version() < Version::HTTP_2
            && let Some(response) = refusal::of(&request)
        {
            return Answer::Ready(Ok(response.map(|body| CountedBody::Own { body, _active: active }))).into_future();
        }
        let control = self.control.clone();
        let unread = if request.headers().contains_key(EXPECT) { Unread::Left } else { Unread::Taken };
        let mut request = Request::from(request.map(|body| RequestBody::Incoming(Upload::new(body, unread))));
        request.context_mut().connection = Some(self.connection.clone());
        self.offer_upgrade(&mut request);
        let is_head = request.method() == Method::HEAD;
        let version = request.version();
        let upgrade = self.upgrade.clone();
        let finish = move |mut response: Response| {
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                // Nobody gets a connection on which HTTP goes on.
                upgrade.lock().unwrap_or_else(|e| e.into_inner()).take();
            }
            if version == Version::HTTP_2 {
                close_like_http1(&mut response, &control);
            } else {
                refusal::name_status(&mut response);
            }
            if is_head {
                response = respond::without_body(response);
            }
            Ok(response.map(|body| match streams {
                Some((streams, nth)) if !body.is_complete() => {
                    CountedBody::Held(streams.hold(nth, parking::Answer::new(body, active.streams())))
                }
                _ if body.is_complete() => CountedBody::Own { body, _active: active },
                _ => CountedBody::Own { body, _active: active.streams() },
            }))
        };
        if version < Version::HTTP_2 || is_brief(&request) {
            return self.handler.handle(request).map(finish).into_future();
        }
        let handler = self.handler.clone();
        let elsewhere = async move {
            // Work that would hold up the other requests of its connection waits at first, and so becomes a task.
            tokio::task::yield_now().await;
            finish(handler.handle(request).await)
        };
        Answer::pending(elsewhere).into_future()
    }
}

/// Whether a request is, by its looks, a read of one object. It need not be right: this is only about where it runs.
fn is_brief(request: &Request) -> bool {
    if request.method() != Method::GET {
        return false;
    }
    let path = request.uri().path();
    let slashes = path.bytes().filter(|b| *b == b'/').count();
    // Behind the version come `nodes/x`, or `namespaces/x/pods/y`.
    match slashes {
        4 | 6 => path.starts_with("/api/"),
        5 | 7 => path.starts_with("/apis/"),
        _ => false,
    }
}

/// HTTP/2 knows no `Connection` header; as in Go's server, `close` means: no new streams on this connection.
fn close_like_http1(response: &mut Response, control: &Control) {
    let Some(value) = response.headers_mut().remove(CONNECTION) else { return };
    if value.as_bytes().eq_ignore_ascii_case(b"close") {
        control.order(Order::Leave);
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // A handler that upgrades without looking at the version; HTTP/2 has no 101.
        response.headers_mut().remove(UPGRADE);
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
}

/// An answer whose head the client has seen; what goes with this one must not enter the table of header compression.
fn go_on(held: Arc<Held>) -> http::Response<CountedBody> {
    let mut response = http::Response::new(CountedBody::Held(held));
    let mut date = HeaderValue::from_static("-");
    date.set_sensitive(true);
    response.headers_mut().insert(DATE, date);
    response
}

/// A body that keeps its connection busy until it was sent.
pub enum CountedBody {
    Own {
        body: Body,
        _active: ActiveRequest,
    },
    /// It may take long, and outlive the connection's state.
    Held(Arc<Held>),
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            CountedBody::Own { body, .. } => Pin::new(body).poll_frame(cx),
            CountedBody::Held(held) => held.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            CountedBody::Own { body, .. } => body.is_end_stream(),
            CountedBody::Held(held) => held.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            CountedBody::Own { body, .. } => body.size_hint(),
            CountedBody::Held(held) => held.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_one_object_are_brief() {
        let cases = [
            ("GET", "/api/v1/namespaces/default/pods/x", true),
            ("GET", "/apis/apps/v1/namespaces/default/deployments/x?pretty=true", true),
            ("GET", "/api/v1/nodes/x", true),
            ("GET", "/api/v1/namespaces/default", true),
            ("GET", "/api/v1/namespaces/default/pods", false),
            ("GET", "/apis/apps/v1/deployments", false),
            ("GET", "/api/v1/namespaces/default/pods/x/log", false),
            ("GET", "/api/v1/nodes/x/proxy/metrics/cadvisor", false),
            ("PUT", "/api/v1/namespaces/default/pods/x", false),
            ("GET", "/apis/apps", false),
            ("GET", "/openapi/v2", false),
            ("GET", "/", false),
        ];
        for (method, uri, want) in cases {
            let request =
                Request::from(http::Request::builder().method(method).uri(uri).body(RequestBody::Full(None)).unwrap());
            assert_eq!(is_brief(&request), want, "{method} {uri}");
        }
    }
}
