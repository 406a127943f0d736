//! The webhooks that are stored, in the order in which they are asked. They are read from the watch cache whenever that
//! changed; the chain waits for the cache first, so that a configuration counts from the answer to its write on.

use super::hook::Hook;
use crate::rules::Index;
use arc_swap::ArcSwap;
use kubelith_meta::{Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::{CachedObject, parse};
use kubelith_store::cache::ResourceCache;
use std::sync::{Arc, Mutex, OnceLock};

const GROUP: &str = "admissionregistration.k8s.io";

pub struct Source {
    objects: Arc<Objects>,
    plural: &'static str,
    cache: OnceLock<Option<Arc<ResourceCache>>>,
    current: ArcSwap<Set>,
    /// Held while the webhooks are read anew.
    reading: Mutex<()>,
}

/// All webhooks of one state of the cache.
#[derive(Default)]
pub struct Set {
    /// What the cache counted then.
    changes: Option<u64>,
    configurations: Vec<Configuration>,
    hooks: Vec<Arc<Hook>>,
    index: Index,
}

struct Configuration {
    object: Arc<CachedObject>,
    hooks: Vec<Arc<Hook>>,
}

impl Set {
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Those that may be meant by a request, with their place among all.
    pub fn candidates(&self, request: Request<'_>) -> impl Iterator<Item = (usize, &Arc<Hook>)> {
        self.index.candidates(request).into_iter().map(|n| (n as usize, &self.hooks[n as usize]))
    }
}

impl Source {
    pub fn new(objects: Arc<Objects>, plural: &'static str) -> Source {
        Source { objects, plural, cache: OnceLock::new(), current: ArcSwap::default(), reading: Mutex::default() }
    }

    /// What the cache holds now.
    pub fn current(&self) -> Arc<Set> {
        let Some(cache) = self.cache() else { return Arc::default() };
        let set = self.current.load();
        if set.changes == Some(cache.changes()) {
            return Arc::clone(&set);
        }
        drop(set);
        let _reading = self.reading.lock().expect("no panic under this lock");
        let known = self.current.load_full();
        // Counted before the objects are read: what changes meanwhile is read again.
        let changes = cache.changes();
        if known.changes != Some(changes) {
            self.current.store(Arc::new(read(cache, changes, &known)));
        }
        self.current.load_full()
    }

    /// Whether there is nothing to do at all: most servers have no webhooks, and all requests ask.
    pub fn is_empty(&self) -> bool {
        let Some(cache) = self.cache() else { return true };
        let set = self.current.load();
        if set.changes == Some(cache.changes()) {
            return set.is_empty();
        }
        drop(set);
        self.current().is_empty()
    }

    fn cache(&self) -> Option<&Arc<ResourceCache>> {
        if let Some(found) = self.cache.get() {
            return found.as_ref();
        }
        let found = self.objects.resource(GROUP, self.plural)?;
        self.cache.get_or_init(|| Some(found.cache.clone())).as_ref()
    }
}

/// Configurations come in the order of their names; those that did not change are kept, with what they compiled.
fn read(cache: &ResourceCache, changes: u64, known: &Set) -> Set {
    let snapshot = cache.snapshot();
    let configurations: Vec<Configuration> = snapshot
        .objects
        .values()
        .filter_map(|object| {
            let same = known.configurations.iter().find(|c| Arc::ptr_eq(&c.object, object));
            let hooks = match same {
                Some(same) => same.hooks.clone(),
                None => hooks(&parse(object)?),
            };
            Some(Configuration { object: object.clone(), hooks })
        })
        .collect();
    let hooks: Vec<Arc<Hook>> = configurations.iter().flat_map(|c| c.hooks.iter().cloned()).collect();
    let index = Index::new(hooks.iter().map(|hook| hook.rules.as_slice()));
    Set { changes: Some(changes), configurations, hooks, index }
}

fn hooks(configuration: &Value) -> Vec<Arc<Hook>> {
    let name = configuration.str_at(&["metadata", "name"]);
    let list = configuration.get("webhooks").and_then(Value::as_array).unwrap_or(&[]);
    // Webhooks of one name are told apart by their number among these.
    let mut seen: Vec<Str> = Vec::new();
    let read = |hook: &Value| {
        let number = seen.iter().filter(|name| **name == hook.str_at(&["name"])).count();
        seen.push(hook.str_at(&["name"]).into());
        Arc::new(Hook::read(name, number, hook))
    };
    list.iter().map(read).collect()
}
