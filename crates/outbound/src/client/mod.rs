//! Asking other servers on our own behalf: webhooks and token issuers. Whom to trust and who we are comes from a
//! kubeconfig file or from a certificate authority; answers are bounded in size and time.

mod connect;
mod kubeconfig;
#[cfg(test)]
mod tests;
mod tls;

pub use kubeconfig::{Kubeconfig, identity_of, read_file};
pub use tls::ClientTls;

use crate::egress::Route;
use bytes::{Bytes, BytesMut};
use connect::Connector;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kubelith_auth::remote::{FetchError, FetchRequest, FetchResponse, HttpFetch};
use std::path::PathBuf;
use std::time::Duration;

/// Answers beyond this are refused; the largest honest one is a key set or a review.
const MAX_ANSWER: usize = 3 * 1024 * 1024;
/// Idle connections to one server that are kept.
const MAX_IDLE: usize = 8;

/// What we say in `Authorization`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Credential {
    #[default]
    None,
    Token(String),
    /// Read anew for each request: such tokens are replaced every hour or so.
    TokenFile(PathBuf),
    Basic {
        username: String,
        password: String,
    },
}

impl Credential {
    /// The header `Authorization`, if there is anything to say in it.
    pub async fn header(&self) -> Result<Option<HeaderValue>, String> {
        let value = match self {
            Credential::None => return Ok(None),
            Credential::Token(token) => format!("Bearer {token}"),
            Credential::TokenFile(file) => {
                let token = tokio::fs::read_to_string(file).await.map_err(|e| format!("{}: {e}", file.display()))?;
                format!("Bearer {}", token.trim())
            }
            Credential::Basic { username, password } => {
                use base64::Engine;
                let pair = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
                format!("Basic {pair}")
            }
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| "the credential is no header value".to_owned())?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// A client for one kind of server.
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    credential: Credential,
    timeout: Duration,
}

impl HttpClient {
    pub fn new(tls: &ClientTls, credential: Credential, timeout: Duration) -> Result<HttpClient, String> {
        HttpClient::by(&Route::Direct, tls, credential, timeout)
    }

    /// As [`HttpClient::new`], by a route.
    pub fn by(route: &Route, tls: &ClientTls, credential: Credential, timeout: Duration) -> Result<HttpClient, String> {
        let connector = Connector::new(route, tls)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        Ok(HttpClient { client, credential, timeout })
    }

    async fn send(&self, request: &FetchRequest) -> Result<FetchResponse, FetchError> {
        let method = if request.json_body.is_some() { Method::POST } else { Method::GET };
        let named = |why: &dyn std::fmt::Display| {
            let verb = if method == Method::POST { "Post" } else { "Get" };
            format!("{verb} {}: {why}", kubelith_meta::text::quote(&request.url))
        };
        let body = Full::new(Bytes::from(request.json_body.clone().unwrap_or_default()));
        let mut outgoing = http::Request::new(body);
        *outgoing.method_mut() = method.clone();
        *outgoing.uri_mut() = request.url.parse().map_err(|e| FetchError::Other(named(&e)))?;
        self.set_headers(outgoing.headers_mut(), request).await.map_err(|e| FetchError::Other(named(&e)))?;
        match tokio::time::timeout(self.timeout, self.exchange(outgoing)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(Failed::Lost(why))) => Err(FetchError::ConnectionLost(named(&why))),
            Ok(Err(Failed::Other(why))) => Err(FetchError::Other(named(&why))),
            Err(_) => Err(FetchError::Timeout(named(&"context deadline exceeded"))),
        }
    }

    async fn set_headers(&self, headers: &mut HeaderMap, request: &FetchRequest) -> Result<(), String> {
        headers.insert(USER_AGENT, HeaderValue::from_static("kubelith"));
        if request.json_body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let value = match &request.bearer_token {
            Some(token) => Credential::Token(token.clone()).header().await?,
            None => self.credential.header().await?,
        };
        if let Some(value) = value {
            headers.insert(AUTHORIZATION, value);
        }
        Ok(())
    }

    async fn exchange(&self, request: http::Request<Full<Bytes>>) -> Result<FetchResponse, Failed> {
        let response = self.client.request(request).await.map_err(|e| Failed::of(&e, e.is_connect()))?;
        let (parts, mut body) = response.into_parts();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|e| Failed::of(&e, false))?.into_data() else { continue };
            if bytes.len() + data.len() > MAX_ANSWER {
                return Err(Failed::Other(format!("the answer has more than {MAX_ANSWER} bytes")));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(FetchResponse {
            status: parts.status.as_u16(),
            body: bytes.freeze(),
            content_type: text(&parts.headers, CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after_seconds: text(&parts.headers, RETRY_AFTER).and_then(|v| v.parse().ok()),
            max_age_seconds: text(&parts.headers, CACHE_CONTROL).and_then(max_age),
        })
    }
}

impl HttpFetch for HttpClient {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move { self.send(&request).await })
    }
}

enum Failed {
    /// The connection was there and broke.
    Lost(String),
    Other(String),
}

impl Failed {
    fn of(error: &dyn std::error::Error, while_connecting: bool) -> Failed {
        // The innermost cause says what happened; what is around it says where in this program.
        let mut cause = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        if while_connecting { Failed::Other(cause.to_string()) } else { Failed::Lost(cause.to_string()) }
    }
}

fn text(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

fn max_age(directives: &str) -> Option<u64> {
    directives.split(',').find_map(|d| d.trim().strip_prefix("max-age=")?.parse().ok())
}
