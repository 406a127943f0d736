//! Other servers that are asked: an HTTP client to be injected, and reviews sent to webhooks.

use crate::error::AuthError;
use crate::json;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::{Status, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sends requests. It knows certificates, proxies, credentials and timeouts; callers know none of them. It must
/// limit the size of answers.
pub trait HttpFetch: Send + Sync {
    /// Dropping the future gives the request up.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    pub url: String,
    /// A body makes it a POST of JSON, none a GET.
    pub json_body: Option<String>,
    /// For the header `Authorization`, where the client has no credential of its own.
    pub bearer_token: Option<String>,
}

impl FetchRequest {
    pub fn get(url: impl Into<String>) -> FetchRequest {
        FetchRequest { url: url.into(), json_body: None, bearer_token: None }
    }
}

#[derive(Debug, Clone, Default)]
pub struct FetchResponse {
    pub status: u16,
    pub body: Bytes,
    /// The header `Content-Type`; empty if there is none.
    pub content_type: String,
    /// The header `Retry-After`, in seconds.
    pub retry_after_seconds: Option<i32>,
    /// The header `Cache-Control: max-age`, in seconds.
    pub max_age_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchError {
    Timeout(String),
    /// The connection broke while the request was under way: worth another try.
    ConnectionLost(String),
    Other(String),
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FetchError::Timeout(e) | FetchError::ConnectionLost(e) | FetchError::Other(e) => f.write_str(e),
        }
    }
}

impl std::error::Error for FetchError {}

/// Pauses between tries: `first`, then each longer by half, with up to a fifth of jitter.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub tries: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(500), tries: 5 }
    }
}

impl Backoff {
    /// How long to wait after so many tries.
    pub fn pause(&self, tries: u32) -> Duration {
        with_jitter(self.first.mul_f64(1.5f64.powi(i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX))))
    }
}

/// A webhook that answers reviews.
pub struct ReviewClient {
    client: Arc<dyn HttpFetch>,
    url: String,
    backoff: Backoff,
}

impl ReviewClient {
    pub fn new(client: Arc<dyn HttpFetch>, url: impl Into<String>, backoff: Backoff) -> ReviewClient {
        ReviewClient { client, url: url.into(), backoff }
    }

    /// Sends a review and returns its `status`, trying again where that may help. Each try is told with its time.
    pub async fn review(&self, review: &Value, mut tell: impl FnMut(TryOutcome, Duration)) -> Result<Value, AuthError> {
        let body = json::write(review);
        let mut tries = 0;
        loop {
            tries += 1;
            let began = Instant::now();
            let answer = self.post(&body, review).await;
            tell(answer.as_ref().map_or_else(Failure::outcome, |_| TryOutcome::Success), began.elapsed());
            let failure = match answer {
                Ok(status) => return Ok(status),
                Err(failure) => failure,
            };
            if !failure.is_worth_retrying() || tries >= self.backoff.tries {
                return Err(AuthError::new(failure.to_string()));
            }
            tokio::time::sleep(self.backoff.pause(tries)).await;
        }
    }

    async fn post(&self, body: &str, sent: &Value) -> Result<Value, Failure> {
        let request = FetchRequest { json_body: Some(body.to_string()), ..FetchRequest::get(self.url.clone()) };
        let response = self.client.fetch(request).await.map_err(Failure::Connection)?;
        let answer = json::parse(&response.body);
        if !(200..300).contains(&response.status) {
            return Err(Failure::Refused(Box::new(refusal(&response, answer.ok()))));
        }
        let answer = answer.map_err(|e| Failure::Nonsense(format!("couldn't decode the webhook's answer: {e}")))?;
        for key in ["apiVersion", "kind"] {
            let (want, got) = (sent.str_at(&[key]), answer.str_at(&[key]));
            if want != got {
                return Err(Failure::Nonsense(format!(
                    "the webhook answered with {key} \"{got}\", expected \"{want}\""
                )));
            }
        }
        Ok(answer.get("status").cloned().unwrap_or_default())
    }
}

/// What came of sending a review once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryOutcome {
    Success,
    Timeout,
    Error,
}

impl TryOutcome {
    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            TryOutcome::Success => "success",
            TryOutcome::Timeout => "timeout",
            TryOutcome::Error => "error",
        }
    }
}

enum Failure {
    Connection(FetchError),
    Refused(Box<Status>),
    Nonsense(String),
}

impl Failure {
    fn outcome(&self) -> TryOutcome {
        match self {
            Failure::Connection(FetchError::Timeout(_)) => TryOutcome::Timeout,
            Failure::Refused(status) if status.is_timeout() || status.code == 504 => TryOutcome::Timeout,
            _ => TryOutcome::Error,
        }
    }

