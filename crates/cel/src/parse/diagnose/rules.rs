//! The rules of the grammar. Each tells its own mistakes and goes on.

use super::shape::Shape;
use super::{Diagnosis, Kind, Next, Set, Stop, has, only, or_end, set};
use crate::error::BEFORE;
use crate::parse::{MAX_DEPTH, relation};

/// What an expression can begin with.
pub const EXPR: Set = PRIMARY | set(&[Kind::Exclam]);
pub const PRIMARY: Set = LITERAL | set(&[Kind::LBracket, Kind::LBrace, Kind::LParen, Kind::Dot, Kind::Ident]);
const LITERAL: Set = set(&[
    Kind::Minus,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
]);
const RELATIONS: Next = or_end(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);
const CALCULATIONS: Next = or_end(&[Kind::Minus, Kind::Plus, Kind::Star, Kind::Slash, Kind::Percent]);
const SUFFIXES: Next = or_end(&[Kind::Dot, Kind::LBracket]);
const END: Next = or_end(&[]);
const COMMA: Next = or_end(&[Kind::Comma]);
const NAME: Set = set(&[Kind::Ident, Kind::EscapedIdent]);

const fn with(tokens: Set, more: &[Kind]) -> Next {
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
        let parsed = self.expr(only(&[Kind::Eof])).and_then(|_| self.expect(Kind::Eof, END));
        match parsed {
            Ok(_) => Ok(()),
            Err(stop) => self.recover(stop, 0),
        }
    }

    pub(super) fn expr(&mut self, follow: Next) -> Parsed {
        self.enter(|open| &mut open.expr)?;
        let parsed = self.rule(follow, 1, |d| {
            let first = d.or(or_end(&[Kind::Question]))?;
            if d.look(0)? != Kind::Question {
                return Ok(first);
            }
            let shape = Shape::Other(d.token(d.at).start);
            d.partial = Some(shape);
            d.expect(Kind::Question, Next { tokens: EXPR, end: false })?;
            d.or(only(&[Kind::Colon]))?;
            d.expect(Kind::Colon, Next { tokens: EXPR, end: false })?;
            d.expr(END)?;
            Ok(shape)
        })?;
        self.open.expr -= 1;
        Ok(parsed)
    }

    fn or(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 2, |d| {
            let first = d.and(or_end(&[Kind::Or]))?;
            let mut ops = Vec::new();
            while d.look(0)? == Kind::Or {
                ops.push(d.token(d.at).start);
                d.expect(Kind::Or, Next { tokens: EXPR, end: false })?;
                d.and(or_end(&[Kind::Or]))?;
            }
            // The tree is balanced: the middle one is above.
            Ok(ops.get(ops.len() / 2).map_or(first, |at| Shape::Other(*at)))
        })
    }

    fn and(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 3, |d| {
            let first = d.relation(or_end(&[Kind::And]), true)?;
            let mut ops = Vec::new();
            while d.look(0)? == Kind::And {
                ops.push(d.token(d.at).start);
                d.expect(Kind::And, Next { tokens: EXPR, end: false })?;
                d.relation(or_end(&[Kind::And]), true)?;
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
                    Kind::Star | Kind::Slash | Kind::Percent => 2,
                    Kind::Plus | Kind::Minus => 1,
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
                Kind::Exclam => {
                    while d.look(0)? == Kind::Exclam {
                        d.expect(Kind::Exclam, with(PRIMARY, &[Kind::Exclam]))?;
                        d.sync_loop(with(PRIMARY, &[Kind::Exclam]))?;
                    }
                    d.signed(start)
                }
                Kind::Minus if !d.is_negative_number()? => {
                    loop {
                        d.expect(Kind::Minus, Next { tokens: PRIMARY, end: false })?;
                        d.sync_loop(Next { tokens: PRIMARY, end: false })?;
                        let kind = d.look(0)?;
                        if kind != Kind::Minus {
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
            Kind::Int | Kind::Float => Ok(true),
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
                    Kind::Dot if d.is_call()? => d.member_call(shape)?,
                    Kind::Dot => d.select()?,
                    Kind::LBracket => d.index()?,
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
            Kind::Ident => Ok(self.look(2)? == Kind::LParen),
            Kind::Question | Kind::EscapedIdent => Ok(false),
            _ => Err(Stop::NoAlternative { from: self.at, at: self.at + 1 }),
        }
    }

    fn member_call(&mut self, target: Shape) -> Parsed {
        self.expect(Kind::Dot, only(&[Kind::Ident]))?;
        let name = self.expect(Kind::Ident, only(&[Kind::LParen]))?;
        let open = self.expect(Kind::LParen, with(EXPR, &[Kind::RParen]))?;
        let (args, stopped) = self.args();
        let text = name.map_or("", |n| n.text(self.source));
        let shape = self.macro_call(text, Some(target), &args, open);
        self.partial = Some(shape);
        stopped.map(|()| shape)
    }

    fn select(&mut self) -> Parsed {
        let dot = self.token(self.at).start;
        self.partial = Some(Shape::Other(dot));
        self.expect(Kind::Dot, with(NAME, &[Kind::Question]))?;
        self.sync(with(NAME, &[Kind::Question]))?;
        let optional = self.look(0)? == Kind::Question;
        if optional {
            self.expect(Kind::Question, Next { tokens: NAME, end: false })?;
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
        self.expect(Kind::LBracket, with(EXPR, &[Kind::Question]))?;
        self.sync(with(EXPR, &[Kind::Question]))?;
        if self.look(0)? == Kind::Question {
            self.expect(Kind::Question, Next { tokens: EXPR, end: false })?;
        }
        self.expr(only(&[Kind::RBracket]))?;
        self.expect(Kind::RBracket, SUFFIXES)?;
        Ok(shape)
    }

    /// Arguments and the closing parenthesis; what was read of them is kept if that stops.
    fn args(&mut self) -> (Vec<Shape>, Result<(), Stop>) {
        let mut args = Vec::new();
        let stopped = self.args_into(&mut args);
        (args, stopped)
    }

    fn args_into(&mut self, args: &mut Vec<Shape>) -> Result<(), Stop> {
        self.sync(with(EXPR, &[Kind::RParen]))?;
        if has(EXPR, self.look(0)?) {
            self.rule(only(&[Kind::RParen]), 8, |d| {
                let first = d.expr(COMMA)?;
                args.push(first);
                while d.look(0)? == Kind::Comma {
                    d.expect(Kind::Comma, Next { tokens: EXPR, end: false })?;
                    let next = d.expr(COMMA)?;
                    args.push(next);
                }
                Ok(first)
            })?;
        }
        self.expect(Kind::RParen, SUFFIXES)?;
        Ok(())
    }

    fn primary(&mut self, follow: Next) -> Parsed {
        self.rule(follow, PRIMARY_RULE, |d| {
            d.sync(Next { tokens: PRIMARY, end: false })?;
            match d.look(0)? {
                Kind::Ident | Kind::Dot => d.name(),
                Kind::LParen => {
                    d.expect(Kind::LParen, Next { tokens: EXPR, end: false })?;
                    let shape = d.expr(only(&[Kind::RParen]))?;
                    d.partial = Some(shape);
                    d.expect(Kind::RParen, END)?;
                    Ok(shape)
                }
                Kind::LBracket => d.list(),
                Kind::LBrace => d.map(),
                kind if has(LITERAL, kind) => d.literal(END),
                _ => Err(Stop::NoAlternative { from: d.at, at: d.at }),
            }
        })
    }

    fn name(&mut self) -> Parsed {
        let dotted = self.look(0)? == Kind::Dot;
        let first = usize::from(dotted);
        if self.look(first)? != Kind::Ident {
            return Err(Stop::NoAlternative { from: self.at, at: self.at + first });
        }
        let start = self.token(self.at).start;
        let mut end = first + 1;
        while self.look(end)? == Kind::Dot && self.look(end + 1)? == Kind::Ident {
            end += 2;
        }
        let message = self.look(end)? == Kind::LBrace;
        if dotted {
            self.expect(Kind::Dot, only(&[Kind::Ident]))?;
        }
        let Some(name) = self.expect(Kind::Ident, END)? else { return Ok(Shape::Other(start)) };
        if message {
            while self.look(0)? == Kind::Dot {
                self.expect(Kind::Dot, only(&[Kind::Ident]))?;
                self.expect(Kind::Ident, only(&[Kind::Dot, Kind::LBrace]))?;
            }
            return self.message();
        }
        let text = name.text(self.source);
        let reserved = crate::parse::is_reserved(text);
        if reserved {
            self.later.push((start, format!("reserved identifier: {text}")));
        }
        if self.look(0)? != Kind::LParen {
            return Ok(if reserved { Shape::Other(start) } else { Shape::Ident(name.start) });
        }
        let open = self.expect(Kind::LParen, with(EXPR, &[Kind::RParen]))?;
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
        let fields = with(NAME, &[Kind::Question]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(Kind::LBrace, with(NAME, &[Kind::Question, Kind::Comma, Kind::RBrace]))?;
        self.sync(with(fields.tokens, &[Kind::Comma, Kind::RBrace]))?;
        if has(fields.tokens, self.look(0)?) {
            let start = self.token(self.at).start;
            self.rule(only(&[Kind::Comma, Kind::RBrace]), 10, |d| {
                loop {
                    let field = d.rule(only(&[Kind::Colon]), 11, |d| {
                        d.sync(fields)?;
                        if d.look(0)? == Kind::Question {
                            d.expect(Kind::Question, Next { tokens: NAME, end: false })?;
                        }
                        d.escape_ident(END)
                    })?;
                    let known = d.later.len();
                    d.expect(Kind::Colon, Next { tokens: EXPR, end: false })?;
                    d.expr(COMMA)?;
                    if let Some((_, message)) = field.why_not() {
                        d.later.truncate(known);
                        d.later.push((start, message.into()));
                    }
                    if d.look(0)? != Kind::Comma || !has(fields.tokens, d.look(1)?) {
                        return Ok(shape);
                    }
                    d.expect(Kind::Comma, fields)?;
                }
            })?;
        }
        self.close(Kind::RBrace, shape)
    }

    /// A comma perhaps, and what closes a list, a map or a message.
    fn close(&mut self, kind: Kind, shape: Shape) -> Parsed {
        self.sync(only(&[Kind::Comma, kind]))?;
        if self.look(0)? == Kind::Comma {
            self.expect(Kind::Comma, only(&[kind]))?;
        }
        self.expect(kind, END)?;
        Ok(shape)
    }

    fn list(&mut self) -> Parsed {
        let elements = with(EXPR, &[Kind::Question]);
        let first = with(elements.tokens, &[Kind::Comma, Kind::RBracket]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(Kind::LBracket, first)?;
        self.sync(first)?;
        if has(elements.tokens, self.look(0)?) {
            self.rule(only(&[Kind::Comma, Kind::RBracket]), 12, |d| {
                d.optional_expr(COMMA)?;
                while d.look(0)? == Kind::Comma && has(elements.tokens, d.look(1)?) {
                    d.expect(Kind::Comma, elements)?;
                    d.optional_expr(COMMA)?;
                }
                Ok(shape)
            })?;
        }
        self.close(Kind::RBracket, shape)
    }

    fn map(&mut self) -> Parsed {
        let keys = with(EXPR, &[Kind::Question]);
        let first = with(keys.tokens, &[Kind::Comma, Kind::RBrace]);
        let shape = Shape::Other(self.token(self.at).start);
        self.partial = Some(shape);
        self.expect(Kind::LBrace, first)?;
        self.sync(first)?;
        if has(keys.tokens, self.look(0)?) {
            self.rule(only(&[Kind::Comma, Kind::RBrace]), 13, |d| {
                loop {
                    let known = d.later.len();
                    d.optional_expr(only(&[Kind::Colon]))?;
                    if let Err(stop) = d.expect(Kind::Colon, Next { tokens: EXPR, end: false }) {
                        // A key without a colon is not looked at.
                        d.later.truncate(known);
                        return Err(stop);
                    }
                    d.expr(COMMA)?;
                    if d.look(0)? != Kind::Comma || !has(keys.tokens, d.look(1)?) {
                        return Ok(shape);
                    }
                    d.expect(Kind::Comma, keys)?;
                }
            })?;
        }
        self.close(Kind::RBrace, shape)
    }

    fn optional_expr(&mut self, follow: Next) -> Parsed {
        self.rule(follow, 14, |d| {
            d.sync(with(EXPR, &[Kind::Question]))?;
            if d.look(0)? == Kind::Question {
                d.expect(Kind::Question, Next { tokens: EXPR, end: false })?;
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
                kind @ (Kind::Ident | Kind::EscapedIdent) => {
                    d.expect(kind, END)?;
                    name = if kind == Kind::Ident { Shape::Ident(start) } else { Shape::Escaped(start) };
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
            let minus = d.look(0)? == Kind::Minus;
            let kind = d.look(usize::from(minus))?;
            if minus {
                if !matches!(kind, Kind::Int | Kind::Float) {
                    return Err(Stop::NoAlternative { from: d.at, at: d.at + 1 });
                }
                d.expect(Kind::Minus, only(&[kind]))?;
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
