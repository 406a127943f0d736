//! A look ahead over tokens: where what begins here ends, or where it goes wrong.

use super::rules::EXPR;
use super::{Kind, Set, has};
use crate::parse::lexer::Token;
use crate::parse::relation;

/// Deeper nesting is refused by the rules themselves.
const MAX_DEPTH: u32 = 300;

pub enum Found {
    End(usize),
    Wrong(usize),
}

impl Found {
    /// The last token that was looked at.
    pub fn reached(&self) -> usize {
        match self {
            Found::End(at) | Found::Wrong(at) => *at,
        }
    }
}

/// From behind a literal to the end of the selections, calls and indices on it; what follows must be one of `after`.
pub fn member_end(tokens: &[Token], at: usize, after: Set) -> Found {
    let mut scan = Scan { tokens, at, depth: 0 };
    match scan.suffixes() {
        Ok(()) if has(after, scan.peek()) => Found::End(scan.at),
        Ok(()) | Err(Failed::Wrong) => Found::Wrong(scan.at),
        Err(Failed::TooDeep) => Found::End(scan.at),
    }
}

enum Failed {
    /// The token at this place cannot be there.
    Wrong,
    TooDeep,
}

struct Scan<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

impl Scan<'_> {
    fn peek(&self) -> Kind {
        self.tokens.get(self.at).map_or(Kind::Eof, |t| t.kind)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek() == kind;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, kind: Kind) -> Result<(), Failed> {
        if self.eat(kind) { Ok(()) } else { Err(Failed::Wrong) }
    }

    fn expr(&mut self) -> Result<(), Failed> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Failed::TooDeep);
        }
        self.operands()?;
        if self.eat(Kind::Question) {
            self.operands()?;
            self.expect(Kind::Colon)?;
            self.expr()?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Operands with any operators between them: all of them may follow each other.
    fn operands(&mut self) -> Result<(), Failed> {
        loop {
            let sign = self.peek();
            if matches!(sign, Kind::Exclam | Kind::Minus) {
                while self.eat(sign) {}
                if sign == Kind::Exclam {
                    self.eat(Kind::Minus);
                }
            }
            self.primary()?;
            self.suffixes()?;
            let kind = self.peek();
            let operator = matches!(
                kind,
                Kind::Or | Kind::And | Kind::Plus | Kind::Minus | Kind::Star | Kind::Slash | Kind::Percent
            );
            if !operator && relation(kind).is_none() {
                return Ok(());
            }
            self.at += 1;
        }
    }

    fn suffixes(&mut self) -> Result<(), Failed> {
        loop {
            if self.eat(Kind::Dot) {
                if self.eat(Kind::Question) || self.peek() == Kind::EscapedIdent {
                    if !self.eat(Kind::EscapedIdent) {
                        self.expect(Kind::Ident)?;
                    }
                    continue;
                }
                self.expect(Kind::Ident)?;
                if self.eat(Kind::LParen) {
                    self.until(Kind::RParen)?;
                }
            } else if self.eat(Kind::LBracket) {
                self.eat(Kind::Question);
                self.expr()?;
                self.expect(Kind::RBracket)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Expressions with commas between them, and what closes them.
    fn until(&mut self, close: Kind) -> Result<(), Failed> {
        if self.eat(close) {
            return Ok(());
        }
        loop {
            if close == Kind::RBracket {
                self.eat(Kind::Question);
            }
            self.expr()?;
            if !self.eat(Kind::Comma) || (close == Kind::RBracket && self.peek() == close) {
                return self.expect(close);
            }
        }
    }

    fn primary(&mut self) -> Result<(), Failed> {
        match self.peek() {
            Kind::Dot | Kind::Ident => {
                self.eat(Kind::Dot);
                self.expect(Kind::Ident)?;
                if self.eat(Kind::LParen) {
                    return self.until(Kind::RParen);
                }
                let start = self.at;
                while self.eat(Kind::Dot) && self.eat(Kind::Ident) {}
                if self.eat(Kind::LBrace) {
                    return self.pairs();
                }
                self.at = start;
                Ok(())
            }
            Kind::LParen => {
                self.at += 1;
                self.expr()?;
                self.expect(Kind::RParen)
            }
            Kind::LBracket => {
                self.at += 1;
                if self.eat(Kind::Comma) {
                    return self.expect(Kind::RBracket);
                }
                self.until(Kind::RBracket)
            }
            Kind::LBrace => {
                self.at += 1;
                self.pairs()
            }
            kind if has(EXPR, kind) && !matches!(kind, Kind::Exclam | Kind::Minus) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(Failed::Wrong),
        }
    }

    /// `key: value` pairs up to the brace.
    fn pairs(&mut self) -> Result<(), Failed> {
        if self.eat(Kind::Comma) || self.peek() == Kind::RBrace {
            return self.expect(Kind::RBrace);
        }
        loop {
            self.eat(Kind::Question);
            if !self.eat(Kind::EscapedIdent) {
                self.expr()?;
            }
            self.expect(Kind::Colon)?;
            self.expr()?;
            if !self.eat(Kind::Comma) || self.peek() == Kind::RBrace {
                return self.expect(Kind::RBrace);
            }
        }
    }
}
