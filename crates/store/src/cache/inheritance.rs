//! Caches of a hub whose store was forked, until those of the fork have taken them over. Objects and events are shared, so a fork
//! renders nothing anew.

use super::resource::ResourceCache;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What custom resources look like follows from them.
pub(super) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions/";

/// By prefix below the root, with a slash at the end.
#[derive(Clone, Default)]
pub struct Inheritance {
    caches: BTreeMap<String, Arc<ResourceCache>>,
}

impl Inheritance {
    pub(super) fn new(caches: BTreeMap<String, Arc<ResourceCache>>) -> Inheritance {
        Inheritance { caches }
    }

    pub(super) fn take(&mut self, prefix: &str) -> Option<Arc<ResourceCache>> {
        self.caches.remove(prefix)
    }

    /// Definitions have changed, or keys (below the root) that nobody caches yet.
    pub(super) fn overtaken(&mut self, redefines: bool, changed: &[String]) {
        if redefines {
            self.caches.clear();
        }
        self.caches.retain(|prefix, _| !changed.iter().any(|key| key.starts_with(prefix.as_str())));
    }
}
