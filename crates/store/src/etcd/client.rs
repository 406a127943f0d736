//! Calls to an etcd cluster: several endpoints, one of them in use, the next one when it fails.

use super::EtcdOptions;
use super::calls::{EtcdCounts, Method};
use super::proto::{StatusRequest, StatusResponse};
use crate::error::{Result, StoreError};
use crate::model::Revision;
use kubelith_grpc::{self as grpc, Channel, Target, TlsFiles};
use kubelith_system::require_sockets;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tonic::{Code, Status};

/// One attempt of a read. etcd gives up on its own after about seven seconds without a leader.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);
/// The one attempt of a write, which cannot be made again: as long as requests wait for one.
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);
/// What etcd clients send at most, in bytes.
const MESSAGE_LIMIT: usize = 2 << 20;
/// Pause after all endpoints failed: a leader is elected in about a second.
const ROUND_PAUSE: Duration = Duration::from_millis(300);

/// Whether a call that may have reached the server can be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    /// Made again only if it certainly was not sent.
    Write,
}

pub(super) struct Client {
    endpoints: Vec<EtcdEndpoint>,
    /// For how long a call is made again while no member can be reached.
    patience: Duration,
    current: AtomicUsize,
    pub counts: Arc<EtcdCounts>,
}

pub(super) struct EtcdEndpoint {
    pub url: String,
    pub channel: Channel,
}

impl Client {
    pub fn new(options: &EtcdOptions) -> Result<Client> {
        let (urls, tls, patience) = (&options.endpoints, Some(&options.tls), options.patience);
        if urls.is_empty() {
            return Err(StoreError::Invalid("no etcd endpoints are given".into()));
        }
        let connect = |url: &String| {
            let channel = Channel::new(target(url, tls)?, options.dial.clone()).map_err(StoreError::Invalid)?;
            Ok(EtcdEndpoint { url: url.clone(), channel })
        };
        let endpoints = urls.iter().map(connect).collect::<Result<Vec<_>>>()?;
        // Replicas of this server should not all start with the same member.
        let first = std::process::id() as usize % endpoints.len();
        Ok(Client { endpoints, patience, current: AtomicUsize::new(first), counts: options.counts.clone() })
    }

    pub fn endpoints(&self) -> &[EtcdEndpoint] {
        &self.endpoints
    }

    /// The endpoint in use, with what to hand to [`Client::failed`].
    pub fn pick(&self) -> (usize, Channel) {
        let index = self.current.load(Ordering::Relaxed) % self.endpoints.len();
        (index, self.endpoints[index].channel.clone())
    }

