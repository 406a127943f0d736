//! Servers in the process of a test. One program, since each of them holds a whole server.

mod clock;
mod http;
mod isolation;
#[cfg(feature = "kube")]
mod operator;
mod planes;
#[path = "../support/mod.rs"]
mod support;
