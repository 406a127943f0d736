//! What was read of objects, for those who look at the same ones again and again.

use kubelith_meta::Str;
use kubelith_store::cache::{CachedObject, ResourceCache};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps what was read of an object until there is another one of its key. Forks of a server share it: an object that none of them has
/// changed is the same memory in all of them.
pub struct Readings<T>(Mutex<HashMap<Str, Reading<T>>>);

/// The object, and what it says.
type Reading<T> = (Arc<CachedObject>, Arc<T>);

impl<T> Default for Readings<T> {
    fn default() -> Readings<T> {
        Readings(Mutex::default())
    }
}

impl<T> Readings<T> {
    /// What the object of this key says. `None` if there is none, or it cannot be read.
    pub fn get(
        &self,
        cache: &ResourceCache,
        key: &str,
        read: impl FnOnce(&CachedObject) -> Option<T>,
    ) -> Option<Arc<T>> {
        let Some(object) = cache.get(key) else {
            self.known().remove(key);
            return None;
        };
        self.of(&object, read)
    }

    /// What this object says. What was read of those that are gone is kept until [`Readings::retain`].
    pub fn of(&self, object: &Arc<CachedObject>, read: impl FnOnce(&CachedObject) -> Option<T>) -> Option<Arc<T>> {
        let mut known = self.known();
        if let Some((of, reading)) = known.get(&*object.key)
            && Arc::ptr_eq(of, object)
        {
            return Some(reading.clone());
        }
        let reading = Arc::new(read(object)?);
        known.insert(object.key.as_ref().into(), (object.clone(), reading.clone()));
        Some(reading)
    }

    /// Forgets those that are not in the cache.
    pub fn retain(&self, cache: &ResourceCache) {
        self.known().retain(|key, _| cache.get(key).is_some());
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Str, Reading<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
