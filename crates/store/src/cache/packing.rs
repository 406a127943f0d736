//! The sweep that packs what nobody has used for a while: the objects of a resource, and what its history keeps of the past.
//!
//! Objects are packed in the order of their keys, some megabytes at a time, each such slice with a dictionary that is taken from
//! some of its objects: neighbours are often of one owner. What comes later in small numbers is packed with the last dictionary.

use super::object::{CachedObject, EventKind};
use super::resource::ResourceCache;
use super::text::{Dictionary, Look, sweep_time};
use std::collections::HashSet;
use std::sync::{Arc, TryLockError};

/// Objects that nobody has used since are packed: longer than between two steps of whoever works on an object.
const UNUSED_SECONDS: u32 = 30;
/// The same for objects as they were before. Only watches that come back read them.
const PAST_SECONDS: u32 = 5;
/// JSON of the objects that share a dictionary, if there are so many. Packing them takes some 15 ms.
const SLICE_BYTES: usize = 4 << 20;
/// A dictionary is an eighth of what it is taken from at most. LZ4 looks back 64 KiB: the rest is for the object itself.
const DICTIONARY_BYTES: usize = 48 << 10;
const LEAST_DICTIONARY_BYTES: usize = 4 << 10;
const DICTIONARY_PART: usize = 8;
/// Of one object in a dictionary: it is from three objects at least.
const SAMPLE_BYTES: usize = DICTIONARY_BYTES / 3;
/// Events of the history looked at under its lock.
const EVENTS: usize = 1_000;
/// JSON packed in one sweep of all resources, some 0.3 s of processor time: a server that has just loaded 100,000 pods is done
/// after two minutes.
const SWEEP_BYTES: usize = 64 << 20;
/// Objects that sweeps which find nothing to pack look at for each second that passes: some 10 ms of processor time. A resource that
/// has a million of them and changes all the time is looked at each minute.
const LOOKS_PER_SECOND: usize = 20_000;

/// What sweeps of a resource know of each other.
#[derive(Debug, Default)]
pub(super) struct Packing {
    latest: Option<Arc<Dictionary>>,
    /// What `ResourceCache::changes` was in a sweep that left nothing to do.
    settled: Option<u64>,
    /// There is no sweep before.
    rests_until: u32,
}

/// What a sweep looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweeping {
    /// Resources that have changed, or where something was left to do.
    Changed,
    /// All of them: what was packed may have been used.
    All,
}

/// Figures of the last sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedStats {
    /// How much of `CacheStats::object_bytes` is packed, and of `CacheStats::bytes`.
    pub objects: usize,
    pub past: usize,
    /// What that takes packed, with its dictionaries and what stands around it.
    pub bytes: usize,
}

/// One sweep under way.
struct Sweep<'a> {
    now: u32,
    latest: &'a mut Option<Arc<Dictionary>>,
    left: &'a mut usize,
    slice: Vec<Arc<CachedObject>>,
    slice_bytes: usize,
    /// By their addresses.
    dictionaries: HashSet<usize>,
    room: Vec<u8>,
    bytes: usize,
    is_settled: bool,
}

impl ResourceCache {
    /// Packs what is unused at `now`, in seconds that begin somewhere, unless another sweep is under way. As long as there is
    /// something `left` of the bytes that the sweep may pack.
    pub fn pack_unused(&self, now: u32, left: &mut usize, sweeping: Sweeping) {
        let mut packing = match self.packing.try_lock() {
            Ok(packing) => packing,
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(_)) => panic!("a sweep panicked"),
        };
        let changes = self.changes();
        if packing.settled == Some(changes) && sweeping == Sweeping::Changed {
            return;
        }
        if now < packing.rests_until {
            return;
        }
        let before = *left;
        let mut sweep = Sweep::new(now, &mut packing.latest, left);
        let objects = sweep.objects(self);
        let past = sweep.past(self);
        let (bytes, is_settled) = (sweep.bytes, sweep.is_settled);
        packing.settled = is_settled.then_some(changes);
        let rest = if *left == before { self.len() / LOOKS_PER_SECOND } else { 0 };
        packing.rests_until = now + rest as u32;
        *self.packed.lock().expect("no panic under this lock") = PackedStats { objects, past, bytes };
    }
}

