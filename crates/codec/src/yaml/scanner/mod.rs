//! Text to tokens. Indentation becomes tokens, too: a block collection begins and ends where the column changes.
//!
//! That something is a key is known only at its colon. Until then a token that may begin one is held back, so that a
//! `Key` (and the beginning of a mapping) can be put before it. Keys are limited to one line and 1024 characters, so
//! the queue stays short.

mod scalars;
mod tags;

use super::cursor::{Cursor, Mark};
use std::collections::VecDeque;

/// Collections inside one another, of either style.
pub(super) const MAX_DEPTH: usize = 10_000;

/// The colon of a key must come within this many characters.
const MAX_KEY_CHARS: usize = 1024;

/// The reference reads and checks its input in pieces of this size: a bad character is noticed as soon as the piece it
/// is in is needed.
const INPUT_PIECE_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    StreamEnd,
    VersionDirective { major: u8, minor: u8 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { value: String, plain: bool },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: Mark,
    pub end: Mark,
}

/// Displays as the reference words it, which depends on who noticed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct YamlError {
    pub problem: String,
    /// The line to name, counted from 1; 0 if none is named.
    pub line: usize,
}

impl YamlError {
    pub fn reader(problem: &str) -> YamlError {
        YamlError { problem: problem.into(), line: 0 }
    }

    /// The scanner's errors name the line they are on, unless it is the first; then that of the context.
    fn scanner(problem: impl Into<String>, at: Mark, context: Mark) -> YamlError {
        let line = if at.line != 0 { at.line + 1 } else { context.line };
        YamlError { problem: problem.into(), line }
    }

    /// The parser's errors count lines from 0.
    pub fn parser(problem: impl Into<String>, at: Mark, context: Mark) -> YamlError {
        YamlError { problem: problem.into(), line: if at.line != 0 { at.line } else { context.line } }
    }
}

impl std::fmt::Display for YamlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "yaml: {}", self.problem),
            line => write!(f, "yaml: line {line}: {}", self.problem),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, YamlError>;

/// A token that may turn out to begin a key.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    /// It stands where only a key can stand.
    required: bool,
    token_number: usize,
    mark: Mark,
}

