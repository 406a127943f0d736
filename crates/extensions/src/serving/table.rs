//! Which definitions are served, and what was made of them.
//!
//! An entry belongs to one revision of a definition. A request compares it with the definition as the watch cache has
//! it now, and makes a new one if it differs: so no request is answered by a schema that was replaced before it came.

use super::{Built, Cached, build};
use crate::Config;
use crate::controllers::Index;
use crate::definition::{self, Definition};
use kubelith_meta::{Status, Str};
use kubelith_store::cache::CachedObject;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use tokio::sync::Mutex;

/// A definition at one revision.
#[derive(Clone)]
pub struct Serving {
    revision: i64,
    pub built: Arc<Built>,
}

impl Serving {
    /// Whether both serve the same, whatever else of the definition changed.
    pub fn is_same(&self, other: &Serving) -> bool {
        Arc::ptr_eq(&self.built, &other.built)
    }
}

pub struct Table {
    config: Arc<Config>,
    index: Arc<Index>,
    /// By the definition's name.
    entries: RwLock<HashMap<Str, Serving>>,
    /// Held while an entry is made: each is made once, however many wait for it.
    building: Mutex<()>,
}

impl Table {
    pub fn new(config: Arc<Config>, index: Arc<Index>) -> Table {
        Table { config, index, entries: RwLock::default(), building: Mutex::default() }
    }

    /// What serves the definition of this name; `None` if there is none.
    pub async fn get(&self, name: &str) -> Result<Option<Serving>, Status> {
        let Some(cached) = self.config.definitions.cache.get(name) else { return Ok(None) };
        if let Some(serving) = self.current(&cached) {
            return Ok(Some(serving));
        }
        let _building = self.building.lock().await;
        // It may have been made, or the definition may have gone, while we waited.
        let Some(cached) = self.config.definitions.cache.get(name) else { return Ok(None) };
        if let Some(serving) = self.current(&cached) {
            return Ok(Some(serving));
        }
        self.make(name, &cached).await
    }

    fn current(&self, cached: &CachedObject) -> Option<Serving> {
        let entries = self.entries.read().expect("no panic under this lock");
        entries.get(&*cached.key).filter(|e| e.revision == cached.revision).cloned()
    }

    async fn make(&self, name: &str, cached: &CachedObject) -> Result<Option<Serving>, Status> {
        // Discovery shows a definition a moment before its status says so; who saw it there is served.
        let object = match self.index.settling(cached) {
            Some(settling) => settling,
            None => Arc::new(definition::read(cached).map_err(Status::internal_error)?),
        };
        let definition = Definition(&object);
        if !definition.is("NamesAccepted") && !definition.is("Established") {
            return Ok(None);
        }
        let known = self.entries.read().expect("no panic under this lock").get(name).map(|e| e.built.clone());
        let built = match known {
            Some(built) if built.fits(definition) => built,
            known => {
                let before = if known.is_some() { Cached::Before } else { Cached::Not };
                let built = build(&self.config, definition, before).await;
                Arc::new(built.map_err(|why| {
                    tracing::error!(definition = name, err = %why, "a custom resource cannot be served");
                    Status::internal_error("error resolving resource")
                })?)
            }
        };
        built.set_terminating(definition.is("Terminating"));
        let serving = Serving { revision: cached.revision, built };
        self.entries.write().expect("no panic under this lock").insert(name.into(), serving.clone());
        Ok(Some(serving))
    }

    /// Forgets a definition that is gone.
    pub async fn forget(&self, name: &str) {
        let _building = self.building.lock().await;
        if self.config.definitions.cache.get(name).is_some() {
            return;
        }
        let gone = self.entries.write().expect("no panic under this lock").remove(name);
        if let Some(gone) = gone {
            self.config.hub.unregister(&gone.built.descriptor.storage.prefix).await;
        }
    }
}
