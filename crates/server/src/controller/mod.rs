//! The controller runtime: loops that bring the world closer to what objects say.
//!
//! A controller is a function from a key to "done", "again later" or an error. It is run for every key that its
//! sources name, never twice at a time for the same key, and again with growing pauses while it fails:
//!
//! ```text
//! Controller::new("names", move |key: Str| reconcile(client.clone(), key))
//!     .watches(&crds.cache, |change| vec![change.key()])        // every object at the start, then every change
//!     .watches(&services.cache, |change| users_of(change))      // a change may concern any number of keys
//!     .every(Duration::from_secs(60))                           // all known keys again, against drift
//!     .workers(5)
//!     .metrics(&context.metrics)
//!     .start(&context.tasks)
//! ```
//!
//! Sources are watch caches, so nothing is listed or kept twice: read what is there now from the cache in `reconcile`,
//! and write through the loopback client. Nothing is lost when a watch falls behind: what changed meanwhile is found by
//! comparison. There is no leader election; a controller copes with the same one running on other servers.

mod informer;
mod queue;
mod run;

pub use informer::{Change, follow};
pub use queue::{Backoff, Queue};
pub use run::{Controller, Running};

use kubelith_meta::Str;
use std::time::Duration;

/// What is left to do for a key that was reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing until a source names it again.
    Done,
    /// Look again after this time, whatever happens until then.
    After(Duration),
    /// Nothing for this key, but what was done for it concerns these.
    Others(Vec<Str>),
}
