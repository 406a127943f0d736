//! What is wrong with an expression, told as cel-go tells it: place, message, the line, and a caret under the place.

use std::fmt;
use std::sync::Arc;

/// How many issues are kept; of the rest only the number is told.
pub const MAX_ISSUES: usize = 100;
/// Longer lines (in bytes) are not shown.
const MAX_LINE: usize = 16384;

/// A place before the first character: what the reference makes of a part of the text that is nothing has it.
pub const BEFORE: u32 = u32::MAX;

/// All that is wrong with one expression.
#[derive(Debug, Clone)]
pub struct Issues {
    source: Arc<str>,
    list: Vec<Issue>,
    /// How many there are, including those that were not kept.
    count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// In bytes; `None` if it has no place.
    pub offset: Option<u32>,
    pub message: String,
}

impl Issues {
    pub fn new(source: &str) -> Issues {
        Issues { source: source.into(), list: Vec::new(), count: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn report(&mut self, offset: u32, message: impl Into<String>) {
        self.add(Some(offset), message.into());
    }

    /// Without a place: a limit was reached.
    pub fn report_nowhere(&mut self, message: impl Into<String>) {
        self.add(None, message.into());
    }

    fn add(&mut self, offset: Option<u32>, message: String) {
        self.count += 1;
        if self.list.len() < MAX_ISSUES {
            self.list.push(Issue { offset, message });
        }
    }

    /// In the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.list.iter()
    }
}

/// Line from 1, column from 1, in characters.
fn locate(source: &str, offset: u32) -> (usize, usize) {
    // The end of a text without any character is before its first one.
    if offset == BEFORE || source.is_empty() {
        return (1, 0);
    }
    let before = source.get(..offset as usize).unwrap_or(source);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    let start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |i| i + 1);
    (line, before[start..].chars().count() + 1)
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |issue: &Issue| issue.offset.map(|offset| locate(&self.source, offset));
        let mut sorted: Vec<_> = self.list.iter().map(|issue| (place(issue), issue)).collect();
        // Stable; what has no place comes first.
        sorted.sort_by_key(|(place, _)| *place);
        for (i, (place, issue)) in sorted.into_iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            match place {
                None => write!(f, "ERROR: <input>:-1:0: {}", issue.message)?,
                Some((line, column)) => {
                    write!(f, "ERROR: <input>:{line}:{column}: {}", issue.message)?;
                    if !self.source.is_empty() {
                        snippet(f, self.source.split('\n').nth(line - 1).unwrap_or(""), column.saturating_sub(1))?;
                    }
                }
            }
        }
        if self.count > self.list.len() {
            write!(f, "\n{} more errors were truncated", self.count - self.list.len())?;
        }
        Ok(())
    }
}

/// The line, and a caret below it. What is wide gets wide dots.
fn snippet(f: &mut fmt::Formatter<'_>, line: &str, before: usize) -> fmt::Result {
    if line.len() > MAX_LINE {
        return Ok(());
    }
    f.write_str("\n | ")?;
    for part in line.split('\t').enumerate() {
        let (i, text) = part;
        write!(f, "{}{text}", if i == 0 { "" } else { " " })?;
    }
    f.write_str("\n | ")?;
    let mut chars = line.chars();
    for _ in 0..before {
        match chars.next() {
            Some(c) => f.write_str(if c.len_utf8() > 1 { "\u{ff0e}" } else { "." })?,
            None => break,
        }
    }
    f.write_str(if chars.next().is_some_and(|c| c.len_utf8() > 1) { "\u{ff3e}" } else { "^" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_nothing() {
        let mut nothing = Issues::new("");
        nothing.report(0, "x");
        assert_eq!(nothing.to_string(), "ERROR: <input>:1:0: x");
        let mut blank = Issues::new(" ");
        blank.report(1, "x");
        assert_eq!(blank.to_string(), "ERROR: <input>:1:2: x\n |  \n | .^");
    }
}
