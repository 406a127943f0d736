//! `Value` to JSON text as kube-apiserver's serializer prints it: `<`, `>`, `&` and the two Unicode line
//! separators escaped, keys in order.

use super::SyntaxError;
use super::number::{write_float, write_int};
use kubelith_meta::words::{Found, Marks, Word, run_len};
use kubelith_meta::{Map, Value};
use std::io::Write;

/// Values nested deeper are written without recursion.
const MAX_RECURSION: usize = 128;

/// Appends the compact form.
pub fn write(out: &mut Vec<u8>, value: &Value) {
    write_at(out, value, 0);
}

fn write_at(out: &mut Vec<u8>, value: &Value, depth: usize) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(i) => write_int(out, *i),
        Value::Float(f) => write_float(out, *f),
        Value::String(s) => write_string(out, s),
        Value::Raw(text) => out.extend_from_slice(text.as_bytes()),
        deep if depth > MAX_RECURSION => write_deep(out, deep),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_at(out, item, depth + 1);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            if let Some(text) = members.text() {
                return out.extend_from_slice(text);
            }
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(out, key);
                out.push(b':');
                match value {
                    Value::String(s) => write_string(out, s),
                    value => write_at(out, value, depth + 1),
                }
            }
            out.push(b'}');
        }
    }
}

/// The same with a stack of our own: clients may nest as deep as they like.
fn write_deep(out: &mut Vec<u8>, value: &Value) {
    enum Open<'v> {
        Array(std::slice::Iter<'v, Value>),
        Object(&'v Map, usize),
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        match next.take() {
            Some(Value::Array(items)) => {
                out.push(b'[');
                open.push(Open::Array(items.iter()));
            }
            Some(Value::Object(members)) => {
                out.push(b'{');
                open.push(Open::Object(members, 0));
            }
            Some(scalar) => write_at(out, scalar, 0),
            None => {}
        }
        // Opening brackets are followed by an element, elements by a comma and another.
        let first = matches!(out.last(), Some(b'[' | b'{'));
        match open.last_mut() {
            None => return,
            Some(Open::Array(items)) => match items.next() {
                Some(item) => {
                    if !first {
                        out.push(b',');
                    }
                    next = Some(item);
                }
                None => {
                    out.push(b']');
                    open.pop();
                }
            },
            Some(Open::Object(members, at)) => match members.at(*at) {
                Some((key, value)) => {
                    if !first {
                        out.push(b',');
                    }
                    *at += 1;
                    write_string(out, key);
                    out.push(b':');
                    next = Some(value);
                }
                None => {
                    out.push(b'}');
                    open.pop();
                }
            },
        }
    }
}

/// The compact form in a buffer of its own.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write(&mut out, value);
    out
}

/// The compact form as text, for annotations and messages.
pub fn to_string(value: &Value) -> String {
    String::from_utf8(to_vec(value)).expect("JSON of valid strings is UTF-8")
}

/// Appends the form for people (`?pretty=true`): two spaces per level, no newline at the end.
pub fn write_pretty(out: &mut Vec<u8>, value: &Value) {
    pretty(out, value, 0);
}

fn pretty(out: &mut Vec<u8>, value: &Value, level: usize) {
    match value {
        // Nobody reads that deep.
        deep if level > MAX_RECURSION => write_deep(out, deep),
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                newline(out, level + 1);
                pretty(out, item, level + 1);
            }
            newline(out, level);
            out.push(b']');
        }
        Value::Raw(text) => pretty(out, &super::parse(text.as_bytes()).unwrap_or_default(), level),
        Value::Object(members) if !members.is_empty() => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                newline(out, level + 1);
                write_string(out, key);
                out.extend_from_slice(b": ");
                pretty(out, value, level + 1);
            }
            newline(out, level);
            out.push(b'}');
        }
        scalar_or_empty => write(out, scalar_or_empty),
    }
}

fn newline(out: &mut Vec<u8>, level: usize) {
    out.push(b'\n');
    for _ in 0..level {
        out.extend_from_slice(b"  ");
    }
}

