//! Caches of a hub whose store was forked, until those of the fork have taken them over. Objects and events are shared, so a fork
//! renders nothing anew.

use super::resource::ResourceCache;
use std::sync::Arc;

/// What custom resources look like follows from them.
pub(super) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions/";

#[derive(Clone, Default)]
pub struct Inheritance {
    /// In the order of their prefixes below the root, which have a slash at their ends. Those that were taken over are not there any more.
    caches: Vec<(String, Option<Arc<ResourceCache>>)>,
}

impl Inheritance {
    pub(super) fn new(caches: impl Iterator<Item = (String, ResourceCache)>) -> Inheritance {
        let mut caches: Vec<_> = caches.map(|(prefix, cache)| (prefix, Some(Arc::new(cache)))).collect();
        caches.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Inheritance { caches }
    }

    pub(super) fn take(&mut self, prefix: &str) -> Option<Arc<ResourceCache>> {
        let at = self.caches.binary_search_by(|(other, _)| other.as_str().cmp(prefix)).ok()?;
        self.caches[at].1.take()
    }

    /// Definitions have changed, or keys (below the root) that nobody caches yet.
    pub(super) fn overtaken(&mut self, redefines: bool, changed: &[String]) {
        if redefines {
            self.caches.clear();
        }
        self.caches.retain(|(prefix, _)| !changed.iter().any(|key| key.starts_with(prefix.as_str())));
    }
}
