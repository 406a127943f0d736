//! Crashes, failing syncs, full disks, damaged files: nothing acknowledged is lost, and damage is told.

use super::*;
use std::collections::BTreeMap;

/// Deterministic: a failing seed repeats.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Writes from several tasks until the disk dies; answers what was acknowledged, by key.
async fn load(store: &EmbeddedStore, round: u64) -> BTreeMap<String, (u64, Revision)> {
    const WRITERS: u64 = 4;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut acked = BTreeMap::new();
                for n in 1u64.. {
                    let key = format!("w{writer}/{}", n % 13);
                    let value = format!("{round:04}{n:08}{}", "x".repeat((n * 977 % 9000) as usize));
                    match put(&store, &key, &value).await {
                        Ok(revision) => acked.insert(key, (round << 32 | n, revision)),
                        Err(_) => break,
                    };
                }
                acked
            })
        })
        .collect();
    let mut acked = BTreeMap::new();
    for writer in writers {
        acked.extend(writer.await.unwrap());
    }
    acked
}

/// Every acknowledged write (or a later one of the same key) is there, and history has no gap.
async fn verify(store: &EmbeddedStore, acked: &BTreeMap<String, (u64, Revision)>) {
    let listed = store.range(RangeRequest::new(KeyRange::all())).await.unwrap();
    let found: BTreeMap<String, (u64, Revision)> = listed
        .items
        .iter()
        .map(|kv| {
            let text = String::from_utf8_lossy(&kv.value);
            let (round, n): (u64, u64) = (text[..4].parse().unwrap(), text[4..12].parse().unwrap());
            assert_eq!(kv.value.len() as u64, 12 + n * 977 % 9000, "a value was cut");
            (String::from_utf8_lossy(&kv.key).into_owned(), (round << 32 | n, kv.mod_revision))
        })
        .collect();
    for (key, (n, revision)) in acked {
        let now = found.get(key).unwrap_or_else(|| panic!("{key} at {revision} is lost"));
        assert!(now.0 >= *n && now.1 >= *revision, "{key} went back from {revision} to {}", now.1);
    }
    let compacted = store.stats().await.unwrap().compacted;
    let current = store.current_revision().await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), compacted.max(Revision(1)))).await.unwrap();
    let mut next = compacted.max(Revision(1)).next();
    while next <= current {
        for event in watch.next().await.unwrap().unwrap().events {
            assert_eq!(event.revision(), next);
            next = next.next();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_lose_nothing_acknowledged() {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let mut disk = FaultyDisk::new();
        let mut acked = BTreeMap::new();
        for round in 0..4 {
            let store = on(&disk).unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
            verify(&store, &acked).await;
            let limit = 5 + random.next() % 60;
            let before = disk.syncs();
            let plug = tokio::task::spawn_blocking({
                let disk = disk.clone();
                move || {
                    while disk.syncs() < before + limit {
                        std::thread::yield_now();
                    }
                    match random.next() % 3 {
                        0 => (disk.kill(), random),
                        _ => (disk.crash(&mut || random.next()), random),
                    }
                }
            });
            acked.extend(load(&store, round).await);
            (disk, random) = plug.await.unwrap();
        }
        verify(&on(&disk).unwrap(), &acked).await;
    }
}

#[tokio::test]
async fn a_failed_sync_poisons_the_store() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    put(&store, "a", "1").await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), Revision(2))).await.unwrap();
    disk.fail_syncs();
    let failed = put(&store, "a", "2").await;
    assert!(matches!(failed, Err(StoreError::Poisoned(_))), "{failed:?}");
    let after = put(&store, "b", "1").await;
    assert!(matches!(after, Err(StoreError::Poisoned(_))), "{after:?}");
    let read = store.get("a".into(), None).await;
    assert!(matches!(read, Err(StoreError::Poisoned(_))), "{read:?}");
    assert!(store.health().await.is_err());
    let ended = watch.next().await.unwrap();
    assert!(matches!(ended, Err(WatchError::Store(StoreError::Poisoned(_)))), "{ended:?}");
    let reopened = on(&disk.crash(&mut || 0)).unwrap();
    assert_eq!(value(&reopened, "a").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_full_disk_refuses_puts_and_recovers() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    put(&store, "a", "1").await.unwrap();
    put(&store, "b", "1").await.unwrap();
    disk.set_capacity(Some(disk.used() + (1 << 20) - 4096));
    let refused = put(&store, "a", "2").await;
    assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    store.delete("b".into(), Expect::Any).await.expect("a deletion frees space");
    disk.set_capacity(Some(disk.used()));
    let refused = store.delete("a".into(), Expect::Any).await;
    assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
    assert!(store.health().await.is_ok());
    disk.set_capacity(None);
    put(&store, "a", "3").await.unwrap();
    assert_eq!(value(&store, "a").await.as_deref(), Some("3"));
}

