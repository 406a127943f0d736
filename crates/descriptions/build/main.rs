//! Takes the descriptions of every type and field out of `k8s-openapi` and packs them: each text once, and for
//! each type the numbers of its texts. `src/lib.rs` says what the packed form looks like.

mod roots;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build");
    let packed = pack(&roots::definitions());
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(packed.as_bytes()).expect("memory takes all");
    let bytes = encoder.finish().expect("memory takes all");
    let out = std::env::var("OUT_DIR").expect("cargo names the output folder");
    std::fs::write(Path::new(&out).join("descriptions.bin"), bytes).expect("the output folder can be written");
}

/// The texts in the order of their first use, so that those of one type lie together.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    joined: String,
}

impl Texts {
    fn number(&mut self, schema: &Value) -> String {
        let Some(text) = schema.get("description").and_then(Value::as_str) else { return String::new() };
        assert!(!text.contains('\0'), "a description with the separator in it");
        let next = self.numbers.len();
        let number = *self.numbers.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.joined.push_str(text);
            self.joined.push('\0');
        }
        number.to_string()
    }
}

fn pack(definitions: &Map<String, Value>) -> String {
    let mut names: Vec<&String> = definitions.keys().collect();
    names.sort();
    let mut index = String::new();
    let mut texts = Texts::default();
    for name in names {
        let schema = &definitions[name];
        writeln!(index, "{name} {}", texts.number(schema)).expect("a string takes all");
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<_> = properties.into_iter().flatten().collect();
        fields.sort_by_key(|(name, _)| *name);
        for (field, schema) in fields {
            writeln!(index, " {field} {}", texts.number(schema)).expect("a string takes all");
        }
    }
    index.push('\0');
    index + &texts.joined
}
