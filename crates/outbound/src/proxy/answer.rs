//! How an answer in HTTP/1.1 is read: its head, and where its body ends. Heads are as strict as the HTTP library has them that reads all
//! answers which are passed on, and what is wrong with one is said in its words.

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::ops::Range;

/// Header lines of an answer; more is taken for garbage.
pub const MAX_HEADERS: usize = 1000;
/// Bytes of a head, as the HTTP library has it.
const MAX_HEAD: usize = 8192 + 4096 * 100;
/// Bytes of a chunked body that are neither data nor sizes: extensions, and trailers.
const MAX_ASIDE: usize = 16 << 10;
const VERSION: &[u8] = b"HTTP/1.";
const SWITCHING_PROTOCOLS: u16 = 101;

/// The head of an answer. Headers stay where they stood in it: few of them are looked at.
#[derive(Debug)]
pub struct Head {
    pub status: StatusCode,
    is_1_1: bool,
    text: Bytes,
    lines: Vec<(Range<usize>, Range<usize>)>,
}

/// Why a head cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("invalid HTTP version parsed")]
    Version,
    #[error("invalid HTTP status-code parsed")]
    Status,
    #[error("invalid HTTP header parsed")]
    Header,
    #[error("invalid content-length parsed")]
    Length,
    #[error("unexpected transfer-encoding parsed")]
    Coding,
    #[error("message head is too large")]
    TooLarge,
}

/// Where a body ends.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    /// With the connection.
    UntilEnd,
}

impl Head {
    /// Takes a head off the front of what was heard; `None` if it is not all there. Those that only announce another are skipped.
    /// `looked` is how much of it was looked at before, 0 at first: a head may come in as many pieces as it has bytes.
    pub fn take(heard: &mut BytesMut, looked: &mut usize) -> Result<Option<Head>, Malformed> {
        loop {
            while let [b'\n', ..] | [b'\r', b'\n', ..] = heard[..] {
                heard.advance(if heard[0] == b'\n' { 1 } else { 2 });
                *looked = 0;
            }
            let known = heard.len().min(VERSION.len());
            if heard[..] == *b"\r" {
                return Ok(None);
            }
            if heard[..known] != VERSION[..known] {
                return Err(Malformed::Version);
            }
            let Some(end) = end_of_head(heard, looked) else {
                return if heard.len() > MAX_HEAD { Err(Malformed::TooLarge) } else { Ok(None) };
            };
            *looked = 0;
            let head = Head::read(heard.split_to(end).freeze())?;
            if !head.status.is_informational() || head.status.as_u16() == SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
        }
    }