/// The second put of a batch is refused for what the first has written, which then is not written: nobody may hear of it.
#[tokio::test]
async fn a_batch_that_is_not_written_tells_nothing_of_itself() {
    let disk = FaultyDisk::new();
    let options = EmbeddedOptions { reserve_bytes: 0, ..EmbeddedOptions::new("") };
    let (store, writer) =
        EmbeddedStore::assemble(Arc::new(disk.clone()), options, Offload::InPlace, WatchLimits::default()).unwrap();
    disk.set_silent_capacity(Some(disk.used()));
    // Small enough to fail only when it is committed.
    let large = Bytes::from("x".repeat(16 << 10));
    let mut first = store.put("a".into(), large, Expect::Absent, None);
    let mut second = store.put("a".into(), "2".into(), Expect::Absent, None);
    assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
    writer.step(2).expect("a full disk is no end");
    for refused in [first.await, second.await] {
        assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
    }
}

/// The file is cut after the commit is on the disk, which then is told as one that failed.
#[tokio::test(start_paused = true)]
async fn a_write_whose_commit_failed_although_it_is_on_the_disk_is_answered_and_heard_of() {
    let disk = FaultyDisk::new();
    let history = HistoryLimits { age: Duration::ZERO, bytes: 0 };
    let options = EmbeddedOptions { reserve_bytes: 0, history, ..EmbeddedOptions::new("") };
    let (store, mut writer) =
        EmbeddedStore::assemble(Arc::new(disk.clone()), options, Offload::InPlace, WatchLimits::default()).unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), Revision(1))).await.unwrap();
    let large = Bytes::from("x".repeat(4 << 20));
    disk.fail_cut();
    for value in std::iter::once(large).chain((0..100).map(|i| Bytes::from(i.to_string()))) {
        let mut put = store.put("a".into(), value, Expect::Any, None);
        assert!(futures::poll!(&mut put).is_pending());
        writer = writer.step(1).expect("want of space is no end");
        let revision = put.await.expect("it is on the disk");
        let batch = tokio::time::timeout(Duration::from_secs(1), watch.next()).await.expect("nothing is heard of it");
        assert_eq!(batch.unwrap().unwrap().events[0].revision(), revision);
        if !disk.fails_cut() {
            return;
        }
    }
    panic!("the file was never cut");
}

/// What the kernel still shows of a file whose sync failed may never come to the disk, so that nothing can be built on it.
#[tokio::test]
async fn a_sync_that_fails_while_the_file_is_opened_again_poisons_the_store() {
    let disk = FaultyDisk::new();
    let options = EmbeddedOptions { reserve_bytes: 0, ..EmbeddedOptions::new("") };
    let (store, writer) =
        EmbeddedStore::assemble(Arc::new(disk.clone()), options, Offload::InPlace, WatchLimits::default()).unwrap();
    disk.set_silent_capacity(Some(disk.used()));
    disk.fail_syncs();
    let mut put = store.put("a".into(), Bytes::from("x".repeat(16 << 10)), Expect::Any, None);
    assert!(futures::poll!(&mut put).is_pending());
    assert!(writer.step(1).is_none());
    let health = store.health().await;
    assert!(matches!(health, Err(StoreError::Poisoned(_))), "{health:?}");
    assert!(put.await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_up_unannounced_is_survived() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    put(&store, "a", "1").await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), Revision(2))).await.unwrap();
    disk.set_silent_capacity(Some(disk.used()));
    let large = "x".repeat(1 << 20);
    for _ in 0..3 {
        let refused = put(&store, "a", &large).await;
        assert!(matches!(refused, Err(StoreError::NoSpace(_))), "{refused:?}");
        assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    }
    disk.set_silent_capacity(None);
    let revision = put(&store, "a", &large).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events[0].revision(), revision);
    drop(store);
    assert_eq!(value(&on(&disk).unwrap(), "a").await.map(|value| value.len()), Some(1 << 20));
}

