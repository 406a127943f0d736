//! The ways out: what this server asks of others, and what it passes on to them.
//!
//! - [`client`] asks on the server's own behalf: webhooks, token issuers.
//! - [`proxy`] passes on a request of somebody else.
//! - [`egress`] is how a connection leaves: straight, or through a proxy of the cluster's.

pub mod client;
pub mod egress;
mod pace;
pub mod proxy;
pub mod streams;
