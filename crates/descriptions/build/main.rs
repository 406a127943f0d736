//! Takes the descriptions of every type and field out of `k8s-openapi` and packs them: each text once, and for
//! each type the numbers of its texts. `src/lib.rs` says what the packed form looks like.

mod texts;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use kubelith_descriptions_source::{OVERRIDE, folder};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use texts::Types;

/// The part of the library that is about the release that we follow.
const RELEASE: &str = "src/v1_36";

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    let library = folder().unwrap_or_else(|error| panic!("{error}")).join(RELEASE);
    println!("cargo::rerun-if-changed={}", library.display());
    let mut types = Types::new();
    texts::read(&library, &mut types).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(pack(&types).as_bytes()).expect("memory takes all");
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
    fn number(&mut self, description: Option<&String>) -> String {
        let Some(text) = description else { return String::new() };
        assert!(!text.contains('\0'), "a description with the separator in it");
        let next = self.numbers.len();
        let number = *self.numbers.entry(text.clone()).or_insert(next);
        if number == next {
            self.joined.push_str(text);
            self.joined.push('\0');
        }
        number.to_string()
    }
}

fn pack(types: &Types) -> String {
    let mut index = String::new();
    let mut texts = Texts::default();
    for (name, found) in types {
        writeln!(index, "{name} {}", texts.number(found.description.as_ref())).expect("a string takes all");
        for (field, description) in &found.fields {
            writeln!(index, " {field} {}", texts.number(description.as_ref())).expect("a string takes all");
        }
    }
    index.push('\0');
    index + &texts.joined
}
