//! The aggregator: sends requests for what other servers serve to them, keeps an APIService for each group version, finds
//! out which of them can be used, and joins discovery and OpenAPI of all.

mod api_service;
mod autoregister;
mod availability;
mod crd_registration;
mod discovery;
mod handler;
mod metrics;
mod openapi;
mod peers;
mod registration;
mod resolve;
mod routes;
mod server;

pub use api_service::{ApiServiceReadings, Managed};
pub use autoregister::{Local, api_services_resource};
pub use peers::{Locate, PeerConfig, PeerProxy};
pub use registration::OWN_GROUP;
pub use resolve::Routing;
pub use server::{Config, serve};
