//! Text to tree.
//!
//! The parser is written by hand for expressions that are right, in one pass without going back. Where it meets a
//! mistake it gives up, and [`diagnose`](diagnose) words the mistakes as the reference's generated parser does, which
//! takes a slower way over the grammar.

mod diagnose;
mod lexer;
mod macros;
mod unescape;

pub use macros::Macros;

use crate::ast::{Ast, Entry, Expr, ExprId, Field, Literal};
use crate::error::Issues;
pub use crate::escape::is_reserved;
use kubelith_meta::Str;
use lexer::{Token, TokenKind, Tokens};

/// The longest expression, in characters.
const MAX_CHARS: usize = 100_000;
/// How deep rules of the grammar may nest in themselves, and how deep a tree of operators and selections may be.
const MAX_DEPTH: u32 = 250;

/// Parses an expression.
pub fn parse(source: &str, macros: Macros) -> Result<Ast, Issues> {
    // Only what is longer in bytes can be longer in characters.
    if source.len() > MAX_CHARS {
        let chars = source.chars().count();
        if chars > MAX_CHARS {
            let mut issues = Issues::new(source);
            let message = format!("expression code point size exceeds limit: size: {chars}, limit {MAX_CHARS}");
            issues.report_nowhere(message);
            return Err(issues);
        }
    }
    let tokens = lexer::lex(source);
    if !tokens.mistakes.is_empty() {
        return Err(diagnose::diagnose(source, &tokens, macros));
    }
    let mut parser = Parser::new(source, &tokens, macros);
    match parser.start() {
        Ok(()) if parser.issues.is_empty() => Ok(parser.ast),
        Ok(()) => Err(parser.issues),
        Err(Stop::TooDeep) => {
            let mut issues = Issues::new(source);
            issues.report_nowhere(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
            Err(issues)
        }
        Err(Stop::Grammar) => Err(diagnose::diagnose(source, &tokens, macros)),
    }
}

/// Why the parser gave up.
#[derive(Debug)]
enum Stop {
    /// The text is not as the grammar wants it.
    Grammar,
    TooDeep,
}

/// A part of the tree, and how deep its operators and selections nest.
#[derive(Clone, Copy)]
struct Node {
    id: ExprId,
    depth: u32,
}

/// How often a rule of the grammar is open. The right side of an operator is one more; links of a chain are not.
#[derive(Default)]
struct Open {
    expr: u32,
    relation: u32,
    calc: u32,
    member: u32,
}

struct Parser<'a> {
    source: &'a str,
    tokens: &'a [Token],
    macros: Macros,
    at: usize,
    ast: Ast,
    issues: Issues,
    open: Open,
    too_deep: bool,
}

type Result_<T> = Result<T, Stop>;

