//! The other reader of the reference: requests are read into types by it, and its complaints tell where and what.

use super::der::{bits, dotted};
use std::fmt::Display;

/// What kind of value a field takes.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub tag: u32,
    /// Of the type it is read into, for messages.
    pub name: &'static str,
    pub compound: bool,
}

pub const fn sequence(name: &'static str) -> Wanted {
    Wanted { tag: 16, name, compound: true }
}

pub const OID: Wanted = Wanted { tag: 6, name: "ObjectIdentifier", compound: false };
pub const BITS: Wanted = Wanted { tag: 3, name: "BitString", compound: false };
pub const INT: Wanted = Wanted { tag: 2, name: "int", compound: false };
pub const BYTES: Wanted = Wanted { tag: 4, name: "", compound: false };
pub const BOOL: Wanted = Wanted { tag: 1, name: "bool", compound: false };
pub const SET: Wanted = Wanted { tag: 17, name: "RelativeDistinguishedNameSET", compound: true };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub class: u8,
    pub tag: u32,
    pub length: usize,
    pub compound: bool,
}

impl Header {
    fn is(&self, wanted: &Wanted) -> bool {
        self.class == 0 && self.tag == wanted.tag && self.compound == wanted.compound
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    pub header: Header,
    pub content: &'a [u8],
    pub whole: &'a [u8],
}

pub fn syntax(what: impl Display) -> String {
    format!("asn1: syntax error: {what}")
}

pub fn structure(what: impl Display) -> String {
    format!("asn1: structure error: {what}")
}

/// What is inside a value, read from the start.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next value, whatever it is.
    pub fn any(&mut self) -> Result<Item<'a>, String> {
        let (header, content) = self.head()?;
        self.item(header, content)
    }

    pub fn take(&mut self, wanted: Wanted) -> Result<Item<'a>, String> {
        let (header, content) = self.head()?;
        if !header.is(&wanted) {
            return Err(mismatch(wanted.tag, &header, "<nil>", wanted.name, content));
        }
        self.item(header, content)
    }

    /// A list whose tag is the context's number 0 instead of its own.
    pub fn take_context_zero(&mut self) -> Result<Item<'a>, String> {
        let (header, content) = self.head()?;
        if header.class != 2 || header.tag != 0 || !header.compound {
            return Err(mismatch(0, &header, "0x0", "", content));
        }
        self.item(header, content)
    }

    /// The next value if it is as wanted.
    pub fn take_if(&mut self, wanted: Wanted) -> Result<Option<Item<'a>>, String> {
        if self.is_empty() {
            return Ok(None);
        }
        let (header, content) = self.head()?;
        if header.is(&wanted) { self.item(header, content).map(Some) } else { Ok(None) }
    }

    pub fn oid(&mut self) -> Result<String, String> {
        let content = self.take(OID)?.content;
        if content.is_empty() {
            return Err(syntax("zero length OBJECT IDENTIFIER"));
        }
        dotted(content).ok_or_else(|| match content.last() {
            Some(last) if last & 0x80 != 0 => syntax("truncated base 128 integer"),
            _ if content[0] == 0x80 => syntax("integer is not minimally encoded"),
            _ => structure("base 128 integer too large"),
        })
    }

    pub fn bit_string(&mut self) -> Result<Vec<u8>, String> {
        let content = self.take(BITS)?.content;
        if content.is_empty() {
            return Err(syntax("zero length BIT STRING"));
        }
        bits(content).ok_or_else(|| syntax("invalid padding bits in BIT STRING"))
    }

    pub fn integer(&mut self) -> Result<(), String> {
        match self.take(INT)?.content {
            [] => Err(structure("empty integer")),
            [0, second, ..] if second & 0x80 == 0 => Err(structure("integer not minimally-encoded")),
            [0xff, second, ..] if second & 0x80 != 0 => Err(structure("integer not minimally-encoded")),
            bytes if bytes.len() > 8 => Err(structure("integer too large")),
            _ => Ok(()),
        }
    }

    /// Tag and length of the next value, and where its content starts.
    fn head(&self) -> Result<(Header, usize), String> {
        if self.is_empty() {
            return Err(syntax("sequence truncated"));
        }
        header(self.bytes, self.at)
    }

    fn item(&mut self, header: Header, content: usize) -> Result<Item<'a>, String> {
        let end = content.checked_add(header.length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| syntax("data truncated"))?;
        let item = Item { header, content: &self.bytes[content..end], whole: &self.bytes[self.at..end] };
        self.at = end;
        Ok(item)
    }
}

/// The elements of a list, all of one type.
pub fn list(content: &[u8], wanted: Wanted) -> Result<Vec<Item<'_>>, String> {
    let mut fields = Fields::of(content);
    let mut all = Vec::new();
    while !fields.is_empty() {
        let (header, at) = fields.head()?;
        if !header.is(&wanted) {
            return Err(structure("sequence tag mismatch"));
        }
        all.push(fields.item(header, at).map_err(|_| syntax("truncated sequence"))?);
    }
    Ok(all)
}

fn mismatch(wanted: u32, found: &Header, tag: &str, name: &str, at: usize) -> String {
    let Header { class, tag: number, length, compound } = found;
    structure(format!(
        "tags don't match ({wanted} vs {{class:{class} tag:{number} length:{length} isCompound:{compound}}}) \
         {{optional:false explicit:false application:false private:false defaultValue:<nil> tag:{tag} stringType:0 \
         timeType:0 set:false omitEmpty:false}} {name} @{at}"
    ))
}

fn header(bytes: &[u8], at: usize) -> Result<(Header, usize), String> {
    const LONG_TAG: u32 = 0x1f;
    let mut rest = bytes[at..].iter().copied();
    let first = rest.next().ok_or_else(|| syntax("sequence truncated"))?;
    let mut header = Header { class: first >> 6, tag: u32::from(first & 0x1f), length: 0, compound: first & 0x20 != 0 };
    let truncated = || syntax("truncated tag or length");
    if header.tag == LONG_TAG {
        header.tag = long_tag(&mut rest)?;
    }
    let length = rest.next().ok_or_else(truncated)?;
    if length & 0x80 == 0 {
        header.length = usize::from(length);
        return Ok((header, bytes.len() - rest.len()));
    }
    if length == 0x80 {
        return Err(syntax("indefinite length found (not DER)"));
    }
    for _ in 0..length & 0x7f {
        let byte = rest.next().ok_or_else(truncated)?;
        if header.length >= 1 << 23 {
            return Err(structure("length too large"));
        }
        header.length = header.length << 8 | usize::from(byte);
        if header.length == 0 {
            return Err(structure("superfluous leading zeros in length"));
        }
    }
    if header.length < 0x80 {
        return Err(structure("non-minimal length"));
    }
    Ok((header, bytes.len() - rest.len()))
}

fn long_tag(rest: &mut impl Iterator<Item = u8>) -> Result<u32, String> {
    const MOST_BYTES: usize = 5;
    let mut number = 0u64;
    for i in 0.. {
        if i == MOST_BYTES {
            return Err(structure("base 128 integer too large"));
        }
        let byte = rest.next().ok_or_else(|| syntax("truncated base 128 integer"))?;
        if i == 0 && byte == 0x80 {
            return Err(syntax("integer is not minimally encoded"));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    match u32::try_from(number) {
        Ok(tag @ 0x1f..=0x7fff_ffff) => Ok(tag),
        Ok(0..0x1f) => Err(syntax("non-minimal tag")),
        _ => Err(structure("base 128 integer too large")),
    }
}
