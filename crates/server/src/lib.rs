//! The generic API server: TLS and HTTP, the filter chain, verb handlers, discovery, OpenAPI, health,
//! metrics, life cycle. It serves any set of descriptors and knows no kind by name.
//!
//! - A server of the chain is a [`Delegate`]: a handler in front of the next one's, with hooks, checks and paths.
//! - Loops that reconcile objects are written with [`controller`], started in a post-start hook, and write through the
//!   [`loopback`] client.

pub mod chain;
pub mod controller;
mod debug_socket;
pub mod delegate;
pub mod fairness;
pub mod faults;
pub mod filters;
pub mod health;
pub mod identity;
pub mod installation;
pub mod lifecycle;
pub mod loopback;
mod pauses;
pub mod quality;
pub mod readings;
pub mod routes;
pub mod served;
pub mod server;
pub mod testing;

#[cfg(test)]
mod served_tests;
#[cfg(test)]
mod server_tests;
pub use debug_socket::debug_socket;
pub use delegate::Delegate;
pub use pauses::Pauses;
pub use server::{Server, ServerBuilder, ServerConfig};
