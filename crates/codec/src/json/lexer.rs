//! A cursor over JSON text that reads one token at a time and reports errors as Go's scanner does.
//!
//! Strings without escapes are borrowed from the input. Invalid UTF-8 and lone surrogates become U+FFFD,
//! one per broken byte.

use super::SyntaxError;
use super::skip::value_len;
use kubelith_meta::words::{Marks, Word, run_len};
use std::borrow::Cow;
use std::ops::Range;

pub(crate) const AFTER_TOP: &str = "after top-level value";
pub(crate) const AFTER_ELEMENT: &str = "after array element";
pub(crate) const AFTER_MEMBER: &str = "after object key:value pair";
const BEGIN_VALUE: &str = "looking for beginning of value";
const BEGIN_KEY: &str = "looking for beginning of object key string";
const TOO_DEEP: &str = "exceeded max depth";

/// Arrays and objects inside one another; Go's limit.
pub const MAX_DEPTH: usize = 10_000;

#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    data: &'a [u8],
    /// The same as text, if all of it is: one look at the whole takes less than one at each string.
    text: Option<&'a str>,
    pos: usize,
}

/// What a value begins with. Scalars are read whole, containers only opened.
pub(crate) enum Token<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    String(Cow<'a, str>),
    BeginArray,
    BeginObject,
}

/// A number as it is written. Its text is valid JSON.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    pub text: &'a str,
    /// Neither fraction nor exponent.
    pub integral: bool,
}

impl Token<'_> {
    /// The word for it in type errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Token::Null => "null",
            Token::Bool(_) => "bool",
            Token::Number(_) => "number",
            Token::String(_) => "string",
            Token::BeginArray => "array",
            Token::BeginObject => "object",
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, SyntaxError>;