    /// Moves on, unless somebody else did already.
    pub fn failed(&self, index: usize) {
        let next = (index + 1) % self.endpoints.len();
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub async fn call<Q, A>(&self, kind: Kind, method: Method, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message,
        A: prost::Message + Default,
    {
        let size = if kind == Kind::Write { request.encoded_len() } else { 0 };
        if size > MESSAGE_LIMIT {
            let text = format!("trying to send message larger than max ({size} vs. {MESSAGE_LIMIT})");
            return Err(CallError { status: Status::resource_exhausted(text), applied: Applied::No });
        }
        let (patience, per_attempt) = match kind {
            Kind::Read => (self.patience, ATTEMPT_TIMEOUT),
            Kind::Write => (self.patience.min(WRITE_TIMEOUT), WRITE_TIMEOUT),
        };
        let end = Instant::now() + patience;
        let mut attempt = 1;
        loop {
            let (index, channel) = self.pick();
            let status = match self.attempt(&channel, method, &request, per_attempt).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            if !is_outage(&status) {
                return Err(CallError { status, applied: Applied::No });
            }
            self.failed(index);
            if kind == Kind::Write && !grpc::never_sent(&status) {
                return Err(CallError { status, applied: Applied::Unknown });
            }
            if attempt % self.endpoints.len() == 0 {
                if Instant::now() + ROUND_PAUSE > end {
                    return Err(CallError { status, applied: Applied::Never });
                }
                tokio::time::sleep(ROUND_PAUSE).await;
            }
            attempt += 1;
        }
    }

    pub async fn status(&self, endpoint: &EtcdEndpoint) -> Result<StatusResponse, CallError> {
        let call = self.attempt(&endpoint.channel, Method::Status, &StatusRequest {}, ATTEMPT_TIMEOUT);
        call.await.map_err(|status| CallError { status, applied: Applied::No })
    }

    async fn attempt<Q, A>(&self, channel: &Channel, method: Method, request: &Q, within: Duration) -> Result<A, Status>
    where
        Q: prost::Message,
        A: prost::Message + Default,
    {
        let mut counted = self.counts.begin(method);
        counted.sent();
        let call = grpc::unary(channel, method.path(), request);
        let answer = tokio::time::timeout(within, call).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer from etcd in time")));
        counted.ended(answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
        answer
    }
}

/// Whether another member may answer what this one could not.
pub(super) fn is_outage(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => true,
        // What the transport below reports for a connection that broke.
        Code::Unknown | Code::Internal => !status.message().starts_with("etcdserver:"),
        // A learner does not serve clients.
        Code::FailedPrecondition => status.message().contains("learner"),
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    No,
    /// No member could be reached in all the time there was.
    Never,
    Unknown,
}

#[derive(Debug)]
pub(super) struct CallError {
    pub status: Status,
    pub applied: Applied,
}

impl CallError {
    pub fn is_lease_missing(&self) -> bool {
        self.status.code() == Code::NotFound && self.status.message().contains("requested lease not found")
    }
}

/// etcd's default; the server does not tell.
const REQUEST_LIMIT: usize = 3 << 19;

impl From<CallError> for StoreError {
    fn from(CallError { status, applied }: CallError) -> StoreError {
        let text = status.message().to_string();
        match status.code() {
            // etcd does not say which revisions those are.
            Code::OutOfRange if text.contains("has been compacted") => {
                StoreError::Compacted { compacted: Revision::ZERO }
            }
            Code::OutOfRange if text.contains("future revision") => {
                StoreError::FutureRevision { current: Revision::ZERO }
            }
            Code::ResourceExhausted if text.contains("database space exceeded") => StoreError::NoSpace(text),
            Code::ResourceExhausted if text.contains("larger than max") => too_large(&text),
            Code::InvalidArgument if text.contains("request is too large") => too_large(&text),
            Code::DeadlineExceeded if applied == Applied::Unknown => StoreError::TimedOut(text),
            _ if applied == Applied::Never => StoreError::TimedOut(describe(&status)),
            Code::DataLoss => StoreError::Corrupt(text),
            Code::InvalidArgument => StoreError::Invalid(text),
            _ if applied == Applied::Unknown => StoreError::Uncertain(describe(&status)),
            _ => StoreError::Unavailable(describe(&status)),
        }
    }
}

fn too_large(text: &str) -> StoreError {
    // "trying to send message larger than max (2097200 vs. 2097152)"
    let numbers: Vec<usize> = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [size, limit] => StoreError::TooLarge { size, limit },
        _ => StoreError::TooLarge { size: REQUEST_LIMIT + 1, limit: REQUEST_LIMIT },
    }
}

/// The status with its innermost cause: "transport error" alone helps nobody.
fn describe(status: &Status) -> String {
    let mut text = status.message().to_string();
    let mut source = std::error::Error::source(status);
    let mut innermost = None;
    while let Some(error) = source {
        innermost = Some(error.to_string());
        source = error.source();
    }
    if let Some(cause) = innermost.filter(|cause| !text.contains(cause.as_str())) {
        text = format!("{text}: {cause}");
    }
    text
}

/// `https://host:port`, `http://host:port`, `unix:///path`, or `host:port`.
fn target(url: &str, tls: Option<&TlsFiles>) -> Result<Target> {
    let invalid = || StoreError::Invalid(format!("bad etcd endpoint {url:?}"));
    if let Some(path) = url.strip_prefix("unix://") {
        require_sockets(&format!("etcd endpoint {url:?}")).map_err(StoreError::Invalid)?;
        return Ok(Target::Unix(path.into()));
    }
    let (secure, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        Some(_) => return Err(invalid()),
        None => (false, url),
    };
    let authority: http::uri::Authority = rest.trim_end_matches('/').parse().map_err(|_| invalid())?;
    let port = authority.port_u16().unwrap_or(2379);
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_string();
    if host.is_empty() {
        return Err(invalid());
    }
    Ok(Target::Tcp { host, port, tls: secure.then(|| tls.cloned().unwrap_or_default()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_parsed() {
        let files = TlsFiles { ca: Some("ca".into()), ..TlsFiles::default() };
        let tcp = |host: &str, port, tls| Some(Target::Tcp { host: host.into(), port, tls });
        let cases = [
            ("http://127.0.0.1:2379", tcp("127.0.0.1", 2379, None)),
            ("https://etcd-0:2379/", tcp("etcd-0", 2379, Some(files.clone()))),
            ("https://[::1]:4001", tcp("::1", 4001, Some(files.clone()))),
            ("localhost:2380", tcp("localhost", 2380, None)),
            ("http://etcd", tcp("etcd", 2379, None)),
            ("unix:///run/etcd.sock", Some(Target::Unix("/run/etcd.sock".into()))),
            ("ftp://etcd", None),
            ("", None),
            ("http://", None),
        ];
        for (url, expected) in cases {
            assert_eq!(target(url, Some(&files)).ok(), expected, "{url}");
        }
    }

    #[test]
    fn statuses_become_store_errors() {
        let error =
            |code, text: &str, applied| StoreError::from(CallError { status: Status::new(code, text), applied });
        let compacted = "etcdserver: mvcc: required revision has been compacted";
        assert!(matches!(error(Code::OutOfRange, compacted, Applied::No), StoreError::Compacted { .. }));
        let future = "etcdserver: mvcc: required revision is a future revision";
        assert!(matches!(error(Code::OutOfRange, future, Applied::No), StoreError::FutureRevision { .. }));
        let space = "etcdserver: mvcc: database space exceeded";
        assert!(matches!(error(Code::ResourceExhausted, space, Applied::No), StoreError::NoSpace(_)));
        let large = "etcdserver: request is too large";
        assert!(matches!(error(Code::InvalidArgument, large, Applied::No), StoreError::TooLarge { .. }));
        let sent = "grpc: received message larger than max (2097200 vs. 2097152)";
        let size = error(Code::ResourceExhausted, sent, Applied::No);
        assert!(matches!(size, StoreError::TooLarge { size: 2097200, limit: 2097152 }), "{size:?}");
        let timeout = "etcdserver: request timed out";
        assert!(matches!(error(Code::Unavailable, timeout, Applied::Unknown), StoreError::Uncertain(_)));
        assert!(matches!(error(Code::Unavailable, timeout, Applied::No), StoreError::Unavailable(_)));
    }
}
