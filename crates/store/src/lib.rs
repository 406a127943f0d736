//! Revisioned key-value storage: the [`Store`] trait with etcd's model and everything that implements it.
//!
//! Keys and values are bytes here. This crate knows no HTTP and no kinds; the registry above turns its
//! errors into a `Status`.

pub mod cache;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod embedded;
pub mod encryption;
mod error;
pub mod etcd;
mod hub;
mod layout;
mod limits;
mod memory;
mod model;
mod offload;
#[cfg(any(test, feature = "testing"))]
pub mod random;
#[cfg(test)]
mod tests {
    mod simulation;
}
mod traits;
mod watch;

pub use embedded::{EmbeddedOptions, EmbeddedStore};
pub use error::{Result, StoreError};
pub use etcd::{EtcdOptions, EtcdStore};
pub use kubelith_grpc::{Dial, Io, TlsFiles};
pub use layout::KeyLayout;
pub use limits::HistoryLimits;
pub use memory::{MemorySnapshot, MemoryStore};
pub use model::{
    Counting, Deleted, Expect, GetResponse, KeyRange, KeyValue, RangeRequest, RangeResponse, Revision, Select,
    StoreStats,
};
pub use traits::{ProgressRequests, Store};
pub use watch::{Event, Previous, ProgressMode, Watch, WatchBatch, WatchControl, WatchError, WatchRequest};
