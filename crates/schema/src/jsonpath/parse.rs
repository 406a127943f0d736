//! Reading templates. Arrays and filters end at the first `]` or `)` that closes them, whatever stands in between,
//! so nothing nests deeper than a key or a comparison within brackets.

use super::unquote::unquote;
use super::{End, JsonPathError, Node};
use kubelith_meta::{Str, Value, text};

pub(super) fn template(input: &str) -> Result<Vec<Node>, JsonPathError> {
    let mut parser = Parser { input, start: 0, pos: 0 };
    let mut nodes = Vec::new();
    loop {
        let end = input[parser.pos..].find('{').map(|i| parser.pos + i);
        parser.pos = end.unwrap_or(input.len());
        if parser.pos > parser.start {
            nodes.push(Node::Constant(parser.taken().into()));
        }
        if end.is_none() {
            return Ok(nodes);
        }
        parser.skip(1);
        nodes.push(Node::List(parser.action()?));
    }
}

/// The nodes of one action, given without braces.
fn action(text: &str) -> Result<Vec<Node>, JsonPathError> {
    match template(&format!("{{{text}}}"))?.into_iter().next() {
        Some(Node::List(nodes)) => Ok(nodes),
        _ => Ok(Vec::new()),
    }
}

fn error<T>(message: impl Into<String>) -> Result<T, JsonPathError> {
    Err(JsonPathError(message.into()))
}

struct Parser<'a> {
    input: &'a str,
    /// Where the text that is being read began.
    start: usize,
    pos: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.input[self.pos..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// The text read since the last call.
    fn taken(&mut self) -> &'a str {
        let text = &self.input[self.start..self.pos];
        self.start = self.pos;
        text
    }

    fn skip(&mut self, bytes: usize) {
        self.pos += bytes;
        self.start = self.pos;
    }

    /// Nodes up to the closing brace, which it takes.
    fn action(&mut self) -> Result<Vec<Node>, JsonPathError> {
        let mut nodes = Vec::new();
        loop {
            let rest = &self.input[self.pos..];
            if rest.starts_with('}') {
                self.skip(1);
                return Ok(nodes);
            }
            if rest.starts_with("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if rest.starts_with("..") {
                self.recursive(&mut nodes)?;
                continue;
            }
            match self.peek() {
                None | Some('\r' | '\n') => return error("unclosed action"),
                Some(' ' | '@' | '$') => self.skip(1),
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => {
                    self.skip(1);
                    nodes.push(self.field());
                }
                Some(c) if matches!(c, '+' | '-') || is_digit(c) => nodes.push(self.number()?),
                Some(c) if is_alphanumeric(c) => nodes.push(self.identifier()),
                Some(c) => return error(format!("unrecognized character in action: {}", text::rune(c))),
            }
        }
    }

    fn identifier(&mut self) -> Node {
        while self.peek().is_some_and(|c| !is_terminator(c)) {
            self.next();
        }
        match self.taken() {
            "true" => Node::Constant(true.into()),
            "false" => Node::Constant(false.into()),
            name => Node::Identifier(name.into()),
        }
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Result<(), JsonPathError> {
        if nodes.last() == Some(&Node::Recursive) {
            return error("invalid multiple recursive descent");
        }
        self.skip(2);
        nodes.push(Node::Recursive);
        if self.peek().is_some_and(is_alphanumeric) {
            nodes.push(self.field());
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Node, JsonPathError> {
        if matches!(self.peek(), Some('+' | '-')) {
            self.next();
        }
        while self.peek().is_some_and(|c| c == '.' || is_digit(c)) {
            self.next();
        }
        let text = self.taken();
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Node::Constant(int.into()));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Constant(float.into())),
            _ => error(format!("cannot parse number {text}")),
        }
    }

    /// A field up to a terminator that no backslash precedes; backslashes are dropped.
    fn field(&mut self) -> Node {
        while let Some(c) = self.peek() {
            if is_terminator(c) {
                break;
            }
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        match self.taken() {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "").into()),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Node, JsonPathError> {
        self.next();
        let mut previous = quote;
        loop {
            match self.next() {
                None | Some('\n') => return error("unterminated quoted string"),
                Some(c) if c == quote && previous != '\\' => break,
                Some(c) => previous = c,
            }
        }
        let text = self.taken();
        match unquote(text) {
            Some(value) => Ok(Node::Constant(Value::String(value.into()))),
            None => error(format!("unquote string {text} error invalid syntax")),
        }
    }

    /// `[3]`, `[1:2]`, `['key']`, `[*]`, or several of these.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), JsonPathError> {
        loop {
            match self.next() {
                None | Some('\n') => return error("unterminated array"),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text = self.taken();
        let text = match &text[1..text.len() - 1] {
            "*" => ":",
            text => text,
        };
        if text.contains(',') {
            let parts = text.split(',').map(|part| action(&format!("[{}]", part.trim_matches(' '))));
            nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
        } else if let Some(key) = dictionary_key(text) {
            nodes.extend(action(&format!(".{key}"))?);
        } else {
            nodes.push(slice(text)?);
        }
        Ok(())
    }

    /// `[?(@.a)]`, `[?(@.a=="b")]`.
    fn filter(&mut self) -> Result<Node, JsonPathError> {
        self.skip("[?(".len());
        // One quoted string at most may hold parentheses; it opens and closes with the same quote.
        let (mut quote, mut closed, mut previous) = (None, false, '(');
        loop {
            let c = self.next();
            match c {
                None | Some('\n') => return error("unterminated filter"),
                Some(c @ ('"' | '\'')) => match quote {
                    None => quote = Some(c),
                    Some(quote) if previous != '\\' && c == quote => closed = true,
                    Some(_) => {}
                },
                Some(')') if quote.is_some() == closed => break,
                Some(_) => {}
            }
            previous = c.unwrap_or(previous);
        }
        if self.next() != Some(']') {
            return error("unclosed array expect ]");
        }
        let text = self.taken();
        match comparison(&text[..text.len() - 2]) {
            None => Ok(Node::Filter { left: action(&text[..text.len() - 2])?, comparison: None }),
            Some((left, operator, right)) => {
                let left = action(left)?;
                Ok(Node::Filter { left, comparison: Some((Str::from(operator), action(right)?)) })
            }
        }
    }
}

/// Splits at the first run of `!<>=`, which needs something on either side. A run that ends the text gives its
/// last character to the right side.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|i| *i > 0)?;
    let length = text[start..].find(|c| !is_operator(c)).unwrap_or_else(|| text.len() - start - 1);
    let end = start + length;
    (end > start).then(|| (&text[..start], &text[start..end], &text[end..]))
}

fn dictionary_key(text: &str) -> Option<&str> {
    let key = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

fn slice(text: &str) -> Result<Node, JsonPathError> {
    let mut parts = text.split(':');
    let (start, end, step) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    let is_index = |s: &str| s.strip_prefix('-').unwrap_or(s).bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || !text.split(':').all(is_index) {
        return error(format!("invalid array index {text}"));
    }
    let number = |s: &str| match s {
        "" => Ok(None),
        s => match s.parse::<i64>() {
            Ok(n) => Ok(Some(n)),
            Err(_) => error(format!("array index {s} is not a number")),
        },
    };
    let start = number(start)?;
    let end = match end {
        None => End::AfterStart(start.unwrap_or(0).wrapping_add(1)),
        Some(end) => number(end)?.map_or(End::Open, End::Before),
    };
    Ok(Node::Slice { start, end, step: number(step.unwrap_or(""))? })
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphabetic() || is_digit(c)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())
}
