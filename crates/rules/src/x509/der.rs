//! Distinguished encoding rules, read strictly: one way to write each value, low tag numbers, four bytes of length at most.

pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// A primitive value of a context's own tag.
pub const fn context(number: u8) -> u8 {
    0x80 | number
}

/// The same with values inside.
pub const fn constructed(number: u8) -> u8 {
    0xa0 | number
}

#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// With tag and length.
    pub whole: &'a [u8],
}

/// What is left to read. Nothing is taken where a method says `None`.
#[derive(Debug, Clone, Copy)]
pub struct Der<'a>(pub &'a [u8]);

impl<'a> Der<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn any(&mut self) -> Option<Element<'a>> {
        const LONG_TAG: u8 = 0x1f;
        let [tag, first, ..] = *self.0 else { return None };
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let (header, length) = match first {
            0..=0x7f => (2, usize::from(first)),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let bytes = self.0.get(2..2 + count)?;
                let length = bytes.iter().fold(0, |sum, b| sum << 8 | usize::from(*b));
                if length < 0x80 || bytes[0] == 0 {
                    return None;
                }
                (2 + count, length)
            }
            _ => return None,
        };
        let whole = self.0.get(..header.checked_add(length)?)?;
        self.0 = &self.0[whole.len()..];
        Some(Element { tag, content: &whole[header..], whole })
    }

    pub fn peek(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    pub fn element(&mut self, tag: u8) -> Option<Element<'a>> {
        if self.peek(tag) { self.any() } else { None }
    }

    /// The content of the next value, which has this tag.
    pub fn take(&mut self, tag: u8) -> Option<Der<'a>> {
        self.element(tag).map(|element| Der(element.content))
    }

    /// A value that may be absent; `None` if it is there and malformed.
    pub fn optional(&mut self, tag: u8) -> Option<Option<Der<'a>>> {
        if self.peek(tag) { self.take(tag).map(Some) } else { Some(None) }
    }

    /// The bytes of an integer, which has no byte too many.
    pub fn integer(&mut self) -> Option<&'a [u8]> {
        self.integer_tagged(INTEGER)
    }

    pub fn integer_tagged(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut tried = *self;
        let bytes = tried.take(tag)?.0;
        let is_minimal = match bytes {
            [] => false,
            [0, second, ..] => second & 0x80 != 0,
            [0xff, second, ..] => second & 0x80 == 0,
            _ => true,
        };
        is_minimal.then(|| {
            *self = tried;
            bytes
        })
    }

    pub fn boolean(&mut self) -> Option<bool> {
        match self.take(BOOLEAN)?.0 {
            [0] => Some(false),
            [0xff] => Some(true),
            _ => None,
        }
    }

    /// The bits of a bit string, aligned to the right.
    pub fn bit_string(&mut self) -> Option<Vec<u8>> {
        bits(self.take(BIT_STRING)?.0)
    }

    /// As text with dots.
    pub fn oid(&mut self) -> Option<String> {
        dotted(self.take(OBJECT_IDENTIFIER)?.0)
    }
}

/// The bits of a bit string by its content, aligned to the right.
pub fn bits(content: &[u8]) -> Option<Vec<u8>> {
    let (unused, bytes) = content.split_first()?;
    let unused = u32::from(*unused);
    if unused == 0 {
        return Some(bytes.to_vec());
    }
    let last = bytes.last()?;
    if unused > 7 || last & ((1 << unused) - 1) != 0 {
        return None;
    }
    let shifted = bytes.iter().scan(0, |before, byte| {
        let aligned = *before | byte >> unused;
        *before = byte << (8 - unused);
        Some(aligned)
    });
    Some(shifted.collect())
}

/// An object identifier by its content.
pub fn dotted(content: &[u8]) -> Option<String> {
    // As many as fit into 31 bits, which is what the reference takes.
    const LONGEST_ARC: usize = 5;
    let mut arcs = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let count = rest.iter().position(|b| b & 0x80 == 0)? + 1;
        if count > LONGEST_ARC || rest[0] == 0x80 {
            return None;
        }
        let arc = rest[..count].iter().fold(0u64, |sum, b| sum << 7 | u64::from(b & 0x7f));
        if arc > i32::MAX as u64 {
            return None;
        }
        arcs.push(arc);
        rest = &rest[count..];
    }
    let (first, others) = arcs.split_first()?;
    let (one, two) = if *first < 80 { (first / 40, first % 40) } else { (2, first - 80) };
    let mut text = format!("{one}.{two}");
    for arc in others {
        text.push_str(&format!(".{arc}"));
    }
    Some(text)
}
