//! What can go wrong in a store: one enum for every implementation.

use crate::model::{KeyValue, Revision};

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Errors never carry a value's bytes in their text: values may be Secrets.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The guard of a put or delete did not hold. `current` is what the key holds now; `None`: it is absent.
    #[error("the key is not at the expected revision")]
    Conflict { current: Option<Box<KeyValue>> },

    /// The revision asked for is older than the oldest one kept.
    #[error("required revision has been compacted (oldest kept: {compacted})")]
    Compacted { compacted: Revision },

    /// The revision asked for does not exist yet.
    #[error("required revision is a future revision (current: {current})")]
    FutureRevision { current: Revision },

    /// A key or value is over the limit of the store.
    #[error("request is too large: {size} bytes, limit {limit}")]
    TooLarge { size: usize, limit: usize },

    /// No room on the disk (or over etcd's quota). Reads go on; writes work again once there is room.
    #[error("no space left in the store: {0}")]
    NoSpace(String),

    /// Nothing is wrong with the request; the store cannot answer at the moment. A write was not applied.
    #[error("store is unavailable: {0}")]
    Unavailable(String),

    /// No answer came in the time that a request may take. A write may still be applied.
    #[error("context deadline exceeded: {0}")]
    TimedOut(String),

    /// The answer to a write was lost: it may or may not have been applied.
    #[error("the outcome of the write is unknown: {0}")]
    Uncertain(String),

    /// The stored data is damaged. Never repaired silently.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),

    /// A commit could not be made durable, so nothing that this process knows about the disk can be
    /// trusted any more. Only a restart helps.
    #[error("store is poisoned, restart needed: {0}")]
    Poisoned(String),

    /// The value of this key cannot be decrypted (or not be read in another way); other keys can.
    #[error("unable to transform key {key:?}: {reason}")]
    Undecryptable { key: String, reason: String },

    /// The data folder belongs to another running process.
    #[error("data is in use by another process: {0}")]
    Locked(String),

    /// The data was written by a newer release.
    #[error("data has format version {found}, this release reads up to {supported}")]
    NewerFormat { found: u64, supported: u64 },

    /// A request or a setting that this store can never serve.
    #[error("{0}")]
    Invalid(String),

    /// The store has been closed.
    #[error("store is closed")]
    Closed,
}

impl StoreError {
    pub fn conflict(current: Option<KeyValue>) -> StoreError {
        StoreError::Conflict { current: current.map(Box::new) }
    }
}
