//! Watches as the callers of a store see them: a stream of batches and a handle to ask for progress.

use crate::error::StoreError;
use crate::model::{KeyRange, KeyValue, Revision};
use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Whether the store tells about progress on its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProgressMode {
    /// Only when asked through [`WatchControl`].
    #[default]
    OnRequest,
    /// Also from time to time while the watched range is quiet.
    Periodic,
}

/// Whether events carry the value that they replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Previous {
    #[default]
    Include,
    /// `prev` is always `None`. For a caller that holds the previous values itself this saves the store
    /// reading (and etcd sending) each of them.
    Omit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRequest {
    pub range: KeyRange,
    /// The first event delivered is the first one with a greater revision.
    pub after: Revision,
    pub progress: ProgressMode,
    pub previous: Previous,
}

impl WatchRequest {
    pub fn new(range: KeyRange, after: Revision) -> WatchRequest {
        WatchRequest { range, after, progress: ProgressMode::default(), previous: Previous::default() }
    }

    pub fn progress(mut self, progress: ProgressMode) -> WatchRequest {
        self.progress = progress;
        self
    }

    pub fn previous(mut self, previous: Previous) -> WatchRequest {
        self.previous = previous;
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `prev` is `None` where the key did not exist before (then `kv` has equal revisions).
    Put { kv: KeyValue, prev: Option<KeyValue> },
    /// `prev` is `None` only where the previous value is gone: compacted while the event waited.
    Delete { key: Bytes, revision: Revision, prev: Option<KeyValue> },
}

impl Event {
    pub fn key(&self) -> &Bytes {
        match self {
            Event::Put { kv, .. } => &kv.key,
            Event::Delete { key, .. } => key,
        }
    }

    pub fn revision(&self) -> Revision {
        match self {
            Event::Put { kv, .. } => kv.mod_revision,
            Event::Delete { revision, .. } => *revision,
        }
    }

    pub fn prev(&self) -> Option<&KeyValue> {
        match self {
            Event::Put { prev, .. } | Event::Delete { prev, .. } => prev.as_ref(),
        }
    }

    /// Whether the event replaced a value, be it at hand or not.
    pub fn has_previous(&self) -> bool {
        match self {
            Event::Put { kv, .. } => kv.create_revision != kv.mod_revision,
            Event::Delete { .. } => true,
        }
    }

    /// The same event as `Previous::Omit` has it.
    pub fn without_previous(mut self) -> Event {
        match &mut self {
            Event::Put { prev, .. } | Event::Delete { prev, .. } => *prev = None,
        }
        self
    }

    /// Bytes held by the event, for the bounds of buffers.
    pub fn weight(&self) -> usize {
        let size = |kv: &KeyValue| kv.key.len() + kv.value.len();
        let own = match self {
            Event::Put { kv, .. } => size(kv),
            Event::Delete { key, .. } => key.len(),
        };
        own + self.prev().map_or(0, size)
    }
}

/// Some events in revision order. Events of one revision never span two batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchBatch {
    /// Empty: a progress notice.
    pub events: Vec<Event>,
    /// Every event of the watched range up to and including this revision has now been delivered.
    pub revision: Revision,
}

impl WatchBatch {
    pub fn is_progress(&self) -> bool {
        self.events.is_empty()
    }
}

/// Why a watch ended. The stream ends after it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WatchError {
    /// The revisions needed are gone: list anew.
    #[error("required revision has been compacted (oldest kept: {compacted})")]
    Compacted { compacted: Revision },
    /// The store was closed.
    #[error("store is closed")]
    Closed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A running watch. Dropping it ends the watch.
///
/// Polling is cancel-safe: a batch is handed over whole or stays for the next poll.
pub struct Watch {
    batches: BoxStream<'static, Result<WatchBatch, WatchError>>,
    control: WatchControl,
}

impl Watch {
    pub fn new(batches: BoxStream<'static, Result<WatchBatch, WatchError>>, control: WatchControl) -> Watch {
        Watch { batches, control }
    }

    /// A handle that another task may hold while one polls the watch.
    pub fn control(&self) -> WatchControl {
        self.control.clone()
    }

    /// The next batch; `None` after an error was delivered.
    pub async fn next(&mut self) -> Option<Result<WatchBatch, WatchError>> {
        std::future::poll_fn(|cx| self.batches.as_mut().poll_next(cx)).await
    }

    pub fn into_parts(self) -> (BoxStream<'static, Result<WatchBatch, WatchError>>, WatchControl) {
        (self.batches, self.control)
    }
}

impl Stream for Watch {
    type Item = Result<WatchBatch, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// Asks a running watch for a progress notice.
#[derive(Clone)]
pub struct WatchControl {
    request_progress: Arc<dyn Fn() + Send + Sync>,
}

impl WatchControl {
    pub fn new(request_progress: impl Fn() + Send + Sync + 'static) -> WatchControl {
        WatchControl { request_progress: Arc::new(request_progress) }
    }

    /// Asks for a batch whose revision is at least the store's revision now. Returns at once; the answer
    /// comes through the watch (as a notice of its own or as events that reach that far). A request can get
    /// lost when the connection to the store does, so a caller that waits asks again from time to time.
    pub fn request_progress(&self) {
        (self.request_progress)()
    }
}

impl fmt::Debug for WatchControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchControl")
    }
}
