//! What servers in a test cost: `cargo run --release -p kubelith-testing --example figures`. Wall-clock figures mean something on a
//! quiet machine only. `figures starts 3 forks 10 objects 100` does just that, for programs that count what is done.

use kubelith_testing::{Controllers, Kubelith};
use serde_json::json;
use std::time::{Duration, Instant};

/// As the program has it. What threads take of glibc's grows page by page, with a call of the kernel for each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TURNS: usize = 10;
const OBJECTS: usize = 1_000;
const DEFINITIONS: usize = 50;
const FORKS: usize = 200;
const IDLE: usize = 20;

fn kilobytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    own.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn definition(i: usize) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{i}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": format!("things{i}"), "kind": format!("Thing{i}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
            }}}],
        },
    })
    .to_string()
}

/// The middle one, and the best.
fn told(mut all: Vec<Duration>) -> String {
    all.sort();
    format!("{:.2} ms (best {:.2} ms)", all[all.len() / 2].as_secs_f64() * 1e3, all[0].as_secs_f64() * 1e3)
}

/// So many of each, one after the other, and nothing else.
async fn just(starts: usize, forks: usize, objects: usize) -> Result<(), Box<dyn std::error::Error>> {
    for _ in 0..starts {
        Kubelith::builder().controllers(Controllers::Off).start().await?;
    }
    if forks > 0 {
        let base = full(objects).await?;
        for _ in 0..forks {
            base.fork().await?.ready().await?;
        }
    }
    Ok(())
}

/// A server with definitions and so many objects.
async fn full(objects: usize) -> Result<Kubelith, Box<dyn std::error::Error>> {
    let mut builder = Kubelith::builder().controllers(Controllers::Off);
    for i in 0..DEFINITIONS {
        builder = builder.definition(definition(i));
    }
    let base = builder.start().await?;
    for i in 0..objects {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{i}")}, "data": {"a": "b"}});
        base.post(MAPS, &map).await?;
    }
    Ok(base)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if !args.is_empty() {
        let number =
            |of: &str| args.iter().skip_while(|arg| *arg != of).nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        return just(number("starts"), number("forks"), number("objects")).await;
    }
    let mut starts = Vec::new();
    for _ in 0..=TURNS {
        let begun = Instant::now();
        let server = Kubelith::builder().controllers(Controllers::Off).start().await?;
        starts.push(begun.elapsed());
        drop(server);
    }
    // The first one of a process unpacks what all share.
    let first = starts.remove(0);
    println!("start, until ready: {}; the first one: {:.2} ms", told(starts), first.as_secs_f64() * 1e3);

    let before = kilobytes();
    let base = full(OBJECTS).await?;
    println!(
        "a server with {OBJECTS} objects and {DEFINITIONS} definitions: {} kB",
        kilobytes().saturating_sub(before)
    );

    // What is left of one fork is taken down in the background: they go together, behind the last turn.
    let (mut forks, mut answers, mut readies, mut done) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let begun = Instant::now();
        let fork = base.fork().await?;
        forks.push(begun.elapsed());
        fork.get(&format!("{MAPS}/map-7")).await?;
        answers.push(begun.elapsed());
        fork.ready().await?;
        readies.push(begun.elapsed());
        done.push(fork);
    }
    println!("fork: {}; until it has answered: {}; until ready: {}", told(forks), told(answers), told(readies));
    let mut drops = Vec::new();
    for fork in done {
        let begun = Instant::now();
        drop(fork);
        drops.push(begun.elapsed());
    }
    println!("to drop one that was ready: {}", told(drops));

    let before = kilobytes();
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(base.fork().await?);
    }
    print!("a fork that nobody has used: {} kB; ", kilobytes().saturating_sub(before) / IDLE);
    for fork in &idle {
        fork.ready().await?;
    }
    println!("one that is ready and does nothing: {} kB", kilobytes().saturating_sub(before) / IDLE);
    drop(idle);

    let (base, begun) = (std::sync::Arc::new(base), Instant::now());
    let tests = (0..FORKS).map(|i| {
        let base = base.clone();
        tokio::spawn(async move {
            let fork = base.fork().await.expect("a fork");
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"i": i.to_string()}});
            assert_eq!(fork.post(MAPS, &map).await.expect("an answer").code, 201);
            assert_eq!(fork.get(&format!("{MAPS}/mine")).await.expect("an answer").body["data"]["i"], i.to_string());
        })
    });
    for test in tests.collect::<Vec<_>>() {
        test.await?;
    }
    println!("{FORKS} tests at a time, each with a fork: {:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}