impl<'a> Lexer<'a> {
    pub fn new(data: &'a [u8]) -> Lexer<'a> {
        Lexer { data, text: std::str::from_utf8(data).ok(), pos: 0 }
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    /// The text from `start` to the cursor.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.data[start..self.pos]
    }

    /// The next byte that is not white space, not consumed.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(&b) = self.data.get(self.pos) {
            match b {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b => return Some(b),
            }
        }
        None
    }

    #[inline]
    fn peek_or_end(&mut self) -> Result<u8> {
        self.peek().ok_or_else(|| SyntaxError::end(self.pos))
    }

    /// Only white space may follow the value of a document.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(b) => Err(SyntaxError::invalid(b, AFTER_TOP, self.pos)),
        }
    }

    /// Reads the beginning of a value that stands inside `depth` containers.
    #[inline]
    pub fn value(&mut self, depth: usize) -> Result<Token<'a>> {
        let b = self.peek_or_end()?;
        Ok(match b {
            b'"' => Token::String(self.string()?),
            b'{' | b'[' => {
                self.open(b, depth)?;
                if b == b'{' { Token::BeginObject } else { Token::BeginArray }
            }
            b'-' | b'0'..=b'9' => Token::Number(self.number()?),
            b't' => {
                self.literal(&TRUE)?;
                Token::Bool(true)
            }
            b'f' => {
                self.literal(&FALSE)?;
                Token::Bool(false)
            }
            b'n' => {
                self.literal(&NULL)?;
                Token::Null
            }
            b => return Err(SyntaxError::invalid(b, BEGIN_VALUE, self.pos)),
        })
    }

    /// Opens a container that stands inside `depth` others; the cursor is at its opening bracket `b`.
    #[inline]
    pub fn open(&mut self, b: u8, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(SyntaxError::invalid(b, TOO_DEEP, self.pos));
        }
        self.pos += 1;
        Ok(())
    }

    /// After `[`: consumes a `]` that ends an empty array.
    #[inline]
    pub fn empty_array(&mut self) -> Result<bool> {
        let empty = self.peek_or_end()? == b']';
        self.pos += usize::from(empty);
        Ok(empty)
    }

    /// After `{`: consumes a `}` that ends an empty object.
    #[inline]
    pub fn empty_object(&mut self) -> Result<bool> {
        let empty = self.peek_or_end()? == b'}';
        self.pos += usize::from(empty);
        Ok(empty)
    }

    /// A key and its colon.
    #[inline]
    pub fn key(&mut self) -> Result<Cow<'a, str>> {
        let b = self.peek_or_end()?;
        if b != b'"' {
            return Err(SyntaxError::invalid(b, BEGIN_KEY, self.pos));
        }
        let key = self.string()?;
        match self.peek_or_end()? {
            b':' => self.pos += 1,
            b => return Err(SyntaxError::invalid(b, "after object key", self.pos)),
        }
        Ok(key)
    }

    /// After an element: true if another follows, false if the container has ended.
    #[inline]
    pub fn more(&mut self, close: u8, context: &'static str) -> Result<bool> {
        let b = self.peek_or_end()?;
        if b == b',' || b == close {
            self.pos += 1;
            return Ok(b == b',');
        }
        Err(SyntaxError::invalid(b, context, self.pos))
    }

    /// Reads over a value that stands inside `depth` containers.
    pub fn skip_value(&mut self, depth: usize) -> Result<()> {
        // One bit would do; a byte per open container is the shape of the text and cheap enough.
        let mut open: Vec<u8> = Vec::new();
        loop {
            if self.peek() == Some(b'"') {
                self.skip_string()?;
                if !self.after_skipped(&mut open)? {
                    return Ok(());
                }
                continue;
            }
            let opened = match self.value(depth + open.len())? {
                Token::BeginObject if !self.empty_object()? => {
                    open.push(b'}');
                    self.skip_key()?;
                    true
                }
                Token::BeginArray if !self.empty_array()? => {
                    open.push(b']');
                    true
                }
                _ => false,
            };
            if !opened && !self.after_skipped(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Reads over a value that is probably a tree of fields.
    pub fn skip_fields(&mut self, depth: usize) -> Result<()> {
        match super::fields::tree_len(&self.data[self.pos..]) {
            Some(length) => {
                self.pos += length;
                Ok(())
            }
            None => self.skip_value(depth),
        }
    }

    /// Reads over the object that is next, which is written as we write JSON, if it is not shorter than that. Where it was.
    pub fn long_object(&mut self, shortest: usize) -> Option<Range<usize>> {
        let rest = &self.data[self.pos..];
        let length = rest.starts_with(b"{").then(|| value_len(rest)).flatten().filter(|length| *length >= shortest)?;
        let start = self.pos;
        self.pos += length;
        Some(start..self.pos)
    }

    /// Goes on behind a value that was read over; false if that was the last one.
    fn after_skipped(&mut self, open: &mut Vec<u8>) -> Result<bool> {
        while let Some(&close) = open.last() {
            if self.more(close, if close == b']' { AFTER_ELEMENT } else { AFTER_MEMBER })? {
                if close == b'}' {
                    self.skip_key()?;
                }
                return Ok(true);
            }
            open.pop();
        }
        Ok(false)
    }

    fn skip_key(&mut self) -> Result<()> {
        match self.peek_or_end()? {
            b'"' => self.skip_string()?,
            b => return Err(SyntaxError::invalid(b, BEGIN_KEY, self.pos)),
        }
        match self.peek_or_end()? {
            b':' => self.pos += 1,
            b => return Err(SyntaxError::invalid(b, "after object key", self.pos)),
        }
        Ok(())
    }

    /// Reads over a string; one with more than escaped quotes and backslashes is read, so that it is checked.
    fn skip_string(&mut self) -> Result<()> {
        let mut at = self.pos + 1;
        loop {
            at += plain_len(&self.data[at..]);
            match &self.data[at..] {
                [b'"', ..] => {
                    self.pos = at + 1;
                    return Ok(());
                }
                [b'\\', b'"' | b'\\', ..] => at += 2,
                _ => return self.string().map(drop),
            }
        }
    }

    fn literal(&mut self, (text, contexts): &Literal) -> Result<()> {
        for (i, &want) in text.iter().enumerate() {
            // The end of input reads as a space to Go's scanner.
            let got = self.data.get(self.pos + i).copied().unwrap_or(b' ');
            if got != want {
                return Err(SyntaxError::invalid(got, contexts[i], self.pos + i));
            }
        }
        self.pos += text.len();
        Ok(())
    }

    fn number(&mut self) -> Result<Number<'a>> {
        let start = self.pos;
        let mut integral = true;
        if self.at(self.pos) == b'-' {
            self.pos += 1;
        }
        match self.at(self.pos) {
            b'0' => self.pos += 1,
            b'1'..=b'9' => self.digits(),
            b => return Err(SyntaxError::invalid(b, "in numeric literal", self.pos)),
        }
        if self.at(self.pos) == b'.' {
            integral = false;
            self.pos += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.at(self.pos), b'e' | b'E') {
            integral = false;
            self.pos += 1;
            if matches!(self.at(self.pos), b'+' | b'-') {
                self.pos += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(self.since(start)).expect("a number is ASCII");
        Ok(Number { text, integral })
    }

    /// The byte at `i`; a space behind the end, which is how Go's scanner sees it.
    fn at(&self, i: usize) -> u8 {
        self.data.get(i).copied().unwrap_or(b' ')
    }

    fn digits(&mut self) {
        while self.at(self.pos).is_ascii_digit() {
            self.pos += 1;
        }
    }

    fn some_digits(&mut self, context: &'static str) -> Result<()> {
        let b = self.at(self.pos);
        if !b.is_ascii_digit() {
            return Err(SyntaxError::invalid(b, context, self.pos));
        }
        self.digits();
        Ok(())
    }

    /// A string; the cursor is at its opening quote.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.pos + 1;
        let mut at = start;
        while let Some(chunk) = self.data.get(at..).and_then(<[u8]>::first_chunk) {
            match ends_plain(Word::of(chunk)).first() {
                None => at += 8,
                Some(n) => {
                    at += n;
                    // Quotes stand between characters.
                    if chunk[n] == b'"'
                        && let Some(plain) = self.text.and_then(|text| text.get(start..at))
                    {
                        self.pos = at + 1;
                        return Ok(Cow::Borrowed(plain));
                    }
                    break;
                }
            }
        }
        self.unusual_string()
    }

    /// The string that is next if it stands for itself and has no white space before it, which is nearly always so in what we write.
    #[inline(always)]
    pub fn plain_string(&mut self) -> Option<&'a str> {
        if !self.is_next(b'"') {
            return None;
        }
        let start = self.pos + 1;
        let end = start + plain_len(&self.data[start..]);
        let plain = self.text?.get(start..end).filter(|_| self.data.get(end) == Some(&b'"'))?;
        self.pos = end + 1;
        Some(plain)
    }

    /// Whether the next byte is `b`.
    #[inline]
    pub fn is_next(&self, b: u8) -> bool {
        self.data.get(self.pos) == Some(&b)
    }

    /// Goes on behind the next byte if it is `b`.
    #[inline]
    pub fn pass(&mut self, b: u8) -> bool {
        let is_next = self.is_next(b);
        self.pos += usize::from(is_next);
        is_next
    }

    /// A string with escapes or with bytes that are no text, or at the end of the input.
    #[cold]
    fn unusual_string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.pos + 1;
        let rest = &self.data[start..];
        let n = plain_len(rest);
        if n == rest.len() {
            return Err(SyntaxError::end(self.data.len()));
        }
        if rest[n] == b'"' {
            self.pos = start + n + 1;
            if let Some(plain) = self.text.and_then(|text| text.get(start..start + n)) {
                return Ok(Cow::Borrowed(plain));
            }
            let mut s = String::with_capacity(n + 8);
            push_repaired(&mut s, &rest[..n]);
            return Ok(Cow::Owned(s));
        }
        self.pos = start;
        self.escaped_string(n)
    }

    /// The rest of a string whose first `plain` bytes need no attention.
    fn escaped_string(&mut self, mut plain: usize) -> Result<Cow<'a, str>> {
        let mut out = String::with_capacity(plain + 16);
        loop {
            push_repaired(&mut out, &self.data[self.pos..self.pos + plain]);
            self.pos += plain;
            match self.data.get(self.pos) {
                None => return Err(SyntaxError::end(self.pos)),
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(Cow::Owned(out));
                }
                Some(b'\\') => {
                    self.pos += 1;
                    self.escape(&mut out)?;
                }
                Some(&b) => return Err(SyntaxError::invalid(b, "in string literal", self.pos)),
            }
            plain = plain_len(&self.data[self.pos..]);
        }
    }

    /// Behind a backslash.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let b = match self.data.get(self.pos) {
            Some(&b) => b,
            None => return Err(SyntaxError::invalid(b' ', "in string escape code", self.pos)),
        };
        out.push(match b {
            b'"' | b'\\' | b'/' => char::from(b),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.pos += 1;
                let unit = self.hex4()?;
                out.push(self.surrogates(unit)?);
                return Ok(());
            }
            b => return Err(SyntaxError::invalid(b, "in string escape code", self.pos)),
        });
        self.pos += 1;
        Ok(())
    }

    /// The character of a UTF-16 unit, with the second half of a pair if one follows.
    fn surrogates(&mut self, unit: u32) -> Result<char> {
        if let Some(c) = char::from_u32(unit) {
            return Ok(c);
        }
        if unit < 0xdc00 && self.data[self.pos..].starts_with(b"\\u") {
            let before = self.pos;
            self.pos += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Not a pair: the second escape speaks for itself.
            self.pos = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let b = self.at(self.pos);
            let Some(digit) = char::from(b).to_digit(16) else {
                return Err(SyntaxError::invalid(b, "in \\u hexadecimal character escape", self.pos));
            };
            unit = unit * 16 + digit;
            self.pos += 1;
        }
        Ok(unit)
    }
}

