//! What filters leave with a request for those behind them. All of it lives in the request's extensions;
//! these functions are the only ones that know under which type.

use crate::http::Request;
use crate::listen::ConnectionInfo;
use crate::request_info::RequestInfo;
use kubelith_auth::User;
use kubelith_meta::Str;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

pub use crate::filters::latency::Latency;
pub use crate::filters::warnings::Warnings;

/// When the request came in, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    pub at: SystemTime,
    pub instant: Instant,
}

impl Received {
    pub fn now() -> Received {
        Received { at: SystemTime::now(), instant: Instant::now() }
    }
}

/// The Audit-ID that the client sent, or the one we gave.
#[derive(Debug, Clone)]
pub struct AuditId(pub Str);

impl AuditId {
    /// For logs: a client's value may be of any length.
    pub fn truncated(&self) -> &str {
        const MAX: usize = 64;
        let mut end = self.0.len().min(MAX);
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        &self.0[..end]
    }
}

/// By when the request must be answered; absent for long-running ones.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(pub Instant);

pub trait RequestExt {
    /// What the request is about. Set by the first filters.
    fn info(&self) -> &Arc<RequestInfo>;
    /// Who asks. Set by the authentication filter.
    fn user(&self) -> Option<&Arc<User>>;
    fn received(&self) -> Received;
    fn audit_id(&self) -> &str;
    fn deadline(&self) -> Option<Instant>;
    /// Collects warnings for the answer's headers.
    fn warnings(&self) -> Warnings;
    /// The socket it came by; `None` from the loopback client.
    fn connection(&self) -> Option<&Arc<ConnectionInfo>>;
    /// A header as text; empty if absent or not text.
    fn header(&self, name: &str) -> &str;
}

impl RequestExt for Request {
    fn info(&self) -> &Arc<RequestInfo> {
        self.extensions().get().expect("the request info filter runs before everything that asks for it")
    }

    fn user(&self) -> Option<&Arc<User>> {
        self.extensions().get()
    }

    fn received(&self) -> Received {
        self.extensions().get().copied().unwrap_or_else(Received::now)
    }

    fn audit_id(&self) -> &str {
        self.extensions().get::<AuditId>().map_or("", |id| id.truncated())
    }

    fn deadline(&self) -> Option<Instant> {
        self.extensions().get::<Deadline>().map(|d| d.0)
    }

    fn warnings(&self) -> Warnings {
        self.extensions().get().cloned().unwrap_or_default()
    }

    fn connection(&self) -> Option<&Arc<ConnectionInfo>> {
        self.extensions().get()
    }

    fn header(&self, name: &str) -> &str {
        self.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }
}
