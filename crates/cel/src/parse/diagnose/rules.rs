//! The rules of the grammar. Each tells its own mistakes and goes on.

use super::shape::Shape;
use super::{Diagnosis, Next, Set, Stop, TokenKind, has, only, or_end, set};
use crate::error::BEFORE;
use crate::parse::{MAX_DEPTH, relation};

/// What an expression can begin with.
pub const EXPR: Set = PRIMARY | set(&[TokenKind::Exclam]);
pub const PRIMARY: Set =
    LITERAL | set(&[TokenKind::LBracket, TokenKind::LBrace, TokenKind::LParen, TokenKind::Dot, TokenKind::Ident]);
const LITERAL: Set = set(&[
    TokenKind::Minus,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
]);
const RELATIONS: Next = or_end(&[
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
]);
const CALCULATIONS: Next =
    or_end(&[TokenKind::Minus, TokenKind::Plus, TokenKind::Star, TokenKind::Slash, TokenKind::Percent]);
const SUFFIXES: Next = or_end(&[TokenKind::Dot, TokenKind::LBracket]);
const END: Next = or_end(&[]);
const COMMA: Next = or_end(&[TokenKind::Comma]);
const NAME: Set = set(&[TokenKind::Ident, TokenKind::EscapedIdent]);

const fn with(tokens: Set, more: &[TokenKind]) -> Next {
    Next { tokens: tokens | set(more), end: false }
}

/// Rules are numbered to tell places in the grammar apart.
const PRIMARY_RULE: u32 = 9;
const LITERAL_RULE: u32 = 16;

type Parsed = Result<Shape, Stop>;

