//! Which definitions are served, and what was made of them.
//!
//! An entry belongs to one revision of a definition. A request compares it with the definition as the watch cache has
//! it now, and makes a new one if it differs: so no request is answered by a schema that was replaced before it came.
//! While no definition at all changes, which is nearly always, that takes a glance at a counter.

use super::{Built, Cached, build};
use crate::Config;
use crate::controllers::Index;
use crate::definition::{self, Definition};
use kubelith_meta::{GroupResource, Status};
use kubelith_store::cache::CachedObject;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use tokio::sync::Mutex;

/// A definition at one revision.
#[derive(Clone)]
pub struct Serving {
    pub built: Arc<Built>,
    /// The definitions' count of changes when this was right.
    at: u64,
}

struct Entry {
    revision: i64,
    built: Arc<Built>,
    /// The definitions' count of changes when the revision was last found to be this.
    at: AtomicU64,
}

pub struct Table {
    config: Arc<Config>,
    index: Arc<Index>,
    entries: RwLock<HashMap<GroupResource, Entry>>,
    /// Held while an entry is made: each is made once, however many wait for it.
    building: Mutex<()>,
}

impl Table {
    pub fn new(config: Arc<Config>, index: Arc<Index>) -> Table {
        Table { config, index, entries: RwLock::default(), building: Mutex::default() }
    }

    /// What serves a resource; `None` if no definition does.
    pub async fn get(&self, resource: &GroupResource) -> Result<Option<Serving>, Status> {
        if let Some(serving) = self.unchanged(resource) {
            return Ok(Some(serving));
        }
        let name = resource.to_string();
        let (serving, cached) = match self.found(&name, resource) {
            Found::Nothing => return Ok(None),
            Found::Current(serving, cached) => (Some(serving), cached),
            Found::Another(..) => {
                let _building = self.building.lock().await;
                // It may have been made, or the definition may have gone, while we waited.
                match self.found(&name, resource) {
                    Found::Nothing => return Ok(None),
                    Found::Current(serving, cached) => (Some(serving), cached),
                    Found::Another(cached, at) => (self.make(resource, &cached, at).await?, cached),
                }
            }
        };
        self.index.until_written(&cached).await;
        Ok(serving)
    }

    /// Whether the resource is served as it was then. Synchronous, and nearly free.
    pub fn is_current(&self, serving: &Serving) -> bool {
        serving.at == self.changes()
    }

    fn changes(&self) -> u64 {
        self.config.definitions.cache.changes()
    }

    /// What serves a resource, if that was asked for before and no definition changed since.
    pub fn unchanged(&self, resource: &GroupResource) -> Option<Serving> {
        let at = self.changes();
        let entries = self.entries.read().expect("no panic under this lock");
        let entry = entries.get(resource).filter(|e| e.at.load(Ordering::Acquire) == at)?;
        Some(Serving { built: entry.built.clone(), at })
    }

    /// Compares what was made with the definition as it is now.
    fn found(&self, name: &str, resource: &GroupResource) -> Found {
        let at = self.changes();
        let Some(cached) = self.config.definitions.cache.get(name) else { return Found::Nothing };
        let entries = self.entries.read().expect("no panic under this lock");
        match entries.get(resource).filter(|e| e.revision == cached.revision) {
            Some(entry) => {
                let serving = Serving { built: entry.built.clone(), at };
                // Until then everybody has to come here.
                if !self.index.is_writing(&cached) {
                    entry.at.fetch_max(at, Ordering::AcqRel);
                }
                Found::Current(serving, cached)
            }
            None => Found::Another(cached, at),
        }
    }

    async fn make(&self, resource: &GroupResource, cached: &CachedObject, at: u64) -> Result<Option<Serving>, Status> {
        // Discovery shows a definition a moment before its status says so; who saw it there is served.
        let object = match self.index.settling(cached) {
            Some(settling) => settling,
            None => Arc::new(definition::read(cached).map_err(Status::internal_error)?),
        };
        let definition = Definition(&object);
        if definition::overlaps_built_in(resource) {
            return Ok(None);
        }
        if !definition.is("NamesAccepted") && !definition.is("Established") {
            return Ok(None);
        }
        let known = self.entries.read().expect("no panic under this lock").get(resource).map(|e| e.built.clone());
        let built = match known {
            Some(built) if built.fits(definition) => built,
            known => {
                let before = if known.is_some() { Cached::Before } else { Cached::Not };
                let built = build(&self.config, definition, before).await;
                Arc::new(built.map_err(|why| {
                    tracing::error!(definition = &*cached.key, err = %why, "a custom resource cannot be served");
                    Status::internal_error("error resolving resource")
                })?)
            }
        };
        built.set_closed(definition.is_closed());
        let known_at = if self.index.is_writing(cached) { 0 } else { at };
        let entry = Entry { revision: cached.revision, built: built.clone(), at: AtomicU64::new(known_at) };
        self.entries.write().expect("no panic under this lock").insert(resource.clone(), entry);
        Ok(Some(Serving { built, at }))
    }

    /// Makes anew what was made of an earlier state of a definition: its open watches end, though nobody asks for it.
    pub async fn refresh(&self, name: &str) {
        let resource = definition::resource_of(name);
        let is_known = self.entries.read().expect("no panic under this lock").contains_key(&resource);
        if is_known && let Err(why) = self.get(&resource).await {
            tracing::warn!(definition = name, err = %why.message, "a changed definition cannot be served");
        }
    }

    /// Forgets a definition that is gone.
    pub async fn forget(&self, name: &str) {
        let _building = self.building.lock().await;
        if self.config.definitions.cache.get(name).is_some() {
            return;
        }
        let gone = self.entries.write().expect("no panic under this lock").remove(&definition::resource_of(name));
        if let Some(gone) = gone {
            self.config.hub.unregister(&gone.built.descriptor.storage.prefix).await;
        }
    }
}

/// What the watch cache has of a definition, at a count of changes.
enum Found {
    Nothing,
    /// What was made is right.
    Current(Serving, Arc<CachedObject>),
    Another(Arc<CachedObject>, u64),
}
