//! The audit log: who asked for what, when, and what became of it.
//!
//! A policy says how much of a request is kept. The filter gives each request that is kept a [`AuditContext`], which
//! handlers add to; backends write the events.

mod context;

pub use context::{AuditContext, Level};
