//! What only the embedded engine promises: durability, locking, expiry and history across restarts.

mod faults;

use super::*;
use crate::model::KeyRange;
use crate::watch::Event;
use fault::FaultyDisk;
use kubelith_meta::time::TestClock;
use kubelith_meta::{Duration as Seconds, Time};
use redb::ReadableTable as _;
use tempfile::TempDir;

fn options(folder: &TempDir) -> EmbeddedOptions {
    EmbeddedOptions { reserve_bytes: 0, ..EmbeddedOptions::new(folder.path()) }
}

fn open(folder: &TempDir) -> EmbeddedStore {
    EmbeddedStore::open(options(folder)).unwrap()
}

/// A store on a disk in memory.
fn on(disk: &FaultyDisk) -> Result<EmbeddedStore> {
    let options = EmbeddedOptions { reserve_bytes: 1 << 20, ..EmbeddedOptions::new("") };
    EmbeddedStore::open_on(Arc::new(disk.clone()), options)
}

async fn put(store: &EmbeddedStore, key: &str, value: &str) -> Result<Revision> {
    let (key, value) = (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
    store.put(key, value, Expect::Any, None).await
}

async fn value(store: &EmbeddedStore, key: &'static str) -> Option<String> {
    let item = store.get(key.into(), None).await.unwrap().item;
    item.map(|kv| String::from_utf8_lossy(&kv.value).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    crate::conformance::run(Arc::new(on(&FaultyDisk::new()).unwrap())).await;
}

#[tokio::test]
async fn data_and_history_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let first = put(&store, "a", "1").await.unwrap();
    put(&store, "a", "2").await.unwrap();
    put(&store, "b", "1").await.unwrap();
    let last = store.delete("b".into(), Expect::Any).await.unwrap().revision;
    store.close().await;
    drop(store);

    let store = open(&folder);
    assert_eq!(store.current_revision().await.unwrap(), last);
    assert_eq!(value(&store, "a").await.as_deref(), Some("2"));
    assert_eq!(value(&store, "b").await, None);
    assert_eq!(store.stats().await.unwrap().keys, Some(1));
    let old = store.get("a".into(), Some(first)).await.unwrap().item.unwrap();
    assert_eq!(old.value, "1");

    // A watch goes on where it was before the restart.
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), first)).await.unwrap();
    put(&store, "c", "1").await.unwrap();
    let mut events = Vec::new();
    while events.len() < 4 {
        events.extend(watch.next().await.unwrap().unwrap().events);
    }
    let keys: Vec<&[u8]> = events.iter().map(|event| &event.key()[..]).collect();
    assert_eq!(keys, [b"a", b"b", b"b", b"c"]);
    assert_eq!(events[0].prev().unwrap().value, "1");
    assert!(matches!(&events[2], Event::Delete { revision, .. } if *revision == last));
}

#[tokio::test]
async fn a_folder_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let second = EmbeddedStore::open(options(&folder));
    let Err(StoreError::Locked(text)) = second.map(drop) else { panic!("expected a lock") };
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    drop(store);
    open(&folder);
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    set_format(&folder, Some(99));
    let opened = EmbeddedStore::open(options(&folder)).map(drop);
    assert!(matches!(opened, Err(StoreError::NewerFormat { found: 99, supported: 2 })), "{opened:?}");
}

/// What a file says of its format, and then says instead.
fn set_format(folder: &tempfile::TempDir, to: Option<u64>) -> u64 {
    let db = redb::Database::open(FolderDisk::data_file(folder.path())).unwrap();
    let txn = db.begin_write().unwrap();
    let mut meta = txn.open_table(schema::META).unwrap();
    let found = u64::from_le_bytes(meta.get(schema::FORMAT_KEY).unwrap().unwrap().value().try_into().unwrap());
    if let Some(to) = to {
        meta.insert(schema::FORMAT_KEY, &to.to_le_bytes()[..]).unwrap();
    }
    drop(meta);
    txn.commit().unwrap();
    found
}