pub(super) struct Scanner<'t> {
    cursor: Cursor<'t>,
    /// What is wrong behind the end of the text, and where that is.
    bad_input: Option<(usize, &'static str)>,
    queue: VecDeque<Token>,
    /// Tokens that have left the queue: the number of the token at its head.
    taken: usize,
    /// One per flow level, and one for block context.
    simple_keys: Vec<SimpleKey>,
    /// Numbers of tokens that may begin keys with their levels, in order; some are out of date.
    pending_keys: VecDeque<(usize, usize)>,
    simple_key_allowed: bool,
    /// Columns of the open block collections around the current one.
    indents: Vec<isize>,
    /// Column of the current block collection; -1 outside of all.
    indent: isize,
    ended: bool,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str, problem: Option<&'static str>) -> Scanner<'t> {
        Scanner {
            cursor: Cursor::new(text),
            bad_input: problem.map(|p| (text.len(), p)),
            queue: VecDeque::new(),
            taken: 0,
            simple_keys: vec![SimpleKey::default()],
            pending_keys: VecDeque::new(),
            simple_key_allowed: true,
            indents: Vec::new(),
            indent: -1,
            ended: false,
        }
    }

    pub fn peek(&mut self) -> Result<&Token> {
        while self.needs_more()? {
            self.fetch()?;
        }
        Ok(self.queue.front().expect("a token was fetched"))
    }

    /// Takes the token that `peek` showed.
    pub fn next(&mut self) -> Result<Token> {
        self.peek()?;
        self.taken += 1;
        Ok(self.queue.pop_front().expect("a token was fetched"))
    }

    /// The token at the head may leave only when it is settled whether a key begins there.
    fn needs_more(&mut self) -> Result<bool> {
        if self.queue.is_empty() {
            return Ok(true);
        }
        while let Some(&(number, level)) = self.pending_keys.front() {
            if number > self.taken {
                return Ok(false);
            }
            let current = self.simple_keys.get(level).is_some_and(|k| k.possible && k.token_number == number);
            if number == self.taken && current && self.is_key_valid(level)? {
                return Ok(true);
            }
            self.pending_keys.pop_front();
        }
        Ok(false)
    }

    /// A key that was not followed by a colon in time is none, which is an error where one is required.
    fn is_key_valid(&mut self, level: usize) -> Result<bool> {
        let here = self.cursor.mark();
        let key = &mut self.simple_keys[level];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < here.line || key.mark.index + MAX_KEY_CHARS < here.index {
            if key.required {
                return Err(YamlError::scanner("could not find expected ':'", here, key.mark));
            }
            key.possible = false;
        }
        Ok(key.possible)
    }

    fn flow_level(&self) -> usize {
        self.simple_keys.len() - 1
    }

    fn in_flow(&self) -> bool {
        self.flow_level() > 0
    }

    fn error<T>(&self, problem: &str, context: Mark) -> Result<T> {
        Err(YamlError::scanner(problem, self.cursor.mark(), context))
    }

    fn push(&mut self, kind: TokenKind, start: Mark) {
        let end = self.cursor.mark();
        self.queue.push_back(Token { kind, start, end });
    }

    /// Puts a token before the one of this number, which is still in the queue.
    fn insert(&mut self, number: usize, token: Token) {
        let at = number.saturating_sub(self.taken).min(self.queue.len());
        self.queue.insert(at, token);
    }

    fn fetch(&mut self) -> Result<()> {
        if self.ended {
            let mark = self.cursor.mark();
            self.push(TokenKind::StreamEnd, mark);
            return Ok(());
        }
        if let Some((at, problem)) = self.bad_input
            && self.cursor.position() / INPUT_PIECE_BYTES >= at / INPUT_PIECE_BYTES
        {
            return Err(YamlError::reader(problem));
        }
        self.skip_to_token();
        self.unroll_indent(self.cursor.column() as isize);
        if self.cursor.at_end() {
            return self.stream_end();
        }
        let c = &self.cursor;
        if c.column() == 0 && c.byte() == b'%' {
            return self.directive();
        }
        if c.is_document_indicator() {
            let kind = if c.byte() == b'-' { TokenKind::DocumentStart } else { TokenKind::DocumentEnd };
            return self.document_indicator(kind);
        }
        let in_flow = self.in_flow();
        let spaced = c.is_blank_break_or_end_ahead(1);
        match c.byte() {
            b'[' => self.flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.flow_start(TokenKind::FlowMappingStart),
            b']' => self.flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.flow_end(TokenKind::FlowMappingEnd),
            b',' => self.flow_entry(),
            b'-' if spaced => self.block_entry(),
            b'?' if in_flow || spaced => self.key(),
            b':' if in_flow || spaced => self.value(),
            b'*' => self.anchor(TokenKind::Alias),
            b'&' => self.anchor(TokenKind::Anchor),
            b'!' => self.tag(),
            b'|' if !in_flow => self.block_scalar(scalars::BlockStyle::Literal),
            b'>' if !in_flow => self.block_scalar(scalars::BlockStyle::Folded),
            b'\'' => self.flow_scalar(scalars::Quote::Single),
            b'"' => self.flow_scalar(scalars::Quote::Double),
            b'\t' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => {
                self.error("found character that cannot start any token", self.cursor.mark())
            }
            _ => self.plain_scalar(),
        }
    }

    /// Goes over white space, comments and line breaks. A tab is none where it would be indentation.
    fn skip_to_token(&mut self) {
        loop {
            if self.cursor.column() == 0 && self.cursor.starts_with("\u{feff}".as_bytes()) {
                self.cursor.skip();
            }
            let tabs = self.in_flow() || !self.simple_key_allowed;
            while self.cursor.byte() == b' ' || (tabs && self.cursor.byte() == b'\t') {
                self.cursor.skip();
            }
            if self.cursor.byte() == b'#' {
                self.skip_comment();
            }
            if !self.cursor.is_break() {
                return;
            }
            self.cursor.skip_line();
            if !self.in_flow() {
                self.simple_key_allowed = true;
            }
        }
    }

    fn skip_comment(&mut self) {
        while !self.cursor.is_break_or_end() {
            self.cursor.skip();
        }
    }

    /// The next token may begin a key.
    fn save_simple_key(&mut self) -> Result<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let mark = self.cursor.mark();
        self.remove_simple_key()?;
        let required = !self.in_flow() && self.indent == mark.column as isize;
        let token_number = self.taken + self.queue.len();
        let level = self.flow_level();
        self.simple_keys[level] = SimpleKey { possible: true, required, token_number, mark };
        self.pending_keys.push_back((token_number, level));
        Ok(())
    }

    /// What might have begun a key on this level did not.
    fn remove_simple_key(&mut self) -> Result<()> {
        let level = self.flow_level();
        let key = self.simple_keys[level];
        if key.possible && key.required {
            return self.error("could not find expected ':'", key.mark);
        }
        self.simple_keys[level].possible = false;
        Ok(())
    }

    /// Opens a block collection if the column is deeper than the current one's. `before` is the number of the token
    /// it begins with, `None` for the next one.
    fn roll_indent(&mut self, mark: Mark, before: Option<usize>, kind: TokenKind) -> Result<()> {
        let column = mark.column as isize;
        if self.in_flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_DEPTH {
            return self.too_deep();
        }
        let token = Token { kind, start: mark, end: mark };
        match before {
            Some(number) => self.insert(number, token),
            None => self.queue.push_back(token),
        }
        Ok(())
    }

    /// Ends the block collections that are deeper than the column.
    fn unroll_indent(&mut self, column: isize) {
        if self.in_flow() {
            return;
        }
        while self.indent > column {
            let mark = self.cursor.mark();
            self.push(TokenKind::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn too_deep<T>(&self) -> Result<T> {
        let context = self.simple_keys.last().map_or(Mark::default(), |k| k.mark);
        self.error(&format!("exceeded max depth of {MAX_DEPTH}"), context)
    }

    fn stream_end(&mut self) -> Result<()> {
        if let Some((_, problem)) = self.bad_input {
            return Err(YamlError::reader(problem));
        }
        self.cursor.end_line();
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.ended = true;
        let mark = self.cursor.mark();
        self.push(TokenKind::StreamEnd, mark);
        Ok(())
    }

    fn document_indicator(&mut self, kind: TokenKind) -> Result<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.indicator(kind, 3);
        Ok(())
    }

    fn indicator(&mut self, kind: TokenKind, chars: usize) {
        let start = self.cursor.mark();
        self.cursor.skip_n(chars);
        self.push(kind, start);
    }

    fn flow_start(&mut self, kind: TokenKind) -> Result<()> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey::default());
        if self.flow_level() > MAX_DEPTH {
            return self.too_deep();
        }
        self.simple_key_allowed = true;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_end(&mut self, kind: TokenKind) -> Result<()> {
        self.remove_simple_key()?;
        if self.in_flow() {
            self.simple_keys.pop();
        }
        self.simple_key_allowed = false;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_entry(&mut self) -> Result<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.indicator(TokenKind::FlowEntry, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<()> {
        let here = self.cursor.mark();
        if !self.in_flow() {
            if !self.simple_key_allowed {
                return self.error("block sequence entries are not allowed in this context", here);
            }
            self.roll_indent(here, None, TokenKind::BlockSequenceStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Result<()> {
        let here = self.cursor.mark();
        if !self.in_flow() {
            if !self.simple_key_allowed {
                return self.error("mapping keys are not allowed in this context", here);
            }
            self.roll_indent(here, None, TokenKind::BlockMappingStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = !self.in_flow();
        self.indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Result<()> {
        let here = self.cursor.mark();
        let level = self.flow_level();
        if self.is_key_valid(level)? {
            // It was a key: say so before it, and begin a mapping there if its column calls for one.
            let SimpleKey { token_number, mark, .. } = self.simple_keys[level];
            let token = Token { kind: TokenKind::Key, start: mark, end: mark };
            self.insert(token_number, token);
            self.roll_indent(mark, Some(token_number), TokenKind::BlockMappingStart)?;
            self.simple_keys[level].possible = false;
            self.simple_key_allowed = false;
        } else {
            if !self.in_flow() {
                if !self.simple_key_allowed {
                    return self.error("mapping values are not allowed in this context", here);
                }
                self.roll_indent(here, None, TokenKind::BlockMappingStart)?;
            }
            self.simple_key_allowed = !self.in_flow();
        }
        self.indicator(TokenKind::Value, 1);
        Ok(())
    }
}
