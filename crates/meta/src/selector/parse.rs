//! The text syntax of label selectors: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`.

use super::labels::check_key;
use super::{LabelSelector, Operator, Requirement, SelectorError};
use crate::Str;
use crate::field::Path;
use std::collections::BTreeSet;

impl LabelSelector {
    /// Reads a selector. Errors that name a field print its path as absent, which is what a client sees for
    /// the `labelSelector` of a request.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        LabelSelector::parse_at(text, &Path::ROOT)
    }

    /// Reads a selector found at `path`.
    pub fn parse_at(text: &str, path: &Path<'_>) -> Result<LabelSelector, SelectorError> {
        let tokens = scan(text);
        let requirements = Parser { tokens: &tokens, position: 0, path }.selector()?;
        Ok(LabelSelector::new(requirements))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    /// `=`, `==`, `!=`, `>`, `<`.
    Symbol(Operator, &'a str),
    /// A key, a value, or one of the words `in` and `notin`, which are operators only after a key.
    Word(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::End => "",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Symbol(_, text) | Token::Word(text) => text,
        }
    }
}

fn is_symbol(b: u8) -> bool {
    matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

/// Tokens up to and with the first `End`. A NUL ends the text as well, unless it only ends a word or symbol.
fn scan(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut tokens = Vec::new();
    let mut i = 0;
    loop {
        while is_space(at(i)) {
            i += 1;
        }
        let start = i;
        let token = match (at(i), at(i + 1)) {
            (0, _) => {
                tokens.push(Token::End);
                return tokens;
            }
            (b'=', b'=') => Token::Symbol(Operator::DoubleEquals, "=="),
            (b'!', b'=') => Token::Symbol(Operator::NotEquals, "!="),
            (b'=', _) => Token::Symbol(Operator::Equals, "="),
            (b'>', _) => Token::Symbol(Operator::GreaterThan, ">"),
            (b'<', _) => Token::Symbol(Operator::LessThan, "<"),
            (b'!', _) => Token::Not,
            (b'(', _) => Token::Open,
            (b')', _) => Token::Close,
            (b',', _) => Token::Comma,
            _ => {
                while at(i) != 0 && !is_symbol(at(i)) && !is_space(at(i)) {
                    i += 1;
                }
                Token::Word(&text[start..i])
            }
        };
        if !matches!(token, Token::Word(_)) {
            i += token.text().len();
        }
        if i < bytes.len() && bytes[i] == 0 {
            i += 1;
        }
        tokens.push(token);
    }
}

/// What `parse_operator` expects, in the order the reference lists them.
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

struct Parser<'a, 'p> {
    /// Ends with `End`, which no rule steps over.
    tokens: &'a [Token<'a>],
    position: usize,
    path: &'p Path<'p>,
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        match self.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Not => {}
            other => return Err(found(other, ", expected: !, identifier, or 'end of string'")),
        }
        loop {
            let requirement =
                self.requirement().map_err(|e| SelectorError(format!("unable to parse requirement: {e}")))?;
            requirements.push(requirement);
            match self.take() {
                Token::End => return Ok(requirements),
                Token::Comma => {}
                other => return Err(found(other, ", expected: ',' or 'end of string'")),
            }
            if !matches!(self.peek(), Token::Word(_) | Token::Not) {
                return Err(found(self.peek(), ", expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == Token::Not;
        if absent {
            self.position += 1;
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(found(other, ", expected: identifier")),
        };
        if let Some(error) = check_key(key, self.path) {
            return Err(SelectorError(error.to_string()));
        }
        let (operator, values) = if absent {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if matches!(self.peek(), Token::End | Token::Comma) {
            (Operator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.value_set()?,
                _ => self.exact_value()?,
            };
            (operator, values)
        };
        let values = values.into_iter().map(Str::from).collect();
        Requirement::new(key.into(), operator, values, self.path).map_err(|e| SelectorError(e.to_string()))
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        match self.take() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Symbol(operator, _) => Ok(operator),
            other => Err(found(other, &format!(", expected: {BINARY_OPERATORS}"))),
        }
    }

    /// `(a,b)`, where missing values are empty strings.
    fn value_set(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        match self.take() {
            Token::Open => {}
            other => return Err(found(other, " expected: '('")),
        }
        match self.peek() {
            Token::Word(_) | Token::Comma => {
                let values = self.value_list()?;
                self.position += 1;
                Ok(values)
            }
            Token::Close => {
                self.position += 1;
                Ok(BTreeSet::from([""]))
            }
            other => Err(found(other, ", expected: ',', ')' or identifier")),
        }
    }

    /// Values up to the closing parenthesis, which it leaves.
    fn value_list(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        let mut values = BTreeSet::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        other => return Err(found(other, ", expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Close | Token::Comma) {
                        values.insert("");
                    }
                    if self.peek() == Token::Close {
                        return Ok(values);
                    }
                }
                other => return Err(found(other, ", expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(BTreeSet::from([""]));
        }
        match self.take() {
            Token::Word(value) => Ok(BTreeSet::from([value])),
            other => Err(found(other, ", expected: identifier")),
        }
    }
}

fn found(token: Token<'_>, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}'{expected}", token.text()))
}
