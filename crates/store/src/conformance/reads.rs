//! Ranges: order, bounds, limits, and reading the past.

use super::Bench;
use crate::error::StoreError;
use crate::model::{Counting, KeyRange, RangeRequest, Revision, Select};

fn names(t: &Bench, items: &[crate::model::KeyValue]) -> Vec<String> {
    items.iter().map(|kv| t.name(&kv.key)).collect()
}

pub async fn order_and_bounds(t: Bench) {
    for name in ["b/2", "a", "b/10", "c", "b", "b0", "b/"] {
        t.put(name, name).await;
    }
    let range = async |range: KeyRange| {
        let response = t.store.range(RangeRequest::new(range)).await.unwrap();
        names(&t, &response.items)
    };
    assert_eq!(range(t.everything()).await, ["a", "b", "b/", "b/10", "b/2", "b0", "c"]);
    assert_eq!(range(KeyRange::prefix(t.key("b/"))).await, ["b/", "b/10", "b/2"]);
    assert_eq!(range(KeyRange::key(t.key("b"))).await, ["b"]);
    assert_eq!(range(KeyRange { start: t.key("b/10"), end: Some(t.key("c")) }).await, ["b/10", "b/2", "b0"]);
    assert_eq!(range(KeyRange { start: t.key("c"), end: Some(t.key("a")) }).await, [""; 0]);
    assert_eq!(range(KeyRange::prefix(t.key("zz"))).await, [""; 0]);
    // Without an end: everything from there, other cases' keys too.
    let open = t.store.range(RangeRequest::new(KeyRange { start: t.key("c"), end: None })).await.unwrap();
    assert_eq!(open.items[0].key, t.key("c"));
}

pub async fn limits_and_pages(t: Bench) {
    for i in 0..10 {
        t.put(&format!("{i}"), "v").await;
    }
    let mut seen = Vec::new();
    let mut range = t.everything();
    loop {
        let page = t.store.range(RangeRequest::new(range.clone()).limit(4)).await.unwrap();
        assert_eq!(page.count, 10 - seen.len() as u64);
        assert_eq!(page.items.len(), 4.min(10 - seen.len()));
        seen.extend(names(&t, &page.items));
        assert_eq!(page.more, seen.len() < 10);
        let uncounted = RangeRequest::new(range.clone()).limit(4).counting(Counting::Skip);
        let uncounted = t.store.range(uncounted).await.unwrap();
        assert_eq!((&uncounted.items, uncounted.more), (&page.items, page.more));
        assert!(uncounted.count >= uncounted.items.len() as u64);
        if !page.more {
            break;
        }
        range = range.from([&page.items.last().unwrap().key[..], &[0]].concat());
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let exact = t.store.range(RangeRequest::new(t.everything()).limit(10)).await.unwrap();
    assert!(!exact.more, "a limit that is just enough leaves nothing out");
}

pub async fn keys_and_counts(t: Bench) {
    let revision = t.put("a", "value").await;
    t.put("b", "value").await;
    let keys = t.store.range(RangeRequest::new(t.everything()).select(Select::Keys)).await.unwrap();
    assert_eq!(names(&t, &keys.items), ["a", "b"]);
    assert!(keys.items.iter().all(|kv| kv.value.is_empty()));
    assert_eq!(keys.items[0].mod_revision, revision);
    let count = t.store.range(RangeRequest::new(t.everything()).select(Select::Count)).await.unwrap();
    assert_eq!((count.count, count.items.len()), (2, 0));
    assert!(count.revision > revision);
}

pub async fn past_revisions(t: Bench) {
    let start = t.revision().await;
    let one = t.put("a", "1").await;
    let two = t.put("b", "1").await;
    let three = t.put("a", "2").await;
    let four = t.delete("b").await;
    let five = t.put("b", "3").await;
    let expected: [(Revision, &[(&str, &str)]); 6] = [
        (start, &[]),
        (one, &[("a", "1")]),
        (two, &[("a", "1"), ("b", "1")]),
        (three, &[("a", "2"), ("b", "1")]),
        (four, &[("a", "2")]),
        (five, &[("a", "2"), ("b", "3")]),
    ];
    for (at, pairs) in expected {
        let listed = t.list(Some(at)).await;
        let listed: Vec<(&str, &str)> = listed.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        assert_eq!(listed, pairs, "at {at}");
        let got = t.store.get(t.key("a"), Some(at)).await.unwrap();
        let expected = pairs.iter().find(|(k, _)| *k == "a").map(|(_, v)| v.as_bytes().to_vec());
        assert_eq!(got.item.map(|kv| kv.value.to_vec()), expected);
        assert!(got.revision >= five, "the revision in the answer is the newest, not the one read");
    }
    let old = t.store.get(t.key("a"), Some(two)).await.unwrap().item.unwrap();
    assert_eq!((old.create_revision, old.mod_revision), (one, one));
}

/// A list in pages at one revision is not disturbed by writes between the pages.
pub async fn pages_of_one_revision(t: Bench) {
    for name in ["a", "b", "c", "d"] {
        t.put(name, "old").await;
    }
    let first = t.store.range(RangeRequest::new(t.everything()).limit(2)).await.unwrap();
    t.delete("c").await;
    t.put("d", "new").await;
    t.put("e", "new").await;
    let rest = t.everything().from([&first.items[1].key[..], &[0]].concat());
    let second = t.store.range(RangeRequest::new(rest).limit(2).at(first.revision)).await.unwrap();
    let pairs: Vec<_> = second.items.iter().map(|kv| t.pair(kv)).collect();
    assert_eq!(pairs, [("c".into(), "old".into()), ("d".into(), "old".into())]);
    assert!(!second.more);
}

pub async fn unknown_revisions(t: Bench) {
    let now = t.put("a", "1").await;
    let future = Revision(now.0 + 1_000_000);
    let get = t.store.get(t.key("a"), Some(future)).await;
    assert!(matches!(get, Err(StoreError::FutureRevision { .. })), "{get:?}");
    let range = t.store.range(RangeRequest::new(t.everything()).at(future)).await;
    assert!(matches!(range, Err(StoreError::FutureRevision { .. })), "{range:?}");
}
