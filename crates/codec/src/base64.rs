//! Base64 as Go's `StdEncoding` takes it: line breaks are skipped, unused bits of the last character are
//! ignored, and errors name the byte where Go noticed them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The offset in "illegal base64 data at input byte N".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorruptInput(pub usize);

impl std::fmt::Display for CorruptInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "illegal base64 data at input byte {}", self.0)
    }
}

impl std::error::Error for CorruptInput {}

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn decode(text: &str) -> Result<Vec<u8>, CorruptInput> {
    match STANDARD.decode(text) {
        Ok(bytes) => Ok(bytes),
        Err(_) => decode_as_go(text.as_bytes()),
    }
}

/// True if encoding what `text` decodes to gives `text` again.
pub fn is_canonical(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return false;
    }
    let padding = bytes.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    let digits = &bytes[..bytes.len() - padding];
    if !digits.iter().all(|&b| digit(b).is_some()) {
        return false;
    }
    // The last digit before the padding has two or four bits that stand for nothing.
    let unused = match padding {
        0 => 0,
        1 => 0b11,
        _ => 0b1111,
    };
    digits.last().and_then(|&b| digit(b)).is_none_or(|d| d & unused == 0)
}

fn digit(b: u8) -> Option<u8> {
    Some(match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The slow way, for text with line breaks, stray bits or errors.
fn decode_as_go(src: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let mut out = Vec::with_capacity(src.len() / 4 * 3 + 3);
    let mut pos = 0;
    let mut quantum = [0u8; 4];
    loop {
        let mut filled = 0;
        while filled < 4 {
            let Some(&b) = src.get(pos) else {
                // Go counts back the digits it has, and not the line breaks between them.
                return if filled == 0 { Ok(out) } else { Err(CorruptInput(pos - filled)) };
            };
            pos += 1;
            if let Some(d) = digit(b) {
                quantum[filled] = d;
                filled += 1;
            } else if b == b'=' {
                pos = padding(src, pos, filled)?;
                push_quantum(&mut out, &quantum, filled);
                return if pos < src.len() { Err(CorruptInput(pos)) } else { Ok(out) };
            } else if !matches!(b, b'\n' | b'\r') {
                return Err(CorruptInput(pos - 1));
            }
        }
        push_quantum(&mut out, &quantum, 4);
    }
}

/// Reads over the padding whose first character is behind us.
fn padding(src: &[u8], mut pos: usize, filled: usize) -> Result<usize, CorruptInput> {
    if filled < 2 {
        return Err(CorruptInput(pos - 1));
    }
    if filled == 2 {
        pos = skip_breaks(src, pos);
        match src.get(pos) {
            None => return Err(CorruptInput(src.len())),
            Some(b'=') => pos += 1,
            Some(_) => return Err(CorruptInput(pos - 1)),
        }
    }
    Ok(skip_breaks(src, pos))
}

fn skip_breaks(src: &[u8], mut pos: usize) -> usize {
    while matches!(src.get(pos), Some(b'\n' | b'\r')) {
        pos += 1;
    }
    pos
}

fn push_quantum(out: &mut Vec<u8>, q: &[u8; 4], filled: usize) {
    let bits = u32::from(q[0]) << 18 | u32::from(q[1]) << 12 | u32::from(q[2]) << 6 | u32::from(q[3]);
    let [_, a, b, c] = bits.to_be_bytes();
    out.extend_from_slice(&[a, b, c][..filled - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_and_complains_as_go_does() {
        for (text, want) in [
            ("", Ok("")),
            ("aGk=", Ok("hi")),
            ("aGlh", Ok("hia")),
            ("aA==", Ok("h")),
            ("aG\nlh\r\n", Ok("hia")),
            ("aA=\n=\n", Ok("h")),
            // Stray bits in the last digit.
            ("aB==", Ok("h")),
            ("aGk", Err(0)),
            ("aGlhaGk", Err(4)),
            ("aA=", Err(3)),
            ("a===", Err(1)),
            ("=", Err(0)),
            ("aGk=x", Err(4)),
            ("aG!=", Err(2)),
            ("aA=x", Err(2)),
            ("not base64!", Err(3)),
            ("%%", Err(0)),
        ] {
            let got = decode(text).map_err(|e| e.0);
            assert_eq!(got, want.map(|s| s.as_bytes().to_vec()), "{text:?}");
            let canonical = got.as_ref().is_ok_and(|bytes| encode(bytes) == text);
            assert_eq!(is_canonical(text), canonical, "{text:?}");
        }
    }
}
