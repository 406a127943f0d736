//! Scalars: block, quoted and plain, with the folding of their lines.

use super::{Result, Scanner, TokenKind};
use crate::yaml::cursor::Mark;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum BlockStyle {
    Literal,
    Folded,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quote {
    Single,
    Double,
}

/// What becomes of the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Clip,
    Strip,
    Keep,
}

/// White space inside of a flow scalar, until it is known what it folds to: blanks on one line stay, a single line
/// break becomes a space, further ones stay, and blanks around breaks go.
#[derive(Default)]
struct Gap {
    blanks: Vec<u8>,
    first_break: Vec<u8>,
    more_breaks: Vec<u8>,
    /// A line has ended in it.
    broken: bool,
}

impl Gap {
    fn flush(&mut self, out: &mut Vec<u8>) {
        if self.broken {
            if self.first_break.first() != Some(&b'\n') {
                out.append(&mut self.first_break);
            } else if self.more_breaks.is_empty() {
                out.push(b' ');
            }
            out.append(&mut self.more_breaks);
            self.first_break.clear();
        } else {
            out.append(&mut self.blanks);
        }
        self.blanks.clear();
        self.broken = false;
    }
}

impl Scanner<'_> {
    pub(super) fn block_scalar(&mut self, style: BlockStyle) -> Result<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let start = self.cursor.mark();
        self.cursor.skip();
        let (chomping, increment) = self.block_header(start)?;
        let mut indent = match increment {
            0 => 0,
            n => self.indent.max(0) as usize + n,
        };

        let mut text = Vec::new();
        let mut first_break = Vec::new();
        let mut more_breaks = Vec::new();
        self.block_breaks(&mut indent, &mut more_breaks, start)?;
        // Folding leaves the breaks around lines that begin with a blank alone.
        let mut after_blank_line = false;
        while self.cursor.column() == indent && !self.cursor.at_end() {
            let blank_line = self.cursor.is_blank();
            let folds = style == BlockStyle::Folded && !after_blank_line && !blank_line;
            if folds && first_break.first() == Some(&b'\n') {
                if more_breaks.is_empty() {
                    text.push(b' ');
                }
            } else {
                text.extend_from_slice(&first_break);
            }
            first_break.clear();
            text.append(&mut more_breaks);
            after_blank_line = blank_line;
            while !self.cursor.is_break_or_end() {
                self.cursor.read(&mut text);
            }
            self.cursor.read_line(&mut first_break);
            self.block_breaks(&mut indent, &mut more_breaks, start)?;
        }
        if chomping != Chomping::Strip {
            text.append(&mut first_break);
        }
        if chomping == Chomping::Keep {
            text.append(&mut more_breaks);
        }
        self.scalar(text, false, start);
        Ok(())
    }

    /// Chomping and indentation in either order, then nothing but a comment on the line.
    fn block_header(&mut self, start: Mark) -> Result<(Chomping, usize)> {
        let mut chomping = Chomping::Clip;
        let mut increment = 0;
        let first_is_digit = self.cursor.byte().is_ascii_digit();
        for is_digit in [first_is_digit, !first_is_digit] {
            match self.cursor.byte() {
                b'0' if is_digit => return self.error("found an indentation indicator equal to 0", start),
                digit @ b'1'..=b'9' if is_digit => increment = usize::from(digit - b'0'),
                b'+' if !is_digit => chomping = Chomping::Keep,
                b'-' if !is_digit => chomping = Chomping::Strip,
                // Without chomping first, a digit cannot come second.
                _ => break,
            }
            self.cursor.skip();
        }
        while self.cursor.is_blank() {
            self.cursor.skip();
        }
        if self.cursor.byte() == b'#' {
            self.skip_comment();
        }
        if !self.cursor.is_break_or_end() {
            return self.error("did not find expected comment or line break", start);
        }
        self.cursor.skip_line();
        Ok((chomping, increment))
    }

    /// Goes over indentation and empty lines. The first line that is not empty sets the indentation if the header did
    /// not; it is then known for the rest.
    fn block_breaks(&mut self, indent: &mut usize, breaks: &mut Vec<u8>, start: Mark) -> Result<()> {
        let mut deepest = 0;
        loop {
            let inside = |column: usize, indent: usize| indent == 0 || column < indent;
            while inside(self.cursor.column(), *indent) && self.cursor.byte() == b' ' {
                self.cursor.skip();
            }
            deepest = deepest.max(self.cursor.column());
            if inside(self.cursor.column(), *indent) && self.cursor.byte() == b'\t' {
                return self.error("found a tab character where an indentation space is expected", start);
            }
            if !self.cursor.is_break() {
                break;
            }
            self.cursor.read_line(breaks);
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1).max(1) as usize);
        }
        Ok(())
    }

    pub(super) fn flow_scalar(&mut self, quote: Quote) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark();
        self.cursor.skip();
        let end = if quote == Quote::Single { b'\'' } else { b'"' };
        let mut text = Vec::new();
        let mut gap = Gap::default();
        loop {
            if self.cursor.is_document_indicator() {
                return self.error("found unexpected document indicator", start);
            }
            if self.cursor.at_end() {
                self.check_input()?;
                return self.error("found unexpected end of stream", start);
            }
            while !self.cursor.is_blank_break_or_end() {
                match self.cursor.byte() {
                    b'\'' if quote == Quote::Single && self.cursor.ahead(1) == b'\'' => {
                        text.push(b'\'');
                        self.cursor.skip_n(2);
                    }
                    b if b == end => break,
                    b'\\' if quote == Quote::Double && self.cursor.is_break_ahead(1) => {
                        // An escaped line break is no break, but what follows is the beginning of a line.
                        self.cursor.skip();
                        self.cursor.skip_line();
                        gap.broken = true;
                        break;
                    }
                    b'\\' if quote == Quote::Double => self.escape(&mut text, start)?,
                    _ => self.cursor.read(&mut text),
                }
            }
            if self.cursor.byte() == end {
                break;
            }
            self.gap(&mut gap, |_, _| Ok(()))?;
            gap.flush(&mut text);
        }
        self.cursor.skip();
        self.scalar(text, false, start);
        Ok(())
    }

    /// Reads white space into a gap; `check` looks at each blank first.
    fn gap(&mut self, gap: &mut Gap, check: impl Fn(&Self, &Gap) -> Result<()>) -> Result<()> {
        loop {
            if self.cursor.is_blank() {
                check(self, gap)?;
                if gap.broken {
                    self.cursor.skip();
                } else {
                    self.cursor.read(&mut gap.blanks);
                }
            } else if self.cursor.is_break() {
                if gap.broken {
                    self.cursor.read_line(&mut gap.more_breaks);
                } else {
                    self.cursor.read_line(&mut gap.first_break);
                    gap.broken = true;
                }
            } else {
                return Ok(());
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>, start: Mark) -> Result<()> {
        let mut digits = 0;
        let plain: &str = match self.cursor.ahead(1) {
            b'0' => "\0",
            b'a' => "\x07",
            b'b' => "\x08",
            b't' | b'\t' => "\t",
            b'n' => "\n",
            b'v' => "\x0b",
            b'f' => "\x0c",
            b'r' => "\r",
            b'e' => "\x1b",
            b' ' => " ",
            b'"' => "\"",
            b'\'' => "'",
            b'\\' => "\\",
            b'N' => "\u{85}",
            b'_' => "\u{a0}",
            b'L' => "\u{2028}",
            b'P' => "\u{2029}",
            other => {
                digits = match other {
                    b'x' => 2,
                    b'u' => 4,
                    b'U' => 8,
                    _ => return self.error("found unknown escape character", start),
                };
                ""
            }
        };
        text.extend_from_slice(plain.as_bytes());
        self.cursor.skip_n(2);
        if digits == 0 {
            return Ok(());
        }
        let mut code = 0u32;
        for i in 0..digits {
            let Some(digit) = char::from(self.cursor.ahead(i)).to_digit(16) else {
                return self.error("did not find expected hexdecimal number", start);
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return self.error("found invalid Unicode character escape code", start);
        };
        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.cursor.skip_n(digits);
        Ok(())
    }

    pub(super) fn plain_scalar(&mut self) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark();
        let mut end = start;
        let indent = (self.indent + 1) as usize;
        let in_flow = self.in_flow();
        let mut text = Vec::new();
        let mut gap = Gap::default();
        loop {
            if self.cursor.is_document_indicator() || self.cursor.byte() == b'#' {
                break;
            }
            while !self.cursor.is_blank_break_or_end() {
                let b = self.cursor.byte();
                if b == b':' && self.cursor.is_blank_break_or_end_ahead(1) {
                    break;
                }
                if in_flow && matches!(b, b',' | b'?' | b'[' | b']' | b'{' | b'}') {
                    break;
                }
                if gap.broken || !gap.blanks.is_empty() {
                    gap.flush(&mut text);
                }
                self.cursor.read(&mut text);
                end = self.cursor.mark();
            }
            if !(self.cursor.is_blank() || self.cursor.is_break()) {
                break;
            }
            self.gap(&mut gap, |s, gap| {
                if gap.broken && s.cursor.column() < indent && s.cursor.byte() == b'\t' {
                    return s.error("found a tab character that violates indentation", start);
                }
                Ok(())
            })?;
            if !in_flow && self.cursor.column() < indent {
                break;
            }
        }
        // Behind a line break a key may follow.
        if gap.broken {
            self.simple_key_allowed = true;
        }
        let value = into_string(text);
        self.queue.push_back(super::Token { kind: TokenKind::Scalar { value, plain: true }, start, end });
        Ok(())
    }

    fn scalar(&mut self, text: Vec<u8>, plain: bool, start: Mark) {
        self.push(TokenKind::Scalar { value: into_string(text), plain }, start);
    }

    fn check_input(&self) -> Result<()> {
        match self.bad_input {
            Some((_, problem)) => Err(super::YamlError::reader(problem)),
            None => Ok(()),
        }
    }
}

fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
