//! Random operations against a model that is too simple to be wrong.

use super::Bench;
use crate::error::StoreError;
use crate::model::{Expect, RangeRequest, Revision};
use std::collections::BTreeMap;

const OPERATIONS: usize = 400;
const KEYS: u64 = 12;

/// Name to (value, create revision, mod revision).
type Model = BTreeMap<String, (String, Revision, Revision)>;

/// Deterministic: a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

pub async fn random_operations(t: Bench) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let start = t.revision().await;
    let mut watch = t.watch(start).await;
    let mut model = Model::new();
    let mut past: Vec<(Revision, Model)> = vec![(start, model.clone())];
    for i in 0..OPERATIONS {
        let name = format!("k{:02}", random.below(KEYS));
        let current = model.get(&name).map(|(_, _, modified)| *modified);
        let expect = match random.below(4) {
            0 => Expect::Any,
            1 => Expect::Absent,
            2 => Expect::At(current.unwrap_or(Revision(7))),
            _ => Expect::At(Revision(current.map_or(1, |revision| revision.0 - 1))),
        };
        if random.below(3) == 0 {
            delete(&t, &mut model, name, expect).await;
        } else {
            put(&t, &mut model, name, expect, format!("v{i}")).await;
        }
        if let Some((revision, _)) = past.last()
            && *revision < t.revision().await
        {
            past.push((t.revision().await, model.clone()));
        }
        if random.below(8) == 0 {
            let (at, expected) = &past[random.below(past.len() as u64) as usize];
            check_range(&t, *at, expected, &mut random).await;
        }
    }
    check_watch(&t, &mut watch, &past).await;
}

async fn put(t: &Bench, model: &mut Model, name: String, expect: Expect, value: String) {
    let current = model.get(&name).map(|(_, _, modified)| *modified);
    let result = t.store.put(t.key(&name), value.clone().into(), expect, None).await;
    match result {
        Ok(revision) => {
            assert!(expect.holds(current), "{expect:?} should not hold for {name} at {current:?}");
            let created = model.get(&name).map_or(revision, |(_, created, _)| *created);
            model.insert(name, (value, created, revision));
        }
        Err(StoreError::Conflict { current: told }) => {
            assert!(!expect.holds(current), "{expect:?} should hold for {name} at {current:?}");
            assert_eq!(told.map(|kv| kv.mod_revision), current);
        }
        Err(error) => panic!("{error}"),
    }
}

async fn delete(t: &Bench, model: &mut Model, name: String, expect: Expect) {
    let current = model.get(&name).map(|(_, _, modified)| *modified);
    let holds = current.is_some() && expect.holds(current);
    match t.store.delete(t.key(&name), expect).await {
        Ok(deleted) => {
            assert!(holds, "{expect:?} should not hold for {name} at {current:?}");
            let (value, created, modified) = model.remove(&name).unwrap();
            assert_eq!(t.pair(&deleted.previous), (name, value));
            assert_eq!((deleted.previous.create_revision, deleted.previous.mod_revision), (created, modified));
        }
        Err(StoreError::Conflict { current: told }) => {
            assert!(!holds, "{expect:?} should hold for {name} at {current:?}");
            assert_eq!(told.map(|kv| kv.mod_revision), current);
        }
        Err(error) => panic!("{error}"),
    }
}

async fn check_range(t: &Bench, at: Revision, expected: &Model, random: &mut Random) {
    let from = format!("k{:02}", random.below(KEYS));
    let limit = random.below(KEYS) as usize;
    let request = RangeRequest::new(t.everything().from(t.key(&from))).at(at).limit(limit);
    let response = t.store.range(request).await.unwrap();
    let inside: Vec<_> = expected.range(from..).collect();
    assert_eq!(response.count, inside.len() as u64);
    let shown = if limit == 0 { inside.len() } else { limit.min(inside.len()) };
    assert_eq!(response.more, shown < inside.len());
    assert_eq!(response.items.len(), shown);
    for (kv, (name, (value, created, modified))) in response.items.iter().zip(inside) {
        assert_eq!(t.pair(kv), (name.clone(), value.clone()));
        assert_eq!((kv.create_revision, kv.mod_revision), (*created, *modified));
    }
}

/// Replaying the events gives every past state of the model.
async fn check_watch(t: &Bench, watch: &mut crate::watch::Watch, past: &[(Revision, Model)]) {
    let events = t.collect(watch, past.len() - 1).await;
    let mut replayed = BTreeMap::new();
    for (event, (revision, expected)) in events.iter().zip(&past[1..]) {
        assert_eq!(event.revision(), *revision);
        let name = t.name(event.key());
        assert_eq!(event.prev().map(|kv| t.pair(kv).1), replayed.get(&name).cloned());
        match event {
            crate::watch::Event::Put { kv, .. } => replayed.insert(name, t.pair(kv).1),
            crate::watch::Event::Delete { .. } => replayed.remove(&name),
        };
        let expected: BTreeMap<_, _> = expected.iter().map(|(k, (v, ..))| (k.clone(), v.clone())).collect();
        assert_eq!(replayed, expected, "after {revision}");
    }
}
