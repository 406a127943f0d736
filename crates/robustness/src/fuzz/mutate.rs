//! Grows a request from a recorded one: its body, its options, its media types, its path.

use super::corpus::Seed;
use kubelith_conformance::http::Request;
use kubelith_store::random::Random;
use serde_json::{Map, Value, json};

const TEXTS: [&str; 40] = [
    "",
    " ",
    "UPPER",
    "a b",
    "-x",
    "x-",
    "0",
    "é",
    "a/b",
    "a/b/c",
    "..",
    ".",
    "a..b",
    "None",
    "true",
    "null",
    "10.0.0.1",
    "1.2.3.4/33",
    "::1",
    "100Mi",
    "-1",
    "1e3",
    "1e999999999",
    "9999999999999999999999",
    "http://x",
    "*",
    "a,b",
    "x=y",
    "\u{0}",
    "Always",
    "Never",
    "TCP",
    "In",
    "%",
    "~1~0",
    "a=b,c!=d,e in (f,g),!h",
    "self.metadata.name == 'x'",
    "(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    "2026-01-01T00:00:00Z",
    "$patch",
];
const NUMBERS: [i64; 14] = [
    -1,
    0,
    1,
    2,
    65_535,
    65_536,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_649,
    i64::MAX,
    i64::MIN,
    100,
    101,
    1_000_001,
];
const KEYS: [&str; 16] = [
    "name",
    "namespace",
    "$patch",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$retainKeys",
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "items",
    "managedFields",
    "finalizers",
    "ownerReferences",
    "x",
];
const MEDIA_TYPES: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "application/json;charset=latin1",
    "text/plain",
    "",
];
const ACCEPTS: [&str; 10] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "*/*;q=0.1,,text/html",
];
const OPTIONS: [&str; 24] = [
    "dryRun=All",
    "dryRun=None",
    "fieldManager=m",
    "fieldManager=",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "pretty=true",
    "limit=1",
    "limit=-1",
    "limit=500",
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersion=999999999999",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "labelSelector=a%3Db%2Cc+in+%28d%2Ce%29",
    "labelSelector=%21%21",
    "fieldSelector=metadata.name%3Da%2Cspec.nodeName%21%3Db",
    "propagationPolicy=Foreground",
    "gracePeriodSeconds=0",
    "sendInitialEvents=true",
    "timeout=1s",
];
const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"];
/// Of nesting that is added.
const DEPTH: usize = 300;
const LONG: usize = 5_000;

/// From `base`, or any of the seeds. `kept`: a body in a binary form that the server gave.
pub fn grow(random: &mut Random, base: Option<&Seed>, seeds: &[Seed], kept: Option<&Vec<u8>>) -> Request {
    let seed = base.unwrap_or(&seeds[random.below(seeds.len())]);
    let mut method = seed.method.clone();
    let mut path = seed.path.clone();
    let mut headers = seed.headers.clone();
    if random.one_in(12) {
        method = random.pick(&METHODS).to_owned();
    }
    if random.one_in(15) {
        path = bent(random, &path);
    }
    for _ in 0..random.below(3) {
        let sign = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{sign}{}", random.pick(&OPTIONS));
    }
    let is_write = !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
    if is_write && random.one_in(2) {
        let sign = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{sign}dryRun=All");
    }
    // A watch ends by itself.
    if path.contains("watch") {
        path = path.split('&').filter(|part| !part.contains("timeoutSeconds=")).collect::<Vec<_>>().join("&");
        path.push_str(if path.contains('?') { "&timeoutSeconds=1" } else { "?timeoutSeconds=1" });
    }
    if random.one_in(6) {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept"));
        headers.push(("Accept".to_owned(), random.pick(&ACCEPTS).to_owned()));
    }
    let body = is_write.then(|| body(random, seed, seeds, kept)).flatten();
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if body.is_some() && (!has_type || random.one_in(20)) {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        let usual = if method == "PATCH" { MEDIA_TYPES[4 + random.below(4)] } else { MEDIA_TYPES[0] };
        let media_type = if random.one_in(10) { random.pick(&MEDIA_TYPES) } else { usual };
        let is_binary = body.as_ref().is_some_and(|body| body.starts_with(b"k8s\0"));
        headers.push(("Content-Type".to_owned(), if is_binary { MEDIA_TYPES[2] } else { media_type }.to_owned()));
    }
    // What a line of a request cannot hold is no request.
    path.retain(|c| c.is_ascii_graphic());
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    headers.retain(|(name, value)| !name.contains(['\r', '\n']) && !value.contains(['\r', '\n', '\0']));
    Request { method, path, headers, body }
}

