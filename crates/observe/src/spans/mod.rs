//! Traces: a span for each request that is sampled, sent to an OpenTelemetry collector (`--tracing-config-file`).
//!
//! Requests come with the context of W3C's `traceparent`. Spans are collected in a bounded queue and sent in batches; a
//! collector that is slow or away costs spans, never requests. The messages of OTLP are written down in `otlp`, as far as
//! spans need them.

mod config;
mod context;
mod export;
pub mod otlp;

pub use config::{TracingConfig, TracingEndpoint};
pub use context::{SpanId, TraceContext, TraceId};

use kubelith_meta::time::wall_time;
use kubelith_outbound::egress::Route;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Finished spans that wait for their batch. Beyond it, spans are dropped.
const QUEUE: usize = 2048;

/// Makes spans. Clones share the queue.
#[derive(Clone)]
pub struct Tracer {
    queue: mpsc::Sender<Span>,
    /// Of a million traces that begin here, how many are taken.
    per_million: u32,
}

/// A finished piece of work.
#[derive(Debug, Clone)]
pub struct Span {
    pub context: TraceContext,
    pub parent: Option<SpanId>,
    /// The caller's trace, where this one is not part of it.
    pub link: Option<TraceContext>,
    pub name: String,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub failed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(i64),
}

/// Whether a caller's word on the trace counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Its trace goes on here, and it decides whether it is taken.
    Trusted,
    /// A trace of our own begins, with a link to the caller's: strangers must not make us work.
    Stranger,
}

/// Where a span belongs, decided when its work begins.
#[derive(Debug, Clone)]
pub struct Begun {
    pub context: TraceContext,
    parent: Option<SpanId>,
    link: Option<TraceContext>,
}

impl Tracer {
    /// A tracer, and the task that sends what it takes until `stopping`, by `route`. `instance` tells this server from
    /// others.
    pub fn new(
        config: &TracingConfig,
        route: &Route,
        instance: &str,
        stopping: CancellationToken,
    ) -> Result<(Tracer, impl Future<Output = ()> + Send + 'static + use<>), String> {
        let (queue, spans) = mpsc::channel(QUEUE);
        let exporter = export::Exporter::new(&config.endpoint, route, instance)?;
        let sending = async move { exporter.run(spans, stopping).await };
        Ok((Tracer { queue, per_million: config.sampling_rate_per_million }, sending))
    }

    /// The place of a span whose caller sent `incoming`; `None` if it is not taken.
    pub fn begin(&self, incoming: Option<TraceContext>, caller: Caller) -> Option<Begun> {
        match (incoming, caller) {
            (Some(theirs), Caller::Trusted) => {
                let begun = Begun { context: theirs.child(), parent: Some(theirs.span), link: None };
                theirs.sampled.then_some(begun)
            }
            (link, _) => {
                let context = TraceContext::root();
                context.trace.is_within(self.per_million).then_some(Begun { context, parent: None, link })
            }
        }
    }

    pub fn finish(&self, begun: Begun, span: impl FnOnce(Span) -> Span) {
        let now = wall_time();
        let Begun { context, parent, link } = begun;
        let blank = Span {
            context,
            parent,
            link,
            name: String::new(),
            start: now,
            end: now,
            attributes: Vec::new(),
            failed: false,
        };
        let _ = self.queue.try_send(span(blank));
    }
}

/// In a request's extensions while a span is open, for those who call others on its behalf.
#[derive(Clone)]
pub struct CurrentSpan {
    pub tracer: Arc<Tracer>,
    pub context: TraceContext,
}