    fn is_worth_retrying(&self) -> bool {
        match self {
            Failure::Connection(e) => matches!(e, FetchError::ConnectionLost(_)),
            Failure::Refused(status) => {
                status.is_internal_error()
                    || status.is_timeout()
                    || status.is_too_many_requests()
                    || status.retry_after_seconds().is_some()
            }
            Failure::Nonsense(_) => false,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Connection(e) => e.fmt(f),
            Failure::Refused(status) => f.write_str(&status.message),
            Failure::Nonsense(e) => f.write_str(e),
        }
    }
}

fn refusal(response: &FetchResponse, answer: Option<Value>) -> Status {
    if let Some(status) = answer.filter(|a| a.str_at(&["kind"]) == "Status") {
        return Status::from_value(&status);
    }
    ForeignResponse {
        code: response.status,
        method: "POST",
        body: &String::from_utf8_lossy(&response.body),
        retry_after_seconds: response.retry_after_seconds.unwrap_or(0),
        unexpected: true,
        ..ForeignResponse::default()
    }
    .into()
}

fn with_jitter(pause: Duration) -> Duration {
    let mut random = [0u8; 1];
    // Without randomness there is no jitter, which is all that is lost.
    let _ = aws_lc_rs::rand::fill(&mut random);
    pause + pause.mul_f64(0.2 * f64::from(random[0]) / 255.0)
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;

    /// Answers from a list, in order, and keeps what it was sent.
    #[derive(Default)]
    pub struct Scripted {
        pub answers: Mutex<VecDeque<Result<FetchResponse, FetchError>>>,
        pub sent: Mutex<Vec<FetchRequest>>,
    }

    impl Scripted {
        pub fn new(answers: impl IntoIterator<Item = Result<FetchResponse, FetchError>>) -> Arc<Scripted> {
            Arc::new(Scripted { answers: Mutex::new(answers.into_iter().collect()), sent: Mutex::default() })
        }

        pub fn sent(&self) -> usize {
            self.sent.lock().unwrap().len()
        }
    }

    impl HttpFetch for Scripted {
        fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
            self.sent.lock().unwrap().push(request);
            let next = self.answers.lock().unwrap().pop_front();
            Box::pin(async move { next.unwrap_or(Err(FetchError::Other("connection refused".into()))) })
        }
    }

    pub fn answer(status: u16, body: &str) -> Result<FetchResponse, FetchError> {
        Ok(FetchResponse { status, body: Bytes::copy_from_slice(body.as_bytes()), ..FetchResponse::default() })
    }

    pub const NO_PAUSE: Backoff = Backoff { first: Duration::ZERO, tries: 5 };
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn tries_again_where_it_may_help() {
        let good = || answer(201, r#"{"apiVersion":"v","kind":"K","status":{"a":1}}"#);
        let lost = || Err(FetchError::ConnectionLost("connection reset by peer".into()));
        let busy = || answer(429, "slow down");
        let broken = || answer(500, r#"{"kind":"Status","code":500,"reason":"InternalError","message":"broken"}"#);
        let timeout = || Err(FetchError::Timeout("timed out".into()));
        let cases = [
            (vec![good()], Ok(1), 1),
            (vec![lost(), busy(), broken(), answer(504, ""), good()], Ok(1), 5),
            (vec![broken(), broken(), broken(), broken(), broken(), good()], Err("broken"), 5),
            (vec![timeout(), good()], Err("timed out"), 1),
            (vec![answer(404, ""), good()], Err("the server could not find the requested resource"), 1),
            (
                vec![answer(200, r#"{"apiVersion":"v","kind":"Other"}"#)],
                Err("the webhook answered with kind \"Other\", expected \"K\""),
                1,
            ),
        ];
        for (answers, want, tries) in cases {
            let server = Scripted::new(answers);
            let client = ReviewClient::new(server.clone(), "https://hook", NO_PAUSE);
            let review = Value::from([("apiVersion", "v"), ("kind", "K")]);
            let mut outcomes = Vec::new();
            let got = block_on(client.review(&review, |outcome, _| outcomes.push(outcome)))
                .map(|s| s.get("a").unwrap().as_i64().unwrap());
            assert_eq!(got.map_err(|e| e.to_string()), want.map_err(str::to_string));
            assert_eq!((server.sent(), outcomes.len()), (tries, tries));
            assert_eq!(outcomes.last() == Some(&TryOutcome::Success), want.is_ok());
            assert_eq!(outcomes.contains(&TryOutcome::Timeout), want == Err("timed out") || tries == 5 && want.is_ok());
        }
    }
}
