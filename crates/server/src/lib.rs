//! The generic API server: TLS and HTTP, the filter chain, verb handlers, discovery, OpenAPI, health,
//! metrics, life cycle. It serves any set of descriptors and knows no kind by name.
//!
//! - A server of the chain is a [`Delegate`]: a handler in front of the next one's, with hooks, checks and paths.
//! - Loops that reconcile objects are written with [`controller`], started in a post-start hook, and write through the
//!   [`loopback`] client.

pub mod api;
pub mod audit;
pub mod audit_context;
pub mod body;
pub mod cells;
pub mod chain;
pub mod connection;
pub mod context;
pub mod controller;
mod debug_socket;
pub mod delegate;
pub mod discovery;
pub mod egress;
pub mod fairness;
pub mod features;
pub mod filters;
pub mod handlers;
pub mod health;
pub mod http;
pub mod identity;
pub mod installation;
pub mod labels;
pub mod latency;
pub mod lifecycle;
pub mod listen;
pub mod logging;
pub mod loopback;
pub mod metrics;
pub mod negotiated;
pub mod openapi;
pub mod outbound;
pub mod proxy;
pub mod quality;
pub mod query;
pub mod request_info;
pub mod respond;
pub mod routes;
pub mod served;
pub mod server;
pub mod spans;
pub mod table;
pub mod testing;
pub mod tls;
pub mod upgrade;
pub mod upload;
pub mod warnings;

#[cfg(test)]
mod served_tests;
#[cfg(test)]
mod server_tests;
pub use debug_socket::debug_socket;
pub use delegate::Delegate;
pub use http::{Body, BoxHandler, Handler, Reply, Request, RequestBody, Response};
pub use request_info::RequestInfo;
pub use server::{Server, ServerBuilder, ServerConfig};
