//! Filling a cache: pages of the store, decrypted and rendered side by side.

use super::directory::Registered;
use super::hub::{Hub, Renderer};
use super::object::{Broken, CachedObject, EventKind, Problem};
use super::replay::PastEvents;
use super::resource::PastChange;
use super::snapshot::Objects;
use crate::encryption::Transformer;
use crate::offload::Running;
use crate::{Counting, Event, KeyRange, KeyValue, RangeRequest, Result, Revision, StoreError};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Objects read from the store at a time: large enough to amortise the round trip, small enough that the
/// pages in work are a few tens of megabytes.
const PAGE: usize = 2_000;
/// Fewer bytes than this are rendered where they are: handing them to another thread would take longer.
const FEW_BYTES: usize = 32 << 10;
/// Pages rendered at the same time.
const RENDERERS: usize = 4;
/// A load that takes longer than this says how far it is, this often.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// One resource being loaded.
pub(super) struct Loading<'a> {
    pub hub: &'a Hub,
    /// Of its keys, in full.
    pub prefix: String,
    pub registered: &'a Registered,
}

impl Loading<'_> {
    /// All objects at `at`, or at the newest revision, which is answered.
    pub async fn objects(&self, mut at: Option<Revision>) -> Result<(Objects, Revision)> {
        let mut range = KeyRange::prefix(self.prefix.clone());
        let mut rendering = VecDeque::new();
        let mut objects = Vec::new();
        let mut report = Report::new(&self.prefix);
        loop {
            let mut request = RangeRequest::new(range.clone()).limit(PAGE).counting(Counting::Skip);
            request.at = at;
            let page = self.hub.values.raw.range(request).await?;
            let revision = *at.get_or_insert(page.revision);
            if !page.more
                && rendering.is_empty()
                && page.items.iter().map(|kv| kv.value.len()).sum::<usize>() < FEW_BYTES
            {
                let few = rendered(self.of_all(), page.items).await;
                objects.extend(few.into_iter().map(|object| (object.key.clone(), Arc::new(object))));
                return Ok((Objects::from_sorted(objects), revision));
            }
            let last = page.items.last().map(|kv| kv.key.clone());
            rendering.push_back(self.render(page.items));
            while rendering.len() >= RENDERERS || !page.more {
                let Some(task) = rendering.pop_front() else { break };
                for object in task.await.map_err(|e| StoreError::Unavailable(e.to_string()))? {
                    objects.push((object.key.clone(), Arc::new(object)));
                }
                report.progress(objects.len());
            }
            match last {
                Some(last) if page.more => {
                    let mut next = last.to_vec();
                    next.push(0);
                    range = range.from(Bytes::from(next));
                }
                // The store has them in the order of their keys.
                _ => return Ok((Objects::from_sorted(objects), revision)),
            }
        }
    }

    fn render(&self, items: Vec<KeyValue>) -> Running<Vec<CachedObject>> {
        // Decrypting waits only where a KMS plugin must be asked.
        self.hub.offload.block_on(rendered(self.of_all(), items))
    }

    fn of_all(&self) -> OfAll {
        OfAll {
            transformer: self.hub.values.transformers.of(self.prefix.as_bytes()),
            renderer: self.registered.renderer.clone(),
            skip: self.prefix.len(),
        }
    }

    /// What happened before the load, as events. The newest state of an object is shared with `objects`.
    pub async fn past(&self, past: PastEvents, objects: &Objects) -> Vec<PastChange> {
        let transformer = self.hub.values.transformers.of(self.prefix.as_bytes());
        let renderer = &*self.registered.renderer;
        let skip = self.prefix.len();
        let mut latest: HashMap<Bytes, Arc<CachedObject>> = HashMap::new();
        let mut changes = Vec::with_capacity(past.events.len());
        for event in past.events {
            let key = event.key().clone();
            let prev = match (latest.remove(&key), event.prev()) {
                (Some(known), _) => Some(known),
                (None, Some(prev)) => read(&transformer, renderer, skip, prev, EventKind::Added).await.map(Arc::new),
                (None, None) => None,
            };
            let (kind, object) = match (&event, &prev) {
                (Event::Put { kv, .. }, prev) => {
                    let kind = if prev.is_some() { EventKind::Modified } else { EventKind::Added };
                    let shared = std::str::from_utf8(&kv.key).ok().and_then(|key| objects.get(&key[skip..]));
                    let object = match shared.filter(|o| o.revision == kv.mod_revision.0) {
                        Some(shared) => Some(shared.clone()),
                        None => read(&transformer, renderer, skip, kv, kind).await.map(Arc::new),
                    };
                    let Some(object) = object else { continue };
                    latest.insert(key, object.clone());
                    (kind, object)
                }
                (Event::Delete { revision, .. }, Some(prev)) => {
                    (EventKind::Deleted, Arc::new(prev.deleted_at(revision.0)))
                }
                (Event::Delete { .. }, None) => continue,
            };
            changes.push(PastChange { kind, object, prev });
        }
        changes
    }
}