fn body(random: &mut Random, seed: &Seed, seeds: &[Seed], kept: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    if let Some(kept) = kept.filter(|_| random.one_in(8)) {
        return Some(damaged(random, kept.clone()));
    }
    if let Some(text) = &seed.text {
        return Some(damaged(random, text.clone().into_bytes()));
    }
    let mut value = seed.body.clone()?;
    for _ in 0..=random.below(3) {
        change(random, &mut value, seeds);
    }
    let bytes = value.to_string().into_bytes();
    Some(if random.one_in(25) { damaged(random, bytes) } else { bytes })
}

/// Bytes that are flipped, cut, doubled.
fn damaged(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.draw() as u8,
            2 => bytes.truncate(at),
            3 => {
                let end = (at + random.below(20)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => drop(bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f])),
        }
    }
    bytes
}

/// Changes one place of a tree.
fn change(random: &mut Random, value: &mut Value, seeds: &[Seed]) {
    // Down a random way, stopping anywhere.
    let stops = random.one_in(4);
    match value {
        Value::Object(map) if !map.is_empty() && !stops => {
            let place = random.below(map.len());
            let Some(key) = map.keys().nth(place).cloned() else { return };
            match random.below(14) {
                0 => drop(map.remove(&key)),
                1 => {
                    let moved = map.remove(&key).unwrap_or_default();
                    map.insert(random.pick(&KEYS).to_owned(), moved);
                }
                2 => {
                    let added = anything(random, seeds);
                    map.insert(random.pick(&KEYS).to_owned(), added);
                }
                _ => {
                    if let Some(inner) = map.get_mut(&key) {
                        change(random, inner, seeds);
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() && !stops => {
            let place = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(place)),
                1 => items.insert(place, items[place].clone()),
                2 => items.push(anything(random, seeds)),
                _ => change(random, &mut items[place], seeds),
            }
        }
        other => *other = anything(random, seeds),
    }
}

fn anything(random: &mut Random, seeds: &[Seed]) -> Value {
    match random.below(12) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 | 3 => random.pick(&NUMBERS).into(),
        4 => json!(1.5e300),
        5 => Value::String("a".repeat(random.below(LONG))),
        6 => json!([]),
        7 => Value::Object(Map::new()),
        8 => {
            let mut nested = json!("x");
            for _ in 0..random.below(DEPTH) {
                // Not `json!`, which copies what is in it: of a deep one that takes longer than its answer.
                nested = match random.one_in(2) {
                    true => Value::Array(vec![nested]),
                    false => Value::Object(Map::from_iter([("a".to_owned(), nested)])),
                };
            }
            nested
        }
        // A part of another request.
        9 => seeds[random.below(seeds.len())].body.clone().unwrap_or_default(),
        _ => Value::String(random.pick(&TEXTS).to_owned()),
    }
}

/// Another path: a segment is left out, doubled or replaced.
fn bent(random: &mut Random, path: &str) -> String {
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    let at = random.below(segments.len());
    match random.below(4) {
        0 => drop(segments.remove(at)),
        1 => segments.insert(at, segments[at].clone()),
        2 => {
            segments.push(random.pick(&["status", "scale", "finalize", "eviction", "binding", "token", "x"]).to_owned())
        }
        _ => segments[at] = random.pick(&TEXTS).replace(['?', '#', ' '], ""),
    }
    segments.join("/")
}
