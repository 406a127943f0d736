//! Servers in the process of a test. One program, since each of them holds a whole server.

mod beginning;
mod clock;
mod http;
mod isolation;
#[cfg(feature = "kube")]
mod operator;
mod planes;
mod seeds;
#[path = "../support/mod.rs"]
mod support;
mod webhooks;
