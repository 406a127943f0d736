//! The links of the filter chain, one file each. `chain.rs` says in which order a request meets them.

pub mod audit;
pub mod audit_id;
pub mod authentication;
pub mod authorization;
pub mod cache_control;
pub mod cbor;
pub mod cors;
pub mod deadline;
pub mod faults;
pub mod goaway;
pub mod hsts;
pub mod impersonation;
pub mod instrument;
pub mod latency;
pub mod logging;
pub mod max_in_flight;
pub mod memory_budget;
pub mod panic;
pub mod priority_and_fairness;
pub mod request_info;
pub mod retry_after;
pub mod service_quality;
pub mod timeout;
pub mod tracing;
pub mod wait_group;
pub mod warnings;
pub mod watch_termination;

use kubelith_http::{BoxHandler, Handler, Reply, Request};
use std::sync::Arc;

/// A filter that waits for the link it comes before.
pub struct Layer {
    pub name: &'static str,
    wrap: Box<dyn FnOnce(BoxHandler) -> BoxHandler + Send>,
}

impl Layer {
    pub fn new<H: Handler>(name: &'static str, wrap: impl FnOnce(BoxHandler) -> H + Send + 'static) -> Layer {
        Layer { name, wrap: Box::new(|next| Arc::new(wrap(next))) }
    }

    /// A layer that is a function of the request and the rest of the chain.
    pub fn from_fn<F>(name: &'static str, f: F) -> Layer
    where
        F: Fn(Request, &BoxHandler) -> Reply + Send + Sync + 'static,
    {
        Layer::new(name, move |next| move |request: Request| f(request, &next))
    }

    pub fn wrap(self, next: BoxHandler) -> BoxHandler {
        (self.wrap)(next)
    }
}
