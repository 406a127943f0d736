//! What only the in-memory engine promises: trimming by age and bytes, expiry by a clock.

use super::*;
use crate::model::{Expect, RangeRequest};
use kubelith_meta::time::TestClock;
use kubelith_meta::{Duration as Seconds, Time};

fn store(limits: HistoryLimits) -> (MemoryStore, Arc<TestClock>) {
    let clock = Arc::new(TestClock::new(Time::from_unix(1_000)));
    (MemoryStore::with_clock(limits, clock.clone()), clock)
}

async fn put(store: &MemoryStore, key: &'static str, value: impl Into<Bytes>) -> Revision {
    store.put(key.into(), value.into(), Expect::Any, None).await.unwrap()
}

#[tokio::test]
async fn history_is_bounded_in_time() {
    let (store, clock) = store(HistoryLimits { age: Duration::from_secs(60), bytes: u64::MAX });
    let first = put(&store, "a", "1").await;
    clock.advance(Seconds::from_secs(50));
    let second = put(&store, "a", "2").await;
    clock.advance(Seconds::from_secs(20));
    let third = put(&store, "a", "3").await;
    let old = store.get("a".into(), Some(Revision(first.0 - 1))).await;
    assert!(matches!(old, Err(StoreError::Compacted { compacted }) if compacted == first), "{old:?}");
    for (revision, value) in [(first, "1"), (second, "2"), (third, "3")] {
        let got = store.get("a".into(), Some(revision)).await.unwrap().item.unwrap();
        assert_eq!(got.value, value);
    }
}

#[tokio::test]
async fn history_is_bounded_in_bytes() {
    let limits = HistoryLimits { age: Duration::from_secs(3600), bytes: 10_000 };
    let (store, _) = store(limits);
    for _ in 0..100 {
        put(&store, "a", vec![0u8; 1000]).await;
    }
    let stats = store.stats().await.unwrap();
    assert!(stats.size <= 12_000, "{stats:?}");
    assert!(stats.compacted.0 > 80, "{stats:?}");
}

#[tokio::test]
async fn deleted_keys_leave_nothing_behind() {
    let (store, _) = store(HistoryLimits::default());
    put(&store, "a", "1").await;
    let deleted = store.delete("a".into(), Expect::Any).await.unwrap();
    store.compact(deleted.revision).await.unwrap();
    assert_eq!(store.stats().await.unwrap().size, 0);
}

#[tokio::test]
async fn keys_expire_unless_written_again() {
    let (store, clock) = store(HistoryLimits::default());
    let ttl = Some(Duration::from_secs(10));
    store.put("a".into(), "1".into(), Expect::Any, ttl).await.unwrap();
    store.put("b".into(), "1".into(), Expect::Any, ttl).await.unwrap();
    store.put("c".into(), "1".into(), Expect::Any, ttl).await.unwrap();
    clock.advance(Seconds::from_secs(5));
    store.put("b".into(), "2".into(), Expect::Any, ttl).await.unwrap();
    store.put("c".into(), "2".into(), Expect::Any, None).await.unwrap();
    let keys = async || {
        let response = store.range(RangeRequest::prefix("")).await.unwrap();
        response.items.iter().map(|kv| String::from_utf8_lossy(&kv.key).into_owned()).collect::<Vec<_>>()
    };
    store.tick();
    assert_eq!(keys().await, ["a", "b", "c"]);
    clock.advance(Seconds::from_secs(5));
    store.tick();
    assert_eq!(keys().await, ["b", "c"]);
    clock.advance(Seconds::from_secs(5));
    store.tick();
    assert_eq!(keys().await, ["c"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    crate::conformance::run(Arc::new(MemoryStore::default())).await;
}

/// Everything that is stored, with the revisions.
async fn all(store: &MemoryStore) -> Vec<(String, String, i64)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let found = store.range(RangeRequest::new(KeyRange::all())).await.unwrap().items;
    found.iter().map(|kv| (text(&kv.key), text(&kv.value), kv.mod_revision.0)).collect()
}

#[tokio::test]
async fn a_fork_has_everything_and_goes_its_own_way() {
    let (store, clock) = store(HistoryLimits::default());
    let first = put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    put(&store, "b", "1").await;
    let fork = store.snapshot().open(clock.clone());
    assert_eq!(all(&fork).await, all(&store).await);
    let old = fork.get("a".into(), Some(first)).await.unwrap().item.unwrap();
    assert_eq!(old.value, "1", "the past, too");
    let mut watch = fork.watch(WatchRequest::new(KeyRange::all(), first)).await.unwrap();
    let before = all(&store).await;
    put(&fork, "a", "3").await;
    fork.delete("b".into(), Expect::Any).await.unwrap();
    assert_eq!(all(&store).await, before);
    put(&store, "c", "1").await;
    assert!(!all(&fork).await.iter().any(|(key, ..)| key == "c"));
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(watch.next().await.unwrap().unwrap().events.iter().map(|event| event.revision().0 - first.0));
    }
    assert_eq!(seen, [1, 2, 3, 4], "a watch goes from the past over the fork");
    store.close().await;
    assert!(fork.health().await.is_ok(), "a fork outlives what it was forked from");
}

#[tokio::test]
async fn a_reset_is_made_of_changes() {
    let (store, clock) = store(HistoryLimits::default());
    for key in ["kept", "changed", "deleted"] {
        put(&store, key, "1").await;
    }
    store.put("expiring".into(), "1".into(), Expect::Any, Some(Duration::from_secs(100))).await.unwrap();
    let then = store.snapshot();
    let values = |all: Vec<(String, String, i64)>| all.into_iter().map(|(k, v, _)| (k, v)).collect::<Vec<_>>();
    let wanted = values(all(&store).await);
    put(&store, "changed", "2").await;
    put(&store, "added", "1").await;
    store.delete("deleted".into(), Expect::Any).await.unwrap();
    store.delete("expiring".into(), Expect::Any).await.unwrap();
    let now = store.current_revision().await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), now)).await.unwrap();
    let reached = store.reset(&then).unwrap();
    assert_eq!(reached.0, now.0 + 4, "what did not change is left alone");
    assert_eq!(values(all(&store).await), wanted);
    let batch = watch.next().await.unwrap().unwrap();
    assert_eq!((batch.events.len(), batch.revision), (4, reached), "all or nothing is seen");
    clock.advance(Seconds::from_secs(101));
    store.tick();
    assert!(!all(&store).await.iter().any(|(key, ..)| key == "expiring"), "it still has its time");
    assert_eq!(store.reset(&store.snapshot()).unwrap(), store.current_revision().await.unwrap());
}

#[tokio::test]
async fn the_state_of_another_engine_is_taken_and_put_back() {
    let (other, clock) = store(HistoryLimits::default());
    put(&other, "a", "1").await;
    put(&other, "b", "1").await;
    let then = MemorySnapshot::read(&other).await.unwrap();
    assert_eq!(all(&then.open(clock)).await, all(&other).await);
    put(&other, "a", "2").await;
    put(&other, "c", "1").await;
    other.delete("b".into(), Expect::Any).await.unwrap();
    then.write_to(&other).await.unwrap();
    let keys: Vec<String> = all(&other).await.into_iter().map(|(key, value, _)| format!("{key}={value}")).collect();
    assert_eq!(keys, ["a=1", "b=1"]);
}
