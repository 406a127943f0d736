//! Watches: order, previous values, resuming, progress.

use super::{Bench, PATIENCE};
use crate::model::{KeyRange, Revision};
use crate::watch::{Previous, ProgressMode, WatchRequest};

pub async fn live_events(t: Bench) {
    let mut watch = t.watch(t.revision().await).await;
    t.put("a", "1").await;
    t.put("a", "2").await;
    t.put("b", "1").await;
    let deleted = t.delete("a").await;
    t.put("a", "3").await;
    let events = t.collect(&mut watch, 5).await;
    let lines: Vec<String> = events.iter().map(|event| t.line(event)).collect();
    assert_eq!(lines, ["+a=1", "~a=2 (1)", "+b=1", "-a (2)", "+a=3"]);
    assert_eq!(events[3].revision(), deleted);
    let prev = events[3].prev().unwrap();
    assert_eq!((prev.create_revision, prev.mod_revision), (events[0].revision(), events[1].revision()));
}

pub async fn from_the_past(t: Bench) {
    let start = t.revision().await;
    t.put("a", "1").await;
    let two = t.put("a", "2").await;
    t.delete("a").await;
    let four = t.put("a", "4").await;
    let all = ["+a=1", "~a=2 (1)", "-a (2)", "+a=4", "~a=5 (4)"];
    for (after, skip) in [(start, 0), (two, 2), (four, 4)] {
        let mut watch = t.watch(after).await;
        if after == start {
            t.put("a", "5").await;
        }
        assert_eq!(t.events(&mut watch, 5 - skip).await, all[skip..], "after {after}");
    }
}

/// More history than one chunk holds, with writes going on meanwhile.
pub async fn long_history(t: Bench) {
    const HALF: usize = 300;
    let start = t.revision().await;
    let filler = "x".repeat(8_000);
    for i in 0..HALF {
        t.put(&format!("k{}", i % 7), &format!("{i} {filler}")).await;
    }
    let mut watch = t.watch(start).await;
    let writer = tokio::spawn({
        let t = t.clone();
        async move {
            for i in HALF..2 * HALF {
                t.put(&format!("k{}", i % 7), &format!("{i} ")).await;
            }
        }
    });
    for (i, event) in t.collect(&mut watch, 2 * HALF).await.iter().enumerate() {
        let line = t.line(event);
        let (_, value) = line.split_once('=').unwrap();
        assert_eq!(value.split(' ').next().unwrap(), i.to_string());
        assert_eq!(event.prev().is_some(), i >= 7, "{i}");
    }
    writer.await.unwrap();
}

/// Events without previous values are otherwise the same, from history and live.
pub async fn without_previous(t: Bench) {
    let after = t.revision().await;
    let request = WatchRequest::new(t.everything(), after).previous(Previous::Omit);
    t.put("a", "1").await;
    t.put("a", "2").await;
    let mut watch = t.store.watch(request).await.unwrap();
    let mut events = t.collect(&mut watch, 2).await;
    t.put("a", "3").await;
    t.delete("a").await;
    events.extend(t.collect(&mut watch, 2).await);
    assert!(events.iter().all(|event| event.prev().is_none()), "{events:?}");
    let had: Vec<bool> = events.iter().map(|event| event.has_previous()).collect();
    assert_eq!(had, [false, true, true, true]);
}

pub async fn only_the_range(t: Bench) {
    let after = t.revision().await;
    let narrow = WatchRequest::new(KeyRange::prefix(t.key("in/")), after);
    let mut narrow = t.store.watch(narrow).await.unwrap();
    let one = WatchRequest::new(KeyRange::key(t.key("in/a")), after);
    let mut one = t.store.watch(one).await.unwrap();
    for name in ["in", "in/", "in/a", "in0", "out/a", "in/b", "in/a/b"] {
        t.put(name, "1").await;
    }
    t.put("in/a", "2").await;
    assert_eq!(t.events(&mut narrow, 5).await, ["+in/=1", "+in/a=1", "+in/b=1", "+in/a/b=1", "~in/a=2 (1)"]);
    assert_eq!(t.events(&mut one, 2).await, ["+in/a=1", "~in/a=2 (1)"]);
}

/// Progress tells of a revision that other keys made, so that a cache of quiet keys knows it is fresh.
pub async fn progress_on_request(t: Bench) {
    let after = t.revision().await;
    let quiet = WatchRequest::new(KeyRange::prefix(t.key("quiet/")), after).progress(ProgressMode::Periodic);
    let mut watch = t.store.watch(quiet).await.unwrap();
    let control = watch.control();
    let target = t.put("busy", "1").await;
    let asker = tokio::spawn(async move {
        loop {
            control.request_progress();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    let reached = async {
        loop {
            let batch = watch.next().await.unwrap().unwrap();
            assert!(batch.is_progress(), "{batch:?}");
            if batch.revision >= target {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.expect("progress in time");
    asker.abort();
}

pub async fn from_the_future(t: Bench) {
    let now = t.revision().await;
    let mut watch = t.watch(Revision(now.0 + 2)).await;
    for value in ["1", "2", "3", "4"] {
        t.put("a", value).await;
    }
    assert_eq!(t.events(&mut watch, 2).await, ["~a=3 (2)", "~a=4 (3)"]);
}

pub async fn many_watchers_see_the_same(t: Bench) {
    let after = t.revision().await;
    let watchers: Vec<_> = (0..20)
        .map(|_| {
            let t = t.clone();
            tokio::spawn(async move {
                let mut watch = t.watch(after).await;
                t.collect(&mut watch, 100).await
            })
        })
        .collect();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let t = t.clone();
            tokio::spawn(async move {
                for i in 0..25 {
                    t.put(&format!("{}", (writer + i) % 5), &format!("{writer}.{i}")).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut first = None;
    for watcher in watchers {
        let events = watcher.await.unwrap();
        match &first {
            None => first = Some(events),
            Some(first) => assert!(*first == events, "two watches saw different histories"),
        }
    }
}
