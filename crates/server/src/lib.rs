//! The generic API server: TLS and HTTP, the filter chain, verb handlers, discovery, OpenAPI, health,
//! metrics, life cycle. It serves any set of descriptors and knows no kind by name.

pub mod http;

pub use http::{Body, Handler, Request, RequestBody, Response};
