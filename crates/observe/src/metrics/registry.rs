//! The metrics of one server, by name. Most servers of a test are never asked for them: what shows from the start, but costs something
//! to describe, can be put off until somebody looks.

use super::stability::{self, Registered};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Cheap to clone; all clones are the same registry.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    known: prometheus::Registry,
    later: Mutex<Vec<Later>>,
    registered: Registered,
}

type Later = Box<dyn FnOnce(&Registry) + Send>;

/// Leads to a registry without keeping it: a registry may keep what holds this.
#[derive(Clone)]
pub(super) struct WeakRegistry(Weak<Inner>);

impl WeakRegistry {
    /// `None` once the registry is gone.
    pub fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(|inner| Registry { inner })
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    pub fn new() -> Registry {
        Registry::default()
    }

    pub fn register(&self, collector: Box<dyn Collector>) -> prometheus::Result<()> {
        let names: Vec<String> = collector.desc().iter().map(|desc| desc.fq_name.clone()).collect();
        self.inner.known.register(collector)?;
        names.iter().for_each(|name| self.inner.registered.add(name));
        Ok(())
    }

    pub(super) fn registered(&self) -> Registered {
        self.inner.registered.clone()
    }

    /// Does this before the first look at the registry. It must neither put off something more nor keep the registry.
    pub fn later(&self, register: impl FnOnce(&Registry) + Send + 'static) {
        self.inner.later.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(register));
    }

    /// All metrics as they are now.
    pub fn gather(&self) -> Vec<MetricFamily> {
        // Held until all is there: a second look at the same time must not show less.
        let mut later = self.inner.later.lock().unwrap_or_else(PoisonError::into_inner);
        later.drain(..).for_each(|register| register(self));
        drop(later);
        let mut families = self.inner.known.gather();
        for family in &mut families {
            family.set_help(stability::help(family.name(), family.help()));
        }
        families
    }

    pub(super) fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::counters;

    #[test]
    fn what_was_put_off_shows_at_the_first_look_and_keeps_nothing() {
        let registry = Registry::new();
        let family = counters(&registry, "a", "a", &["b"]).shown(&registry, |a| drop(a.with_label_values(&["c"])));
        let gone = registry.downgrade();
        assert_eq!(registry.gather()[0].get_metric().len(), 1);
        family.with_label_values(&["c"]).inc();
        assert_eq!(registry.gather()[0].get_metric()[0].get_counter().get_value(), 1.0);
        let unseen = Registry::new();
        let unseen_gone = unseen.downgrade();
        drop(counters(&unseen, "a", "a", &["b"]).shown(&unseen, |a| drop(a.with_label_values(&["c"]))));
        drop((registry, unseen));
        assert!(gone.upgrade().is_none() && unseen_gone.upgrade().is_none());
    }
}
