//! Durable writes of the embedded engine: rate, CPU per put, syncs saved by group commit, loading.
//!
//! `cargo bench -p kubelith-store --bench writes -- [folder] [writers] [puts] [bytes]`

use bytes::Bytes;
use kubelith_store::{Counting, EmbeddedOptions, EmbeddedStore, Expect, KeyRange, RangeRequest, Store};
use std::time::Instant;

/// Processor time of this process so far, in microseconds.
fn cpu_micros() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) * 10_000.0
}

fn rss_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

async fn phase(name: &str, store: &EmbeddedStore, writers: usize, puts: usize, bytes: usize) {
    let (started, cpu) = (Instant::now(), cpu_micros());
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            let value = Bytes::from(vec![b'v'; bytes]);
            tokio::spawn(async move {
                for i in (writer..puts).step_by(writers) {
                    let key = format!("/registry/pods/ns-{}/pod-{:08}", i % 100, i * 7919 % puts);
                    store.put(key.into(), value.clone(), Expect::Any, None).await.expect("a put");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer");
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name:8} {writers} writers: {:7.0} puts/s, {:5.1} us CPU per put, RSS {} MB",
        puts as f64 / seconds,
        (cpu_micros() - cpu) / puts as f64,
        rss_megabytes()
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |i: usize, default: usize| arguments.get(i).and_then(|n| n.parse().ok()).unwrap_or(default);
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = arguments.first().map_or(scratch.path().to_path_buf(), Into::into);
    let (writers, puts, bytes) = (number(1, 32), number(2, 20_000), number(3, 8192));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = EmbeddedStore::open(EmbeddedOptions::new(&folder)).expect("a store");
        println!("empty: RSS {} MB", rss_megabytes());
        phase("create", &store, writers, puts, bytes).await;
        phase("update", &store, writers, puts, bytes).await;
        phase("single", &store, 1, (puts / 40).max(1), bytes).await;
        println!("{:?}", store.stats().await.expect("stats"));
        store.close().await;
        drop(store);
        let (started, cpu) = (Instant::now(), cpu_micros());
        let store = EmbeddedStore::open(EmbeddedOptions::new(&folder)).expect("a store");
        println!(
            "open:   {:?}, {:.0} ms CPU, RSS {} MB",
            started.elapsed(),
            (cpu_micros() - cpu) / 1e3,
            rss_megabytes()
        );
        let (started, cpu) = (Instant::now(), cpu_micros());
        let mut range = KeyRange::all();
        let mut count = 0;
        loop {
            let page = store
                .range(RangeRequest::new(range.clone()).limit(1000).counting(Counting::Skip))
                .await
                .expect("a page");
            count += page.items.len();
            let Some(last) = page.items.last().filter(|_| page.more) else { break };
            range = range.from([&last.key[..], &[0]].concat());
        }
        println!("load:   {count} keys in {:?}, {:.0} ms CPU", started.elapsed(), (cpu_micros() - cpu) / 1e3);
    });
}