impl<'a> Sweep<'a> {
    fn new(now: u32, latest: &'a mut Option<Arc<Dictionary>>, left: &'a mut usize) -> Sweep<'a> {
        Sweep {
            now,
            latest,
            left,
            slice: Vec::new(),
            slice_bytes: 0,
            dictionaries: HashSet::new(),
            room: Vec::new(),
            bytes: 0,
            is_settled: true,
        }
    }

    /// How much of them is packed.
    fn objects(&mut self, cache: &ResourceCache) -> usize {
        // On a snapshot, so that nobody waits.
        let objects = cache.snapshot().objects;
        let packed: usize = objects.values().map(|object| self.visit(object, UNUSED_SECONDS)).sum();
        packed + self.pack_slice()
    }

    fn past(&mut self, cache: &ResourceCache) -> usize {
        let (mut next, mut packed) = (0, 0);
        loop {
            let events: Vec<_> = {
                let state = cache.state.read().expect("no panic under this lock");
                next = state.first.max(next);
                state.since(next).take(EVENTS).cloned().collect()
            };
            let Some(last) = events.last() else { break };
            next = last.sequence + 1;
            for event in &events {
                let gone = (event.kind == EventKind::Deleted).then_some(&event.object);
                packed += event.prev.iter().chain(gone).map(|object| self.visit(object, PAST_SECONDS)).sum::<usize>();
            }
        }
        packed + self.pack_slice()
    }

    /// Looks at one object; if it is to be packed, that happens with the rest of its slice. Answers how much of what it is
    /// is packed now.
    fn visit(&mut self, object: &Arc<CachedObject>, after: u32) -> usize {
        match object.text().look(self.now, after, self.latest.as_ref()) {
            Look::Settled => 0,
            Look::Packed { bytes, dictionary } => {
                self.count(object, bytes, &dictionary);
                object.weight()
            }
            Look::Unused if *self.left > self.slice_bytes => {
                self.slice_bytes += object.text().len();
                self.slice.push(object.clone());
                if self.slice_bytes < SLICE_BYTES {
                    return 0;
                }
                self.pack_slice()
            }
            Look::Used | Look::Unused => {
                self.is_settled = false;
                0
            }
        }
    }

    fn count(&mut self, object: &CachedObject, bytes: usize, dictionary: &Arc<Dictionary>) {
        let is_new = self.dictionaries.insert(Arc::as_ptr(dictionary).addr());
        self.bytes += bytes + object.around() + if is_new { dictionary.len() } else { 0 };
    }

    fn pack_slice(&mut self) -> usize {
        let slice = std::mem::take(&mut self.slice);
        let length = std::mem::take(&mut self.slice_bytes);
        let Some(dictionary) = self.dictionary_for(&slice, length) else {
            // They wait until there are more of them.
            return 0;
        };
        *self.left = self.left.saturating_sub(length);
        let mut packed = 0;
        for object in &slice {
            if let Some(bytes) = object.text().pack(&dictionary, self.now, &mut self.room) {
                self.count(object, bytes, &dictionary);
                packed += object.weight();
            }
        }
        packed
    }

    /// The last dictionary, unless a better one can be made of the slice.
    fn dictionary_for(&mut self, slice: &[Arc<CachedObject>], length: usize) -> Option<Arc<Dictionary>> {
        let wanted = (length / DICTIONARY_PART).min(DICTIONARY_BYTES);
        let known = self.latest.as_ref().map_or(LEAST_DICTIONARY_BYTES, |latest| latest.len());
        if wanted >= known.min(DICTIONARY_BYTES) && !slice.is_empty() {
            *self.latest = Some(Arc::new(Dictionary::new(common(slice, wanted))));
        }
        self.latest.clone()
    }
}

/// Some of the objects, from all over the slice, of so many bytes in all.
fn common(slice: &[Arc<CachedObject>], wanted: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(wanted);
    let mean = slice.iter().map(|object| object.text().len().min(SAMPLE_BYTES)).sum::<usize>() / slice.len();
    let samples = wanted.div_ceil(mean.max(1)).clamp(1, slice.len());
    for i in 0..samples {
        let text = slice[(2 * i + 1) * slice.len() / (2 * samples)].text().read();
        let room = (wanted - bytes.len()).min(SAMPLE_BYTES);
        bytes.extend_from_slice(&text[..text.len().min(room)]);
    }
    bytes
}

