//! Syntax errors of JSON in the words of Go's scanner: clients and transcripts compare them.

use kubelith_meta::text::is_printable;
use std::fmt;

/// JSON that cannot be read at all. Displays as Go's `json.SyntaxError` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub kind: SyntaxErrorKind,
    /// Bytes read when it was noticed, the offending one included.
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    /// The input ends inside a value.
    UnexpectedEnd,
    /// A byte that cannot stand where it is, and what was being read.
    InvalidCharacter { byte: u8, context: &'static str },
}

impl SyntaxError {
    pub(crate) fn end(offset: usize) -> SyntaxError {
        SyntaxError { kind: SyntaxErrorKind::UnexpectedEnd, offset }
    }

    /// `offset` is where the byte stands.
    pub(crate) fn invalid(byte: u8, context: &'static str, offset: usize) -> SyntaxError {
        SyntaxError { kind: SyntaxErrorKind::InvalidCharacter { byte, context }, offset: offset + 1 }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SyntaxErrorKind::UnexpectedEnd => f.write_str("unexpected end of JSON input"),
            SyntaxErrorKind::InvalidCharacter { byte, context } => {
                write!(f, "invalid character {} {context}", QuotedByte(*byte))
            }
        }
    }
}

impl std::error::Error for SyntaxError {}

/// A byte between single quotes. Bytes above 127 are taken for Latin-1 code points, as Go does.
struct QuotedByte(u8);

impl fmt::Display for QuotedByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\'' => f.write_str(r"'\''"),
            b'\\' => f.write_str(r"'\\'"),
            0x07 => f.write_str(r"'\a'"),
            0x08 => f.write_str(r"'\b'"),
            0x0c => f.write_str(r"'\f'"),
            b'\n' => f.write_str(r"'\n'"),
            b'\r' => f.write_str(r"'\r'"),
            b'\t' => f.write_str(r"'\t'"),
            0x0b => f.write_str(r"'\v'"),
            b if is_printable(char::from(b)) => write!(f, "'{}'", char::from(b)),
            b if b < 0x80 => write!(f, r"'\x{b:02x}'"),
            b => write!(f, r"'\u{b:04x}'"),
        }
    }
}
