//! Where the scanner is in the text, and what the characters there are.

use std::borrow::Cow;

/// A position. Lines and columns count from 0, columns and indices in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub line: usize,
    pub column: usize,
    pub index: usize,
}

/// A text that is known to be UTF-8 without control characters. Behind its end it reads as NUL.
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    pos: usize,
    mark: Mark,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text: text.as_bytes(), pos: 0, mark: Mark::default() }
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    pub fn column(&self) -> usize {
        self.mark.column
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    /// The byte here; other than ASCII it is the first of its character.
    #[inline]
    pub fn byte(&self) -> u8 {
        self.ahead(0)
    }

    #[inline]
    pub fn ahead(&self, n: usize) -> u8 {
        self.text.get(self.pos + n).copied().unwrap_or(0)
    }

    pub fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    pub fn is_blank(&self) -> bool {
        matches!(self.byte(), b' ' | b'\t')
    }

    /// Bytes of the line break `n` bytes ahead; 0 if there is none.
    fn break_len(&self, n: usize) -> usize {
        match (self.ahead(n), self.ahead(n + 1), self.ahead(n + 2)) {
            (b'\r', b'\n', _) => 2,
            (b'\r' | b'\n', ..) => 1,
            // Next line, line separator, paragraph separator.
            (0xc2, 0x85, _) => 2,
            (0xe2, 0x80, 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    pub fn is_break(&self) -> bool {
        self.break_len(0) > 0
    }

    pub fn is_break_ahead(&self, n: usize) -> bool {
        self.break_len(n) > 0
    }

    pub fn is_break_or_end(&self) -> bool {
        self.at_end() || self.is_break()
    }

    pub fn is_blank_break_or_end(&self) -> bool {
        self.is_blank() || self.is_break_or_end()
    }

    pub fn is_blank_break_or_end_ahead(&self, n: usize) -> bool {
        matches!(self.ahead(n), b' ' | b'\t') || self.pos + n >= self.text.len() || self.break_len(n) > 0
    }

    /// `---` or `...` alone at the beginning of a line.
    pub fn is_document_indicator(&self) -> bool {
        self.mark.column == 0
            && (self.starts_with(b"---") || self.starts_with(b"..."))
            && self.is_blank_break_or_end_ahead(3)
    }

    pub fn starts_with(&self, s: &[u8]) -> bool {
        self.text[self.pos.min(self.text.len())..].starts_with(s)
    }

    /// Letters, digits, `_` and `-`: what anchors and handles are made of.
    pub fn is_word(&self) -> bool {
        matches!(self.byte(), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    fn width(&self) -> usize {
        match self.byte() {
            _ if self.at_end() => 0,
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        }
    }

    /// Goes over one character that is no line break.
    pub fn skip(&mut self) {
        self.pos += self.width();
        self.mark.index += 1;
        self.mark.column += 1;
    }

    pub fn skip_n(&mut self, n: usize) {
        (0..n).for_each(|_| self.skip());
    }

    /// Goes over one character and appends it.
    pub fn read(&mut self, out: &mut Vec<u8>) {
        let end = self.pos + self.width();
        out.extend_from_slice(&self.text[self.pos.min(end)..end]);
        self.skip();
    }

    /// Goes over a line break, if there is one.
    pub fn skip_line(&mut self) {
        let len = self.break_len(0);
        if len > 0 {
            self.mark.index += if self.starts_with(b"\r\n") { 2 } else { 1 };
            self.pos += len;
            self.mark.line += 1;
            self.mark.column = 0;
        }
    }

    /// Goes over a line break, if there is one, and appends it: the separators as they are, others as `\n`.
    pub fn read_line(&mut self, out: &mut Vec<u8>) {
        match self.break_len(0) {
            0 => {}
            3 => out.extend_from_slice(&self.text[self.pos..self.pos + 3]),
            _ => out.push(b'\n'),
        }
        self.skip_line();
    }

    /// The stream ends on a line of its own.
    pub fn end_line(&mut self) {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }
}

/// A stream as text, up to the first character that YAML does not allow, and what is wrong with that.
pub(super) struct Input<'d> {
    pub text: Cow<'d, str>,
    pub problem: Option<&'static str>,
}

impl<'d> Input<'d> {
    /// UTF-8, with or without a byte order mark, or UTF-16 with one.
    pub fn new(data: &'d [u8]) -> Input<'d> {
        match data {
            [0xff, 0xfe, rest @ ..] => Input::utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => Input::utf16(rest, u16::from_be_bytes),
            [0xef, 0xbb, 0xbf, rest @ ..] => Input::utf8(rest),
            data => Input::utf8(data),
        }
    }

    fn utf8(data: &'d [u8]) -> Input<'d> {
        let (text, mut problem) = match std::str::from_utf8(data) {
            Ok(text) => (text, None),
            Err(e) => {
                let (good, bad) = data.split_at(e.valid_up_to());
                (std::str::from_utf8(good).unwrap_or(""), Some(utf8_problem(bad)))
            }
        };
        let mut end = text.len();
        if let Some((at, _)) = text.char_indices().find(|(_, c)| !is_allowed(*c)) {
            end = at;
            problem = Some("control characters are not allowed");
        }
        Input { text: Cow::Borrowed(&text[..end]), problem }
    }

    fn utf16(data: &[u8], unit: fn([u8; 2]) -> u16) -> Input<'d> {
        let mut text = String::with_capacity(data.len() / 2);
        let (pairs, rest) = data.as_chunks::<2>();
        for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
            match c {
                Ok(c) if is_allowed(c) => text.push(c),
                Ok(_) => return Input { text: text.into(), problem: Some("control characters are not allowed") },
                Err(_) => return Input { text: text.into(), problem: Some("unexpected low surrogate area") },
            }
        }
        let problem = (!rest.is_empty()).then_some("incomplete UTF-16 character");
        Input { text: text.into(), problem }
    }
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// What the reference says of bytes that are no UTF-8.
fn utf8_problem(bad: &[u8]) -> &'static str {
    let width = match bad[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    if bad.len() < width {
        return "incomplete UTF-8 octet sequence";
    }
    if bad[1..width].iter().any(|b| b & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    // Well formed, but for a character in fewer bytes, or for none at all.
    match bad[0] {
        0xc0 | 0xc1 => "invalid length of a UTF-8 sequence",
        0xe0 if bad[1] < 0xa0 => "invalid length of a UTF-8 sequence",
        0xf0 if bad[1] < 0x90 => "invalid length of a UTF-8 sequence",
        _ => "invalid Unicode character",
    }
}
