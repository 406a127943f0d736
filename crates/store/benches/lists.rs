//! What finding objects in a watch cache costs, and what following changes does, by the number of objects:
//! `cargo bench -p kubelith-store --bench lists`. Figures behind `--` are the numbers of objects.

use kubelith_meta::Str;
use kubelith_store::cache::{CachedObject, Change, Clause, EventKind, Rendered, ResourceCache, Scope, Snapshot, Term};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Of each object's JSON.
const BYTES: usize = 1 << 10;
/// Objects that have the label which is looked for.
const FEW: usize = 5;

fn labels(i: usize, of: usize) -> Vec<(Str, Str)> {
    let shard = i % (of / FEW).max(1);
    [
        ("app".into(), format!("app-{}", i % 100)),
        ("shard".into(), format!("{shard}")),
        ("tier".into(), "backend".to_owned()),
        ("pod-template-hash".into(), format!("{:x}", (i / 7) * 0x9e37_79b9)),
    ]
    .map(|(key, value): (Str, String)| (key, value.into()))
    .to_vec()
}

fn object(i: usize, of: usize, revision: i64, kind: EventKind) -> CachedObject {
    let json = vec![b' '; BYTES];
    let fields = vec![Str::from(format!("node-{}", i % 500))];
    let rendered = Rendered { json, labels: labels(i, of), fields, ..Rendered::default() };
    CachedObject::new(format!("bench/pod-{i:07}").as_str().into(), revision, kind, rendered)
}

/// The best of some runs, in microseconds for each operation.
fn best(runs: usize, operations: usize, mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6 / operations as f64
    };
    (0..runs).map(time).fold(f64::MAX, f64::min)
}

fn selected(snapshot: &Snapshot, clauses: &[Clause<'_>]) -> usize {
    let found = snapshot.candidates("bench/", None, clauses).expect("an index helps");
    let has = |object: &CachedObject| object.labels.iter().any(|(key, value)| key == "shard" && value == "7");
    found.iter().filter(|object| has(object)).count()
}

fn walked(snapshot: &Snapshot) -> usize {
    let has = |object: &CachedObject| object.labels.iter().any(|(key, value)| key == "shard" && value == "7");
    snapshot.range("bench/", None).filter(|object| has(object)).count()
}

fn measure(of: usize) {
    let cache = Arc::new(ResourceCache::new(Some(0)));
    let made: Vec<CachedObject> = (0..of).map(|i| object(i, of, i as i64 + 1, EventKind::Added)).collect();
    let start = Instant::now();
    for object in made {
        cache.apply([Change::Put(EventKind::Added, object)]);
    }
    let create = start.elapsed().as_secs_f64() * 1e6 / of as f64;
    let objects = cache.snapshot().objects;
    let load = best(3, of, || cache.load(objects.clone(), of as i64));
    let snapshot = cache.snapshot();
    let clauses = [vec![Term::Label("shard", "7")]];
    assert_eq!((selected(&snapshot, &clauses), walked(&snapshot)), (FEW, FEW));
    let select = best(20, 100, || {
        for _ in 0..100 {
            black_box(selected(black_box(&snapshot), &clauses));
        }
    });
    let walk = best(3, 1, || {
        black_box(walked(black_box(&snapshot)));
    });
    let page = best(20, 10, || {
        for _ in 0..10 {
            let page: Vec<_> = snapshot.range("bench/", None).take(500).cloned().collect();
            black_box(snapshot.count_from("bench/", page.last().map(|last| &*last.key)));
        }
    });
    let get = best(20, 1000, || {
        for i in 0..1000 {
            black_box(cache.get(&format!("bench/pod-{:07}", (i * 7919) % of)));
        }
    });
    drop(snapshot);
    let _watcher =
        cache.watch(Scope::Label { namespace: "bench".into(), key: "app".into(), value: "nobody".into() }, of as i64);
    let mut revision = of as i64;
    let changes: Vec<CachedObject> = (0..5000)
        .map(|i| {
            revision += 1;
            object((i * 7919) % of, of, revision, EventKind::Modified)
        })
        .collect();
    let start = Instant::now();
    for object in changes {
        cache.apply([Change::Put(EventKind::Modified, object)]);
    }
    let change = start.elapsed().as_secs_f64() * 1e6 / 5000.0;
    let stats = cache.stats();
    println!(
        "{of:>9} {create:>8.2} {change:>8.2} {load:>8.2} {get:>8.2} {select:>8.2} {walk:>10.1} {page:>8.2} {:>8.1} %",
        stats.index_bytes as f64 * 100.0 / stats.object_bytes as f64
    );
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    println!("µs:        create   change     load      get  5 by label    by walk  page 500  index / objects of 1 KB");
    for of in if given.is_empty() { &SIZES[..] } else { &given[..] } {
        measure(*of);
    }
}
