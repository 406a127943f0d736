//! The other end of `wire`: reads integers and strings where they stand.

use kubelith_meta::{GroupVersionKind, Str, Value};
use kubelith_schema::TypeId;

/// Goes through the bytes once. A wrong byte is a mistake of the build script and panics.
pub struct Reader<'a> {
    bytes: &'a [u8],
    strings: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        let mut reader = Reader { bytes, strings: Vec::new() };
        let lengths: Vec<usize> = reader.list(|r| r.uint() as usize);
        for length in lengths {
            let (text, rest) = reader.bytes.split_at(length);
            reader.strings.push(std::str::from_utf8(text).expect("the catalogue is UTF-8"));
            reader.bytes = rest;
        }
        reader
    }

    pub fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn uint(&mut self) -> u64 {
        let mut value = 0;
        for (i, byte) in self.bytes.iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[i + 1..];
                return value;
            }
        }
        panic!("the catalogue ends too early");
    }

    pub fn int(&mut self) -> i64 {
        let value = self.uint();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    pub fn flag(&mut self) -> bool {
        self.uint() != 0
    }

    pub fn str(&mut self) -> &'a str {
        let index = self.uint() as usize;
        self.strings[index]
    }

    pub fn text(&mut self) -> Str {
        Str::new(self.str())
    }

    /// A text of which "" means that there is none.
    pub fn some_text(&mut self) -> Option<Str> {
        Some(self.text()).filter(|t| !t.is_empty())
    }

    pub fn texts(&mut self) -> Vec<Str> {
        self.list(Reader::text)
    }

    pub fn id(&mut self) -> TypeId {
        TypeId(self.uint() as u32)
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let n = self.uint() as usize;
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(read(self));
        }
        items
    }

    pub fn kind(&mut self) -> GroupVersionKind {
        GroupVersionKind { group: self.text(), version: self.text(), kind: self.text() }
    }

    pub fn value(&mut self) -> Value {
        match self.uint() {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            2 => Value::Int(self.int()),
            3 => Value::String(self.text()),
            4 => Value::Array(self.list(Reader::value)),
            _ => Value::object(),
        }
    }
}