/// What all values of a resource are read with.
struct OfAll {
    transformer: Arc<Transformer>,
    renderer: Arc<dyn Renderer>,
    /// Bytes of their keys that are the prefix.
    skip: usize,
}

async fn rendered(with: OfAll, items: Vec<KeyValue>) -> Vec<CachedObject> {
    let mut objects = Vec::with_capacity(items.len());
    for kv in &items {
        objects.extend(read(&with.transformer, &*with.renderer, with.skip, kv, EventKind::Added).await);
    }
    objects
}

/// Decrypts and renders one value; `None` if its key is no text. `skip` bytes of the key are the prefix.
pub(super) async fn read(
    transformer: &Transformer,
    renderer: &dyn Renderer,
    skip: usize,
    kv: &KeyValue,
    kind: EventKind,
) -> Option<CachedObject> {
    read_as(transformer, skip, kv, |key, revision, value| render(renderer, key, revision, kind, value)).await
}

/// Decrypts one value, of which `make` makes an object, or says why it is none.
pub(super) async fn read_as(
    transformer: &Transformer,
    skip: usize,
    kv: &KeyValue,
    make: impl FnOnce(Arc<str>, i64, &[u8]) -> std::result::Result<CachedObject, String>,
) -> Option<CachedObject> {
    let key: Arc<str> = std::str::from_utf8(&kv.key).ok()?.get(skip..)?.into();
    let revision = kv.mod_revision.0;
    let object = match transformer.open(&kv.value, &kv.key).await {
        Ok(opened) => make(key.clone(), revision, &opened.value).map_err(|why| Broken::new(Problem::Undecodable, why)),
        Err(why) => Err(Broken::new(Problem::Untransformable, why)),
    };
    let mut object = object.unwrap_or_else(|why| CachedObject::broken(key, revision, why));
    object.stored = u32::try_from(kv.value.len()).unwrap_or(u32::MAX);
    Some(object)
}

pub(super) fn render(
    renderer: &dyn Renderer,
    key: Arc<str>,
    revision: i64,
    kind: EventKind,
    value: &[u8],
) -> std::result::Result<CachedObject, String> {
    Ok(CachedObject::new(key, revision, kind, renderer.render(value, revision)?))
}

/// Says how far a long load is.
struct Report<'a> {
    prefix: &'a str,
    started: Instant,
    said: Instant,
}

impl Report<'_> {
    fn new(prefix: &str) -> Report<'_> {
        let now = Instant::now();
        Report { prefix, started: now, said: now }
    }

    fn progress(&mut self, objects: usize) {
        if self.said.elapsed() >= REPORT_EVERY {
            self.said = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            tracing::info!(prefix = self.prefix, objects, seconds, "loading objects");
        }
    }
}
