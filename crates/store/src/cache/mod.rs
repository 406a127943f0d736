//! The watch cache: what reads are served from.
//!
//! # The life of one write
//!
//! A client creates the pod `default/a`.
//!
//! 1. The registry has encoded it and says so before it writes: [`Hub::add_pending_write`] keeps the object as readers will get
//!    it ([`Draft`]), by its key and its bytes (`pending_writes`).
//! 2. The store acknowledges revision 42. [`Hub::wrote`] notes it (`freshness`): admission of the next write waits until the
//!    caches have reached 42.
//! 3. The watch on the store (`feed`) delivers the event of revision 42. The prefix `pods/` leads to the cache of pods
//!    (`directory`). The bytes are those of the pending write, so the object need not be decoded; what another server
//!    wrote is decrypted and rendered (`load`).
//! 4. The cache (`resource`) puts the object into the persistent map of its objects (`counted`, `snapshot`), into its index of
//!    labels (`index`) and into its window of history (`history`), and wakes watchers whose selectors it concerns (`watcher`). A few
//!    are woken at once, crowds by schedule.
//! 5. When all caches have the batch, `freshness` advances to 42. A consistent read that asked the store for its revision, and was
//!    told 42, goes on now.
//!
//! 6. When nobody has used the object for half a minute, a sweep packs its text (`packing`, `text`). Readers unpack it.
//!
//! If the write fails, step 2 drops the pending write and nobody has seen it. After a restart `replay` fills the history from
//! what the embedded store kept, and a fork begins with the objects of the server it comes from (`inheritance`).

mod counted;
mod directory;
mod feed;
mod freshness;
mod history;
mod hub;
mod index;
#[cfg(test)]
mod index_tests;
mod inheritance;
mod load;
mod object;
mod packing;
mod past;
mod pending_writes;
mod recent;
mod replay;
mod resource;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;
mod watcher;

pub use counted::CountedMap;
pub use freshness::FRESH_TIMEOUT;
pub use history::Version;
pub use hub::{Hub, HubOptions, Malformed, Past, ReadBy, Renderer};
pub use index::{Clause, Term};
pub use inheritance::Inheritance;
pub use object::{Broken, CachedObject, Draft, Event, EventKind, Form, Problem, Rendered};
pub use packing::{PackedStats, Sweeping};
pub use past::PastVersion;
pub use recent::Recent;
pub use resource::{CacheStats, Change, PastChange, ResourceCache, Scope, TooOld};
pub use snapshot::{Objects, Oddities, Snapshot};
pub use watcher::{Interest, Watcher};
