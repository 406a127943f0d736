//! Where events go: each backend with its mode and its limits, all of them as one.

use super::batch::{Batch, BatchOptions};
use super::event::Event;
use crate::metrics::{Counter, Counters};
use futures::future::{BoxFuture, join_all};
use kubelith_http::audit::Level;
use std::borrow::Cow;
use std::sync::Arc;

use crate::metrics::audit::AuditMetrics;

/// Writes events somewhere.
pub trait Backend: Send + Sync + 'static {
    /// For metrics and messages.
    fn name(&self) -> &'static str;

    /// Writes a batch; an answer at once where nothing must be waited for.
    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_>;

    /// Makes sure that what was written is kept, before the server ends.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What became of a batch; the error is for the log.
pub enum Written<'a> {
    Now(Result<(), String>),
    Later(BoxFuture<'a, Result<(), String>>),
}

/// When events are written.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// Beside the request. If they come faster than they are written, some are lost.
    Batch(BatchOptions),
    /// Before the request goes on; what fails is counted.
    Blocking,
    /// As blocking, and a request whose arrival cannot be written is refused.
    BlockingStrict,
}

/// Events and batches over a size are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    pub max_event_bytes: usize,
    pub max_batch_bytes: usize,
}

/// One backend as configured.
struct Configured {
    backend: Arc<dyn Backend>,
    truncation: Option<Truncation>,
    way: Way,
    errors: Counter,
    truncation_errors: Counter,
}

enum Way {
    Batch(Batch),
    Blocking,
    Strict,
}

/// All backends.
pub struct Backends {
    members: Vec<Configured>,
    errors: Counters,
}

const TRUNCATED: (Cow<'static, str>, &str) = (Cow::Borrowed("audit.k8s.io/truncated"), "true");

impl Backends {
    pub fn new(metrics: &AuditMetrics) -> Backends {
        Backends { members: Vec::new(), errors: metrics.errors.clone() }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a backend. In batch mode its worker starts at once, so this must be called within the runtime.
    pub fn add(&mut self, backend: Arc<dyn Backend>, mode: Mode, truncation: Option<Truncation>) {
        let errors = self.errors.with_label_values(&[backend.name()]);
        let truncation_errors = self.errors.with_label_values(&["truncate"]);
        let way = match mode {
            Mode::Batch(options) => {
                let lost = self.errors.with_label_values(&["buffered"]);
                Way::Batch(Batch::start(backend.clone(), options, lost, errors.clone()))
            }
            Mode::Blocking => Way::Blocking,
            Mode::BlockingStrict => Way::Strict,
        };
        self.members.push(Configured { backend, truncation, way, errors, truncation_errors });
    }

    /// Hands an event to all backends. `false`: one that must not lose any could not take it.
    ///
    /// Answers at once unless a backend that is waited for takes time.
    pub fn process(&self, event: Event) -> Processed<'_> {
        let event = Arc::new(event);
        let mut outcome = true;
        let mut waiting: Vec<BoxFuture<'_, bool>> = Vec::new();
        for member in &self.members {
            match member.process(event.clone()) {
                Processed::Now(kept) => outcome &= kept,
                Processed::Later(later) => waiting.push(later),
            }
        }
        if waiting.is_empty() {
            return Processed::Now(outcome);
        }
        Processed::Later(Box::pin(async move { join_all(waiting).await.into_iter().all(|kept| kept) && outcome }))
    }

    /// Writes what is still held. No event may come after it.
    pub async fn shut_down(&self) {
        for member in &self.members {
            if let Way::Batch(batch) = &member.way {
                batch.drain().await;
            }
            member.backend.flush().await;
        }
    }
}

pub enum Processed<'a> {
    Now(bool),
    Later(BoxFuture<'a, bool>),
}

impl Processed<'_> {
    pub async fn done(self) -> bool {
        match self {
            Processed::Now(kept) => kept,
            Processed::Later(later) => later.await,
        }
    }
}

impl Configured {
    fn process(&self, event: Arc<Event>) -> Processed<'_> {
        let Some(event) = self.fitting(event) else { return Processed::Now(true) };
        let strict = match &self.way {
            Way::Batch(batch) => {
                batch.push(event);
                return Processed::Now(true);
            }
            Way::Blocking => false,
            Way::Strict => true,
        };
        match self.backend.write(vec![event]) {
            Written::Now(result) => Processed::Now(self.settle(result) || !strict),
            Written::Later(later) => Processed::Later(Box::pin(async move { self.settle(later.await) || !strict })),
        }
    }

    fn settle(&self, result: Result<(), String>) -> bool {
        if let Err(why) = &result {
            self.errors.inc();
            tracing::error!(plugin = self.backend.name(), err = %why, "Error in audit plugin affecting 1 audit events");
        }
        result.is_ok()
    }

    /// The event within the limits: without its objects if it is too large, or not at all.
    fn fitting(&self, event: Arc<Event>) -> Option<Arc<Event>> {
        let Some(limits) = self.truncation else { return Some(event) };
        let size = |event: &Event| {
            let mut out = Vec::with_capacity(1024);
            event.write_json(&mut out);
            out.len() + 1
        };
        if size(&event) <= limits.max_event_bytes {
            return Some(event);
        }
        let mut cut = (*event).clone();
        if cut.facts.level >= Level::Request {
            cut.gathered.request_object = None;
            cut.gathered.response_object = None;
            cut.gathered.annotations.push((TRUNCATED.0, TRUNCATED.1.to_owned()));
            if size(&cut) <= limits.max_event_bytes {
                return Some(Arc::new(cut));
            }
        }
        self.truncation_errors.inc();
        tracing::error!(auditID = %cut.facts.audit_id, "event is too large even after truncating");
        None
    }
}