impl Diagnosis<'_> {
    /// A rule that can be followed by some tokens: what stops it is told, and where it ends others go on.
    fn rule(&mut self, follow: Next, point: u32, body: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        let start = self.token(self.at).start;
        let outer = self.partial.take();
        self.frames.push(follow);
        let parsed = match body(self) {
            Err(stop) => {
                // Where no alternative was chosen, there is nothing to have a place.
                let nothing = if matches!(point, PRIMARY_RULE | LITERAL_RULE) { BEFORE } else { start };
                let left = self.partial.take().unwrap_or(Shape::Other(nothing));
                self.recover(stop, point).map(|()| left)
            }
            parsed => parsed,
        };
        self.frames.pop();
        self.partial = outer;
        parsed
    }

    fn enter(&mut self, count: fn(&mut super::super::Open) -> &mut u32) -> Result<(), Stop> {
        let count = count(&mut self.open);
        *count += 1;
        if *count > MAX_DEPTH {
            self.issues.report_nowhere(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
            return Err(Stop::Abort);
        }
        Ok(())
    }

    pub(super) fn start(&mut self) -> Result<(), Stop> {
        let parsed = self.expr(only(&[TokenKind::Eof])).and_then(|_| self.expect(TokenKind::Eof, END));
        match parsed {
            Ok(_) => Ok(()),
            Err(stop) => self.recover(stop, 0),
        }
    }

    pub(super) fn expr(&mut self, follow: Next) -> Parsed {
        self.enter(|open| &mut open.expr)?;
        let parsed = self.rule(follow, 1, |d| {
            let first = d.or(or_end(&[TokenKind::Question]))?;
            if d.look(0)? != TokenKind::Question {
                return Ok(first);
            }
            let shape = Shape::Other(d.token(d.at).start);
            d.partial = Some(shape);
            d.expect(TokenKind::Question, Next { tokens: EXPR, end: false })?;
            d.or(only(&[TokenKind::Colon]))?;
            d.expect(TokenKind::Colon, Next { tokens: EXPR, end: false })?;
            d.expr(END)?;
            Ok(shape)
        })?;
        self.open.expr -= 1;
        Ok(parsed)
    }

    fn or(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 2, |d| {
            let first = d.and(or_end(&[TokenKind::Or]))?;
            let mut ops = Vec::new();
            while d.look(0)? == TokenKind::Or {
                ops.push(d.token(d.at).start);
                d.expect(TokenKind::Or, Next { tokens: EXPR, end: false })?;
                d.and(or_end(&[TokenKind::Or]))?;
            }
            // The tree is balanced: the middle one is above.
            Ok(ops.get(ops.len() / 2).map_or(first, |at| Shape::Other(*at)))
        })
    }

    fn and(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 3, |d| {
            let first = d.relation(or_end(&[TokenKind::And]), true)?;
            let mut ops = Vec::new();
            while d.look(0)? == TokenKind::And {
                ops.push(d.token(d.at).start);
                d.expect(TokenKind::And, Next { tokens: EXPR, end: false })?;
                d.relation(or_end(&[TokenKind::And]), true)?;
            }
            Ok(ops.get(ops.len() / 2).map_or(first, |at| Shape::Other(*at)))
        })
    }

    /// The right side of a relation takes no further ones.
    fn relation(&mut self, follow: Next, more: bool) -> Parsed {
        self.enter(|open| &mut open.relation)?;
        let parsed = self.rule(follow, 4, |d| {
            let mut shape = d.calc(RELATIONS, 0)?;
            while more && relation(d.look(0)?).is_some() {
                shape = Shape::Other(d.token(d.at).start);
                d.matched();
                d.consume()?;
                d.relation(RELATIONS, false)?;
            }
            Ok(shape)
        })?;
        self.open.relation -= 1;
        Ok(parsed)
    }

    fn calc(&mut self, follow: Next, precedence: u8) -> Parsed {
        self.enter(|open| &mut open.calc)?;
        let parsed = self.rule(follow, 5, |d| {
            let mut shape = d.unary(CALCULATIONS)?;
            loop {
                let own = match d.look(0)? {
                    TokenKind::Star | TokenKind::Slash | TokenKind::Percent => 2,
                    TokenKind::Plus | TokenKind::Minus => 1,
                    _ => break,
                };
                if own < precedence {
                    break;
                }
                shape = Shape::Other(d.token(d.at).start);
                d.matched();
                d.consume()?;
                d.calc(CALCULATIONS, own + 1)?;
            }
            Ok(shape)
        })?;
        self.open.calc -= 1;
        Ok(parsed)
    }

    fn unary(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 6, |d| {
            d.sync(Next { tokens: EXPR, end: false })?;
            let start = d.at;
            match d.look(0)? {
                TokenKind::Exclam => {
                    while d.look(0)? == TokenKind::Exclam {
                        d.expect(TokenKind::Exclam, with(PRIMARY, &[TokenKind::Exclam]))?;
                        d.sync_loop(with(PRIMARY, &[TokenKind::Exclam]))?;
                    }
                    d.signed(start)
                }
                TokenKind::Minus if !d.is_negative_number()? => {
                    loop {
                        d.expect(TokenKind::Minus, Next { tokens: PRIMARY, end: false })?;
                        d.sync_loop(Next { tokens: PRIMARY, end: false })?;
                        let kind = d.look(0)?;
                        if kind != TokenKind::Minus {
                            if !has(PRIMARY, kind) {
                                return Err(Stop::NoAlternative { from: d.at, at: d.at });
                            }
                            break;
                        }
                        d.is_negative_number()?;
                    }
                    d.signed(start)
                }
                kind if has(PRIMARY, kind) => d.member(END),
                _ => Err(Stop::NoAlternative { from: d.at, at: d.at }),
            }
        })
    }

    /// What follows signs, which began at a token: an even number of them is none.
    fn signed(&mut self, start: usize) -> Parsed {
        let signs = self.at - start;
        let operand = self.member(END)?;
        Ok(if signs.is_multiple_of(2) { operand } else { Shape::Other(self.token(start).start) })
    }

    /// Whether a minus here is part of a number.
    fn is_negative_number(&mut self) -> Result<bool, Stop> {
        match self.look(1)? {
            TokenKind::Int | TokenKind::Float => Ok(true),
            kind if has(PRIMARY, kind) => Ok(false),
            _ => Err(Stop::NoAlternative { from: self.at, at: self.at + 1 }),
        }
    }

    fn member(&mut self, follow: Next) -> Parsed {
        self.enter(|open| &mut open.member)?;
        let parsed = self.rule(follow, 7, |d| {
            let mut shape = d.primary(SUFFIXES)?;
            loop {
                // What a mistake behind it leaves.
                d.partial = Some(shape);
                shape = match d.look(0)? {
                    TokenKind::Dot if d.is_call()? => d.member_call(shape)?,
                    TokenKind::Dot => d.select()?,
                    TokenKind::LBracket => d.index()?,
                    _ => return Ok(shape),
                };
            }
        })?;
        self.open.member -= 1;
        Ok(parsed)
    }

    /// Whether the dot here is one of a call, or of a selection.
    fn is_call(&mut self) -> Result<bool, Stop> {
        match self.look(1)? {
            TokenKind::Ident => Ok(self.look(2)? == TokenKind::LParen),
            TokenKind::Question | TokenKind::EscapedIdent => Ok(false),
            _ => Err(Stop::NoAlternative { from: self.at, at: self.at + 1 }),
        }
    }

    fn member_call(&mut self, target: Shape) -> Parsed {
        self.expect(TokenKind::Dot, only(&[TokenKind::Ident]))?;
        let name = self.expect(TokenKind::Ident, only(&[TokenKind::LParen]))?;
        let open = self.expect(TokenKind::LParen, with(EXPR, &[TokenKind::RParen]))?;
        let (args, stopped) = self.args();
        let text = name.map_or("", |n| n.text(self.source));
        let shape = self.macro_call(text, Some(target), &args, open);
        self.partial = Some(shape);
        stopped.map(|()| shape)
    }

    fn select(&mut self) -> Parsed {
        let dot = self.token(self.at).start;
        self.partial = Some(Shape::Other(dot));
        self.expect(TokenKind::Dot, with(NAME, &[TokenKind::Question]))?;
        self.sync(with(NAME, &[TokenKind::Question]))?;
        let optional = self.look(0)? == TokenKind::Question;
        if optional {
            self.expect(TokenKind::Question, Next { tokens: NAME, end: false })?;
        }
        let name = self.escape_ident(SUFFIXES)?;
        if let Some((offset, message)) = name.why_not() {
            self.later.push((offset, message.into()));
        }
        Ok(if optional { Shape::Other(dot) } else { Shape::Select(dot) })
    }

    fn index(&mut self) -> Parsed {
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(TokenKind::LBracket, with(EXPR, &[TokenKind::Question]))?;
        self.sync(with(EXPR, &[TokenKind::Question]))?;
        if self.look(0)? == TokenKind::Question {
            self.expect(TokenKind::Question, Next { tokens: EXPR, end: false })?;
        }
        self.expr(only(&[TokenKind::RBracket]))?;
        self.expect(TokenKind::RBracket, SUFFIXES)?;
        Ok(shape)
    }

    /// Arguments and the closing parenthesis; what was read of them is kept if that stops.
    fn args(&mut self) -> (Vec<Shape>, Result<(), Stop>) {
        let mut args = Vec::new();
        let stopped = self.args_into(&mut args);
        (args, stopped)
    }

    fn args_into(&mut self, args: &mut Vec<Shape>) -> Result<(), Stop> {
        self.sync(with(EXPR, &[TokenKind::RParen]))?;
        if has(EXPR, self.look(0)?) {
            self.rule(only(&[TokenKind::RParen]), 8, |d| {
                let first = d.expr(COMMA)?;
                args.push(first);
                while d.look(0)? == TokenKind::Comma {
                    d.expect(TokenKind::Comma, Next { tokens: EXPR, end: false })?;
                    let next = d.expr(COMMA)?;
                    args.push(next);
                }
                Ok(first)
            })?;
        }
        self.expect(TokenKind::RParen, SUFFIXES)?;
        Ok(())
    }

    fn primary(&mut self, follow: Next) -> Parsed {
        self.rule(follow, PRIMARY_RULE, |d| {
            d.sync(Next { tokens: PRIMARY, end: false })?;
            match d.look(0)? {
                TokenKind::Ident | TokenKind::Dot => d.name(),
                TokenKind::LParen => {
                    d.expect(TokenKind::LParen, Next { tokens: EXPR, end: false })?;
                    let shape = d.expr(only(&[TokenKind::RParen]))?;
                    d.partial = Some(shape);
                    d.expect(TokenKind::RParen, END)?;
                    Ok(shape)
                }
                TokenKind::LBracket => d.list(),
                TokenKind::LBrace => d.map(),
                kind if has(LITERAL, kind) => d.literal(END),
                _ => Err(Stop::NoAlternative { from: d.at, at: d.at }),
            }
        })
    }

    fn name(&mut self) -> Parsed {
        let dotted = self.look(0)? == TokenKind::Dot;
        let first = usize::from(dotted);
        if self.look(first)? != TokenKind::Ident {
            return Err(Stop::NoAlternative { from: self.at, at: self.at + first });
        }
        let start = self.token(self.at).start;
        let mut end = first + 1;
        while self.look(end)? == TokenKind::Dot && self.look(end + 1)? == TokenKind::Ident {
            end += 2;
        }
        let message = self.look(end)? == TokenKind::LBrace;
        if dotted {
            self.expect(TokenKind::Dot, only(&[TokenKind::Ident]))?;
        }
        let Some(name) = self.expect(TokenKind::Ident, END)? else { return Ok(Shape::Other(start)) };
        if message {
            while self.look(0)? == TokenKind::Dot {
                self.expect(TokenKind::Dot, only(&[TokenKind::Ident]))?;
                self.expect(TokenKind::Ident, only(&[TokenKind::Dot, TokenKind::LBrace]))?;
            }
            return self.message();
        }
        let text = name.text(self.source);
        let reserved = crate::parse::is_reserved(text);
        if reserved {
            self.later.push((start, format!("reserved identifier: {text}")));
        }
        if self.look(0)? != TokenKind::LParen {
            return Ok(if reserved { Shape::Other(start) } else { Shape::Ident(name.start) });
        }
        let open = self.expect(TokenKind::LParen, with(EXPR, &[TokenKind::RParen]))?;
        let known = self.later.len();
        let (args, stopped) = self.args();
        if reserved {
            // Its arguments are not looked at.
            self.later.truncate(known);
            return stopped.map(|()| Shape::Other(start));
        }
        let shape = match open {
            Some(open) if dotted => Shape::Other(open.start),
            _ => self.macro_call(text, None, &args, open),
        };
        self.partial = Some(shape);
        stopped.map(|()| shape)
    }

    fn message(&mut self) -> Parsed {
        let fields = with(NAME, &[TokenKind::Question]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(TokenKind::LBrace, with(NAME, &[TokenKind::Question, TokenKind::Comma, TokenKind::RBrace]))?;
        self.sync(with(fields.tokens, &[TokenKind::Comma, TokenKind::RBrace]))?;
        if has(fields.tokens, self.look(0)?) {
            let start = self.token(self.at).start;
            self.rule(only(&[TokenKind::Comma, TokenKind::RBrace]), 10, |d| {
                loop {
                    let field = d.rule(only(&[TokenKind::Colon]), 11, |d| {
                        d.sync(fields)?;
                        if d.look(0)? == TokenKind::Question {
                            d.expect(TokenKind::Question, Next { tokens: NAME, end: false })?;
                        }
                        d.escape_ident(END)
                    })?;
                    let known = d.later.len();
                    d.expect(TokenKind::Colon, Next { tokens: EXPR, end: false })?;
                    d.expr(COMMA)?;
                    if let Some((_, message)) = field.why_not() {
                        d.later.truncate(known);
                        d.later.push((start, message.into()));
                    }
                    if d.look(0)? != TokenKind::Comma || !has(fields.tokens, d.look(1)?) {
                        return Ok(shape);
                    }
                    d.expect(TokenKind::Comma, fields)?;
                }
            })?;
        }
        self.close(TokenKind::RBrace, shape)
    }

    /// A comma perhaps, and what closes a list, a map or a message.
    fn close(&mut self, kind: TokenKind, shape: Shape) -> Parsed {
        self.sync(only(&[TokenKind::Comma, kind]))?;
        if self.look(0)? == TokenKind::Comma {
            self.expect(TokenKind::Comma, only(&[kind]))?;
        }
        self.expect(kind, END)?;
        Ok(shape)
    }

    fn list(&mut self) -> Parsed {
        let elements = with(EXPR, &[TokenKind::Question]);
        let first = with(elements.tokens, &[TokenKind::Comma, TokenKind::RBracket]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(TokenKind::LBracket, first)?;
        self.sync(first)?;
        if has(elements.tokens, self.look(0)?) {
            self.rule(only(&[TokenKind::Comma, TokenKind::RBracket]), 12, |d| {
                d.optional_expr(COMMA)?;
                while d.look(0)? == TokenKind::Comma && has(elements.tokens, d.look(1)?) {
                    d.expect(TokenKind::Comma, elements)?;
                    d.optional_expr(COMMA)?;
                }
                Ok(shape)
            })?;
        }
        self.close(TokenKind::RBracket, shape)
    }

    fn map(&mut self) -> Parsed {
        let keys = with(EXPR, &[TokenKind::Question]);
        let first = with(keys.tokens, &[TokenKind::Comma, TokenKind::RBrace]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(TokenKind::LBrace, first)?;
        self.sync(first)?;
        if has(keys.tokens, self.look(0)?) {
            self.rule(only(&[TokenKind::Comma, TokenKind::RBrace]), 13, |d| {
                loop {
                    let known = d.later.len();
                    d.optional_expr(only(&[TokenKind::Colon]))?;
                    if let Err(stop) = d.expect(TokenKind::Colon, Next { tokens: EXPR, end: false }) {
                        // A key without a colon is not looked at.
                        d.later.truncate(known);
                        return Err(stop);
                    }
                    d.expr(COMMA)?;
                    if d.look(0)? != TokenKind::Comma || !has(keys.tokens, d.look(1)?) {
                        return Ok(shape);
                    }
                    d.expect(TokenKind::Comma, keys)?;
                }
            })?;
        }
        self.close(TokenKind::RBrace, shape)
    }

    fn optional_expr(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 14, |d| {
            d.sync(with(EXPR, &[TokenKind::Question]))?;
            if d.look(0)? == TokenKind::Question {
                d.expect(TokenKind::Question, Next { tokens: EXPR, end: false })?;
            }
            d.expr(END)
        })
    }

    fn escape_ident(&mut self, follow: Next) -> Parsed {
        let start = self.token(self.at).start;
        let mut name = Shape::NoName(start);
        self.rule(follow, 15, |d| {
            d.sync(Next { tokens: NAME, end: false })?;
            match d.look(0)? {
                kind @ (TokenKind::Ident | TokenKind::EscapedIdent) => {
                    d.expect(kind, END)?;
                    name = if kind == TokenKind::Ident { Shape::Ident(start) } else { Shape::Escaped(start) };
                    Ok(name)
                }
                _ => Err(Stop::NoAlternative { from: d.at, at: d.at }),
            }
        })?;
        Ok(name)
    }

    fn literal(&mut self, follow: Next) -> Parsed {
        self.rule(follow, LITERAL_RULE, |d| {
            d.sync(Next { tokens: LITERAL, end: false })?;
            let start = d.token(d.at).start;
            let minus = d.look(0)? == TokenKind::Minus;
            let kind = d.look(usize::from(minus))?;
            if minus {
                if !matches!(kind, TokenKind::Int | TokenKind::Float) {
                    return Err(Stop::NoAlternative { from: d.at, at: d.at + 1 });
                }
                d.expect(TokenKind::Minus, only(&[kind]))?;
            } else if !has(LITERAL, kind) {
                return Err(Stop::NoAlternative { from: d.at, at: d.at });
            }
            if let Some(token) = d.expect(kind, END)?
                && let Err(message) = crate::parse::literal_value(token.kind, token.text(d.source), minus)
            {
                d.later.push((start, message.into()));
            }
            Ok(Shape::Other(start))
        })
    }
}
