//! Text to tokens. What is no token is kept as a mistake with its text, and lexing goes on behind it.

/// The kinds of tokens, in the order in which messages list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TokenKind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LBracket,
    RBracket,
    LBrace,
    RBrace,
    LParen,
    RParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    Eof,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// In bytes.
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.start as usize..self.end as usize]
    }
}

/// Text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mistake {
    pub start: u32,
    pub end: u32,
    /// The token behind it, as an index.
    pub before: u32,
}

#[derive(Debug, Default)]
pub struct Tokens {
    /// The last one is the end.
    pub list: Vec<Token>,
    pub mistakes: Vec<Mistake>,
}

pub fn lex(source: &str) -> Tokens {
    let mut tokens = Tokens { list: Vec::with_capacity(source.len() / 4 + 4), mistakes: Vec::new() };
    let mut lexer = Lexer { bytes: source.as_bytes(), source };
    let mut at = 0;
    while at < source.len() {
        match lexer.next(at) {
            Step::Skip(end) => at = end,
            Step::Token(kind, end) => {
                tokens.list.push(Token { kind, start: at as u32, end: end as u32 });
                at = end;
            }
            Step::Mistake(end) => {
                let before = tokens.list.len() as u32;
                tokens.mistakes.push(Mistake { start: at as u32, end: end as u32, before });
                at = end;
            }
        }
    }
    let end = source.len() as u32;
    tokens.list.push(Token { kind: TokenKind::Eof, start: end, end });
    tokens
}

enum Step {
    /// Space or a comment.
    Skip(usize),
    Token(TokenKind, usize),
    Mistake(usize),
}

struct Lexer<'a> {
    bytes: &'a [u8],
    source: &'a str,
}

