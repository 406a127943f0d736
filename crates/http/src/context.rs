//! What filters leave with a request for those behind them.

use crate::audit::AuditContext;
use crate::connection::ConnectionInfo;
use crate::labels::Labels;
use crate::late::LateWrites;
use crate::latency::Latency;
use crate::message::Request;
use crate::request_info::RequestInfo;
use crate::warnings::Warnings;
use kubelith_auth::{Authorizer, User};
use kubelith_meta::Str;
use kubelith_meta::time::wall_time;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

/// When the request came in, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    pub at: SystemTime,
    pub instant: Instant,
}

impl Received {
    pub fn now() -> Received {
        Received { at: wall_time(), instant: Instant::now() }
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

/// In the extensions of a watch that is to hear that what it wants to see is gone: a fault that a test scripted.
#[derive(Debug, Clone, Copy)]
pub struct ExpiredWatch;

/// In the extensions of a list that is to be as old as this many revisions: a fault that a test scripted.
#[derive(Debug, Clone, Copy)]
pub struct StaleBy(pub u64);

/// All that filters know of a request.
#[derive(Default)]
pub struct RequestContext {
    pub connection: Option<Arc<ConnectionInfo>>,
    pub audit_id: Option<AuditId>,
    pub received: Option<Received>,
    pub info: Option<Arc<RequestInfo>>,
    pub latency: Option<Latency>,
    /// By when the request must be answered; absent for long-running ones.
    pub deadline: Option<Instant>,
    /// Whom to tell of what goes on after that.
    pub late: Option<Arc<dyn LateWrites>>,
    /// What metrics call it.
    pub labels: Option<Labels>,
    pub warnings: Option<Warnings>,
    pub user: Option<Arc<User>>,
    /// Who let it in, to be asked about what the request turns out to want besides.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Its record in the audit log, if it is kept.
    pub audit: Option<Arc<AuditContext>>,
    /// It came before all paths led somewhere.
    pub early: bool,
}

impl Request {
    /// What the request is about. Set by the first filters.
    pub fn info(&self) -> &Arc<RequestInfo> {
        self.context().info.as_ref().expect("the request info filter runs before everything that asks for it")
    }

    /// Who asks. Set by the authentication filter.
    pub fn user(&self) -> Option<&Arc<User>> {
        self.context().user.as_ref()
    }

    pub fn received(&self) -> Received {
        self.context().received.unwrap_or_else(Received::now)
    }

    pub fn audit_id(&self) -> &str {
        self.context().audit_id.as_ref().map_or("", |id| id.truncated())
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.context().deadline
    }

    /// Collects warnings for the answer's headers.
    pub fn warnings(&self) -> Warnings {
        self.context().warnings.clone().unwrap_or_default()
    }

    pub fn latency(&self) -> Option<&Latency> {
        self.context().latency.as_ref()
    }

    /// Its record in the audit log, if it is kept.
    pub fn audit(&self) -> Option<&Arc<AuditContext>> {
        self.context().audit.as_ref()
    }

    /// The socket it came by; `None` from the loopback client.
    pub fn connection(&self) -> Option<&Arc<ConnectionInfo>> {
        self.context().connection.as_ref()
    }

    /// A header as text; empty if absent or not text.
    pub fn header(&self, name: &str) -> &str {
        self.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }
}
