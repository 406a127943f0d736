//! Lists of field errors.

use super::{Error, Path};
use crate::names::Messages;
use crate::text;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// All that is wrong with an object, in the order found. `Display` joins the messages, each once, in
/// brackets if there are several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorList(pub Vec<Error>);

impl ErrorList {
    pub const fn new() -> ErrorList {
        ErrorList(Vec::new())
    }

    /// `Ok` if nothing is wrong.
    pub fn into_result(self) -> Result<(), ErrorList> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// An error about `value` for each message; mostly there are none.
    #[inline]
    pub fn push_messages(&mut self, messages: Messages, path: &Path<'_>, value: &str) {
        if !messages.is_empty() {
            self.extend(messages.into_iter().map(|message| Error::invalid(path, value, message)));
        }
    }

    /// Puts `prefix` before the detail of every error.
    pub fn prefix_detail(mut self, prefix: &str) -> ErrorList {
        for error in &mut self.0 {
            error.detail.insert_str(0, prefix);
        }
        self
    }
}

impl Deref for ErrorList {
    type Target = Vec<Error>;

    fn deref(&self) -> &Vec<Error> {
        &self.0
    }
}

impl DerefMut for ErrorList {
    fn deref_mut(&mut self) -> &mut Vec<Error> {
        &mut self.0
    }
}

impl IntoIterator for ErrorList {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(iter: I) -> ErrorList {
        ErrorList(iter.into_iter().collect())
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> ErrorList {
        ErrorList(vec![error])
    }
}

impl From<Vec<Error>> for ErrorList {
    fn from(errors: Vec<Error>) -> ErrorList {
        ErrorList(errors)
    }
}

impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::aggregate(self.0.iter().map(Error::to_string)))
    }
}

impl std::error::Error for ErrorList {}
