//! Times the codec on a recorded object: `cargo run --release --example bench -- <file>.pb [rounds]`.

use kubelith_codec::json::{self, Strictness};
use kubelith_codec::{proto, typed, yaml};
use kubelith_schema::{Empties, canonicalize};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let data = std::fs::read(args.next().expect("usage: bench <file>.pb [rounds]")).expect("the file can be read");
    let rounds: u32 = args.next().map_or(2000, |n| n.parse().expect("rounds are a number"));
    let envelope = proto::Envelope::read(&data).expect("an envelope");
    let gvk = envelope.type_meta.group_version().expect("a version").with_kind(envelope.type_meta.kind.clone());
    let schema = kubelith_catalog::builtin().kind_schema(&gvk).expect("a kind of the catalogue");
    let value = proto::from_slice(&data, &schema).expect("an object");
    let text = json::to_vec(&value);
    println!("{gvk}: {} bytes of protobuf, {} of JSON", data.len(), text.len());

    // The best of many short batches: what the work takes when nothing disturbs it.
    let time = |name: &str, work: &mut dyn FnMut()| {
        let batch = |work: &mut dyn FnMut()| {
            let start = Instant::now();
            (0..10).for_each(|_| work());
            start.elapsed().as_secs_f64() * 1e5
        };
        let best = (0..rounds / 10).map(|_| batch(work)).fold(f64::MAX, f64::min);
        println!("{name:28} {best:8.1} µs");
    };
    let mut out = Vec::with_capacity(2 * text.len());
    time("protobuf to value", &mut || {
        black_box(proto::from_slice(black_box(&data), &schema).expect("decodes"));
    });
    time("protobuf to value to JSON", &mut || {
        let mut value = proto::from_slice(black_box(&data), &schema).expect("decodes");
        canonicalize(&schema.table, &schema.root, &mut value, Empties::Absent);
        out.clear();
        json::write(&mut out, &value);
        black_box(&out);
    });
    time("value to protobuf", &mut || {
        out.clear();
        proto::encode(&mut out, black_box(&value), &schema).expect("encodes");
        black_box(&out);
    });
    time("value to JSON", &mut || {
        out.clear();
        json::write(&mut out, black_box(&value));
        black_box(&out);
    });
    time("JSON to value, typed", &mut || {
        black_box(typed::decode(black_box(&text), &schema, Strictness::Report).expect("decodes"));
    });
    time("JSON to value, untyped", &mut || {
        black_box(json::parse(black_box(&text)).expect("parses"));
    });
    time("kind of JSON", &mut || {
        black_box(json::type_meta(black_box(&text)).expect("reads"));
    });
    time("value to YAML", &mut || {
        out.clear();
        yaml::write(&mut out, black_box(&value));
        black_box(&out);
    });
}
