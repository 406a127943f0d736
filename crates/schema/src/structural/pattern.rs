//! A `pattern`, compiled when it is first needed: most of what a definition says is never used.

use crate::go_regexp::Matcher;
use kubelith_meta::Str;
use std::sync::OnceLock;

#[derive(Debug, Clone)]
pub struct Pattern(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    text: Str,
    compiled: OnceLock<Result<Matcher, String>>,
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        Pattern(Box::new(Inner { text: text.into(), compiled: OnceLock::new() }))
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether a text matches anywhere; the error says why the pattern is none, or why nobody can tell.
    pub fn matches(&self, text: &str) -> Result<bool, String> {
        let compiled = self.0.compiled.get_or_init(|| Matcher::new(&self.0.text));
        compiled.as_ref().map_err(String::clone)?.is_match(text)
    }
}
