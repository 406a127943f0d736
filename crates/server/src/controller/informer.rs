//! Follows a watch cache and tells every change, none twice and none lost.

use kubelith_meta::Str;
use kubelith_store::cache::{CachedObject, EventKind, Objects, ResourceCache, Scope};
use std::sync::Arc;

/// What happened to one object. Both states are there for a change, one of them for a creation or a deletion.
#[derive(Debug, Clone)]
pub struct Change {
    pub old: Option<Arc<CachedObject>>,
    pub new: Option<Arc<CachedObject>>,
}

impl Change {
    /// The state after the change, or the last one before the deletion.
    pub fn object(&self) -> &Arc<CachedObject> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an object")
    }

    /// `namespace/name`, or `name`.
    pub fn key(&self) -> Str {
        Str::from(&*self.object().key)
    }

    pub fn is_deletion(&self) -> bool {
        self.new.is_none()
    }
}

/// Tells `tell` all objects as created, calls `listed`, then tells changes until dropped.
pub async fn follow(cache: Arc<ResourceCache>, mut tell: impl FnMut(Change), listed: impl FnOnce()) {
    let mut listed = Some(listed);
    let mut known = Objects::default();
    loop {
        let (snapshot, mut watcher) = cache.list_and_watch(Scope::All);
        compare(&known, &snapshot.objects, &mut tell);
        known = snapshot.objects;
        if let Some(listed) = listed.take() {
            listed();
        }
        let mut events = Vec::new();
        while watcher.next(&mut events).await.is_ok() {
            for event in events.drain(..) {
                let key = event.object.key.clone();
                let change = match event.kind {
                    EventKind::Deleted => {
                        known.remove(&key);
                        Change { old: Some(event.prev.clone().unwrap_or_else(|| event.object.clone())), new: None }
                    }
                    _ => Change { old: known.insert(key, event.object.clone()), new: Some(event.object.clone()) },
                };
                tell(change);
            }
        }
    }
}

/// What changed between two states.
fn compare(old: &Objects, new: &Objects, tell: &mut impl FnMut(Change)) {
    for (key, object) in new {
        let before = old.get(key);
        if before.is_none_or(|b| b.revision != object.revision) {
            tell(Change { old: before.cloned(), new: Some(object.clone()) });
        }
    }
    for (key, object) in old {
        if !new.contains_key(key) {
            tell(Change { old: Some(object.clone()), new: None });
        }
    }
}