fn enter(count: &mut u32) -> Result_<()> {
    *count += 1;
    if *count > MAX_DEPTH { Err(Stop::TooDeep) } else { Ok(()) }
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, tokens: &'a Tokens, macros: Macros) -> Parser<'a> {
        let ast = Ast::with_capacity(tokens.list.len());
        let issues = Issues::new(source);
        Parser { source, tokens: &tokens.list, macros, at: 0, ast, issues, open: Open::default(), too_deep: false }
    }

    fn start(&mut self) -> Result_<()> {
        let root = self.expr()?;
        self.expect(TokenKind::Eof)?;
        self.ast.root = Some(root.id);
        if self.too_deep {
            self.issues.report_nowhere("max recursion depth exceeded");
        }
        Ok(())
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_at(&self, ahead: usize) -> TokenKind {
        self.tokens.get(self.at + ahead).map_or(TokenKind::Eof, |t| t.kind)
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at];
        // The end stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Token> {
        if self.peek() == kind { Some(self.next()) } else { None }
    }

    fn expect(&mut self, kind: TokenKind) -> Result_<Token> {
        self.eat(kind).ok_or(Stop::Grammar)
    }

    /// A node above others.
    fn above(&mut self, depth: u32) -> u32 {
        if depth >= MAX_DEPTH {
            self.too_deep = true;
        }
        depth + 1
    }

    fn call(&mut self, function: &'static str, args: &[ExprId], offset: u32) -> ExprId {
        let args = self.ast.add_list(args);
        self.ast.add(Expr::Call { function: Str::const_new(function), target: None, args }, offset)
    }

    /// What stands where nothing could be made of the text; an issue was reported.
    fn broken(&mut self, offset: u32, message: impl Into<String>) -> Node {
        self.issues.report(offset, message);
        Node { id: self.ast.add(Expr::Literal(Literal::Null), offset), depth: 0 }
    }

    /// `or ? or : expr`
    fn expr(&mut self) -> Result_<Node> {
        enter(&mut self.open.expr)?;
        let mut node = self.or()?;
        if let Some(op) = self.eat(TokenKind::Question) {
            let yes = self.or()?;
            self.expect(TokenKind::Colon)?;
            let no = self.expr()?;
            let depth = self.above(node.depth.max(yes.depth).max(no.depth));
            node = Node { id: self.call("_?_:_", &[node.id, yes.id, no.id], op.start), depth };
        }
        self.open.expr -= 1;
        Ok(node)
    }

    fn or(&mut self) -> Result_<Node> {
        let first = self.and()?;
        if self.peek() != TokenKind::Or {
            return Ok(first);
        }
        self.chain(first, TokenKind::Or, "_||_", Parser::and)
    }

    fn and(&mut self) -> Result_<Node> {
        let first = self.relation()?;
        if self.peek() != TokenKind::And {
            return Ok(first);
        }
        self.chain(first, TokenKind::And, "_&&_", Parser::relation)
    }

    /// Terms of `||` or `&&`: they become a balanced tree.
    fn chain(
        &mut self,
        first: Node,
        kind: TokenKind,
        function: &'static str,
        term: fn(&mut Self) -> Result_<Node>,
    ) -> Result_<Node> {
        let mut depth = first.depth;
        let mut terms = vec![first.id];
        let mut ops = Vec::new();
        while let Some(op) = self.eat(kind) {
            let next = term(self)?;
            depth = depth.max(next.depth);
            terms.push(next.id);
            ops.push(op.start);
        }
        let id = self.balance(function, &terms, &ops);
        Ok(Node { id, depth })
    }

    fn balance(&mut self, function: &'static str, terms: &[ExprId], ops: &[u32]) -> ExprId {
        if ops.is_empty() {
            return terms[0];
        }
        let mid = ops.len() / 2;
        let left = self.balance(function, &terms[..=mid], &ops[..mid]);
        let right = self.balance(function, &terms[mid + 1..], &ops[mid + 1..]);
        self.call(function, &[left, right], ops[mid])
    }

    fn relation(&mut self) -> Result_<Node> {
        let before = self.open.relation;
        enter(&mut self.open.relation)?;
        let mut left = self.sum()?;
        while let Some(function) = relation(self.peek()) {
            let op = self.next();
            enter(&mut self.open.relation)?;
            let right = self.sum()?;
            self.open.relation -= 1;
            let depth = self.above(left.depth.max(right.depth));
            left = Node { id: self.call(function, &[left.id, right.id], op.start), depth };
        }
        self.open.relation = before;
        Ok(left)
    }

    fn sum(&mut self) -> Result_<Node> {
        let before = self.open.calc;
        enter(&mut self.open.calc)?;
        let unary = self.unary()?;
        let mut left = self.products(unary)?;
        loop {
            let function = match self.peek() {
                TokenKind::Plus => "_+_",
                TokenKind::Minus => "_-_",
                _ => break,
            };
            let op = self.next();
            enter(&mut self.open.calc)?;
            let unary = self.unary()?;
            let right = self.products(unary)?;
            self.open.calc -= 1;
            let depth = self.above(left.depth.max(right.depth));
            left = Node { id: self.call(function, &[left.id, right.id], op.start), depth };
        }
        self.open.calc = before;
        Ok(left)
    }

    /// `left * right / right`
    fn products(&mut self, mut left: Node) -> Result_<Node> {
        loop {
            let function = match self.peek() {
                TokenKind::Star => "_*_",
                TokenKind::Slash => "_/_",
                TokenKind::Percent => "_%_",
                _ => return Ok(left),
            };
            let op = self.next();
            enter(&mut self.open.calc)?;
            let right = self.unary()?;
            self.open.calc -= 1;
            let depth = self.above(left.depth.max(right.depth));
            left = Node { id: self.call(function, &[left.id, right.id], op.start), depth };
        }
    }

    fn unary(&mut self) -> Result_<Node> {
        let kind = self.peek();
        let function = match kind {
            TokenKind::Exclam => "!_",
            // A minus before a number is part of the literal.
            TokenKind::Minus if !matches!(self.peek_at(1), TokenKind::Int | TokenKind::Float) => "-_",
            _ => return self.member(),
        };
        let first = self.next();
        let mut odd = true;
        while self.eat(kind).is_some() {
            odd = !odd;
        }
        let operand = self.member()?;
        if odd {
            return Ok(Node { id: self.call(function, &[operand.id], first.start), depth: operand.depth });
        }
        Ok(operand)
    }

    fn member(&mut self) -> Result_<Node> {
        let before = self.open.member;
        enter(&mut self.open.member)?;
        let mut node = self.primary()?;
        loop {
            match self.peek() {
                TokenKind::Dot => node = self.select(node)?,
                TokenKind::LBracket => node = self.index(node)?,
                _ => break,
            }
        }
        self.open.member = before;
        Ok(node)
    }

    /// `.name`, `.?name`, `.name(args)`
    fn select(&mut self, operand: Node) -> Result_<Node> {
        let op = self.next();
        let optional = self.eat(TokenKind::Question);
        let name = self.next();
        if !matches!(name.kind, TokenKind::Ident | TokenKind::EscapedIdent) {
            return Err(Stop::Grammar);
        }
        let mut text = name.text(self.source);
        if name.kind == TokenKind::EscapedIdent {
            self.issues.report(name.start, "unsupported syntax: '`'");
            text = "";
        }
        if optional.is_some() {
            let depth = self.above(operand.depth);
            let field = self.ast.add(Expr::Literal(Literal::String(text.into())), name.start);
            return Ok(Node { id: self.call("_?._", &[operand.id, field], op.start), depth });
        }
        if name.kind == TokenKind::Ident
            && let Some(open) = self.eat(TokenKind::LParen)
        {
            let (args, inner) = self.args()?;
            let depth = self.above(operand.depth.max(inner));
            let id = match self.expand(text, Some(operand.id), &args, open.start) {
                Some(id) => id,
                None => {
                    let args = self.ast.add_list(&args);
                    self.ast.add(Expr::Call { function: text.into(), target: Some(operand.id), args }, open.start)
                }
            };
            return Ok(Node { id, depth });
        }
        let depth = self.above(operand.depth);
        let select = Expr::Select { operand: operand.id, field: text.into(), test_only: false };
        Ok(Node { id: self.ast.add(select, op.start), depth })
    }

    fn index(&mut self, operand: Node) -> Result_<Node> {
        let op = self.next();
        let optional = self.eat(TokenKind::Question);
        let index = self.expr()?;
        self.expect(TokenKind::RBracket)?;
        let function = if optional.is_some() { "_[?_]" } else { "_[_]" };
        let depth = self.above(operand.depth.max(index.depth));
        Ok(Node { id: self.call(function, &[operand.id, index.id], op.start), depth })
    }

    /// Arguments up to the closing parenthesis, and how deep they are.
    fn args(&mut self) -> Result_<(Vec<ExprId>, u32)> {
        let mut args = Vec::new();
        let mut depth = 0;
        if self.eat(TokenKind::RParen).is_some() {
            return Ok((args, depth));
        }
        loop {
            let arg = self.expr()?;
            args.push(arg.id);
            depth = depth.max(arg.depth);
            if self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.expect(TokenKind::RParen)?;
        Ok((args, depth))
    }

    fn primary(&mut self) -> Result_<Node> {
        match self.peek() {
            TokenKind::Ident => self.name(None),
            TokenKind::Dot if self.peek_at(1) == TokenKind::Ident => {
                let dot = self.next();
                self.name(Some(dot))
            }
            TokenKind::LParen => {
                self.next();
                let inner = self.expr()?;
                self.expect(TokenKind::RParen)?;
                Ok(inner)
            }
            TokenKind::LBracket => self.list(),
            TokenKind::LBrace => self.map(),
            _ => self.literal(),
        }
    }

    /// A variable, a call, or a message.
    fn name(&mut self, dot: Option<Token>) -> Result_<Node> {
        let mut end = 1;
        while self.peek_at(end) == TokenKind::Dot && self.peek_at(end + 1) == TokenKind::Ident {
            end += 2;
        }
        if self.peek_at(end) == TokenKind::LBrace {
            return self.message(dot, end);
        }
        let token = self.next();
        let text = token.text(self.source);
        let start = dot.map_or(token.start, |d| d.start);
        let open = self.eat(TokenKind::LParen);
        if is_reserved(text) {
            if open.is_some() {
                self.skip_args()?;
            }
            return Ok(self.broken(start, format!("reserved identifier: {text}")));
        }
        let name: Str = if dot.is_some() { [".", text].concat().into() } else { text.into() };
        let Some(open) = open else {
            return Ok(Node { id: self.ast.add(Expr::Ident(name), token.start), depth: 0 });
        };
        let (args, depth) = self.args()?;
        let id = match self.expand(&name, None, &args, open.start) {
            Some(id) => id,
            None => {
                let args = self.ast.add_list(&args);
                self.ast.add(Expr::Call { function: name, target: None, args }, open.start)
            }
        };
        Ok(Node { id, depth })
    }

    /// Arguments that nobody looks into: mistakes in them other than of grammar are not told.
    fn skip_args(&mut self) -> Result_<()> {
        let issues = self.issues.clone();
        let too_deep = self.too_deep;
        self.args()?;
        self.issues = issues;
        self.too_deep = too_deep;
        Ok(())
    }

    /// `a.b.C{field: value}`, whose name has this many tokens.
    fn message(&mut self, dot: Option<Token>, tokens: usize) -> Result_<Node> {
        let mut name = Str::default();
        if dot.is_some() {
            name.push('.');
        }
        for _ in 0..tokens {
            let token = self.next();
            name.push_str(token.text(self.source));
        }
        let open = self.next();
        let list = self.tokens[self.at].start;
        let mut fields = Vec::new();
        let mut depth = 0;
        loop {
            if matches!(self.peek(), TokenKind::RBrace | TokenKind::Comma) {
                break;
            }
            let optional = self.eat(TokenKind::Question).is_some();
            let field = self.next();
            if !matches!(field.kind, TokenKind::Ident | TokenKind::EscapedIdent) {
                return Err(Stop::Grammar);
            }
            let colon = self.expect(TokenKind::Colon)?;
            if field.kind == TokenKind::EscapedIdent {
                self.issues.report(list, "unsupported syntax: '`'");
                let issues = self.issues.clone();
                self.expr()?;
                self.issues = issues;
            } else {
                let value = self.expr()?;
                depth = depth.max(value.depth);
                let name = field.text(self.source).into();
                fields.push(Field { offset: colon.start, name, value: value.id, optional });
            }
            if !self.another(TokenKind::RBrace) {
                break;
            }
        }
        self.eat(TokenKind::Comma);
        self.expect(TokenKind::RBrace)?;
        let fields = self.ast.add_fields(&fields);
        Ok(Node { id: self.ast.add(Expr::Struct { name, fields }, open.start), depth })
    }

    /// Whether there is a comma with something behind it. A comma before the end is allowed.
    fn another(&mut self, end: TokenKind) -> bool {
        self.peek() == TokenKind::Comma && self.peek_at(1) != end && self.eat(TokenKind::Comma).is_some()
    }

    fn list(&mut self) -> Result_<Node> {
        let open = self.next();
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let mut depth = 0;
        while !matches!(self.peek(), TokenKind::RBracket | TokenKind::Comma) {
            if self.eat(TokenKind::Question).is_some() {
                optional.push(elements.len() as u32);
            }
            let element = self.expr()?;
            depth = depth.max(element.depth);
            elements.push(element.id);
            if !self.another(TokenKind::RBracket) {
                break;
            }
        }
        self.eat(TokenKind::Comma);
        self.expect(TokenKind::RBracket)?;
        let elements = self.ast.add_list(&elements);
        let optional = self.ast.add_optional(&optional);
        Ok(Node { id: self.ast.add(Expr::List { elements, optional }, open.start), depth })
    }

    fn map(&mut self) -> Result_<Node> {
        let open = self.next();
        let mut entries = Vec::new();
        let mut depth = 0;
        while !matches!(self.peek(), TokenKind::RBrace | TokenKind::Comma) {
            let optional = self.eat(TokenKind::Question).is_some();
            let key = self.expr()?;
            let colon = self.expect(TokenKind::Colon)?;
            let value = self.expr()?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push(Entry { offset: colon.start, key: key.id, value: value.id, optional });
            if !self.another(TokenKind::RBrace) {
                break;
            }
        }
        self.eat(TokenKind::Comma);
        self.expect(TokenKind::RBrace)?;
        let entries = self.ast.add_entries(&entries);
        Ok(Node { id: self.ast.add(Expr::Map(entries), open.start), depth })
    }

    fn literal(&mut self) -> Result_<Node> {
        let start = self.tokens[self.at].start;
        let minus = self.eat(TokenKind::Minus).is_some();
        let token = self.next();
        if minus && !matches!(token.kind, TokenKind::Int | TokenKind::Float) {
            return Err(Stop::Grammar);
        }
        if !is_literal(token.kind) {
            return Err(Stop::Grammar);
        }
        let literal = literal_value(token.kind, token.text(self.source), minus);
        match literal {
            Ok(literal) => Ok(Node { id: self.ast.add(Expr::Literal(literal), start), depth: 0 }),
            Err(message) => Ok(self.broken(start, message)),
        }
    }
}

fn is_literal(kind: TokenKind) -> bool {
    use TokenKind::*;
    matches!(kind, Int | Uint | Float | String | Bytes | True | False | Null)
}

/// The value of a literal's token, or why it has none.
fn literal_value(kind: TokenKind, text: &str, minus: bool) -> Result<Literal, &'static str> {
    match kind {
        TokenKind::Int => int(text, minus).map(Literal::Int).ok_or("invalid int literal"),
        TokenKind::Uint => uint(text).map(Literal::Uint).ok_or("invalid uint literal"),
        TokenKind::Float => double(text, minus).map(Literal::Double).ok_or("invalid double literal"),
        TokenKind::String => unescape::string(text).map(|s| Literal::String(s.into())),
        TokenKind::Bytes => unescape::bytes(&text[1..]).map(|b| Literal::Bytes(b.into())),
        TokenKind::True => Ok(Literal::Bool(true)),
        TokenKind::False => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}

fn relation(kind: TokenKind) -> Option<&'static str> {
    Some(match kind {
        TokenKind::Less => "_<_",
        TokenKind::LessEquals => "_<=_",
        TokenKind::GreaterEquals => "_>=_",
        TokenKind::Greater => "_>_",
        TokenKind::Equals => "_==_",
        TokenKind::NotEquals => "_!=_",
        TokenKind::In => "@in",
        _ => return None,
    })
}

fn int(text: &str, minus: bool) -> Option<i64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(if minus { -value } else { value }).ok()
}

fn uint(text: &str) -> Option<u64> {
    let text = &text[..text.len() - 1];
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    u64::from_str_radix(digits, radix).ok()
}

/// What is too large is no double.
fn double(text: &str, minus: bool) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|f: &f64| f.is_finite())?;
    Some(if minus { -value } else { value })
}