    fn read(text: Bytes) -> Result<Head, Malformed> {
        let mut lines = lines_of(&text);
        let first = lines.next().map(|line| &text[line]).unwrap_or_default();
        let (is_1_1, rest) = match first.strip_prefix(VERSION) {
            Some([b'1', b' ', rest @ ..]) => (true, rest),
            Some([b'0', b' ', rest @ ..]) => (false, rest),
            _ => return Err(Malformed::Version),
        };
        let (code, reason) = rest.split_at_checked(3).ok_or(Malformed::Status)?;
        if !matches!(reason, [] | [b' ', ..]) || !reason.iter().all(is_of_value) {
            return Err(Malformed::Status);
        }
        let status = StatusCode::from_bytes(code).map_err(|_| Malformed::Status)?;
        let mut found = Vec::new();
        for line in lines {
            let colon = text[line.clone()].iter().position(|byte| *byte == b':').ok_or(Malformed::Header)?;
            let (name, value) = (line.start..line.start + colon, line.start + colon + 1..line.end);
            let value = trimmed(&text, value);
            let is_sound = !name.is_empty()
                && text[name.clone()].iter().all(is_of_name)
                && text[value.clone()].iter().all(is_of_value);
            if !is_sound {
                return Err(Malformed::Header);
            }
            if found.len() == MAX_HEADERS {
                return Err(Malformed::TooLarge);
            }
            found.push((name, value));
        }
        Ok(Head { status, is_1_1, lines: found, text })
    }

    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let named = move |(key, _): &&(Range<usize>, Range<usize>)| {
            key.len() == name.len() && self.text[key.clone()].eq_ignore_ascii_case(name.as_bytes())
        };
        self.lines.iter().filter(named).map(|(_, value)| &self.text[value.clone()])
    }

    /// The first header of this name.
    pub fn get(&self, name: &HeaderName) -> Option<&[u8]> {
        self.all(name.as_str()).next()
    }

    /// The first header of this name, if it can be shown.
    pub fn text(&self, name: &HeaderName) -> Option<&str> {
        let is_shown = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
        self.get(name).filter(|value| value.iter().all(is_shown)).and_then(|value| std::str::from_utf8(value).ok())
    }

    pub fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.lines {
            let name = HeaderName::from_bytes(&self.text[name.clone()]);
            let value = HeaderValue::from_maybe_shared(self.text.slice(value.clone()));
            if let (Ok(name), Ok(value)) = (name, value) {
                map.append(name, value);
            }
        }
        map
    }

    /// Elements of the lists that the headers of this name are.
    fn listed<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name).flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
    }

    /// Whether the other side takes another request on the connection.
    pub fn is_kept(&self) -> bool {
        let says = |wanted: &[u8]| self.listed("connection").any(|option| option.eq_ignore_ascii_case(wanted));
        self.status.as_u16() != SWITCHING_PROTOCOLS && !says(b"close") && (self.is_1_1 || says(b"keep-alive"))
    }

    pub fn framing(&self) -> Result<Framing, Malformed> {
        if matches!(self.status.as_u16(), SWITCHING_PROTOCOLS | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        if let Some(coding) = self.listed("transfer-encoding").last() {
            return match coding.eq_ignore_ascii_case(b"chunked") {
                _ if !self.is_1_1 => Err(Malformed::Coding),
                true => Ok(Framing::Chunked),
                false => Ok(Framing::UntilEnd),
            };
        }
        let mut lengths = self.listed("content-length");
        let Some(first) = lengths.next() else { return Ok(Framing::UntilEnd) };
        let length = number(first).ok_or(Malformed::Length)?;
        match lengths.all(|other| number(other) == Some(length)) {
            true => Ok(Framing::Length(length)),
            false => Err(Malformed::Length),
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

fn is_of_value(byte: &u8) -> bool {
    (*byte >= b' ' && *byte != 0x7f) || *byte == b'\t'
}

/// Behind the empty line that ends a head. `looked` moves on to the last line feed that may still be followed by one.
fn end_of_head(heard: &[u8], looked: &mut usize) -> Option<usize> {
    while let Some(feed) = heard[*looked..].iter().position(|byte| *byte == b'\n') {
        let at = *looked + feed + 1;
        match heard[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            [] | [b'\r'] => {
                *looked = at - 1;
                return None;
            }
            _ => *looked = at,
        }
    }
    *looked = heard.len();
    None
}

/// The lines of a head, without what ends them, to the empty one.
fn lines_of(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let length = text[at..].iter().position(|byte| *byte == b'\n')?;
        let line = at..at + length - usize::from(text[at..at + length].ends_with(b"\r"));
        at += length + 1;
        (!line.is_empty()).then_some(line)
    })
}

fn trimmed(text: &[u8], value: Range<usize>) -> Range<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let blank = text[value.clone()].iter().take_while(|byte| is_blank(byte)).count();
    let start = value.start + blank;
    let behind = text[start..value.end].iter().rev().take_while(|byte| is_blank(byte)).count();
    start..value.end - behind
}

/// Why a body is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It ended early.
    Cut,
    /// A size of a chunk is none.
    ChunkSize,
}

