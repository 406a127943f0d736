//! The ends of history: compaction and closing. They run last, as they spoil the store for other cases.

use super::{Bench, PATIENCE};
use crate::error::StoreError;
use crate::model::{Expect, RangeRequest, Revision};
use crate::watch::WatchError;

pub async fn compaction(t: Bench) {
    let start = t.revision().await;
    t.put("gone", "x").await;
    t.delete("gone").await;
    t.put("a", "1").await;
    let second = t.put("a", "2").await;
    let third = t.put("a", "3").await;
    t.put("b", "1").await;

    let future = t.store.compact(Revision(third.0 + 1_000_000)).await;
    assert!(matches!(future, Err(StoreError::FutureRevision { .. })), "{future:?}");
    t.store.compact(second).await.unwrap();
    let again = t.store.compact(second).await;
    assert!(matches!(again, Err(StoreError::Compacted { .. })), "{again:?}");

    for old in [start, Revision(second.0 - 1)] {
        let get = t.store.get(t.key("a"), Some(old)).await;
        assert!(matches!(get, Err(StoreError::Compacted { .. })), "{get:?}");
        let range = t.store.range(RangeRequest::new(t.everything()).at(old)).await;
        assert!(matches!(range, Err(StoreError::Compacted { .. })), "{range:?}");
    }
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(t.list(Some(second)).await, [pair("a", "2")]);
    assert_eq!(t.list(Some(third)).await, [pair("a", "3")]);
    assert_eq!(t.list(None).await, [pair("a", "3"), pair("b", "1")]);

    let mut kept = t.watch(second).await;
    assert_eq!(t.events(&mut kept, 2).await, ["~a=3 (2)", "+b=1"]);
    match t.store.watch(crate::watch::WatchRequest::new(t.everything(), start)).await {
        Err(StoreError::Compacted { .. }) => {}
        Err(error) => panic!("{error}"),
        Ok(mut lost) => {
            let first = tokio::time::timeout(PATIENCE, lost.next()).await.expect("an answer in time");
            assert!(matches!(first, Some(Err(WatchError::Compacted { .. }))), "{first:?}");
            assert!(lost.next().await.is_none(), "nothing follows an error");
        }
    }
}

pub async fn closing(t: Bench) {
    let mut watch = t.watch(t.revision().await).await;
    t.put("a", "1").await;
    assert_eq!(t.events(&mut watch, 1).await, ["+a=1"]);
    t.store.close().await;
    let last = tokio::time::timeout(PATIENCE, watch.next()).await.expect("an end in time");
    assert!(matches!(last, Some(Err(WatchError::Closed)) | None), "{last:?}");
    let put = t.store.put(t.key("a"), "2".into(), Expect::Any, None).await;
    assert!(matches!(put, Err(StoreError::Closed)), "{put:?}");
    let get = t.store.get(t.key("a"), None).await;
    assert!(matches!(get, Err(StoreError::Closed)), "{get:?}");
    t.store.close().await;
}
