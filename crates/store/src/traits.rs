//! The one trait that every engine, the encryption wrapper and the watch cache's tests speak.

use crate::error::Result;
use crate::model::{Deleted, Expect, GetResponse, KeyRange, RangeRequest, RangeResponse, Revision, StoreStats};
use crate::watch::{Watch, WatchRequest};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressRequests {
    Trusted,
    /// They are not answered, or not known to be right.
    Unsupported,
}

/// A revisioned key-value store with etcd's model.
///
/// - There is one global revision. Each successful put or delete makes the next one.
/// - Reads without a revision are linearizable: they see every write acknowledged before they began.
/// - An acknowledged write is durable (where the engine is).
/// - Writers never wait for watchers.
///
/// Dropping the future of a read ends the read. Dropping the future of a write does not undo it: once it
/// was polled the write may still be applied.
pub trait Store: Send + Sync + 'static {
    /// Reads one key, at a past revision if `at` is given.
    fn get(&self, key: Bytes, at: Option<Revision>) -> BoxFuture<'_, Result<GetResponse>>;

    /// Reads a range of keys in order.
    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse>>;

    /// Writes a key if its guard holds and answers the new revision, else `StoreError::Conflict`.
    ///
    /// `ttl` counts from this write; the store deletes the key soon after it has passed, unless a later put
    /// (which sets its own `ttl` or none) came before. Resolution is a second.
    fn put(&self, key: Bytes, value: Bytes, expect: Expect, ttl: Option<Duration>) -> BoxFuture<'_, Result<Revision>>;

    /// Deletes a key if its guard holds. An absent key is `Conflict { current: None }`, whatever the guard.
    fn delete(&self, key: Bytes, expect: Expect) -> BoxFuture<'_, Result<Deleted>>;

    /// Starts a watch. `after` below the compacted revision is reported by the stream's first item
    /// (`WatchError::Compacted`) or here (`StoreError::Compacted`), as the engine finds out; `after` may lie
    /// in the future, then nothing is delivered until it is passed.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Watch>>;

    /// A revision from which a watch of this range is told at least so many bytes of past events, if they are kept: what a
    /// reader of the newest ones begins with. Reads no more than that, where the engine can.
    fn recent(&self, range: KeyRange, bytes: usize) -> BoxFuture<'_, Result<Revision>> {
        let _ = (range, bytes);
        Box::pin(async move { Ok(self.stats().await?.compacted) })
    }

    /// The newest revision, linearizable.
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision>>;

    /// Whether answers to [`crate::WatchControl::request_progress`] can be relied on. Where not, a cache that
    /// must be fresh reads the store instead.
    fn progress_requests(&self) -> ProgressRequests {
        ProgressRequests::Trusted
    }

    /// Drops the history below `revision`: reads at older revisions and watches from them fail from now on.
    /// Compacting what is compacted already is `StoreError::Compacted`.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<()>>;

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats>>;

    /// Whether requests can be served, writes included; the error says why not.
    fn health(&self) -> BoxFuture<'_, Result<()>>;

    /// Ends all watches, finishes the writes under way and releases files and connections. Later calls
    /// fail with `StoreError::Closed`. Closing twice is fine.
    fn close(&self) -> BoxFuture<'_, ()>;
}
