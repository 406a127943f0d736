//! PEM blocks among other text. A block that is broken is skipped, not complained about.

use kubelith_codec::base64;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub label: String,
    pub has_headers: bool,
    pub bytes: Vec<u8>,
}

/// The next block, and what follows its last line.
pub fn next(text: &[u8]) -> Option<(Block, &[u8])> {
    let mut rest = text;
    loop {
        let end = find(rest, END)?;
        // Of several first lines the last one counts: those before it never ended.
        if let Some(found) = rfind(&rest[..end], BEGIN).and_then(|begin| block(rest, begin, end)) {
            return Some(found);
        }
        rest = &rest[end + END.len()..];
    }
}

/// All blocks.
pub fn blocks(text: &[u8]) -> impl Iterator<Item = Block> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (block, after) = next(rest)?;
        rest = after;
        Some(block)
    })
}

/// The block whose first line starts at `begin`, and before whose last line a line ends at `end`.
fn block(text: &[u8], begin: usize, end: usize) -> Option<(Block, &[u8])> {
    if begin > 0 && text[begin - 1] != b'\n' {
        return None;
    }
    let mut at = begin + BEGIN.len();
    let (first, consumed) = line(&text[at..]);
    at += consumed;
    let label = first.strip_suffix(DASHES)?;
    let mut has_headers = false;
    while at < text.len() {
        let (header, consumed) = line(&text[at..]);
        if !header.contains(&b':') {
            break;
        }
        has_headers = true;
        at += consumed;
    }
    // Without headers the first line's end may be the one before the last line.
    if has_headers && at > end {
        return None;
    }
    let after = text.get(end + END.len()..)?;
    let after = after.strip_prefix(label)?.strip_prefix(DASHES)?;
    let (remainder, consumed) = line(after);
    if !remainder.is_empty() {
        return None;
    }
    let body = if end > at { &text[at..end] } else { &[] };
    let body: Vec<u8> = body.iter().copied().filter(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')).collect();
    let bytes = base64::decode(std::str::from_utf8(&body).ok()?).ok()?;
    let label = String::from_utf8_lossy(label).into_owned();
    Some((Block { label, has_headers, bytes }, &after[consumed..]))
}

/// The first line without its end and the blanks before that, and how much it takes up.
fn line(text: &[u8]) -> (&[u8], usize) {
    let (line, consumed) = match memchr(text) {
        Some(at) => (text[..at].strip_suffix(b"\r").unwrap_or(&text[..at]), at + 1),
        None => (text, text.len()),
    };
    let blanks = line.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    (&line[..line.len() - blanks], consumed)
}

fn memchr(text: &[u8]) -> Option<usize> {
    text.iter().position(|b| *b == b'\n')
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|w| w == part)
}

fn rfind(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).rposition(|w| w == part)
}
