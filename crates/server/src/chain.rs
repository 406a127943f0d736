//! The filter chain: what every request goes through before a handler sees it, in the order it meets it.

use crate::faults::Faults;
use crate::filters::audit::{self, Audit};
use crate::filters::authentication::{self, AuthenticationOptions};
use crate::filters::watch_termination::{self, Watches};
use crate::filters::{
    Layer, audit_id, authorization, cache_control, cbor, cors, deadline, faults, goaway, hsts, impersonation,
    instrument, latency, logging, max_in_flight, panic, request_info, retry_after, timeout, tracing, wait_group,
    warnings,
};
use crate::lifecycle::{Lifecycle, WaitGroup};
use kubelith_auth::Authorizer;
use kubelith_auth::impersonation::Modes;
use kubelith_http::BoxHandler;
use kubelith_observe::metrics::Metrics;
use kubelith_observe::spans::Tracer;
use regex::Regex;
use std::sync::Arc;
use std::time::Duration;

/// What the filters need to know.
pub struct ChainConfig {
    /// Pages for strangers, who sign in there.
    pub console: Option<Layer>,
    pub authentication: AuthenticationOptions,
    pub authorizer: Arc<dyn Authorizer>,
    pub impersonation: Modes,
    /// Takes spans, if traces are wanted.
    pub tracer: Option<Tracer>,
    /// Records what is asked and answered; also for requests that fail authentication.
    pub audit: Option<Arc<Audit>>,
    /// Refuses requests while the process has used up its memory.
    pub memory_budget: Option<Layer>,
    /// Budgets of classes of users.
    pub service_quality: Option<Layer>,
    /// Priority and fairness; without it the plain limits below apply.
    pub flow_control: Option<Layer>,
    /// What tests have scripted.
    pub faults: Option<Arc<Faults>>,
    pub max_reads_in_flight: usize,
    pub max_writes_in_flight: usize,
    pub request_timeout: Duration,
    pub goaway_chance: f64,
    pub hsts_directives: Vec<String>,
    pub cors_allowed_origins: Vec<Regex>,
    /// CBOR is spoken, too.
    pub cbor: bool,
    /// Refuse with 429 while shutting down.
    pub send_retry_after: bool,
}

/// Counters that the chain keeps and the shutdown waits for.
#[derive(Clone, Default)]
pub struct InFlight {
    pub requests: WaitGroup,
    pub watches: Watches,
}

/// Puts the filters in front of `api`.
pub fn build(api: BoxHandler, c: ChainConfig, life: &Lifecycle, in_flight: &InFlight, metrics: &Metrics) -> Chain {
    let failed = authentication::unauthorized();
    let failed = match &c.audit {
        Some(audit) => audit::failed_authentication_layer(audit).wrap(failed),
        None => failed,
    };
    let limits = || max_in_flight::layer(c.max_reads_in_flight, c.max_writes_in_flight, metrics.requests.clone());

    ChainBuilder::default()
        // First, so that even a panic is answered with the id under which it was logged.
        .then(audit_id::layer())
        .then(panic::layer())
        // Every filter from here on asks what the request is about.
        .then(request_info::layer())
        .then(latency::layer())
        .then(logging::layer())
        // Before anything is spent on a request that will be sent elsewhere.
        .then_if(c.send_retry_after, || retry_after::layer(life.not_accepting_new_requests.clone()))
        .maybe(hsts::layer(&c.hsts_directives))
        .then(cache_control::layer())
        .maybe(goaway::layer(c.goaway_chance))
        .then(watch_termination::layer(in_flight.watches.clone()))
        .then(wait_group::layer(in_flight.requests.clone()))
        // The deadline counts from arrival; the timeout that enforces it stands outside of all that may take long.
        .then(deadline::layer(c.request_timeout))
        .then(timeout::layer(metrics.requests.clone()))
        .then(warnings::layer())
        .then_if(c.cbor, cbor::answers)
        // Preflight requests carry no credentials.
        .maybe(cors::layer(c.cors_allowed_origins))
        // Who opens the page is nobody yet.
        .maybe(c.console)
        .then(authentication::layer(c.authentication, metrics.auth.clone(), failed))
        // From here on the user is known. Traces first, so that they cover all that follows; the audit log shows who
        // asked, then as whom.
        .maybe(c.tracer.map(tracing::layer))
        .maybe(c.audit.as_ref().map(audit::layer))
        .then(impersonation::layer(c.authorizer.clone(), c.impersonation, metrics.impersonation.clone()))
        // Who is over a budget does not even wait for a seat.
        .maybe(c.memory_budget)
        .maybe(c.service_quality)
        .maybe(c.flow_control.or_else(limits))
        .then(authorization::layer(c.authorizer, metrics.auth.clone(), metrics.requests.recent.clone()))
        .then(instrument::layer(metrics.requests.clone()))
        // Last, so that what tests make of a request is authorized and counted as if the API had answered.
        .maybe(c.faults.map(faults::layer))
        .then_if(c.cbor, cbor::bodies)
        .serve(api)
}

/// A chain under construction, then a finished one.
#[derive(Default)]
pub struct ChainBuilder {
    layers: Vec<Layer>,
}

pub struct Chain {
    pub handler: BoxHandler,
    /// The filters' names in request order.
    pub names: Vec<&'static str>,
}

impl ChainBuilder {
    pub fn then(mut self, layer: Layer) -> ChainBuilder {
        self.layers.push(layer);
        self
    }

    pub fn maybe(mut self, layer: Option<Layer>) -> ChainBuilder {
        self.layers.extend(layer);
        self
    }

    pub fn then_if(self, condition: bool, layer: impl FnOnce() -> Layer) -> ChainBuilder {
        self.maybe(condition.then(layer))
    }

    pub fn serve(self, api: BoxHandler) -> Chain {
        let names = self.layers.iter().map(|l| l.name).collect();
        let handler = self.layers.into_iter().rev().fold(api, |next, layer| layer.wrap(next));
        Chain { handler, names }
    }
}
