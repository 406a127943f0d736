//! The webhooks that are stored, in the order in which they are asked. They are read from the watch cache whenever that
//! changed; the chain waits for the cache first, so that a configuration counts from the answer to its write on.

use super::hook::Hook;
use crate::attributes::is_exempt;
use crate::manifests::Manifests;
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
    /// Webhooks from files, which come first.
    pub manifests: Option<Arc<Manifests>>,
}

/// All webhooks of one state of the cache and of the files.
#[derive(Default)]
pub struct Set {
    /// What the cache counted then, and the number of what the files had.
    changes: Option<[u64; 2]>,
    /// The first ones, which are from files.
    fixed: Vec<Arc<Hook>>,
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

    /// Those that may be meant by a request, with their place among all. Configurations of admission are judged by none that
    /// are stored themselves.
    pub fn candidates(&self, request: Request<'_>) -> impl Iterator<Item = (usize, &Arc<Hook>)> {
        let end = if is_exempt(request) { self.fixed.len() } else { self.hooks.len() };
        let found = self.index.candidates(request).into_iter().map(|n| n as usize);
        found.filter(move |n| *n < end).map(|n| (n, &self.hooks[n]))
    }
}

impl Source {
    pub fn new(objects: Arc<Objects>, plural: &'static str, manifests: Option<Arc<Manifests>>) -> Source {
        let (cache, current, reading) = (OnceLock::new(), ArcSwap::default(), Mutex::default());
        Source { objects, plural, cache, current, reading, manifests }
    }

    fn counted(&self, cache: &ResourceCache) -> [u64; 2] {
        [cache.changes(), self.manifests.as_ref().map_or(0, |manifests| manifests.current().number)]
    }

    /// What the cache holds now.
    pub fn current(&self) -> Arc<Set> {
        let Some(cache) = self.cache() else { return Arc::default() };
        let set = self.current.load();
        if set.changes == Some(self.counted(cache)) {
            return Arc::clone(&set);
        }
        drop(set);
        let _reading = self.reading.lock().expect("no panic under this lock");
        let known = self.current.load_full();
        // Counted before the objects are read: what changes meanwhile is read again.
        let changes = self.counted(cache);
        if known.changes != Some(changes) {
            self.current.store(Arc::new(self.read(cache, changes, &known)));
        }
        self.current.load_full()
    }

    /// Whether there is nothing to do at all: most servers have no webhooks, and all requests ask.
    pub fn is_empty(&self) -> bool {
        let Some(cache) = self.cache() else { return true };
        let set = self.current.load();
        if set.changes == Some(self.counted(cache)) {
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

    /// Configurations come in the order of their names; those that did not change are kept, with what they compiled.
    fn read(&self, cache: &ResourceCache, changes: [u64; 2], known: &Set) -> Set {
        let fixed = match &self.manifests {
            Some(_) if known.changes.is_some_and(|[_, number]| number == changes[1]) => known.fixed.clone(),
            Some(manifests) => manifests.current().objects.iter().flat_map(|c| hooks(c, "manifest/")).collect(),
            None => Vec::new(),
        };
        let snapshot = cache.snapshot();
        let configurations: Vec<Configuration> = snapshot
            .objects
            .values()
            .filter_map(|object| {
                let same = known.configurations.iter().find(|c| Arc::ptr_eq(&c.object, object));
                let hooks = match same {
                    Some(same) => same.hooks.clone(),
                    None => hooks(&parse(object)?, ""),
                };
                Some(Configuration { object: object.clone(), hooks })
            })
            .collect();
        let stored = configurations.iter().flat_map(|c| c.hooks.iter().cloned());
        let hooks: Vec<Arc<Hook>> = fixed.iter().cloned().chain(stored).collect();
        let index = Index::new(hooks.iter().map(|hook| hook.rules.as_slice()));
        Set { changes: Some(changes), fixed, configurations, hooks, index }
    }
}

/// Whose uid begins with `origin`.
fn hooks(configuration: &Value, origin: &str) -> Vec<Arc<Hook>> {
    let name = configuration.str_at(&["metadata", "name"]);
    let list = configuration.get("webhooks").and_then(Value::as_array).unwrap_or(&[]);
    // Webhooks of one name are told apart by their number among these.
    let mut seen: Vec<Str> = Vec::new();
    let read = |hook: &Value| {
        let number = seen.iter().filter(|name| **name == hook.str_at(&["name"])).count();
        seen.push(hook.str_at(&["name"]).into());
        let mut read = Hook::read(name, number, hook);
        read.uid.insert_str(0, origin);
        Arc::new(read)
    };
    list.iter().map(read).collect()
}
