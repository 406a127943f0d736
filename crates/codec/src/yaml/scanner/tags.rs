//! Directives, anchors, aliases and tags.

use super::{Result, Scanner, TokenKind};
use crate::yaml::cursor::Mark;

/// Where a tag stands decides nothing but the context of errors, which nobody sees.
impl Scanner<'_> {
    pub(super) fn directive(&mut self) -> Result<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark();
        self.cursor.skip();
        let name = self.directive_name(start)?;
        let kind = match name.as_str() {
            "YAML" => self.version(start)?,
            "TAG" => self.tag_directive(start)?,
            _ => return self.error("found unknown directive name", start),
        };
        let end = self.cursor.mark();
        self.skip_blanks();
        if self.cursor.byte() == b'#' {
            self.skip_comment();
        }
        if !self.cursor.is_break_or_end() {
            return self.error("did not find expected comment or line break", start);
        }
        self.cursor.skip_line();
        self.queue.push_back(super::Token { kind, start, end });
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while self.cursor.is_blank() {
            self.cursor.skip();
        }
    }

    fn word(&mut self) -> Vec<u8> {
        let mut word = Vec::new();
        while self.cursor.is_word() {
            self.cursor.read(&mut word);
        }
        word
    }

    fn directive_name(&mut self, start: Mark) -> Result<String> {
        let name = self.word();
        if name.is_empty() {
            return self.error("could not find expected directive name", start);
        }
        if !self.cursor.is_blank_break_or_end() {
            return self.error("found unexpected non-alphabetical character", start);
        }
        Ok(into_string(name))
    }

    fn version(&mut self, start: Mark) -> Result<TokenKind> {
        self.skip_blanks();
        let major = self.version_number(start)?;
        if self.cursor.byte() != b'.' {
            return self.error("did not find expected digit or '.' character", start);
        }
        self.cursor.skip();
        let minor = self.version_number(start)?;
        Ok(TokenKind::VersionDirective { major, minor })
    }

    fn version_number(&mut self, start: Mark) -> Result<u8> {
        let (mut number, mut digits) = (0, 0);
        while let digit @ b'0'..=b'9' = self.cursor.byte() {
            digits += 1;
            if digits > 2 {
                return self.error("found extremely long version number", start);
            }
            number = number * 10 + (digit - b'0');
            self.cursor.skip();
        }
        if digits == 0 {
            return self.error("did not find expected version number", start);
        }
        Ok(number)
    }

    fn tag_directive(&mut self, start: Mark) -> Result<TokenKind> {
        self.skip_blanks();
        let handle = self.tag_handle(start)?;
        if handle != b"!" && !handle.ends_with(b"!") {
            return self.error("did not find expected '!'", start);
        }
        if !self.cursor.is_blank() {
            return self.error("did not find expected whitespace", start);
        }
        self.skip_blanks();
        let prefix = self.tag_uri(b"", start)?;
        if !self.cursor.is_blank_break_or_end() {
            return self.error("did not find expected whitespace or line break", start);
        }
        Ok(TokenKind::TagDirective { handle: into_string(handle), prefix: into_string(prefix) })
    }

    pub(super) fn anchor(&mut self, kind: fn(String) -> TokenKind) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark();
        self.cursor.skip();
        let name = self.word();
        let ended = self.cursor.is_blank_break_or_end()
            || matches!(self.cursor.byte(), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ended {
            return self.error("did not find expected alphabetic or numeric character", start);
        }
        self.push(kind(into_string(name)), start);
        Ok(())
    }

    pub(super) fn tag(&mut self) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark();
        let (handle, suffix) = if self.cursor.ahead(1) == b'<' {
            self.cursor.skip_n(2);
            let uri = self.tag_uri(b"", start)?;
            if self.cursor.byte() != b'>' {
                return self.error("did not find the expected '>'", start);
            }
            self.cursor.skip();
            (Vec::new(), uri)
        } else {
            let handle = self.tag_handle(start)?;
            if handle.len() > 1 && handle.ends_with(b"!") {
                let suffix = self.tag_uri(b"", start)?;
                (handle, suffix)
            } else {
                // `!name`: what looked like a handle begins the name. `!` alone is a tag of its own.
                let suffix = self.tag_uri(&handle, start)?;
                if suffix.is_empty() { (suffix, b"!".to_vec()) } else { (b"!".to_vec(), suffix) }
            }
        };
        if !self.cursor.is_blank_break_or_end() {
            return self.error("did not find expected whitespace or line break", start);
        }
        self.push(TokenKind::Tag { handle: into_string(handle), suffix: into_string(suffix) }, start);
        Ok(())
    }

    fn tag_handle(&mut self, start: Mark) -> Result<Vec<u8>> {
        if self.cursor.byte() != b'!' {
            return self.error("did not find expected '!'", start);
        }
        let mut handle = Vec::new();
        self.cursor.read(&mut handle);
        handle.extend(self.word());
        if self.cursor.byte() == b'!' {
            self.cursor.read(&mut handle);
        }
        Ok(handle)
    }

    /// The rest of a tag; `head` is a handle that turned out to be its beginning.
    fn tag_uri(&mut self, head: &[u8], start: Mark) -> Result<Vec<u8>> {
        let mut uri = head.get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        while self.cursor.is_word() || b";/?:@&=+$,.!~*'()[]%".contains(&self.cursor.byte()) {
            if self.cursor.byte() == b'%' {
                self.uri_escape(&mut uri, start)?;
            } else {
                self.cursor.read(&mut uri);
            }
            found = true;
        }
        if !found {
            return self.error("did not find expected tag URI", start);
        }
        Ok(uri)
    }

    /// One character, written as the escapes of its bytes.
    fn uri_escape(&mut self, uri: &mut Vec<u8>, start: Mark) -> Result<()> {
        let mut left = None;
        while left != Some(0) {
            let digit = |n| char::from(self.cursor.ahead(n)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.cursor.byte(), digit(1), digit(2)) else {
                return self.error("did not find URI escaped octet", start);
            };
            let octet = (high << 4 | low) as u8;
            left = Some(match left {
                None => match octet {
                    0..=0x7f => 0,
                    0xc0..=0xdf => 1,
                    0xe0..=0xef => 2,
                    0xf0..=0xf7 => 3,
                    _ => return self.error("found an incorrect leading UTF-8 octet", start),
                },
                Some(_) if octet & 0xc0 != 0x80 => {
                    return self.error("found an incorrect trailing UTF-8 octet", start);
                }
                Some(n) => n - 1,
            });
            uri.push(octet);
            self.cursor.skip_n(3);
        }
        Ok(())
    }
}

fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
