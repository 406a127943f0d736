//! The watch cache: what reads are served from.

mod counted;
mod feed;
mod history;
mod hub;
mod index;
#[cfg(test)]
mod index_tests;
mod inheritance;
mod load;
mod object;
mod past;
mod pending_writes;
mod recent;
mod replay;
mod resource;
mod snapshot;
#[cfg(test)]
mod tests;
mod watcher;

pub use counted::CountedMap;
pub use history::Version;
pub use hub::{FRESH_TIMEOUT, Hub, HubOptions, Malformed, Past, ReadBy, Renderer};
pub use index::{Clause, Term};
pub use inheritance::Inheritance;
pub use object::{Broken, CachedObject, Draft, Event, EventKind, Form, Problem, Rendered};
pub use past::PastVersion;
pub use recent::Recent;
pub use resource::{CacheStats, Change, PastChange, ResourceCache, Scope, TooOld};
pub use snapshot::{Objects, Oddities, Snapshot};
pub use watcher::{Interest, Watcher};