/// Appends compact JSON as `write_pretty` would have written it, without reading it into a value. For cached
/// bytes; `compact` must be valid JSON.
pub fn reindent(out: &mut Vec<u8>, compact: &[u8]) {
    let mut level = 0;
    let mut i = 0;
    while let Some(&b) = compact.get(i) {
        match b {
            b'"' => {
                let end = string_end(compact, i);
                out.extend_from_slice(&compact[i..end]);
                i = end;
                continue;
            }
            b'{' | b'[' => {
                out.push(b);
                if matches!(compact.get(i + 1), Some(b'}' | b']')) {
                    out.push(compact[i + 1]);
                    i += 2;
                    continue;
                }
                level += 1;
                newline(out, level);
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                newline(out, level);
                out.push(b);
            }
            b',' => {
                out.push(b);
                newline(out, level);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' | b' ' | b'\t' | b'\r' => {}
            b => out.push(b),
        }
        i += 1;
    }
}

/// Appends JSON that may have white space and unescaped characters as the serializer would have written it. An
/// error if it is no JSON; `out` is then as it was.
pub fn compact(out: &mut Vec<u8>, json: &[u8]) -> Result<(), SyntaxError> {
    super::validate(json)?;
    let start = out.len();
    let plain = memchr::memchr3(b'<', b'>', b'&', json).is_none()
        && memchr::memchr3(b' ', b'\n', b'\t', json).is_none()
        && memchr::memchr2(b'\r', 0xe2, json).is_none();
    // Strings that are no UTF-8 must be repaired; a look at all of it is cheaper than one at each.
    if plain && std::str::from_utf8(json).is_ok() {
        out.extend_from_slice(json);
        return Ok(());
    }
    let mut i = 0;
    while let Some(&b) = json.get(i) {
        match b {
            b'"' => {
                let end = string_end(json, i);
                escape_html(out, &json[i..end]);
                i = end;
                continue;
            }
            b' ' | b'\n' | b'\t' | b'\r' => {}
            b => out.push(b),
        }
        i += 1;
    }
    debug_assert!(super::validate(&out[start..]).is_ok());
    Ok(())
}

/// JSON as a value that is not looked into: an object, or null.
pub fn raw(json: &[u8]) -> Result<Value, SyntaxError> {
    if super::fields::tree_len(json) == Some(json.len())
        && let Ok(text) = std::str::from_utf8(json)
    {
        return Ok(Value::Raw(text.into()));
    }
    let mut text = Vec::with_capacity(json.len());
    compact(&mut text, json)?;
    let text = String::from_utf8(text).expect("compact JSON is UTF-8");
    Ok(if text == "null" { Value::Null } else { Value::Raw(text.into()) })
}

/// Turns `fieldsV1` of an object's managedFields into a tree, for who wants to look into them.
pub fn unfold_fields(object: &mut Value) {
    let Some(list) = object.at_mut(&["metadata", "managedFields"]).and_then(Value::as_array_mut) else { return };
    for entry in list {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Value::Raw(text) = fields
        {
            *fields = super::parse(text.as_bytes()).unwrap_or_default();
        }
    }
}

/// A string with its quotes, as it is but for what the serializer escapes.
fn escape_html(out: &mut Vec<u8>, string: &[u8]) {
    let text = match std::str::from_utf8(string) {
        Ok(text) => std::borrow::Cow::Borrowed(text),
        Err(_) => {
            let mut repaired = String::with_capacity(string.len() + 8);
            super::lexer::push_repaired(&mut repaired, string);
            std::borrow::Cow::Owned(repaired)
        }
    };
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{:04x}", c as u32).expect("writing to a Vec cannot fail");
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Behind the closing quote of the string that begins at `start`.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while let Some(&b) = json.get(i) {
        match b {
            b'"' => return i + 1,
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
    json.len()
}

/// Appends a string with its quotes.
pub fn write_string(out: &mut Vec<u8>, s: &str) {
    let bytes = s.as_bytes();
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        write_escaped(out, bytes);
    }
    out.push(b'"');
}

/// Whether all bytes are ASCII and stand for themselves: true of nearly all strings.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    // The first and the last bytes overlap, or are all there are of up to twice as many.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let between = bytes.as_chunks().0[1..].iter();
        return between
            .fold(unlike_plain(first) | unlike_plain(last), |found, bytes| found | unlike_plain(bytes))
            .is_none();
    }
    let mut both = [b' '; 8];
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        both[..4].copy_from_slice(first);
        both[4..].copy_from_slice(last);
    } else {
        both[..bytes.len()].copy_from_slice(bytes);
    }
    unlike_plain(&both).is_none()
}

/// The bytes that are no ASCII or have to be escaped.
#[inline(always)]
fn unlike_plain(bytes: &[u8; 8]) -> Marks {
    let word = Word::of(bytes);
    word.ascii_and_beyond(escaped(word))
}

/// The bytes of ASCII that have to be escaped.
#[inline(always)]
fn escaped(word: Word) -> Found {
    word.below(b' ') | word.with(4).equal(b'&') | word.equal(b'\\') | word.with(2).equal(b'>')
}

#[cold]
fn write_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let Some(&b) = special.first() else { break };
        let mut width = 1;
        match ESCAPES[usize::from(b)] {
            UNICODE => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(b >> 4)]);
                out.push(HEX[usize::from(b & 15)]);
            }
            MAYBE_SEPARATOR => {
                // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
                width = 3;
                match special {
                    [_, 0x80, 0xa8, ..] => out.extend_from_slice(b"\\u2028"),
                    [_, 0x80, 0xa9, ..] => out.extend_from_slice(b"\\u2029"),
                    other => out.extend_from_slice(&other[..3]),
                }
            }
            PLAIN => out.push(b),
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
        rest = &special[width..];
    }
}

/// How many bytes need no look.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    run_len(bytes, |word| word.ascii(escaped(word)) | word.beyond(0xe2))
}

const PLAIN: u8 = 0;
const UNICODE: u8 = b'u';
const MAYBE_SEPARATOR: u8 = 1;

/// How a byte is written: as it is, as `\u00xx`, as a backslash and the letter given, or only after a look at
/// what follows.
static ESCAPES: [u8; 256] = {
    let mut t = [PLAIN; 256];
    let mut i = 0;
    while i < 0x20 {
        t[i] = UNICODE;
        i += 1;
    }
    t[b'<' as usize] = UNICODE;
    t[b'>' as usize] = UNICODE;
    t[b'&' as usize] = UNICODE;
    t[b'"' as usize] = b'"';
    t[b'\\' as usize] = b'\\';
    t[0x08] = b'b';
    t[0x0c] = b'f';
    t[b'\n' as usize] = b'n';
    t[b'\r' as usize] = b'r';
    t[b'\t' as usize] = b't';
    t[0xe2] = MAYBE_SEPARATOR;
    t
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings are plain if all of their bytes are, wherever in them a byte stands.
    #[test]
    fn one_byte_decides_whether_a_string_is_plain() {
        for len in 1..=20 {
            for at in 0..len {
                for byte in 0..=255u8 {
                    for other in *b" !z\x7f" {
                        let mut bytes = vec![other; len];
                        bytes[at] = byte;
                        let expected = byte.is_ascii() && ESCAPES[usize::from(byte)] == PLAIN;
                        assert_eq!(is_plain(&bytes), expected, "{bytes:?}");
                    }
                }
            }
        }
        assert!(is_plain(b""));
    }
}
