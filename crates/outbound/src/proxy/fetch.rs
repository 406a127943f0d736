//! Asking another server for a document, for our own use.

use super::exchange::BodyError;
use super::headers::set_user;
use super::{Identity, Target, Transport};
use bytes::Bytes;
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use kubelith_auth::User;
use kubelith_http::RequestBody;
use std::time::Duration;

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Fetched {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchFailed {
    #[error("{0}")]
    NoAnswer(String),
    #[error("context deadline exceeded")]
    Timeout,
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

impl Transport {
    /// GET as `user`, with the whole answer within `limit` bytes and `time`.
    pub async fn fetch(
        &self,
        target: Target,
        user: &User,
        accept: &'static str,
        etag: Option<&HeaderValue>,
        (limit, time): (usize, Duration),
    ) -> Result<Fetched, FetchFailed> {
        let no_answer = |e: super::ProxyError| FetchFailed::NoAnswer(e.to_string());
        let mut request = http::Request::new(RequestBody::Full(None));
        *request.uri_mut() = self.uri(target).map_err(no_answer)?;
        set_user(request.headers_mut(), user, Identity::WithoutUid).map_err(no_answer)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(etag) = etag {
            request.headers_mut().insert(IF_NONE_MATCH, etag.clone());
        }
        self.whole(request, limit, time).await
    }

    /// GET as nobody, with the whole answer within `limit` bytes and `time`.
    pub async fn probe(&self, target: Target, limit: usize, time: Duration) -> Result<Fetched, FetchFailed> {
        let mut request = http::Request::new(RequestBody::Full(None));
        *request.uri_mut() = self.uri(target).map_err(|e| FetchFailed::NoAnswer(e.to_string()))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        self.whole(request, limit, time).await
    }

    async fn whole(
        &self,
        request: http::Request<RequestBody>,
        limit: usize,
        time: Duration,
    ) -> Result<Fetched, FetchFailed> {
        let whole = async {
            let answer = self.ask(request).await.map_err(|e| FetchFailed::NoAnswer(e.text))?;
            let (parts, body) = answer.read(limit).await.map_err(|e| match e {
                BodyError::TooLong => FetchFailed::TooLarge(limit),
                BodyError::Broken(why) => FetchFailed::NoAnswer(why.to_string()),
            })?;
            Ok(Fetched { status: parts.status, headers: parts.headers, body })
        };
        tokio::time::timeout(time, whole).await.unwrap_or(Err(FetchFailed::Timeout))
    }
}