impl Lexer<'_> {
    fn at(&self, i: usize) -> u8 {
        self.bytes.get(i).copied().unwrap_or(0)
    }

    /// Behind the character that fits nothing; it is part of the mistake.
    fn mistake(&self, at: usize) -> Step {
        let width = self.source.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        Step::Mistake(at + width)
    }

    fn next(&mut self, at: usize) -> Step {
        use TokenKind::*;
        let one = |kind| Step::Token(kind, at + 1);
        let two = |kind| Step::Token(kind, at + 2);
        let second = self.at(at + 1);
        match self.bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
                let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0c);
                Step::Skip(at + self.bytes[at..].iter().take_while(|b| space(b)).count())
            }
            b'/' if second == b'/' => {
                Step::Skip(memchr::memchr(b'\n', &self.bytes[at..]).map_or(self.bytes.len(), |n| at + n))
            }
            b'=' if second == b'=' => two(Equals),
            b'!' if second == b'=' => two(NotEquals),
            b'<' if second == b'=' => two(LessEquals),
            b'>' if second == b'=' => two(GreaterEquals),
            b'&' if second == b'&' => two(And),
            b'|' if second == b'|' => two(Or),
            b'=' | b'&' | b'|' => self.mistake(at + 1),
            b'<' => one(Less),
            b'>' => one(Greater),
            b'[' => one(LBracket),
            b']' => one(RBracket),
            b'{' => one(LBrace),
            b'}' => one(RBrace),
            b'(' => one(LParen),
            b')' => one(RParen),
            b'.' if second.is_ascii_digit() => Step::Token(Float, self.exponent(self.digits(at + 1))),
            b'.' => one(Dot),
            b',' => one(Comma),
            b'-' => one(Minus),
            b'!' => one(Exclam),
            b'?' => one(Question),
            b':' => one(Colon),
            b'+' => one(Plus),
            b'*' => one(Star),
            b'/' => one(Slash),
            b'%' => one(Percent),
            b'0'..=b'9' => self.number(at),
            b'"' | b'\'' => match self.string(at, Raw::No) {
                Ok(end) => Step::Token(String, end),
                Err(failed) => self.mistake(failed),
            },
            b'`' => self.escaped(at),
            c if c == b'_' || c.is_ascii_alphabetic() => self.word(at),
            _ => self.mistake(at),
        }
    }

    fn digits(&self, from: usize) -> usize {
        from + self.bytes[from.min(self.bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count()
    }

    /// The end of an exponent, if there is one at this place.
    fn exponent(&self, at: usize) -> usize {
        if !matches!(self.at(at), b'e' | b'E') {
            return at;
        }
        let from = if matches!(self.at(at + 1), b'+' | b'-') { at + 2 } else { at + 1 };
        let end = self.digits(from);
        if end > from { end } else { at }
    }

    fn number(&self, at: usize) -> Step {
        let unsigned = |end: usize| match self.at(end) {
            b'u' | b'U' => Step::Token(TokenKind::Uint, end + 1),
            _ => Step::Token(TokenKind::Int, end),
        };
        if self.bytes[at] == b'0' && self.at(at + 1) == b'x' && self.at(at + 2).is_ascii_hexdigit() {
            let hex = self.bytes[at + 2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            return unsigned(at + 2 + hex);
        }
        let end = self.digits(at);
        if self.at(end) == b'.' && self.at(end + 1).is_ascii_digit() {
            return Step::Token(TokenKind::Float, self.exponent(self.digits(end + 1)));
        }
        let float = self.exponent(end);
        if float > end { Step::Token(TokenKind::Float, float) } else { unsigned(end) }
    }

    /// An identifier, a keyword, or a string with a prefix.
    fn word(&self, at: usize) -> Step {
        if let Some(step) = self.prefixed(at) {
            return step;
        }
        let fits = |b: &u8| *b == b'_' || b.is_ascii_alphanumeric();
        let end = at + self.bytes[at..].iter().take_while(|b| fits(b)).count();
        let kind = match &self.bytes[at..end] {
            b"in" => TokenKind::In,
            b"true" => TokenKind::True,
            b"false" => TokenKind::False,
            b"null" => TokenKind::Null,
            _ => TokenKind::Ident,
        };
        Step::Token(kind, end)
    }

    /// `r'...'`, `b'...'`, `br'...'`. If the string does not end, the prefix is an identifier.
    fn prefixed(&self, at: usize) -> Option<Step> {
        let bytes = matches!(self.bytes[at], b'b' | b'B');
        let from = if bytes { at + 1 } else { at };
        let raw = matches!(self.at(from), b'r' | b'R');
        let quote = if raw { from + 1 } else { from };
        if !(bytes || raw) || !matches!(self.at(quote), b'"' | b'\'') {
            return None;
        }
        let end = self.string(quote, if raw { Raw::Yes } else { Raw::No }).ok()?;
        Some(Step::Token(if bytes { TokenKind::Bytes } else { TokenKind::String }, end))
    }

    /// The end of a string that begins with a quote here; or where it broke off.
    fn string(&self, at: usize, raw: Raw) -> Result<usize, usize> {
        let quote = self.bytes[at];
        if self.at(at + 1) == quote && self.at(at + 2) == quote {
            // Without the other three quotes, the first two are an empty string.
            return Ok(self.triple(at, quote, raw).unwrap_or(at + 2));
        }
        let mut i = at + 1;
        loop {
            match self.bytes.get(i) {
                None | Some(b'\n' | b'\r') => return Err(i),
                Some(b) if *b == quote => return Ok(i + 1),
                Some(b'\\') if raw == Raw::No => i = self.escape(i)?,
                Some(_) => i += 1,
            }
        }
    }

    fn triple(&self, at: usize, quote: u8, raw: Raw) -> Option<usize> {
        let mut i = at + 3;
        loop {
            match self.bytes.get(i)? {
                b if *b == quote && self.at(i + 1) == quote && self.at(i + 2) == quote => return Some(i + 3),
                b'\\' if raw == Raw::No => i = self.escape(i).ok()?,
                _ => i += 1,
            }
        }
    }

    /// The end of an escape sequence, or the place where it is none.
    fn escape(&self, at: usize) -> Result<usize, usize> {
        let run = |from: usize, n: usize, fits: fn(&u8) -> bool| {
            let bad = (from..from + n).find(|i| !self.bytes.get(*i).is_some_and(fits));
            bad.map_or(Ok(from + n), Err)
        };
        match self.bytes.get(at + 1) {
            Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(at + 2),
            Some(b'x' | b'X') => run(at + 2, 2, u8::is_ascii_hexdigit),
            Some(b'u') => run(at + 2, 4, u8::is_ascii_hexdigit),
            Some(b'U') => run(at + 2, 8, u8::is_ascii_hexdigit),
            Some(b'0'..=b'3') => run(at + 2, 2, |b| (b'0'..=b'7').contains(b)),
            _ => Err(at + 1),
        }
    }

    /// A name in backquotes.
    fn escaped(&self, at: usize) -> Step {
        let fits = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' ');
        let end = at + 1 + self.bytes[at + 1..].iter().take_while(|b| fits(b)).count();
        if end > at + 1 && self.at(end) == b'`' {
            Step::Token(TokenKind::EscapedIdent, end + 1)
        } else {
            self.mistake(end)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Raw {
    Yes,
    No,
}
