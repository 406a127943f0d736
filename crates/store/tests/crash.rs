//! Kills a writing process at random moments and checks that nothing it acknowledged is lost.
//!
//! The writer is this test program itself, started with `--ignored --exact writer`. It prints a line for each
//! write once the store has acknowledged it; the parent kills it (SIGKILL), opens the folder and compares.
//! Ten rounds by default; `KUBELITH_CRASH_ROUNDS=200` for the long run.

use kubelith_meta::time::unix_time;
use kubelith_store::{
    EmbeddedOptions, EmbeddedStore, Expect, HistoryLimits, KeyRange, RangeRequest, Revision, Store, WatchRequest,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "KUBELITH_CRASH_FOLDER";
const ROUNDS: &str = "KUBELITH_CRASH_ROUNDS";
const WRITERS: u64 = 8;
const KEYS_PER_WRITER: u64 = 40;

fn open(folder: &Path) -> EmbeddedStore {
    // A small window, so that sweeping is killed in the middle, too.
    let history = HistoryLimits { age: Duration::from_secs(300), bytes: 4 << 20 };
    let options = EmbeddedOptions { history, reserve_bytes: 0, ..EmbeddedOptions::new(folder) };
    EmbeddedStore::open(options).expect("a store that opens after a crash")
}

/// Values tell what they are, and their length follows from that: a cut one is noticed.
fn value(n: u64) -> Vec<u8> {
    let mut value = format!("{n:020}").into_bytes();
    value.resize(20 + (n * 977 % 9000) as usize, b'x');
    value
}

/// The writer: runs until it is killed.
#[test]
#[ignore = "started by the test below"]
fn writer() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder from the parent"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(&folder);
        let start = store.current_revision().await.unwrap().0 as u64;
        let writers = (0..WRITERS).map(|writer| tokio::spawn(write(store.clone(), writer, start)));
        futures::future::join_all(writers).await;
    });
}

async fn write(store: EmbeddedStore, writer: u64, start: u64) {
    for i in 0.. {
        // Never used before by this writer, in this process or an earlier one.
        let n = (start << 24) + i;
        let key = format!("/registry/w{writer}/{:03}", n * 7 % KEYS_PER_WRITER);
        let line = if n % 11 == 10 {
            match store.delete(key.clone().into(), Expect::Any).await {
                Ok(deleted) => format!("acked {} {key} -\n", deleted.revision),
                Err(kubelith_store::StoreError::Conflict { current: None }) => continue,
                Err(error) => panic!("{error}"),
            }
        } else {
            let revision = store.put(key.clone().into(), value(n).into(), Expect::Any, None).await.unwrap();
            format!("acked {revision} {key} {n}\n")
        };
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("a parent that reads");
    }
}

/// What was acknowledged last for each key: the revision, and the number written or `None` if deleted.
type Acked = BTreeMap<String, (Revision, Option<u64>)>;

/// Starts a writer, kills it a moment after so many acknowledgements and adds what it acknowledged.
fn round(folder: &Path, until: usize, pause: Duration, acked: &mut Acked) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "writer", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    let mut take = |line: String| {
        let mut words = line.split(' ');
        if words.next() != Some("acked") {
            return 0;
        }
        let [revision, key, n] = [(); 3].map(|()| words.next().unwrap_or_default().to_string());
        // The last line can be cut by the kill.
        let (Ok(revision), false) = (revision.parse(), n.is_empty()) else { return 0 };
        let n = if n == "-" { None } else { n.parse().ok() };
        let entry = acked.entry(key).or_insert((Revision::ZERO, None));
        if entry.0 < Revision(revision) {
            *entry = (Revision(revision), n);
        }
        1
    };
    while count < until {
        count += take(lines.next().expect("a writer that lives").unwrap());
    }
    // Somewhere between two commits, or in one.
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        count += take(line);
    }
    count
}

async fn verify(store: &EmbeddedStore, acked: &Acked) {
    let listed = store.range(RangeRequest::new(KeyRange::all())).await.unwrap();
    let mut found = BTreeMap::new();
    for kv in &listed.items {
        let n: u64 = String::from_utf8_lossy(&kv.value[..20]).parse().unwrap();
        assert!(kv.value == value(n), "the value of {:?} is damaged", kv.key);
        found.insert(String::from_utf8_lossy(&kv.key).into_owned(), (kv.mod_revision, n));
    }
    for (key, (revision, n)) in acked {
        assert!(*revision <= listed.revision, "revision {revision} of {key} is lost");
        match (found.get(key), n) {
            (Some((at, got)), Some(n)) => assert!(at > revision || (at == revision && got == n), "{key} is wrong"),
            // A write that was not acknowledged any more may have come later.
            (Some((at, _)), None) => assert!(at > revision, "{key} came back"),
            (None, Some(_)) => assert!(deleted_later(store, key, *revision).await, "{key} at {revision} is lost"),
            (None, None) => {}
        }
    }
    check_history(store).await;
}

async fn events_after(store: &EmbeddedStore, after: Revision) -> Vec<kubelith_store::Event> {
    let current = store.current_revision().await.unwrap();
    let mut watch = store.watch(WatchRequest::new(KeyRange::all(), after)).await.unwrap();
    let mut events = Vec::new();
    while events.len() < (current.0 - after.0) as usize {
        events.extend(watch.next().await.unwrap().expect("history that can be read").events);
    }
    events
}

async fn deleted_later(store: &EmbeddedStore, key: &str, revision: Revision) -> bool {
    let oldest = store.stats().await.unwrap().compacted;
    let events = events_after(store, revision.max(oldest)).await;
    events.iter().any(|event| event.key() == key && matches!(event, kubelith_store::Event::Delete { .. }))
}

/// Every revision above the compacted one has its event, in order.
async fn check_history(store: &EmbeddedStore) {
    let oldest = store.stats().await.unwrap().compacted.max(Revision(1));
    for (i, event) in events_after(store, oldest).await.iter().enumerate() {
        assert_eq!(event.revision().0, oldest.0 + 1 + i as i64, "history has a gap");
    }
}

#[test]
fn killed_writers_lose_nothing() {
    let rounds: u32 = std::env::var(ROUNDS).ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let seed = unix_time().subsec_nanos();
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut random = seed | 1;
    let mut acked = Acked::new();
    let mut total = 0;
    for i in 0..rounds {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let pause = Duration::from_micros(u64::from(random % 5_000));
        let until = (random >> 16) as usize % 200 + 1;
        total += round(folder.path(), until, pause, &mut acked);
        let report = kubelith_store::embedded::check(folder.path()).expect("a check");
        assert_eq!(report.problems, [""; 0], "round {i}");
        runtime.block_on(async {
            let store = open(folder.path());
            verify(&store, &acked).await;
            store.close().await;
        });
    }
    println!("{rounds} rounds, {total} acknowledged writes");
}
