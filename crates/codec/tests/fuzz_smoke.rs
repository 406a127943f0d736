//! Random and broken input for every decoder: bounded, the same in every run, done in seconds. What must hold: no
//! panic, no hang, and what was accepted comes out the same again.

use kubelith_catalog::builtin;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::{base64, negotiate, proto, typed, yaml};
use kubelith_meta::GroupVersionKind;
use kubelith_schema::TypedSchema;

mod random;
use random::Random;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"y","é":"\u00e9\n"},
 "creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{"fieldsV1":{"f:a":{".":{}}},"time":"2020-01-01T00:00:00Z"}]},
 "spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"500m","memory":1.5}},"ports":[{"containerPort":80}],
 "livenessProbe":{"httpGet":{"port":"http","path":"/"},"periodSeconds":-1}}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}],
 "securityContext":{"supplementalGroups":[1,2,9223372036854775807]},"priority":null,"unknown":[true,false,{"deep":[[[]]]}]}}"#;

const CRD: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},
 "spec":{"group":"example.com","names":{"plural":"foos","kind":"Foo"},"scope":"Namespaced","versions":[{"name":"v1","served":true,
 "storage":true,"schema":{"openAPIV3Schema":{"type":"object","maximum":1.5,"default":{"a":[1,null]},"enum":[1,"a",null],
 "items":[{"type":"a"},{}],"additionalProperties":{"not":{"type":"x"}},"dependencies":{"a":["b"],"c":{}},"properties":{"x":{"items":{}}}}}}]}}"#;

const SECRET: &str =
    r#"{"apiVersion":"v1","kind":"Secret","data":{"a":"aGk=","b":""},"type":"Opaque","immutable":true}"#;

const YAML: &str = "# comment\napiVersion: v1\nkind: &k ConfigMap\nmetadata: {name: \"a\\u00e9\", labels: {<<: &m {x: y}, z: *k}}\ndata:\n  lit: |\n    a\n\n    b\n  fold: >-\n    c\n     d\n  ? long\n  : 'it''s'\n  list:\n  - 1\n  - - 0x1f\n    - .5\n  - {a: [1, 2], b: !!str 5}\n  <<: [*m, {q: ~}]\n---\nsecond: doc\n...\n";

fn schema(text: &str) -> TypedSchema {
    let meta = json::type_meta(text.as_bytes()).unwrap();
    let gvk: GroupVersionKind = meta.group_version().unwrap().with_kind(meta.kind);
    builtin().kind_schema(&gvk).unwrap()
}

/// How much longer than usual to try: `FUZZ_FACTOR=100 cargo test --release --test fuzz_smoke`.
fn factor() -> usize {
    std::env::var("FUZZ_FACTOR").map_or(1, |f| f.parse().expect("FUZZ_FACTOR is a number"))
}

/// Calls `check` with inputs made from `seeds`: bytes changed, removed, doubled, inserted, cut off and spliced.
fn mutate(seed: u64, rounds: usize, seeds: &[Vec<u8>], words: &[&str], mut check: impl FnMut(&[u8])) {
    let mut random = Random::new(seed);
    for s in seeds {
        check(s);
    }
    for _ in 0..rounds * factor() {
        let mut data = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(data.len() + 1);
            match random.below(7) {
                0 if at < data.len() => data[at] = random.next() as u8,
                1 if at < data.len() => data[at] ^= 1 << random.below(8),
                2 => {
                    let end = (at + random.below(8)).min(data.len());
                    data.drain(at..end);
                }
                3 => {
                    let end = (at + random.below(40)).min(data.len());
                    let piece = data[at..end].to_vec();
                    data.splice(at..at, piece);
                }
                4 => data.truncate(at.max(1)),
                5 => {
                    let other = &seeds[random.below(seeds.len())];
                    let from = random.below(other.len() + 1);
                    data.truncate(at);
                    data.extend_from_slice(&other[from..]);
                }
                _ => {
                    let word = words[random.below(words.len())];
                    data.splice(at..at, word.bytes());
                }
            }
        }
        check(&data);
    }
}

fn texts() -> Vec<Vec<u8>> {
    [POD, CRD, SECRET].map(|t| t.as_bytes().to_vec()).to_vec()
}

const JSON_WORDS: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "null", "true", "1e999", "-0", "1.5", "\\u", "\\ud83d", "\\", "\"a\":", "[[[[",
    " \n",
];

#[test]
fn json_text() {
    mutate(1, 6_000, &texts(), JSON_WORDS, |data| {
        let parsed = json::parse(data);
        // A number beyond doubles is no error of syntax.
        let range = matches!(&parsed, Err(json::DecodeError::Type(_)));
        assert_eq!(json::validate(data).is_ok(), parsed.is_ok() || range);
        let _ = json::type_meta(data);
        if let Ok(strict) = json::parse_strict(data) {
            assert_eq!(Some(&strict.value), parsed.as_ref().ok());
        }
        let mut compact = Vec::new();
        assert_eq!(json::compact(&mut compact, data).is_ok(), json::validate(data).is_ok());
        if let Ok(value) = parsed {
            assert_eq!(json::parse(&compact).unwrap(), value);
            let written = json::to_vec(&value);
            assert_eq!(json::to_vec(&json::parse(&written).unwrap()), written);
            let (mut pretty, mut reindented) = (Vec::new(), Vec::new());
            json::write_pretty(&mut pretty, &value);
            json::reindent(&mut reindented, &written);
            assert_eq!(pretty, reindented);
        }
    });
}

