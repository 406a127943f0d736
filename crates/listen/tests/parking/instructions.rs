//! How many instructions it takes to deliver an event that comes alone while the connection is aside: from a body that has
//! something to the frame that a client reads, with what encryption takes at both ends.
//!
//! As in `crates/kube/tests/instructions.rs`, the test runs itself once more under callgrind and compares with
//! `instructions.txt`; `BLESS=1 cargo test -p kubelith-listen --test parking instructions` writes that anew. Where there is no
//! valgrind, nothing is compared.

use super::watches::{Feeds, LONG_WATCH, get};
use super::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

/// Counts differ from run to run, by when timers are looked at.
const TOLERANCE_PERCENT: u64 = 5;
const TRIES: usize = 3;
/// Events that are counted.
const EVENTS: u64 = 64;
/// As an event of a small object.
const SIZE: usize = 1000;

/// A client with a watch that has seen an event.
struct Watching {
    runtime: Runtime,
    feeds: Arc<Feeds>,
    client: Client,
    server: TestServer,
}

impl Watching {
    fn new() -> Watching {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (feeds, client, server) = runtime.block_on(async {
            let (feeds, server) = Feeds::start_at(Place::default()).await;
            let mut client = Client::new(&server).await;
            client.until(frames::SETTINGS).await;
            client.ask(1, &get(LONG_WATCH)).await;
            client.until(frames::HEADERS).await;
            client.until_parked(&server).await;
            (feeds, client, server)
        });
        let mut watching = Watching { runtime, feeds, client, server };
        watching.deliver(1);
        watching
    }

    /// Each comes when the one before was read.
    fn deliver(&mut self, events: u64) {
        let (feed, client) = (self.feeds.feed(0), &mut self.client);
        self.runtime.block_on(async {
            for _ in 0..events {
                feed.send(Bytes::from_static(&[b'x'; SIZE])).await.unwrap();
                assert_eq!(client.until(frames::DATA).await.0.length, SIZE);
            }
        });
    }
}

#[inline(never)]
fn counted_aside(watching: &mut Watching) {
    watching.deliver(EVENTS);
}

/// What is counted: run under callgrind by the test below.
#[test]
#[ignore = "a part of the test below"]
fn counted() {
    let mut aside = Watching::new();
    counted_aside(&mut aside);
    assert_eq!(aside.server.stats.resumed.load(Ordering::Relaxed), 0);
}

/// Instructions of a delivery, with all that was done for it.
fn read(profile: &str) -> Option<u64> {
    let mut lines = profile.lines();
    // A name is written out where its number comes first.
    let (mut number, mut is_called) = (None, false);
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            if name.contains("counted_aside") {
                number = Some(id);
            }
            is_called = line.starts_with('c') && number == Some(id);
        } else if line.starts_with("calls=") && is_called {
            let cost = lines.next()?.split(' ').nth(1)?;
            return Some(cost.parse::<u64>().ok()? / EVENTS);
        }
    }
    None
}

/// `None` where there is no valgrind.
fn count() -> Option<u64> {
    let out = std::env::temp_dir().join(format!("kubelith-delivery-{}", std::process::id()));
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "instructions::counted", "--ignored", "--test-threads=1"])
        .stdout(Stdio::null())
        .status();
    let status = match child {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        status => status.unwrap(),
    };
    let profile = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    assert!(status.success(), "{status}");
    Some(read(&profile.unwrap()).expect("deliveries are among the figures"))
}

fn expectations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parking/instructions.txt")
}

#[test]
fn a_delivery_takes_as_many_instructions_as_before() {
    let Some(mut now) = count() else {
        eprintln!("there is no valgrind: NOTHING WAS COUNTED");
        return;
    };
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(expectations(), format!("aside {now}\n")).unwrap();
    }
    let known = std::fs::read_to_string(expectations()).unwrap();
    let known: u64 = known.trim().strip_prefix("aside ").and_then(|n| n.parse().ok()).expect("a count");
    let limit = known + known * TOLERANCE_PERCENT / 100;
    // On a machine that is busy with other things a client is woken more often than there are events.
    for _ in 1..TRIES {
        if now > limit {
            now = now.min(count().unwrap());
        }
    }
    assert!(now <= limit, "a delivery takes {now} instructions, and took {known}; if it has to be, bless it");
}
