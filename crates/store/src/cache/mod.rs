//! The watch cache: what reads are served from.

mod feed;
mod history;
mod hub;
mod inheritance;
mod load;
mod object;
mod pending_writes;
mod recent;
mod replay;
mod resource;
#[cfg(test)]
mod tests;
mod watcher;

pub use history::Version;
pub use hub::{FRESH_TIMEOUT, Hub, HubOptions, Malformed, Past, ReadBy, Renderer};
pub use inheritance::Inheritance;
pub use object::{Broken, CachedObject, Draft, Event, EventKind, Form, Problem, Rendered};
pub use recent::Recent;
pub use resource::{CacheStats, Change, Objects, Oddities, PastChange, ResourceCache, Scope, Snapshot, TooOld};
pub use watcher::Watcher;