type Contents = Vec<(Bytes, Bytes, Revision)>;

/// A disk with a store that was closed in order, and what it holds.
async fn filled() -> (FaultyDisk, Contents) {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    for i in 0..60 {
        put(&store, &format!("/registry/things/{i:03}"), &"v".repeat(i * 40)).await.unwrap();
    }
    let contents = contents(&store).await.unwrap();
    store.close().await;
    (disk, contents)
}

/// A copy with one bit turned.
fn with_a_flip(original: &FaultyDisk, seed: u64) -> FaultyDisk {
    let disk = original.copy();
    disk.flip(Random::new(seed).next() as usize % (disk.len() * 8));
    disk
}

/// What a store holds, or the error that reading it gave.
async fn contents(store: &EmbeddedStore) -> Result<Contents> {
    let listed = store.range(RangeRequest::new(KeyRange::all())).await?;
    Ok(listed.items.into_iter().map(|kv| (kv.key, kv.value, kv.mod_revision)).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_told_and_never_silent() {
    let (original, expected) = filled().await;
    let mut told = 0;
    for seed in 1..=150 {
        let disk = with_a_flip(&original, seed);
        match on(&disk) {
            Ok(store) => match contents(&store).await {
                Ok(found) => assert!(found == expected, "seed {seed}: damage changed the data silently"),
                Err(StoreError::Corrupt(_)) => told += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            },
            Err(StoreError::Corrupt(_) | StoreError::Invalid(_)) => told += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(told > 0, "no flip hit anything that matters");
}

/// What is read before the check has ended counts only if the check finds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_told_of_what_was_read_before_it_was_checked() {
    let (original, expected) = filled().await;
    let (mut told, mut late) = (0, 0);
    for seed in 1..=150 {
        let disk = with_a_flip(&original, seed);
        let store = match early(&disk) {
            Ok(store) => store,
            Err(StoreError::Corrupt(_) | StoreError::Invalid(_)) => {
                told += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let found = contents(&store).await;
        match store.settled().await {
            Ok(()) => match found {
                Ok(found) => assert!(found == expected, "seed {seed}: damage changed the data silently"),
                Err(StoreError::Corrupt(_)) => told += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            },
            Err(StoreError::Corrupt(_) | StoreError::Invalid(_)) => {
                late += 1;
                let refused = put(&store, "a", "1").await;
                assert!(matches!(refused, Err(StoreError::Corrupt(_) | StoreError::Invalid(_))), "{refused:?}");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(told + late > 0 && late > 0, "no flip hit anything that the check alone finds: {told}, {late}");
}

#[tokio::test]
async fn a_cut_or_foreign_file_is_told() {
    let original = FaultyDisk::new();
    let store = on(&original).unwrap();
    put(&store, "a", &"x".repeat(100_000)).await.unwrap();
    store.close().await;
    for len in [0, 100, 4096, original.len() / 2] {
        let disk = original.copy();
        disk.truncate(len);
        let opened = on(&disk).map(drop);
        assert!(matches!(opened, Err(StoreError::Corrupt(_))), "cut to {len}: {opened:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(FolderDisk::data_file(folder.path()), vec![b'x'; 10_000]).unwrap();
    let opened = EmbeddedStore::open(options(&folder)).map(drop);
    assert!(matches!(opened, Err(StoreError::Corrupt(_))), "{opened:?}");
}

#[tokio::test]
async fn an_older_file_in_place_of_a_newer_one_is_told() {
    let disk = FaultyDisk::new();
    let store = on(&disk).unwrap();
    put(&store, "a", "1").await.unwrap();
    let older = disk.copy();
    older.note_acked(disk.acked().unwrap() + 1).unwrap();
    let opened = on(&older).map(drop);
    assert!(matches!(opened, Err(StoreError::Corrupt(_))), "{opened:?}");
}
