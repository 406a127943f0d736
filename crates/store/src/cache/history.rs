//! What the events of the window tell about the past of single objects, for people who ask how one came to be.

use super::object::{Event, EventKind};
use super::resource::ResourceCache;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A change of an object that is still in the window.
#[derive(Debug, Clone)]
pub struct Version {
    pub event: Arc<Event>,
    /// Since this process learnt of it.
    pub age: Duration,
}

impl ResourceCache {
    /// The last changes of one object, newest first.
    pub fn versions(&self, key: &str, limit: usize) -> Vec<Version> {
        let state = self.state.read().expect("no panic under this lock");
        let of_key = state.events.iter().rev().filter(|(_, event)| &*event.object.key == key);
        of_key.take(limit).map(|(at, event)| Version { event: event.clone(), age: at.elapsed() }).collect()
    }

    /// The last deletions of objects that are still gone, newest first.
    pub fn deletions(&self, limit: usize) -> Vec<Version> {
        let state = self.state.read().expect("no panic under this lock");
        let mut seen = HashSet::new();
        let gone = state.events.iter().rev().filter(|(_, event)| {
            // Only the newest event of a key tells what became of it.
            seen.insert(event.object.key.clone())
                && event.kind == EventKind::Deleted
                && !state.objects.contains_key(&event.object.key)
        });
        gone.take(limit).map(|(at, event)| Version { event: event.clone(), age: at.elapsed() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{CachedObject, Rendered};

    fn change(kind: EventKind, key: &str, revision: i64) -> (EventKind, CachedObject) {
        (kind, CachedObject::new(key.into(), revision, kind, Rendered::default()))
    }

    #[test]
    fn objects_have_a_past_and_those_that_went_are_found() {
        let cache = ResourceCache::new(None);
        cache.apply([
            change(EventKind::Added, "n/a", 1),
            change(EventKind::Added, "n/b", 2),
            change(EventKind::Modified, "n/a", 3),
            change(EventKind::Deleted, "n/a", 4),
            change(EventKind::Deleted, "n/b", 5),
            change(EventKind::Added, "n/b", 6),
        ]);
        let revisions = |versions: Vec<Version>| versions.iter().map(|v| v.event.revision).collect::<Vec<_>>();
        assert_eq!(revisions(cache.versions("n/a", 10)), [4, 3, 1]);
        assert_eq!(revisions(cache.versions("n/b", 2)), [6, 5]);
        assert_eq!(revisions(cache.versions("n/c", 2)), []);
        assert_eq!(revisions(cache.deletions(10)), [4]);
    }
}
