//! A watch that is too slow for its queue goes back to history and misses nothing.

use super::*;
use crate::memory::MemoryStore;
use crate::model::Expect;
use crate::traits::Store;
use crate::watch::WatchRequest;

#[tokio::test]
async fn an_overflowing_watch_catches_up_from_history() {
    let store = MemoryStore::default();
    let after = store.current_revision().await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), after)).await.unwrap();
    store.put("first".into(), "x".into(), Expect::Any, None).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events.len(), 1);

    let total = WatchLimits::default().queued_events + 5_000;
    for i in 0..total {
        store.put(format!("k{}", i % 10).into(), format!("{i}").into(), Expect::Any, None).await.unwrap();
    }
    let mut expected = after.0 + 2;
    let mut seen = 0;
    while seen < total {
        let batch = watch.next().await.unwrap().unwrap();
        for event in &batch.events {
            assert_eq!(event.revision().0, expected);
            expected += 1;
            seen += 1;
        }
        assert!(batch.revision.0 >= expected - 1);
    }
    store.put("last".into(), "x".into(), Expect::Any, None).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events[0].key(), "last");
}

#[tokio::test]
async fn a_lagging_watch_behind_the_window_ends_with_compacted() {
    let store = MemoryStore::default();
    let after = store.current_revision().await.unwrap();
    for i in 0..10 {
        store.put("k".into(), format!("{i}").into(), Expect::Any, None).await.unwrap();
    }
    store.compact(Revision(8)).await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), after)).await.unwrap();
    let first = watch.next().await.unwrap();
    assert!(matches!(first, Err(WatchError::Compacted { compacted: Revision(8) })), "{first:?}");
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn dropped_watches_leave_the_hub() {
    let store = MemoryStore::default();
    let hub = WatchHub::new(Revision(1));
    struct Nothing;
    impl History for Nothing {
        fn read(&self, _: &WatchRequest, until: Revision) -> BoxFuture<'_, Result<HistoryChunk, WatchError>> {
            Box::pin(async move { Ok(HistoryChunk { events: Vec::new(), through: until }) })
        }
    }
    let mut watch = hub.watch(Arc::new(Nothing), WatchRequest::new(KeyRange::all(), Revision(1))).unwrap();
    watch.control().request_progress();
    assert!(watch.next().await.unwrap().unwrap().is_progress());
    assert_eq!(hub.lock().slots.len(), 1);
    drop(watch);
    assert_eq!(hub.lock().slots.len(), 0);
    store.close().await;
}
