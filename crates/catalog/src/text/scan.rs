//! Lines and words, with places for error messages.

use std::fmt;

/// What is wrong, and where: `core.v1.api:12: ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct TextError {
    pub place: Place,
    pub message: String,
}

/// A line of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file's name without `.api`.
    pub file: String,
    pub line: usize,
}

impl Place {
    pub fn error(&self, message: impl Into<String>) -> TextError {
        TextError { place: self.clone(), message: message.into() }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "api/{}.api:{}: {}", self.place.file, self.place.line, self.message)
    }
}

/// One line, read from left to right.
pub struct Line<'a> {
    pub place: Place,
    /// Begins with white space: belongs to the last line that does not.
    pub indented: bool,
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// The lines of a text that say something; `#` begins a comment line.
    pub fn all(file: &'a str, source: &'a str) -> impl Iterator<Item = Line<'a>> {
        source.lines().enumerate().filter_map(move |(i, text)| {
            let rest = text.trim();
            let place = Place { file: file.to_owned(), line: i + 1 };
            let indented = text.starts_with([' ', '\t']);
            (!rest.is_empty() && !rest.starts_with('#')).then_some(Line { place, indented, rest })
        })
    }

    pub fn error(&self, message: impl Into<String>) -> TextError {
        self.place.error(message)
    }

    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left of the line.
    pub fn rest(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// The next word, which may be in quotes.
    pub fn word(&mut self, what: &str) -> Result<&'a str, TextError> {
        let (word, rest) = match self.rest.strip_prefix('"') {
            Some(quoted) => {
                quoted.split_once('"').ok_or_else(|| self.error(format!("{what}: a quote is not closed")))?
            }
            None => self.rest.split_once(' ').unwrap_or((self.rest, "")),
        };
        if word.is_empty() && !self.rest.starts_with('"') {
            return Err(self.error(format!("{what} is missing")));
        }
        self.rest = rest.trim_start();
        Ok(word)
    }

    /// All words that are left.
    pub fn words(&mut self, what: &str) -> Result<Vec<&'a str>, TextError> {
        let mut words = vec![self.word(what)?];
        while !self.is_done() {
            words.push(self.word(what)?);
        }
        Ok(words)
    }

    /// The next word, left in its quotes: literals tell "1" from 1.
    pub fn literal(&mut self, what: &str) -> Result<&'a str, TextError> {
        let before = self.rest;
        self.word(what)?;
        Ok(before[..before.len() - self.rest.len()].trim_end())
    }

    pub fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, TextError> {
        let word = self.word(what)?;
        word.parse().map_err(|_| self.error(format!("{what}: {word:?} is not a number")))
    }

    /// Takes the next word if it is `word`.
    pub fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => {
                self.rest = rest.trim_start();
                true
            }
            _ => false,
        }
    }

    pub fn end(&self) -> Result<(), TextError> {
        if self.is_done() { Ok(()) } else { Err(self.error(format!("unexpected {:?}", self.rest))) }
    }
}
