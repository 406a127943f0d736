//! The way to servers of one kind: how to trust them, and a pool of connections to them.
//!
//! HTTP/1.1, also where the other side could do HTTP/2: a watch takes a connection of its own instead of one of a limited
//! number of streams, a slow reader holds up nobody else, and a small request costs less.

use super::answer::{MAX_HEADERS, Malformed};
use super::dial::{DialError, Dialer, Tls};
use super::exchange::{Answer, Lines};
use super::opening::Broken;
use super::question::Question;
use super::{ProxyError, TlsClient, TlsClientError};
use crate::egress::Route;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kubelith_http::RequestBody;
use rustls::pki_types::ServerName;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Connections that wait for the next request, per server.
pub(super) const IDLE_CONNECTIONS: usize = 25;
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

pub struct Transport {
    /// For bodies that are passed on as they come.
    client: Client<Dialer, RequestBody>,
    /// For whole answers.
    lines: Lines,
    pub(super) dialer: Dialer,
    pub(super) bandwidth: Option<NonZeroU32>,
}

/// Where a request goes: a server and what is asked of it.
#[derive(Debug, Clone)]
pub struct Target {
    /// `host:port`.
    pub authority: Authority,
    pub path_and_query: PathAndQuery,
}

impl Transport {
    /// To servers that speak TLS, or plain HTTP without `tls`.
    pub fn new(tls: Option<&TlsClient>) -> Result<Transport, TlsClientError> {
        Transport::by(&Route::Direct, tls)
    }

    /// As [`Transport::new`], by a route.
    pub fn by(route: &Route, tls: Option<&TlsClient>) -> Result<Transport, TlsClientError> {
        let tls = match tls {
            None => None,
            Some(tls) => {
                let name = tls.server_name.clone().map(ServerName::try_from).transpose();
                let config = Arc::new(tls.config()?);
                // A name that cannot be in a certificate is none: verification by address fails then, as it must.
                Some(Tls { config, server_name: name.unwrap_or_default() })
            }
        };
        let dialer = Dialer { route: route.clone(), tls };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_headers(MAX_HEADERS)
            .build(dialer.clone());
        Ok(Transport { client, lines: Lines::new(dialer.clone()), dialer, bandwidth: None })
    }

    /// Connections that clients take over carry at most so many bytes per second, each way.
    pub fn limited_to(self, bandwidth: Option<NonZeroU32>) -> Transport {
        Transport { bandwidth, ..self }
    }

    pub fn bandwidth(&self) -> Option<NonZeroU32> {
        self.bandwidth
    }

    pub fn scheme(&self) -> Scheme {
        if self.dialer.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP }
    }

    pub(super) fn uri(&self, target: Target) -> Result<Uri, ProxyError> {
        Uri::builder()
            .scheme(self.scheme())
            .authority(target.authority)
            .path_and_query(target.path_and_query)
            .build()
            .map_err(|e| ProxyError::Unreachable(e.to_string()))
    }

    /// Sends a request for an answer that is read at once.
    pub(super) async fn ask(&self, question: &Question) -> Result<Answer<'_>, Failed> {
        self.lines.ask(question).await
    }

    /// Sends a request whose URI is absolute.
    pub(super) async fn send(&self, request: http::Request<RequestBody>) -> Result<http::Response<Incoming>, Failed> {
        self.client.request(request).await.map_err(|e| Failed::of(&e))
    }
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub text: String,
    /// The connection was an old one and ended before anything came: the server may have closed it meanwhile.
    pub connection_was_stale: bool,
}

impl Failed {
    /// On a connection that was not used before.
    pub fn fresh(text: String) -> Failed {
        Failed { text, connection_was_stale: false }
    }

    /// What came cannot be read.
    pub fn malformed(why: Malformed) -> Failed {
        Failed::fresh(format!("net/http: HTTP/1.x transport connection broken: malformed HTTP response: {why}"))
    }

    pub fn of(error: &(dyn std::error::Error + 'static)) -> Failed {
        let mut cause = Some(error);
        let mut text = String::new();
        let mut stale = false;
        while let Some(why) = cause {
            if let Some(dial) = why.downcast_ref::<DialError>() {
                return Failed::fresh(dial.0.clone());
            }
            if let Some(http) = why.downcast_ref::<hyper::Error>() {
                stale |= http.is_incomplete_message() || http.is_canceled() || http.is_closed();
                if http.is_parse() {
                    text = format!("net/http: HTTP/1.x transport connection broken: malformed HTTP response: {http}");
                    cause = None;
                    continue;
                }
                if http.is_incomplete_message() {
                    text = "EOF".to_owned();
                    cause = None;
                    continue;
                }
            }
            if let Some(io) = why.downcast_ref::<std::io::Error>() {
                stale |= io.kind() == std::io::ErrorKind::ConnectionReset;
                if let Some(broken) = io.get_ref().and_then(|e| e.downcast_ref::<Broken>()) {
                    return Failed::fresh(broken.0.clone());
                }
                // What the other side thinks of our certificate comes after the handshake.
                if let Some(told) = super::tls_words::of_io(io) {
                    return Failed::fresh(told);
                }
                if io.kind() == std::io::ErrorKind::UnexpectedEof {
                    // TLS that ends without a word is an end like any other.
                    text = "EOF".to_owned();
                    cause = None;
                    continue;
                }
            }
            text = why.to_string();
            cause = why.source();
        }
        Failed { text, connection_was_stale: stale }
    }
}
