//! `GET /kubelith/v1/store`: what the store holds, by resource, and its largest objects.

use super::figures::Figures;
use super::{Outcome, Sources, json};
use kubelith_meta::{GroupResource, Status};
use kubelith_store::cache::ResourceCache;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

/// Of the largest objects.
const LARGEST: usize = 25;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    backend: &'static str,
    revision: i64,
    compacted: i64,
    size: u64,
    size_in_use: u64,
    /// A copy can be had of it.
    backup: bool,
    resident_bytes: f64,
    resources: Vec<Resource>,
    largest: Vec<Large>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    group: String,
    resource: String,
    objects: usize,
    /// Of the objects as JSON, which the cache keeps.
    bytes: usize,
    /// Changes that watches can go back to.
    events: usize,
    event_bytes: usize,
}

#[derive(Serialize)]
struct Large {
    group: String,
    resource: String,
    namespace: String,
    name: String,
    bytes: usize,
}

pub async fn serve(sources: &Arc<Sources>) -> Outcome {
    let hub =
        sources.hubs.first().and_then(Weak::upgrade).ok_or_else(|| Status::internal_error("the server is gone"))?;
    let stats = hub.store().stats().await.map_err(|why| Status::internal_error(why.to_string()))?;
    let caches = sources.caches();
    // There may be a million objects.
    let counted = tokio::task::spawn_blocking(move || count(&caches)).await;
    let (resources, largest) = counted.map_err(|why| Status::internal_error(why.to_string()))?;
    json(&Stored {
        backend: sources.backend,
        revision: stats.revision.0,
        compacted: stats.compacted.0,
        size: stats.size,
        size_in_use: stats.size_in_use,
        backup: sources.backup.is_some(),
        resident_bytes: Figures::of(&sources.metrics).gauge("process_resident_memory_bytes"),
        resources,
        largest,
    })
}

fn count(caches: &[(GroupResource, Arc<ResourceCache>)]) -> (Vec<Resource>, Vec<Large>) {
    let mut largest = BinaryHeap::<Reverse<(usize, usize, Arc<str>)>>::new();
    let mut resources = Vec::new();
    for (place, (resource, cache)) in caches.iter().enumerate() {
        let (snapshot, stats) = (cache.snapshot(), cache.stats());
        let mut sum = 0;
        for (key, object) in &snapshot.objects {
            let bytes = object.json().len();
            sum += bytes;
            if largest.len() == LARGEST && largest.peek().is_some_and(|Reverse((least, ..))| *least >= bytes) {
                continue;
            }
            largest.push(Reverse((bytes, place, key.clone())));
            if largest.len() > LARGEST {
                largest.pop();
            }
        }
        resources.push(Resource {
            group: resource.group.to_string(),
            resource: resource.resource.to_string(),
            objects: stats.objects,
            bytes: sum,
            events: stats.events,
            event_bytes: stats.bytes,
        });
    }
    let mut largest: Vec<_> = largest.into_iter().map(|Reverse(found)| found).collect();
    largest.sort_by_key(|(bytes, ..)| Reverse(*bytes));
    let shown = largest.into_iter().map(|(bytes, place, key)| {
        let (namespace, name) = key.rsplit_once('/').unwrap_or(("", &key));
        let resource = &caches[place].0;
        Large {
            group: resource.group.to_string(),
            resource: resource.resource.to_string(),
            namespace: namespace.into(),
            name: name.into(),
            bytes,
        }
    });
    (resources, shown.collect())
}
