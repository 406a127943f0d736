//! Which resources a hub caches, by the prefixes of their keys.

use super::hub::{Hub, Renderer};
use super::resource::ResourceCache;
use kubelith_meta::quick_hash::QuickHash;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;

#[derive(Clone)]
pub(super) struct Registered {
    pub cache: Arc<ResourceCache>,
    pub renderer: Arc<dyn Renderer>,
}

/// By key prefix below the root, with a slash at the end: `pods/`. Who may define resources chooses the prefixes.
pub(super) type RegisteredByPrefix = HashMap<String, Registered, QuickHash>;

pub(super) struct Directory {
    /// What all keys begin with. It ends with a slash.
    pub root: String,
    resources: RwLock<RegisteredByPrefix>,
    /// Resources that live in another store, by prefix.
    elsewhere: RwLock<BTreeMap<String, Arc<Hub>>>,
    /// How long objects live, by prefix.
    lifetimes: BTreeMap<String, Duration>,
}

impl Directory {
    pub fn new(root: String, lifetimes: BTreeMap<String, Duration>) -> Directory {
        Directory { root, resources: RwLock::default(), elsewhere: RwLock::default(), lifetimes }
    }

    pub fn resources(&self) -> RwLockReadGuard<'_, RegisteredByPrefix> {
        self.resources.read().expect("no panic under this lock")
    }

    pub fn get(&self, slashed: &str) -> Option<Registered> {
        self.resources().get(slashed).cloned()
    }

    pub fn insert(&self, slashed: String, registered: Registered) {
        self.resources.write().expect("no panic under this lock").insert(slashed, registered);
    }

    pub fn remove(&self, slashed: &str) -> Option<Registered> {
        self.resources.write().expect("no panic under this lock").remove(slashed)
    }

    pub fn delegate(&self, prefix: &str, other: Arc<Hub>) {
        self.elsewhere.write().expect("no panic under this lock").insert(prefix.to_owned(), other);
    }

    pub fn elsewhere(&self, prefix: &str) -> Option<Arc<Hub>> {
        self.elsewhere.read().expect("no panic under this lock").get(prefix).cloned()
    }

    pub fn lifetime(&self, prefix: &str) -> Option<Duration> {
        self.lifetimes.get(prefix).copied()
    }

    pub fn clear(&self) {
        self.resources.write().expect("no panic under this lock").clear();
        self.elsewhere.write().expect("no panic under this lock").clear();
    }
}
