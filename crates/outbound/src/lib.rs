//! The ways out: what this server asks of others, and what it passes on to them.
//!
//! - [`client`] asks on the server's own behalf: webhooks, token issuers.
//! - [`proxy`] passes on a request of somebody else.
//! - [`egress`] is how a connection leaves: straight, or through a proxy of the cluster's.
//! - [`grpc`] is for programs that are asked by gRPC.

pub mod client;
pub mod egress;
pub mod grpc;
mod pace;
pub mod proxy;
pub mod streams;
