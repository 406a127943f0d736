//! The audit log: who asked for what, when, and what became of it.
//!
//! A policy says how much of a request is kept. The filter gives each request that is kept an [`AuditContext`], which
//! handlers add to, and hands events to the backends at the stages of a request:
//!
//! ```text
//! RequestReceived ─► (ResponseStarted, for long-running requests) ─► ResponseComplete, or Panic
//! ```

pub mod backend;
mod batch;
mod event;
mod log;
pub mod objects;
mod policy;
mod rotate;
#[cfg(test)]
mod tests;
mod webhook;

pub use backend::{Backend, Backends, Mode, Truncation};
pub use batch::{BatchOptions, Throttle};
pub use event::{Event, Facts, ObjectRef, ResponseStatus, Stage};
pub use kubelith_http::audit::{AuditContext, Gathered, Level, ObjectNames};
pub use log::{LogBackend, LogFormat, LogTarget};
pub use objects::Captured;
pub use policy::{Policy, RequestAudit};
pub use rotate::{RotatingFile, Rotation};
pub use webhook::WebhookBackend;
