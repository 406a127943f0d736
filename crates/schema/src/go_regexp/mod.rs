//! Regular expressions in Go's syntax (RE2), as schemas and rules are written.
//!
//! `parse` takes what Go takes and complains as Go does. The `regex` crate runs them, in its own syntax; those that
//! would be too large there are run by `machine`.

mod ast;
mod class;
mod machine;
mod parse;

use ast::Node;
use regex::{Regex, RegexBuilder};

/// Memory that one compiled expression may take, and with that the time that it takes to compile it.
const SIZE_LIMIT: usize = 1 << 20;

/// Whether Go takes an expression; the error is Go's. Nothing is compiled.
pub fn check(pattern: &str) -> Result<(), String> {
    parse::parse(pattern).map(drop)
}

/// Compiles an expression, with all that the `regex` crate can do with it. The error is Go's.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let node = parse::parse(pattern)?;
    build(&node).ok_or_else(|| format!("error parsing regexp: expression too large: `{pattern}`"))
}

fn build(node: &Node) -> Option<Regex> {
    let mut text = String::new();
    node.write(&mut text);
    let built = RegexBuilder::new(&text).size_limit(SIZE_LIMIT).nest_limit(u32::MAX).build();
    built.ok()
}

/// An expression that texts are compared with, however large it is.
#[derive(Debug, Clone)]
pub struct Matcher(Engine);

#[derive(Debug, Clone)]
enum Engine {
    Compiled(Regex),
    /// Too large to be kept compiled.
    Tree(Box<Node>),
}

impl Matcher {
    /// The error is Go's.
    pub fn new(pattern: &str) -> Result<Matcher, String> {
        let node = parse::parse(pattern)?;
        Ok(Matcher(match build(&node) {
            Some(regex) => Engine::Compiled(regex),
            None => Engine::Tree(Box::new(node)),
        }))
    }

    /// Whether the expression matches anywhere; the error says why nobody can tell.
    pub fn is_match(&self, text: &str) -> Result<bool, String> {
        match &self.0 {
            Engine::Compiled(regex) => Ok(regex.is_match(text)),
            Engine::Tree(node) => machine::is_match(node, text),
        }
    }
}

#[cfg(test)]
mod tests;