/// Appends bytes that should be UTF-8, with U+FFFD for every byte that is not.
pub(crate) fn push_repaired(out: &mut String, mut bytes: &[u8]) {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(s) => return out.push_str(s),
            Err(e) => {
                let (good, rest) = bytes.split_at(e.valid_up_to());
                out.push_str(std::str::from_utf8(good).expect("valid up to here"));
                out.push(char::REPLACEMENT_CHARACTER);
                // Go goes on after one byte; the rest of a broken sequence is broken on its own.
                bytes = &rest[1..];
            }
        }
    }
}

/// The bytes that are no plain characters of a string: quotes, backslashes and control characters.
#[inline(always)]
fn ends_plain(word: Word) -> Marks {
    word.ascii(word.equal(b'"') | word.equal(b'\\') | word.below(0x20))
}

/// How many bytes are plain characters of a string.
#[inline]
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    run_len(bytes, ends_plain)
}

type Literal = (&'static [u8], &'static [&'static str]);

static TRUE: Literal = (
    b"true",
    &["", "in literal true (expecting 'r')", "in literal true (expecting 'u')", "in literal true (expecting 'e')"],
);
static FALSE: Literal = (
    b"false",
    &[
        "",
        "in literal false (expecting 'a')",
        "in literal false (expecting 'l')",
        "in literal false (expecting 's')",
        "in literal false (expecting 'e')",
    ],
);
static NULL: Literal = (
    b"null",
    &["", "in literal null (expecting 'u')", "in literal null (expecting 'l')", "in literal null (expecting 'l')"],
);
