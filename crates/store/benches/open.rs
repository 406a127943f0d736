//! From a data folder to caches that hold all of it: `cargo bench -p kubelith-store --bench open -- FOLDER PREFIX...`, for the
//! folder of a server that has ended (`store` in its data folder) and prefixes as `/registry/pods`. Each way is taken twice.
//! The system should have the file in memory, which the first turn sees to.

use kubelith_store::Revision;
use kubelith_store::cache::{Hub, HubOptions, Past, Rendered, Renderer};
use kubelith_store::embedded::{EmbeddedOptions, EmbeddedStore};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Bytes;

impl Renderer for Bytes {
    fn render(&self, value: &[u8], _revision: i64) -> Result<Rendered, String> {
        Ok(Rendered { json: value.to_vec(), ..Rendered::default() })
    }
}

/// Of this process, in ticks of 10 ms: user and system.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

async fn turn(
    name: &str,
    folder: &Path,
    prefixes: &[String],
    open: fn(EmbeddedOptions) -> kubelith_store::Result<EmbeddedStore>,
) {
    let (begin, before) = (Instant::now(), processor_time());
    let say = |what: &str| {
        let (wall, cpu) = (begin.elapsed().as_secs_f64(), (processor_time() - before).as_secs_f64());
        println!("{name:<8} {what:<28} {wall:>7.2} s, of processors {cpu:>6.2} s");
    };
    let options = EmbeddedOptions::new(folder);
    let opened = tokio::task::spawn_blocking(move || open(options)).await.expect("no panic");
    let store = opened.expect("a folder with a store that nobody has open");
    say("opened");
    let options = HubOptions { past: Past::Replayed, ..HubOptions::new("/registry/") };
    let hub = Hub::start_with(Arc::new(store.clone()), options).await.expect("the past can be read");
    say("past read");
    let mut objects = 0;
    for prefix in prefixes {
        let below = prefix.trim_start_matches("/registry/");
        objects += hub.register(below, None, Arc::new(Bytes)).await.expect("it can be loaded").stats().objects;
    }
    say(&format!("{objects} objects loaded"));
    store.settled().await.expect("the file is whole");
    say("checked");
    assert!(hub.applied() >= Revision(1).0);
    hub.clear();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some((folder, prefixes)) = arguments.split_first() else {
        println!("name a data folder and prefixes");
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    for _ in 0..2 {
        runtime.block_on(turn("at once", folder.as_ref(), prefixes, EmbeddedStore::open));
        runtime.block_on(turn("early", folder.as_ref(), prefixes, EmbeddedStore::open_early));
    }
}
