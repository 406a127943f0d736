//! How many objects a resource has and how large they are on average. Looked at once a minute: an estimate of a
//! list's cost needs no more.

use arc_swap::ArcSwap;
use kubelith_fairness::work::Stats;
use kubelith_meta::Str;
use kubelith_meta::quick_hash::QuickHash;
use kubelith_store::cache::ResourceCache;
use std::collections::HashMap;
use std::sync::{Mutex, Weak};
use std::time::Duration;

pub const REFRESH: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct ObjectCounts {
    tracked: Mutex<HashMap<(Str, Str), Weak<ResourceCache>, QuickHash>>,
    /// By resource, then group: most names exist in one group only.
    stats: ArcSwap<HashMap<Str, Vec<(Str, Stats)>>>,
}

impl ObjectCounts {
    /// Looks at these caches from now on, as long as they live.
    pub fn track_all<'a>(&self, caches: impl ExactSizeIterator<Item = (&'a (Str, Str), Weak<ResourceCache>)>) {
        let mut tracked = self.tracked.lock().unwrap_or_else(|e| e.into_inner());
        tracked.reserve(caches.len());
        tracked.extend(caches.map(|(name, cache)| (name.clone(), cache)));
    }

    /// Looks at this cache from now on, as long as it lives.
    pub fn track(&self, group: impl Into<Str>, resource: impl Into<Str>, cache: Weak<ResourceCache>) {
        let mut tracked = self.tracked.lock().unwrap_or_else(|e| e.into_inner());
        tracked.insert((group.into(), resource.into()), cache);
    }

    /// `None` if the resource is not tracked, or not yet looked at.
    pub fn of(&self, group: &str, resource: &str) -> Option<Stats> {
        let stats = self.stats.load();
        let groups = stats.get(resource)?;
        groups.iter().find(|(name, _)| name == group).map(|(_, stats)| *stats)
    }

    pub fn refresh(&self) {
        let mut tracked = self.tracked.lock().unwrap_or_else(|e| e.into_inner());
        tracked.retain(|_, cache| cache.strong_count() > 0);
        let tracked: Vec<_> = tracked.iter().map(|(key, cache)| (key.clone(), cache.clone())).collect();
        let mut stats: HashMap<Str, Vec<(Str, Stats)>> = HashMap::new();
        for ((group, resource), cache) in tracked {
            let Some(cache) = cache.upgrade() else { continue };
            let objects = cache.snapshot().objects;
            let bytes: usize = objects.values().map(|object| object.json_len()).sum();
            let count = objects.len() as i64;
            let average_bytes = if count == 0 { 0 } else { bytes as i64 / count };
            stats.entry(resource).or_default().push((group, Stats { objects: count, average_bytes }));
        }
        self.stats.store(stats.into());
    }
}
