//! The policies that are bound, with their bindings, as the watch caches have them.

use super::policy::{Binding, Policy};
use crate::attributes::{is_exempt_from_policies, is_review};
use crate::manifests::Manifests;
use crate::rules::Index;
use arc_swap::ArcSwap;
use kubelith_meta::Value;
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::{CachedObject, parse};
use kubelith_store::cache::ResourceCache;
use std::sync::{Arc, Mutex, OnceLock};

const GROUP: &str = "admissionregistration.k8s.io";

pub struct Source {
    objects: Arc<Objects>,
    policies: &'static str,
    bindings: &'static str,
    caches: OnceLock<[Arc<ResourceCache>; 2]>,
    current: ArcSwap<Set>,
    /// Held while they are read anew.
    reading: Mutex<()>,
    /// Policies from files, which come first.
    pub manifests: Option<Arc<Manifests>>,
}

/// All policies of one state of the caches.
#[derive(Default)]
pub struct Set {
    /// What the caches counted then, and the number of what the files had.
    changes: Option<[u64; 3]>,
    /// The first ones, which are from files.
    fixed: Vec<Bound>,
    /// Every policy that is stored: those that did not change keep what they compiled.
    known: Vec<(Arc<CachedObject>, Arc<Policy>)>,
    bound: Vec<Bound>,
    index: Index,
}

/// A policy with what binds it, in the order of names.
#[derive(Clone)]
pub struct Bound {
    pub policy: Arc<Policy>,
    pub bindings: Arc<[Binding]>,
}

impl Set {
    /// Those that may be about a request.
    pub fn candidates(&self, request: Request<'_>) -> Vec<Bound> {
        if is_review(request) {
            return Vec::new();
        }
        // Policies that are stored do not judge policies.
        let end = if is_exempt_from_policies(request) { self.fixed.len() } else { self.bound.len() };
        let found = self.index.candidates(request).into_iter().map(|n| n as usize);
        found.filter(|n| *n < end).map(|n| self.bound[n].clone()).collect()
    }
}

impl Source {
    /// For these plurals of policies and bindings.
    pub fn new(objects: Arc<Objects>, plurals: [&'static str; 2], manifests: Option<Arc<Manifests>>) -> Source {
        let ([policies, bindings], current, reading) = (plurals, ArcSwap::default(), Mutex::default());
        Source { objects, policies, bindings, caches: OnceLock::new(), current, reading, manifests }
    }

    fn caches(&self) -> Option<&[Arc<ResourceCache>; 2]> {
        if let Some(found) = self.caches.get() {
            return Some(found);
        }
        let cache = |plural: &str| self.objects.resource(GROUP, plural).map(|r| r.cache.clone());
        let found = [cache(self.policies)?, cache(self.bindings)?];
        Some(self.caches.get_or_init(|| found))
    }

    /// What may be about the request, by what the caches hold now.
    pub fn candidates(&self, request: Request<'_>) -> Vec<Bound> {
        let Some(caches) = self.caches() else { return Vec::new() };
        let number = || self.manifests.as_ref().map_or(0, |manifests| manifests.current().number);
        let counted = || [caches[0].changes(), caches[1].changes(), number()];
        let set = self.current.load();
        if set.changes == Some(counted()) {
            return if set.bound.is_empty() { Vec::new() } else { set.candidates(request) };
        }
        drop(set);
        let _reading = self.reading.lock().expect("no panic under this lock");
        let known = self.current.load_full();
        // Counted before the objects are read: what changes meanwhile is read again.
        let changes = counted();
        if known.changes != Some(changes) {
            self.current.store(Arc::new(self.read(caches, changes, &known)));
        }
        self.current.load().candidates(request)
    }

    fn fixed(&self, number: u64, before: &Set) -> Vec<Bound> {
        let Some(manifests) = &self.manifests else { return Vec::new() };
        if before.changes.is_some_and(|[.., known]| known == number) {
            return before.fixed.clone();
        }
        let loaded = manifests.current();
        let bound = |policy: &Value| {
            let policy = Arc::new(Policy::read(policy));
            let own = loaded.bindings.iter().map(Binding::read).filter(|binding| binding.policy == policy.name);
            Bound { bindings: own.collect(), policy }
        };
        loaded.objects.iter().map(bound).filter(|bound| !bound.bindings.is_empty()).collect()
    }

    fn read(&self, caches: &[Arc<ResourceCache>; 2], changes: [u64; 3], before: &Set) -> Set {
        let fixed = self.fixed(changes[2], before);
        let objects =
            |cache: &ResourceCache| -> Vec<Arc<CachedObject>> { cache.snapshot().objects.values().cloned().collect() };
        let policies = objects(&caches[0]).into_iter().filter_map(|object| {
            let same = before.known.iter().find(|(known, _)| Arc::ptr_eq(known, &object));
            let policy = match same {
                Some((_, policy)) => policy.clone(),
                None => Arc::new(Policy::read(&parse(&object)?)),
            };
            Some((object, policy))
        });
        let known: Vec<(Arc<CachedObject>, Arc<Policy>)> = policies.collect();
        let mut bindings: Vec<Option<Binding>> =
            objects(&caches[1]).iter().map(|object| parse(object).map(|value| Binding::read(&value))).collect();
        let mut bound = fixed.clone();
        for (_, policy) in &known {
            let own = |binding: &&mut Option<Binding>| binding.as_ref().is_some_and(|b| b.policy == policy.name);
            let own: Vec<Binding> = bindings.iter_mut().filter(own).filter_map(Option::take).collect();
            if !own.is_empty() {
                bound.push(Bound { policy: policy.clone(), bindings: own.into() });
            }
        }
        let index = Index::new(bound.iter().map(|bound| bound.policy.constraints.rules.as_slice()));
        Set { changes: Some(changes), fixed, known, bound, index }
    }
}
