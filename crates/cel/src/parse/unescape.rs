//! Literals of strings and bytes to what they mean.

use std::borrow::Cow;

/// Why a literal means nothing, as clients read it.
pub type Error = &'static str;

/// A string literal with its quotes.
pub fn string(literal: &str) -> Result<Cow<'_, str>, Error> {
    let (content, raw) = content(literal)?;
    if raw || !content.contains('\\') {
        return Ok(content);
    }
    let mut out = String::with_capacity(content.len());
    let mut rest = &*content;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (code, _, tail) = escape(&rest[at..])?;
        out.push(char::from_u32(code).ok_or("invalid unicode code point")?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out.into())
}

/// A bytes literal without its `b`. Escapes with digits are bytes, not characters.
pub fn bytes(literal: &str) -> Result<Vec<u8>, Error> {
    let (content, raw) = content(literal)?;
    let mut rest = &*content;
    if raw {
        return Ok(rest.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (code, unicode, tail) = escape(&rest[at..])?;
        if unicode {
            return Err("unable to unescape string");
        }
        out.push(code as u8);
        rest = tail;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// What is between the quotes, with `\n` at the ends of lines, and whether it is raw.
fn content(literal: &str) -> Result<(Cow<'_, str>, bool), Error> {
    const BAD: Error = "unable to unescape string";
    let unprefixed = literal.strip_prefix(['r', 'R']);
    let quoted = unprefixed.unwrap_or(literal);
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or(BAD)?;
    let width = if quoted.len() >= 6 && quoted.as_bytes()[..3] == [quote as u8; 3] { 3 } else { 1 };
    let inner = quoted.get(width..quoted.len().wrapping_sub(width)).ok_or(BAD)?;
    let text = if inner.contains('\r') { inner.replace("\r\n", "\n").replace('\r', "\n").into() } else { inner.into() };
    Ok((text, unprefixed.is_some()))
}

/// An escape sequence at the beginning: its value, whether it must be a character (`\u`), and what follows it.
fn escape(text: &str) -> Result<(u32, bool, &str), Error> {
    const BAD: Error = "unable to unescape string";
    let c = *text.as_bytes().get(1).ok_or("unable to unescape string, found '\\' as last character")?;
    let simple = |value: u8| Ok((u32::from(value), false, &text[2..]));
    let digits = |from: usize, n: usize, radix: u32, error: Error| {
        let end = from + n;
        let digits = text.get(from..end).ok_or(error)?;
        let value = u32::from_str_radix(digits, radix).map_err(|_| error)?;
        Ok((value, &text[end..]))
    };
    match c {
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(11),
        b'\\' | b'\'' | b'"' | b'`' | b'?' => simple(c),
        b'x' | b'X' => digits(2, 2, 16, BAD).map(|(value, rest)| (value, false, rest)),
        b'u' => digits(2, 4, 16, BAD).map(|(value, rest)| (value, true, rest)),
        b'U' => digits(2, 8, 16, BAD).map(|(value, rest)| (value, true, rest)),
        b'0'..=b'3' => {
            let error = "unable to unescape octal sequence in string";
            digits(1, 3, 8, error).map(|(value, rest)| (value, false, rest))
        }
        _ => Err(BAD),
    }
}
