//! The watch cache: what reads are served from.

mod hub;
mod object;
mod resource;

pub use hub::{FRESH_TIMEOUT, Hub, Renderer};
pub use object::{CachedObject, Event, EventKind, Rendered};
pub use resource::{Objects, ResourceCache, Scope, Snapshot, TooOld, Watcher};
