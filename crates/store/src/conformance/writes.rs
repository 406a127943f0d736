//! Guards, revisions and expiry of writes.

use super::Bench;
use crate::error::StoreError;
use crate::model::{Expect, KeyValue, Revision};
use crate::watch::Event;
use bytes::Bytes;
use std::collections::HashSet;
use std::time::Duration;

/// The `current` of a conflict; anything else fails the test.
fn conflict<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Option<KeyValue> {
    match result {
        Err(StoreError::Conflict { current }) => current.map(|kv| *kv),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

pub async fn create_only_when_absent(t: Bench) {
    assert_eq!(t.get("a").await, None);
    let before = t.revision().await;
    let revision = t.store.put(t.key("a"), "1".into(), Expect::Absent, None).await.unwrap();
    assert!(revision > before);
    let kv = t.get("a").await.unwrap();
    assert_eq!((&kv.key, &kv.value[..]), (&t.key("a"), &b"1"[..]));
    assert_eq!((kv.create_revision, kv.mod_revision), (revision, revision));
    assert!(!kv.stale);

    let current = conflict(t.store.put(t.key("a"), "2".into(), Expect::Absent, None).await);
    assert_eq!(current, Some(kv.clone()));
    assert_eq!(t.get("a").await, Some(kv), "a refused write changes nothing");
    assert_eq!(t.revision().await, revision, "a refused write makes no revision");
}

pub async fn update_only_at_the_expected_revision(t: Bench) {
    assert_eq!(conflict(t.store.put(t.key("a"), "1".into(), Expect::At(Revision(5)), None).await), None);
    let first = t.put("a", "1").await;
    let second = t.store.put(t.key("a"), "2".into(), Expect::At(first), None).await.unwrap();
    assert!(second > first);
    let kv = t.get("a").await.unwrap();
    assert_eq!((&kv.value[..], kv.create_revision, kv.mod_revision), (&b"2"[..], first, second));
    assert_eq!(conflict(t.store.put(t.key("a"), "3".into(), Expect::At(first), None).await), Some(kv));
}

pub async fn revision_zero_is_absence(t: Bench) {
    let zero = Expect::At(Revision::ZERO);
    assert_eq!(conflict(t.store.delete(t.key("a"), zero).await), None);
    t.store.put(t.key("a"), "1".into(), zero, None).await.unwrap();
    let current = t.get("a").await;
    assert_eq!(conflict(t.store.put(t.key("a"), "2".into(), zero, None).await), current);
    assert_eq!(conflict(t.store.delete(t.key("a"), zero).await), current);
}

pub async fn unguarded_put(t: Bench) {
    let first = t.put("a", "1").await;
    let second = t.put("a", "1").await;
    assert!(second > first, "the same value again is a write, too");
    assert_eq!(t.get("a").await.unwrap().mod_revision, second);
    assert_eq!(t.revision().await, second);
}

pub async fn delete_guards(t: Bench) {
    for expect in [Expect::Any, Expect::At(Revision(3)), Expect::Absent] {
        assert_eq!(conflict(t.store.delete(t.key("a"), expect).await), None, "{expect:?} on an absent key");
    }
    let first = t.put("a", "1").await;
    let second = t.put("a", "2").await;
    let current = t.get("a").await;
    assert_eq!(conflict(t.store.delete(t.key("a"), Expect::At(first)).await), current);
    assert_eq!(conflict(t.store.delete(t.key("a"), Expect::Absent).await), current);
    let deleted = t.store.delete(t.key("a"), Expect::At(second)).await.unwrap();
    assert!(deleted.revision > second);
    assert_eq!(Some(deleted.previous), current);
    assert_eq!(t.get("a").await, None);
    assert_eq!(t.revision().await, deleted.revision);
}

pub async fn deleting_and_making_again(t: Bench) {
    let first = t.put("a", "1").await;
    t.delete("a").await;
    assert_eq!(conflict(t.store.put(t.key("a"), "x".into(), Expect::At(first), None).await), None);
    let again = t.store.put(t.key("a"), "2".into(), Expect::Absent, None).await.unwrap();
    let kv = t.get("a").await.unwrap();
    assert_eq!((kv.create_revision, kv.mod_revision), (again, again));
}

pub async fn odd_bytes(t: Bench) {
    let names: [&[u8]; 4] = [b"\0", b"a\0b", b"\xff\xff", "ü".as_bytes()];
    for name in names {
        let key = Bytes::from([t.prefix.as_bytes(), name].concat());
        for value in [&b""[..], &b"\0\xff\0"[..]] {
            t.store.put(key.clone(), Bytes::from_static(value), Expect::Any, None).await.unwrap();
            let kv = t.store.get(key.clone(), None).await.unwrap().item.unwrap();
            assert_eq!((&kv.key, &kv.value[..]), (&key, value));
        }
    }
}

pub async fn large_values(t: Bench) {
    for size in [4095, 4096, 70_000, 1 << 20] {
        let value: Bytes = (0..size).map(|i| (i * 31 % 251) as u8).collect::<Vec<_>>().into();
        t.store.put(t.key("a"), value.clone(), Expect::Any, None).await.unwrap();
        assert!(t.get("a").await.unwrap().value == value, "a value of {size} bytes comes back");
    }
}

/// Many writers add one to the same number. Nothing may get lost and no revision may be given twice.
pub async fn concurrent_increments(t: Bench) {
    const WRITERS: usize = 8;
    const EACH: usize = 20;
    t.put("n", "0").await;
    let writers = (0..WRITERS).map(|_| {
        let t = t.clone();
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            let mut current = t.get("n").await.unwrap();
            while revisions.len() < EACH {
                let n: usize = std::str::from_utf8(&current.value).unwrap().parse().unwrap();
                let value = Bytes::from((n + 1).to_string());
                let put = t.store.put(t.key("n"), value, Expect::At(current.mod_revision), None);
                match put.await {
                    Ok(revision) => {
                        revisions.push(revision);
                        current = t.get("n").await.unwrap();
                    }
                    Err(StoreError::Conflict { current: Some(now) }) => current = *now,
                    Err(error) => panic!("{error}"),
                }
            }
            revisions
        })
    });
    let mut all = HashSet::new();
    for writer in writers.collect::<Vec<_>>() {
        for revision in writer.await.unwrap() {
            assert!(all.insert(revision), "{revision} was given twice");
        }
    }
    assert_eq!(t.list(None).await, [("n".to_string(), (WRITERS * EACH).to_string())]);
}

pub async fn expiry(t: Bench) {
    let ttl = Some(Duration::from_secs(1));
    let after = t.revision().await;
    let mut watch = t.watch(after).await;
    let put = t.store.put(t.key("short"), "1".into(), Expect::Absent, ttl).await.unwrap();
    t.store.put(t.key("kept"), "1".into(), Expect::Absent, ttl).await.unwrap();
    t.store.put(t.key("kept"), "2".into(), Expect::Any, None).await.unwrap();
    let long = Some(Duration::from_secs(3600));
    t.store.put(t.key("long"), "1".into(), Expect::Absent, long).await.unwrap();

    assert_eq!(t.collect(&mut watch, 4).await[0].revision(), put);
    let expired = t.collect(&mut watch, 1).await;
    match &expired[0] {
        Event::Delete { key, prev, .. } => {
            assert_eq!(*key, t.key("short"));
            assert_eq!(prev.as_ref().map(|kv| &kv.value[..]), Some(&b"1"[..]));
        }
        other => panic!("expected the deletion of the expired key, got {other:?}"),
    }
    let names: Vec<String> = t.list(None).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["kept", "long"]);
}
