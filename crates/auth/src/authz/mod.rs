//! Authorizers, one module per mode, and what joins them.

pub mod abac;
pub mod build;
pub mod builtin;
pub mod metrics;
pub mod node;
pub mod rbac;
pub mod union;
pub mod webhook;