/// Reads a body in chunks.
#[derive(Debug, Default)]
pub struct Chunks {
    at: At,
    /// Of this chunk, still to come.
    size: u64,
    aside: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    FirstDigit,
    Digits,
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// A line of them begins.
    Trailers,
    Trailer,
    LastLf,
    End,
}

impl Chunks {
    /// Takes what it can off the front of what was heard. Whether that was all of the body.
    pub fn take(&mut self, heard: &mut BytesMut, body: &mut BytesMut) -> Result<bool, Broken> {
        while !heard.is_empty() && self.at != At::End {
            if self.at == At::Data {
                let there = heard.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
                body.extend_from_slice(&heard[..there]);
                heard.advance(there);
                self.size -= there as u64;
                if self.size == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            self.at = self.step(heard.get_u8())?;
        }
        Ok(self.at == At::End)
    }

    fn step(&mut self, byte: u8) -> Result<At, Broken> {
        if let (At::FirstDigit | At::Digits, Some(digit)) = (self.at, char::from(byte).to_digit(16)) {
            self.size = self.size.checked_mul(16).and_then(|size| size.checked_add(digit.into())).ok_or(Broken::Cut)?;
            return Ok(At::Digits);
        }
        Ok(match (self.at, byte) {
            (At::Digits | At::Blank, b' ' | b'\t') => At::Blank,
            (At::Digits | At::Blank, b';') => At::Extension,
            (At::Digits | At::Blank | At::Extension, b'\r') => At::SizeLf,
            (At::Extension, b'\n') => return Err(Broken::Cut),
            (At::Extension, _) => self.aside(At::Extension)?,
            (At::SizeLf, b'\n') if self.size == 0 => At::Trailers,
            (At::SizeLf, b'\n') => At::Data,
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::FirstDigit,
            (At::Trailers, b'\r') => At::LastLf,
            (At::Trailer, b'\n') => At::Trailers,
            (At::Trailers | At::Trailer, _) => self.aside(At::Trailer)?,
            (At::LastLf, b'\n') => At::End,
            _ => return Err(Broken::ChunkSize),
        })
    }

    fn aside(&mut self, next: At) -> Result<At, Broken> {
        self.aside += 1;
        if self.aside < MAX_ASIDE { Ok(next) } else { Err(Broken::Cut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        Head::take(&mut BytesMut::from(text), &mut 0)
    }

    #[test]
    fn heads_say_where_their_body_ends() {
        for (text, want) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Ok((Framing::Length(5), true))),
            ("\r\nHTTP/1.1 200\nContent-length:5, 5 \ncontent-length:\t5\n\n", Ok((Framing::Length(5), true))),
            ("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 \r\n\r\n", Ok((Framing::Length(0), true))),
            ("HTTP/1.1 304 OK\r\nContent-Length: 5\r\n\r\n", Ok((Framing::Length(0), true))),
            ("HTTP/1.1 101 OK\r\n\r\n", Ok((Framing::Length(0), false))),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 5\r\n\r\n",
                Ok((Framing::Chunked, true)),
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", Ok((Framing::UntilEnd, true))),
            ("HTTP/1.1 200 OK\r\nConnection: a, Close\r\n\r\n", Ok((Framing::UntilEnd, false))),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Ok((Framing::Length(5), false))),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\n", Ok((Framing::Length(5), true))),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Err(Malformed::Coding)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", Err(Malformed::Length)),
            ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", Err(Malformed::Length)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Err(Malformed::Length)),
            ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Err(Malformed::Header)),
            ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", Err(Malformed::Header)),
            ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", Err(Malformed::Header)),
            ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", Err(Malformed::Header)),
            ("HTTP/1.1 200 OK\r\nA\r\n\r\n", Err(Malformed::Header)),
            ("HTTP/1.1 2000 OK\r\n\r\n", Err(Malformed::Status)),
            ("HTTP/1.1 20\r\n\r\n", Err(Malformed::Status)),
            ("HTTP/1.1 099 OK\r\n\r\n", Err(Malformed::Status)),
            ("HTTP/1.2 200 OK\r\n\r\n", Err(Malformed::Version)),
            ("HTTX", Err(Malformed::Version)),
        ] {
            let found = head(text).and_then(|head| {
                let head = head.expect("a whole head");
                Ok((head.framing()?, head.is_kept()))
            });
            assert_eq!(found, want, "{text:?}");
        }
        for whole in ["HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "\r\nHTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK\n\n"] {
            let (mut heard, mut looked) = (BytesMut::new(), 0);
            for (length, byte) in whole.bytes().enumerate() {
                assert!(head(&whole[..length]).unwrap().is_none(), "{length} of {whole:?}");
                assert!(Head::take(&mut heard, &mut looked).unwrap().is_none(), "{length} of {whole:?} in pieces");
                heard.extend_from_slice(&[byte]);
            }
            assert!(Head::take(&mut heard, &mut looked).unwrap().is_some_and(|head| head.status == 200));
        }
    }

    #[test]
    fn heads_are_bounded() {
        let many = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(head(&many(MAX_HEADERS)).unwrap().unwrap().headers().len(), MAX_HEADERS);
        assert_eq!(head(&many(MAX_HEADERS + 1)).err(), Some(Malformed::TooLarge));
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(MAX_HEAD));
        assert_eq!(head(&long).err(), Some(Malformed::TooLarge));
    }

    #[test]
    fn headers_are_found_in_any_spelling() {
        let head =
            head("HTTP/1.1 503 Odd\r\nretry-AFTER: 5\r\nRetry-After: 6\r\nA: \u{e9}\r\n\r\nbody").unwrap().unwrap();
        let retry_after = http::header::RETRY_AFTER;
        assert_eq!((head.status.as_u16(), head.text(&retry_after)), (503, Some("5")));
        assert_eq!(head.headers().get_all(retry_after).iter().count(), 2);
        let odd = HeaderName::from_static("a");
        assert_eq!((head.get(&odd), head.text(&odd)), (Some("\u{e9}".as_bytes()), None));
    }

    #[test]
    fn chunks_are_read_piece_by_piece() {
        for (text, want) in [
            ("3\r\nabc\r\n0\r\n\r\n", Ok(Some("abc"))),
            ("3;a=b\r\nabc\r\nA \r\n0123456789\r\n00\r\nT: u\r\n\r\nx", Ok(Some("abc0123456789"))),
            ("3\r\nab", Ok(None)),
            ("3\r\nabc\r\n0\r\n", Ok(None)),
            ("zz", Err(Broken::ChunkSize)),
            ("\r\n", Err(Broken::ChunkSize)),
            ("3 3\r\n", Err(Broken::ChunkSize)),
            ("3\n", Err(Broken::ChunkSize)),
            ("3\r\nabcd", Err(Broken::ChunkSize)),
            ("3;a\nb", Err(Broken::Cut)),
            ("fffffffffffffffff", Err(Broken::Cut)),
        ] {
            let (mut chunks, mut body) = (Chunks::default(), BytesMut::new());
            let mut heard = BytesMut::from(text);
            let at_once = Chunks::default().take(&mut heard.clone(), &mut BytesMut::new());
            let mut found = Ok(false);
            while !heard.is_empty() && found == Ok(false) {
                found = chunks.take(&mut heard.split_to(1), &mut body);
            }
            assert_eq!(found, at_once, "{text:?}");
            let found = found.map(|is_whole| is_whole.then(|| std::str::from_utf8(&body).unwrap().to_owned()));
            assert_eq!(found, want.map(|body| body.map(str::to_owned)), "{text:?}");
        }
        let long = format!("0\r\n{}", "T: u\r\n".repeat(MAX_ASIDE));
        assert_eq!(Chunks::default().take(&mut BytesMut::from(long.as_str()), &mut BytesMut::new()), Err(Broken::Cut));
    }
}
