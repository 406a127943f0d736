//! What is wrong with an expression, told as cel-go tells it: place, message, the line, a caret under the place.

use std::fmt;
use std::sync::Arc;

/// All that is wrong with one expression.
#[derive(Debug, Clone)]
pub struct Issues {
    pub source: Arc<str>,
    pub list: Vec<Issue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// In bytes; `None` if it has no place.
    pub offset: Option<u32>,
    pub message: String,
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, issue) in self.list.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { "\n" }, issue.message)?;
        }
        Ok(())
    }
}