#[test]
fn typed_json() {
    let schemas: Vec<TypedSchema> = [POD, CRD, SECRET].map(schema).to_vec();
    mutate(2, 2_000, &texts(), JSON_WORDS, |data| {
        for schema in &schemas {
            let Ok(decoded) = typed::decode(data, schema, Strictness::Report) else { continue };
            // What was decoded is clean, and stays what it is.
            let text = json::to_vec(&decoded.value);
            let again = typed::decode(&text, schema, Strictness::Report).unwrap();
            assert_eq!(again.strict, []);
            assert_eq!(json::to_vec(&again.value), text);
            let mut message = Vec::new();
            proto::encode(&mut message, &decoded.value, schema).unwrap();
            proto::decode(&message, schema).unwrap();
        }
    });
}

#[test]
fn protobuf_of_json_text() {
    let schemas = [POD, CRD, SECRET].map(schema);
    // As objects are written, but for the order of their first members.
    let seeds = texts().iter().map(|text| json::to_vec(&json::parse(text).unwrap())).collect::<Vec<_>>();
    let mut encoded = 0;
    mutate(4, 20_000, &seeds, JSON_WORDS, |data| {
        for schema in &schemas {
            if let Some(bytes) = proto::from_json(data, schema) {
                encoded += 1;
                assert_eq!(bytes, proto::to_vec(&json::parse_stored(data).unwrap(), schema).unwrap());
            }
        }
    });
    assert!(encoded > 1000, "{encoded}");
}

#[test]
fn yaml_text() {
    let seeds =
        [YAML.as_bytes().to_vec(), POD.as_bytes().to_vec(), b"a: |\n  text".to_vec(), b"- - - a\n  - b".to_vec()];
    let words = [
        ": ",
        "- ",
        "? ",
        "&a ",
        "*a",
        "!!int ",
        "!",
        "|",
        ">",
        "|2-",
        "'",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "#",
        "%TAG ! x\n",
        "---",
        "...",
        "\n",
        "\r\n",
        "  ",
        "\t",
        "<<",
        "\u{85}",
        "\u{feff}",
        "\u{2028}",
        "\\x4",
        "~",
        "1e3",
        "0b1",
        "2001-01-01",
    ];
    mutate(3, 6_000, &seeds, &words, |data| {
        let Ok(document) = yaml::read(data) else { return };
        let text = json::to_string(&document.value);
        // Keys that look like merge keys and U+0085 do not survive, with the reference neither.
        if !text.contains("\\u003c\\u003c") && !text.contains('\u{85}') {
            let written = yaml::to_vec(&document.value);
            let again = yaml::read(&written).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&written)));
            assert_eq!(json::to_string(&again.value), text);
        }
    });
}

#[test]
fn protobuf() {
    let schemas: Vec<TypedSchema> = [POD, CRD, SECRET].map(schema).to_vec();
    let objects: Vec<Vec<u8>> = [POD, CRD, SECRET]
        .iter()
        .zip(&schemas)
        .map(|(text, schema)| {
            let value = typed::decode(text.as_bytes(), schema, Strictness::Lenient).unwrap().value;
            proto::to_vec(&value, schema).unwrap()
        })
        .collect();
    let words = ["\0", "\u{7f}", "\n", "\u{12}", "\u{8}", "k8s\0", "\n\0", "\u{12}\u{1}a", "\u{1a}\u{2}xx"];
    mutate(4, 3_000, &objects, &words, |data| {
        let _ = proto::Envelope::read(data);
        for schema in &schemas {
            if let Ok(value) = proto::from_slice(data, schema) {
                let bytes = proto::to_vec(&value, schema).unwrap();
                proto::from_slice(&bytes, schema).unwrap();
            }
        }
    });
}

#[test]
fn headers_and_base64() {
    let seeds = [
        b"application/json;as=Table;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf;q=0.5,*/*;q=0.1".to_vec(),
        b"application/json; charset=\"utf-8\"".to_vec(),
        b"aGVsbG8gd29ybGQ=\r\n".to_vec(),
    ];
    let endpoint = negotiate::ResourceEndpoint { own: negotiate::BUILT_IN, has_table: true };
    mutate(5, 6_000, &seeds, &[";", "=", ",", "/", "*", "\"", "q=", "\\", "é", "==", " "], |data| {
        let text = String::from_utf8_lossy(data);
        negotiate::parse_accept(&text);
        let _ = negotiate::output(&text, negotiate::BUILT_IN, &endpoint);
        let _ = negotiate::output_stream(&text, negotiate::BUILT_IN, &endpoint);
        let _ = negotiate::input(&text, negotiate::BUILT_IN);
        let _ = negotiate::route_accepts(&text, &["application/json"]);
        let _ = negotiate::route_consumes(&text, "POST", &["application/json"]);
        if let Ok(bytes) = base64::decode(&text) {
            assert_eq!(base64::decode(&base64::encode(&bytes)).as_ref(), Ok(&bytes));
        }
    });
}