#[tokio::test]
async fn an_older_format_is_opened_and_becomes_the_present_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.put("a".into(), "1".into(), Expect::Absent, None).await.unwrap();
    drop(store);
    set_format(&folder, Some(1));
    let store = open(&folder);
    assert_eq!(store.get("a".into(), None).await.unwrap().item.unwrap().value, "1");
    drop(store);
    assert_eq!(set_format(&folder, None), schema::FORMAT_VERSION);
}

#[tokio::test]
async fn keys_expire_after_a_restart_too() {
    let disk = FaultyDisk::new();
    let clock = Arc::new(TestClock::new(Time::from_unix(1_000)));
    let options = EmbeddedOptions { clock: clock.clone(), reserve_bytes: 0, ..EmbeddedOptions::new("") };
    let store = EmbeddedStore::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
    let ttl = Some(Duration::from_secs(60));
    for key in ["gone", "renewed", "kept"] {
        store.put(key.into(), "1".into(), Expect::Absent, ttl).await.unwrap();
    }
    store.put("kept".into(), "2".into(), Expect::Any, None).await.unwrap();
    clock.advance(Seconds::from_secs(30));
    store.put("renewed".into(), "2".into(), Expect::Any, ttl).await.unwrap();
    drop(store);
    clock.advance(Seconds::from_secs(30));
    let store = EmbeddedStore::open_on(Arc::new(disk), options).unwrap();
    store.tick().await.unwrap();
    assert_eq!(value(&store, "gone").await, None);
    assert_eq!(value(&store, "renewed").await.as_deref(), Some("2"));
    clock.advance(Seconds::from_secs(30));
    store.tick().await.unwrap();
    assert_eq!(value(&store, "renewed").await, None);
    assert_eq!(value(&store, "kept").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn history_ages_and_is_swept() {
    let clock = Arc::new(TestClock::new(Time::from_unix(1_000)));
    let history = HistoryLimits { age: Duration::from_secs(60), bytes: u64::MAX };
    let options = EmbeddedOptions { clock: clock.clone(), history, reserve_bytes: 0, ..EmbeddedOptions::new("") };
    let store = EmbeddedStore::open_on(Arc::new(FaultyDisk::new()), options).unwrap();
    for i in 0..500 {
        put(&store, &format!("k{}", i % 5), "x").await.unwrap();
    }
    let old = store.current_revision().await.unwrap();
    store.delete("k0".into(), Expect::Any).await.unwrap();
    clock.advance(Seconds::from_secs(50));
    let young = put(&store, "k1", "young").await.unwrap();
    clock.advance(Seconds::from_secs(20));
    for _ in 0..4 {
        store.tick().await.unwrap();
    }
    let read = store.get("k1".into(), Some(Revision(old.0 - 1))).await;
    assert!(matches!(read, Err(StoreError::Compacted { .. })), "{read:?}");
    assert_eq!(store.get("k1".into(), Some(young)).await.unwrap().item.unwrap().value, "young");
    clock.advance(Seconds::from_secs(60));
    for _ in 0..4 {
        store.tick().await.unwrap();
    }
    let snapshot = store.handle.shared.current().unwrap();
    use redb::ReadableTableMetadata;
    assert_eq!(snapshot.records.len().unwrap(), 4, "one record for each live key");
    assert_eq!(snapshot.versions.len().unwrap(), 4);
    assert_eq!(snapshot.state.keys, 4);
}

#[tokio::test]
async fn history_is_bounded_in_bytes() {
    let history = HistoryLimits { age: Duration::from_secs(3600), bytes: 100_000 };
    let options = EmbeddedOptions { history, reserve_bytes: 0, ..EmbeddedOptions::new("") };
    let store = EmbeddedStore::open_on(Arc::new(FaultyDisk::new()), options).unwrap();
    let value = "x".repeat(1_000);
    for _ in 0..500 {
        put(&store, "k", &value).await.unwrap();
    }
    let stats = store.stats().await.unwrap();
    let kept = stats.revision.0 - stats.compacted.0;
    assert!((50..=120).contains(&kept), "{kept} revisions are kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_writes_share_one_sync() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    put(&store, "first", "1").await.unwrap();
    let before = disk.syncs();
    disk.hold_syncs();
    let blocked = tokio::spawn({
        let store = store.clone();
        async move { put(&store, "blocked", "1").await }
    });
    while disk.holding() == 0 {
        tokio::task::yield_now().await;
    }
    let writers: Vec<_> = (0..100)
        .map(|i| {
            let store = store.clone();
            tokio::spawn(async move { put(&store, &format!("k{i}"), "1").await })
        })
        .collect();
    while store.handle.shared.queue.len() < 100 {
        tokio::task::yield_now().await;
    }
    assert!(!blocked.is_finished(), "acknowledged before it was durable");
    disk.release_syncs();
    blocked.await.unwrap().unwrap();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(disk.syncs() - before, 2);
}

#[tokio::test]
async fn a_new_store_has_its_name_with_its_first_sync() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    assert_eq!(disk.syncs(), 0, "making a store waits for no disk");
    let disk = disk.kill();
    drop(store);
    assert!(disk.is_empty(), "nothing is left of a store that nobody wrote to");
    put(&on(&disk).unwrap(), "a", "1").await.unwrap();
    assert_eq!(value(&on(&disk.kill()).unwrap(), "a").await.as_deref(), Some("1"));

    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("store.redb");
    // Of a start that was cut off.
    std::fs::write(folder.path().join("store.redb.unfinished"), "half").unwrap();
    let store = open(&folder);
    assert!(!named.exists());
    put(&store, "a", "1").await.unwrap();
    assert!(named.exists() && !folder.path().join("store.redb.unfinished").exists());
    store.close().await;
    drop(store);
    assert_eq!(value(&open(&folder), "a").await.as_deref(), Some("1"));
}

fn early(disk: &FaultyDisk) -> Result<EmbeddedStore> {
    EmbeddedStore::open_early_on(
        Arc::new(disk.clone()),
        EmbeddedOptions { reserve_bytes: 0, ..EmbeddedOptions::new("") },
    )
}

#[tokio::test]
async fn what_is_still_being_checked_can_be_read_and_is_written_to_later() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    let first = put(&store, "a", "1").await.unwrap();
    let last = put(&store, "b", "2").await.unwrap();
    store.close().await;
    drop(store);

    let store = early(&disk).unwrap();
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    // Asked for while it is checked, it is written behind that.
    let written = put(&store, "c", "3").await.unwrap();
    assert_eq!(written, last.next());
    store.settled().await.unwrap();
    assert_eq!(store.get("a".into(), Some(first)).await.unwrap().item.unwrap().value, "1");
    // It was not closed in order: opening it checks it.
    let left = disk.kill();
    let store = early(&left).unwrap();
    assert_eq!(value(&store, "c").await.as_deref(), Some("3"));
    store.settled().await.unwrap();
    assert_eq!(put(&store, "d", "4").await.unwrap(), written.next());
}

#[tokio::test]
async fn the_newest_part_of_the_past_is_found_from_its_end() {
    let store = on(&FaultyDisk::new()).unwrap();
    let mut revisions = Vec::new();
    for i in 0..20 {
        revisions.push(put(&store, &format!("/a/{i:02}"), &"x".repeat(95)).await.unwrap());
        put(&store, &format!("/b/{i:02}"), &"x".repeat(500)).await.unwrap();
    }
    let recent = |bytes| store.recent(KeyRange::prefix("/a/"), bytes);
    assert_eq!(recent(300).await.unwrap(), Revision(revisions[17].0 - 1), "three of 100 bytes");
    assert_eq!(recent(301).await.unwrap(), Revision(revisions[16].0 - 1));
    assert_eq!(recent(1 << 20).await.unwrap(), store.stats().await.unwrap().compacted, "all that is kept");
}