/// A sweep over all caches of a server. Forks share objects: who comes first packs them for all.
pub(super) fn sweep(caches: &[Arc<ResourceCache>], sweeping: Sweeping) {
    let mut left = SWEEP_BYTES;
    for cache in caches {
        cache.pack_unused(sweep_time(), &mut left, sweeping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Rendered, Scope};

    const COUNT: usize = 300;

    fn object(i: usize, revision: usize, kind: EventKind) -> (EventKind, CachedObject) {
        let containers: String =
            (0..20).map(|c| format!(r#","container-{c}":{{"image":"app:{}","ip":"10.0.{i}.{c}"}}"#, i % 7)).collect();
        let json = format!(
            r#"{{"kind":"Pod","metadata":{{"name":"pod-{i:03}","resourceVersion":"{revision}","uid":"{:x}"}}{containers}}}"#,
            (i as u64 * 31 + revision as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        );
        let rendered = Rendered { json: json.into(), ..Rendered::default() };
        (kind, CachedObject::new(format!("n/pod-{i:03}").as_str().into(), revision as i64, kind, rendered))
    }

    /// Objects that were created, half of them changed since, and one deleted.
    fn filled() -> Arc<ResourceCache> {
        let cache = Arc::new(ResourceCache::new(None));
        cache.apply((0..COUNT).map(|i| object(i, i + 1, EventKind::Added)));
        cache.apply((0..COUNT / 2).map(|i| object(i, COUNT + i + 1, EventKind::Modified)));
        cache.apply([object(COUNT - 1, 2 * COUNT, EventKind::Deleted)]);
        cache
    }

    fn swept(cache: &ResourceCache, now: u32) -> PackedStats {
        cache.pack_unused(now, &mut SWEEP_BYTES.clone(), Sweeping::Changed);
        cache.stats().packed
    }

    /// All that readers can see of it.
    async fn seen(cache: &Arc<ResourceCache>) -> Vec<String> {
        let mut seen = Vec::new();
        let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        for revision in [1, COUNT, COUNT + 9, 2 * COUNT] {
            let snapshot = cache.snapshot_at(revision as i64).unwrap();
            for object in snapshot.range("", None) {
                seen.push(text(object.json_once()));
                seen.push(text(object.json_frame(EventKind::Added)));
                seen.push(text(object.json_frame(EventKind::Modified)));
                seen.push(format!("{} {}", object.json_len(), object.weight()));
            }
        }
        for interest in [Scope::All, Scope::Namespace("n".into())] {
            let (mut watcher, mut events) = (cache.watch(interest, 0).unwrap(), Vec::new());
            while events.len() < COUNT + COUNT / 2 + 1 {
                watcher.next(&mut events).await.unwrap();
            }
            for event in events {
                let prev = event.prev.as_ref().map(|prev| text(prev.json_once()));
                seen.push(format!("{:?} {} {prev:?}", event.kind, text(event.object.json_frame(event.kind))));
            }
        }
        seen
    }

    #[tokio::test]
    async fn what_is_packed_is_read_as_before() {
        let cache = filled();
        let fork = cache.fork();
        let (before, stats) = (seen(&cache).await, cache.stats());
        assert_eq!(swept(&cache, 100), PackedStats::default(), "all of it was used");
        assert!(swept(&cache, 100 + PAST_SECONDS).past > 0);
        let packed = swept(&cache, 100 + UNUSED_SECONDS);
        assert_eq!(packed.objects, stats.object_bytes);
        assert!(packed.past > COUNT / 2 * 1000 && packed.past <= stats.bytes, "{packed:?}");
        let around: usize = cache.snapshot().objects.values().map(|object| object.around()).sum();
        assert!(packed.bytes > around && packed.bytes * 2 < packed.objects + packed.past, "{packed:?}");
        assert!(
            fork.snapshot().objects.values().all(|object| object.text().is_packed()),
            "a fork has the same objects"
        );
        assert_eq!(seen(&cache).await, before);
        assert_eq!(swept(&cache, 200), packed, "who reads all of it changes nothing");
        assert_eq!(CacheStatsWithoutPacked::of(&cache.stats()), CacheStatsWithoutPacked::of(&stats));
        // And what is written then.
        cache.apply([object(7, 3 * COUNT, EventKind::Modified), object(8, 3 * COUNT + 1, EventKind::Deleted)]);
        let gone = cache.deletions(1).pop().unwrap().event;
        assert!(
            String::from_utf8_lossy(&gone.object.json()).contains(&format!(r#""resourceVersion":"{}""#, 3 * COUNT + 1))
        );
        assert_eq!(gone.prev.as_ref().unwrap().json_once(), object(8, COUNT + 9, EventKind::Added).1.json());
    }

    /// The bounds of the history do not depend on what is packed.
    #[derive(Debug, PartialEq)]
    struct CacheStatsWithoutPacked(usize, usize, usize, usize);

    impl CacheStatsWithoutPacked {
        fn of(stats: &crate::cache::CacheStats) -> CacheStatsWithoutPacked {
            CacheStatsWithoutPacked(stats.objects, stats.object_bytes, stats.events, stats.bytes)
        }
    }

    #[test]
    fn a_sweep_is_bounded_and_goes_on_where_it_ended() {
        let cache = filled();
        let sweep = |now| {
            cache.pack_unused(now, &mut 100_000, Sweeping::Changed);
            cache.stats().packed.objects
        };
        assert_eq!(sweep(100), 0);
        let mut before = 0;
        for round in 0.. {
            let packed = sweep(200 + round);
            assert!(packed > before && packed - before < 150_000, "{packed} after {before}");
            before = packed;
            if packed == cache.stats().object_bytes {
                break;
            }
        }
        assert!(before > 300_000);
    }

    #[test]
    fn many_objects_are_looked_at_less_often() {
        let cache = filled();
        let tiny = |i: usize| {
            let rendered = Rendered { json: b"{}".into(), ..Rendered::default() };
            CachedObject::new(
                format!("tiny/{i:06}").as_str().into(),
                (3 * COUNT + i) as i64,
                EventKind::Added,
                rendered,
            )
        };
        cache.apply((0..2 * LOOKS_PER_SECOND).map(|i| (EventKind::Added, tiny(i))));
        let sweep = |now| {
            cache.pack_unused(now, &mut SWEEP_BYTES.clone(), Sweeping::All);
            cache.stats().packed.objects
        };
        assert_eq!(sweep(100), 0);
        let (past, unused) = (100 + PAST_SECONDS, 100 + UNUSED_SECONDS);
        assert_eq!(sweep(past), 0, "the past is packed, and there is no rest");
        assert_eq!(sweep(unused - 1), 0, "nothing is packed");
        assert_eq!(sweep(unused), 0, "it rests");
        assert!(sweep(unused + 1) > 0);
    }

    #[test]
    fn a_few_are_packed_as_others_were_and_some_are_not_at_all() {
        let cache = Arc::new(ResourceCache::new(None));
        cache.apply((0..5).map(|i| object(i, i + 1, EventKind::Added)));
        swept(&cache, 100);
        assert_eq!(swept(&cache, 200), PackedStats::default(), "nothing can be learnt of so little");
        cache.apply((5..COUNT).map(|i| object(i, i + 1, EventKind::Added)));
        swept(&cache, 300);
        let all = swept(&cache, 400);
        assert_eq!(all.objects, cache.stats().object_bytes);
        cache.apply([object(3, COUNT + 1, EventKind::Modified)]);
        swept(&cache, 500);
        assert!(swept(&cache, 600).objects == cache.stats().object_bytes);
        // One that is read again and again is unpacked; only a look at all of them finds it.
        let popular = cache.get("n/pod-003").unwrap();
        (0..3).for_each(|_| drop(popular.json()));
        let is_packed = || popular.text().is_packed();
        assert!(!is_packed());
        swept(&cache, 700);
        assert!(!is_packed());
        for now in [800, 900] {
            cache.pack_unused(now, &mut SWEEP_BYTES.clone(), Sweeping::All);
        }
        assert!(is_packed());
    }
}
