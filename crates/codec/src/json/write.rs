//! `Value` to JSON text as kube-apiserver's serializer prints it: `<`, `>`, `&` and the two Unicode line
//! separators escaped, keys in order.

use super::number::{write_float, write_int};
use kubelith_meta::{Map, Value};

/// Appends the compact form.
pub fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(i) => write_int(out, *i),
        Value::Float(f) => write_float(out, *f),
        Value::String(s) => write_string(out, s),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => write_map(out, members),
    }
}

fn write_map(out: &mut Vec<u8>, members: &Map) {
    out.push(b'{');
    for (i, (key, value)) in members.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write(out, value);
    }
    out.push(b'}');
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
    out.push(b'"');
    let bytes = s.as_bytes();
    let mut done = 0;
    let mut i = 0;
    while i < bytes.len() {
        let class = ESCAPES[usize::from(bytes[i])];
        if class == PLAIN {
            i += 1;
            continue;
        }
        if class == MAYBE_SEPARATOR {
            // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
            if bytes[i + 1] == 0x80 && bytes[i + 2] & 0xfe == 0xa8 {
                out.extend_from_slice(&bytes[done..i]);
                out.extend_from_slice(if bytes[i + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                done = i + 3;
            }
            i += 3;
            continue;
        }
        out.extend_from_slice(&bytes[done..i]);
        if class == UNICODE {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            let b = bytes[i];
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(b >> 4)]);
            out.push(HEX[usize::from(b & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', class]);
        }
        i += 1;
        done = i;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
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
