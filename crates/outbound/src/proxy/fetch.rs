//! Asking another server for a document, for our own use.

use super::headers::set_user;
use super::line::BodyError;
use super::question::Draft;
use super::{Identity, Target, Transport};
use bytes::Bytes;
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use kubelith_auth::User;
use std::time::Duration;

/// In the words of the HTTP library, which other bodies come through.
const BROKEN_BODY: &str = "error reading a body from connection";

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
        let uri = self.uri(target).map_err(no_answer)?;
        let mut headers = HeaderMap::new();
        set_user(&mut headers, user, Identity::WithoutUid).map_err(no_answer)?;
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(etag) = etag {
            headers.insert(IF_NONE_MATCH, etag.clone());
        }
        self.whole(uri, &headers, limit, time).await
    }

    /// GET as nobody, with the whole answer within `limit` bytes and `time`.
    pub async fn probe(&self, target: Target, limit: usize, time: Duration) -> Result<Fetched, FetchFailed> {
        let uri = self.uri(target).map_err(|e| FetchFailed::NoAnswer(e.to_string()))?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*"))]);
        self.whole(uri, &headers, limit, time).await
    }

    async fn whole(&self, uri: Uri, headers: &HeaderMap, limit: usize, time: Duration) -> Result<Fetched, FetchFailed> {
        let whole = async {
            let draft = Draft::new(&Method::GET, uri, None).map_err(|e| FetchFailed::NoAnswer(e.text))?;
            let question =
                headers.iter().fold(draft, |draft, (name, value)| draft.with(name.as_str(), value)).done(None);
            let answer = self.ask(&question).await.map_err(|e| FetchFailed::NoAnswer(e.text))?;
            let (head, body) = answer.read(limit).await.map_err(|e| match e {
                BodyError::TooLong => FetchFailed::TooLarge(limit),
                BodyError::Broken(_) => FetchFailed::NoAnswer(BROKEN_BODY.to_owned()),
            })?;
            Ok(Fetched { status: head.status, headers: head.headers(), body })
        };
        tokio::time::timeout(time, whole).await.unwrap_or(Err(FetchFailed::Timeout))
    }
}
