//! The wire format: varints, tags, lengths; read with the checks and the words of the reference's generated code.

use std::fmt;

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// The input ends before a value does.
    UnexpectedEnd,
    IntegerOverflow,
    NegativeLength,
    UnexpectedEndOfGroup,
    IllegalWireType(u8),
    WrongWireType {
        wire_type: u8,
        field: String,
    },
    EndGroupOutside {
        message: String,
    },
    IllegalTag {
        message: String,
        number: i32,
        tag: u64,
    },
    /// Messages nested beyond what we follow.
    TooDeep,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::UnexpectedEnd => f.write_str("unexpected EOF"),
            WireError::IntegerOverflow => f.write_str("proto: integer overflow"),
            WireError::NegativeLength => f.write_str("proto: negative length found during unmarshaling"),
            WireError::UnexpectedEndOfGroup => f.write_str("proto: unexpected end of group"),
            WireError::IllegalWireType(t) => write!(f, "proto: illegal wireType {t}"),
            WireError::WrongWireType { wire_type, field } => {
                write!(f, "proto: wrong wireType = {wire_type} for field {field}")
            }
            WireError::EndGroupOutside { message } => {
                write!(f, "proto: {message}: wiretype end group for non-group")
            }
            WireError::IllegalTag { message, number, tag } => {
                write!(f, "proto: {message}: illegal tag {number} (wire type {tag})")
            }
            WireError::TooDeep => f.write_str("proto: exceeded max depth"),
        }
    }
}

impl std::error::Error for WireError {}

pub(crate) type Result<T> = std::result::Result<T, WireError>;

/// A cursor over a message.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// A field's number and how its value is written.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    pub number: u32,
    pub wire_type: u8,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Reader<'a> {
        Reader { rest: data }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        // Most are one byte.
        if let [b, rest @ ..] = self.rest
            && *b < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*b));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (i, &b) in self.rest.iter().enumerate() {
            if i == 10 {
                return Err(WireError::IntegerOverflow);
            }
            // Bits beyond the 64th are dropped.
            value |= u64::from(b & 0x7f) << (7 * i);
            if b < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        if self.rest.len() >= 10 { Err(WireError::IntegerOverflow) } else { Err(WireError::UnexpectedEnd) }
    }

    /// The next field's tag; `None` at the end of the message. `message` is its name, for errors.
    #[inline]
    pub fn tag(&mut self, message: impl FnOnce() -> String) -> Result<Option<Tag>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire_type) = ((tag >> 3) as i32, (tag & 7) as u8);
        if wire_type == END_GROUP {
            return Err(WireError::EndGroupOutside { message: message() });
        }
        if number <= 0 {
            return Err(WireError::IllegalTag { message: message(), number, tag });
        }
        Ok(Some(Tag { number: number as u32, wire_type }))
    }

    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.varint()?;
        if len > i64::MAX as u64 {
            return Err(WireError::NegativeLength);
        }
        if len > self.rest.len() as u64 {
            return Err(WireError::UnexpectedEnd);
        }
        let (bytes, rest) = self.rest.split_at(len as usize);
        self.rest = rest;
        Ok(bytes)
    }

    pub fn fixed64(&mut self) -> Result<u64> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<8>() else { return Err(WireError::UnexpectedEnd) };
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads over the value of a field that nobody knows.
    pub fn skip(&mut self, wire_type: u8) -> Result<()> {
        let mut groups = 0usize;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                VARINT => {
                    self.varint()?;
                }
                FIXED64 => {
                    self.fixed64()?;
                }
                BYTES => {
                    self.bytes()?;
                }
                FIXED32 => match self.rest.split_at_checked(4) {
                    Some((_, rest)) => self.rest = rest,
                    None => return Err(WireError::UnexpectedEnd),
                },
                START_GROUP => groups += 1,
                END_GROUP => match groups.checked_sub(1) {
                    Some(left) => groups = left,
                    None => return Err(WireError::UnexpectedEndOfGroup),
                },
                other => return Err(WireError::IllegalWireType(other)),
            }
            if groups == 0 {
                return Ok(());
            }
            wire_type = (self.varint()? & 7) as u8;
        }
    }
}

#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[inline]
pub(crate) fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[inline]
pub(crate) fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(out, number, VARINT);
    // Negative numbers take ten bytes, also those of 32 bits.
    put_varint(out, value as u64);
}

/// Writes a field whose length is known only when it is written. Most are shorter than 128 bytes, so one byte is
/// kept for it; longer contents move over by what the length needs more.
#[inline]
pub(crate) fn put_nested<R>(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    put_tag(out, number, BYTES);
    let start = out.len();
    out.push(0);
    let result = write(out);
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
        return result;
    }
    let extra = varint_len(len as u64) - 1;
    let end = out.len();
    out.resize(end + extra, 0);
    out.copy_within(start + 1..end, start + 1 + extra);
    let mut value = len;
    for slot in &mut out[start..start + extra] {
        *slot = value as u8 | 0x80;
        value >>= 7;
    }
    out[start + extra] = value as u8;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 35, i64::MAX as u64, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
        assert_eq!(Reader::new(&[0x80]).varint(), Err(WireError::UnexpectedEnd));
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(WireError::IntegerOverflow));
        assert_eq!(Reader::new(&[0xff; 10]).varint(), Err(WireError::IntegerOverflow));
        assert_eq!(Reader::new(&[0xff; 9]).varint(), Err(WireError::UnexpectedEnd));
    }

    #[test]
    fn nested_lengths() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
            let mut out = vec![0xaa];
            put_nested(&mut out, 2, |out| out.resize(out.len() + len, 7));
            let mut want = vec![0xaa];
            put_bytes(&mut want, 2, &vec![7; len]);
            assert_eq!(out, want, "{len}");
        }
    }

    #[test]
    fn lengths_and_groups_are_checked() {
        assert_eq!(Reader::new(&[5, 1, 2]).bytes(), Err(WireError::UnexpectedEnd));
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Reader::new(&huge).bytes(), Err(WireError::NegativeLength));
        assert_eq!(Reader::new(&[]).skip(6), Err(WireError::IllegalWireType(6)));
        // A group with a varint and another group inside.
        let mut r = Reader::new(&[0x08, 0x01, 0x13, 0x14, 0x0c, 0x55]);
        assert_eq!(r.skip(3), Ok(()));
        assert_eq!(r.varint(), Ok(0x55));
        assert_eq!(Reader::new(&[0x08]).skip(3), Err(WireError::UnexpectedEnd));
        let message = || "Pod".to_owned();
        let e = |data: &[u8]| Reader::new(data).tag(message).err().unwrap().to_string();
        assert_eq!(e(&[0x04]), "proto: Pod: wiretype end group for non-group");
        assert_eq!(e(&[0x02]), "proto: Pod: illegal tag 0 (wire type 2)");
    }
}
