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
