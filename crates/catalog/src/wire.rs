//! The compact form between build script and library: variable-length integers and a table of strings, each
//! string once. The library trusts it: it is made by the same commit's build script.

use std::collections::HashMap;

/// Collects a body and the strings it refers to.
#[derive(Default)]
pub struct Writer {
    body: Vec<u8>,
    strings: Vec<String>,
    known: HashMap<String, usize>,
}

impl Writer {
    pub fn uint(&mut self, value: u64) {
        put_uint(&mut self.body, value);
    }

    /// Small negative numbers stay small.
    pub fn int(&mut self, value: i64) {
        self.uint(((value << 1) ^ (value >> 63)) as u64);
    }

    pub fn text(&mut self, text: &str) {
        let index = match self.known.get(text) {
            Some(index) => *index,
            None => {
                self.strings.push(text.to_owned());
                self.known.insert(text.to_owned(), self.strings.len() - 1);
                self.strings.len() - 1
            }
        };
        self.uint(index as u64);
    }

    pub fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.uint(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }

    /// The strings' lengths, the strings, the body.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uint(&mut out, self.strings.len() as u64);
        for s in &self.strings {
            put_uint(&mut out, s.len() as u64);
        }
        for s in &self.strings {
            out.extend_from_slice(s.as_bytes());
        }
        out.extend_from_slice(&self.body);
        out
    }
}

fn put_uint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
