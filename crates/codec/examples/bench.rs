//! Times the codec on a recorded object: `cargo run --release --example bench -- <file>.pb [rounds]`. The file may also hold JSON.

use kubelith_codec::json::{self, Strictness};
use kubelith_codec::{proto, typed, yaml};
use kubelith_meta::Value;
use kubelith_schema::{Empties, TypedSchema, canonicalize};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let data = std::fs::read(args.next().expect("usage: bench <file>.pb [rounds]")).expect("the file can be read");
    let rounds: u32 = args.next().map_or(2000, |n| n.parse().expect("rounds are a number"));
    let (data, schema) = recorded(data);
    let value = proto::from_slice(&data, &schema).expect("an object");
    let text = json::to_vec(&value);
    println!("{}: {} bytes of protobuf, {} of JSON", value.str_at(&["kind"]), data.len(), text.len());

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
    let stored = bytes::Bytes::from(text.clone());
    let finished = || json::parse_finished(black_box(&stored)).expect("parses");
    time("JSON to unread parts", &mut || drop(black_box(finished())));
    time("... and on to protobuf", &mut || {
        out.clear();
        proto::encode(&mut out, black_box(&finished()), &schema).expect("encodes");
        black_box(&out);
    });
    time("... and read on the way", &mut || {
        out.clear();
        let object = finished();
        look_into(&object);
        proto::encode(&mut out, black_box(&object), &schema).expect("encodes");
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

/// The object as protobuf, and its type.
fn recorded(data: Vec<u8>) -> (Vec<u8>, TypedSchema) {
    let is_json = data.starts_with(b"{");
    let meta = match is_json {
        true => json::type_meta(&data).expect("an object"),
        false => proto::Envelope::read(&data).expect("an envelope").type_meta,
    };
    let gvk = meta.group_version().expect("a version").with_kind(meta.kind);
    let schema = kubelith_catalog::builtin().kind_schema(&gvk).expect("a kind of the catalogue");
    if !is_json {
        return (data, schema);
    }
    let value = json::parse(&data).expect("an object");
    (proto::to_vec(&value, &schema).expect("encodes"), schema)
}

/// Reads all parts that are text.
fn look_into(value: &Value) {
    match value {
        Value::Object(map) => map.values().for_each(look_into),
        Value::Array(items) => items.iter().for_each(look_into),
        _ => {}
    }
}
