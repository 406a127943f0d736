//! What the types and fields of the built-in APIs are for, in words: for OpenAPI and `kubectl explain`.
//!
//! The texts are packed by the build script and unpacked only while documents are made. Unpacked they are an index
//! (a line for each type, a line with a space in front for each of its fields, both with the number of a text or
//! none), a NUL, and the texts, each ended by a NUL.

use flate2::read::DeflateDecoder;
use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.bin"));

/// The unpacked texts. They take about a megabyte: keep them no longer than they are needed.
#[derive(Debug)]
pub struct Descriptions {
    text: String,
    /// Where each text stands.
    texts: Vec<Range<usize>>,
    types: HashMap<Box<str>, Type>,
}

#[derive(Debug, Default)]
struct Type {
    text: Option<usize>,
    /// Sorted by name.
    fields: Vec<(Box<str>, Option<usize>)>,
}

impl Descriptions {
    /// Unpacks the texts: a few milliseconds.
    pub fn load() -> Descriptions {
        let mut text = String::new();
        DeflateDecoder::new(PACKED).read_to_string(&mut text).expect("the build script packed it");
        let end = text.find('\0').expect("the index ends with a NUL");
        let mut types: HashMap<Box<str>, Type> = HashMap::new();
        let mut current: (Box<str>, Type) = Default::default();
        for line in text[..end].lines() {
            let field = line.strip_prefix(' ');
            let (name, number) = field.unwrap_or(line).split_once(' ').expect("a name and a number");
            let number = number.parse().ok();
            match field {
                Some(_) => current.1.fields.push((name.into(), number)),
                None => {
                    let last =
                        std::mem::replace(&mut current, (name.into(), Type { text: number, fields: Vec::new() }));
                    types.insert(last.0, last.1);
                }
            }
        }
        types.insert(current.0, current.1);
        let mut start = end + 1;
        let texts = text[start..].split_terminator('\0').map(|t| {
            let range = start..start + t.len();
            start = range.end + 1;
            range
        });
        let texts = texts.collect();
        Descriptions { text, texts, types }
    }

    /// What a type is, by its OpenAPI name (`io.k8s.api.core.v1.PodSpec`).
    pub fn of_type(&self, name: &str) -> Option<&str> {
        self.get(self.types.get(name)?.text)
    }

    /// What a field of a type is, by its JSON name.
    pub fn of_field(&self, type_name: &str, field: &str) -> Option<&str> {
        let fields = &self.types.get(type_name)?.fields;
        let i = fields.binary_search_by(|(name, _)| name.as_ref().cmp(field)).ok()?;
        self.get(fields[i].1)
    }

    fn get(&self, number: Option<usize>) -> Option<&str> {
        Some(&self.text[self.texts[number?].clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_have_their_texts() {
        let all = Descriptions::load();
        let container = "io.k8s.api.core.v1.Container";
        assert_eq!(all.of_type(container), Some("A single application container that you want to run within a pod."));
        let env = all.of_field(container, "env").unwrap();
        assert!(env.starts_with("List of environment variables"), "{env}");
        assert!(all.of_field("io.k8s.api.core.v1.Pod", "spec").unwrap().contains("desired behavior"));
        assert_eq!(all.of_field(container, "nonesuch"), None);
        assert_eq!(all.of_type("nonesuch"), None);
    }

    #[test]
    fn the_packed_form_is_small() {
        assert!(PACKED.len() < 400_000, "{} bytes", PACKED.len());
        assert!(Descriptions::load().types.len() > 600);
    }
}
