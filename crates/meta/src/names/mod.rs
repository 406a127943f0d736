//! What names may look like: each rule returns what is wrong with a string, in the reference's words, and
//! nothing for a good one. A good string costs no allocation.
//!
//! The reference words its length limits in "characters" in most rules and in "bytes" in those for labels;
//! both mean bytes.

mod dns;
mod fields;
mod ip;
mod keys;
mod misc;
mod object;

pub use dns::*;
pub use fields::*;
pub use ip::*;
pub use keys::*;
pub use misc::*;
pub use object::*;

/// What is wrong with a string; empty if nothing is.
pub type Messages = Vec<String>;

pub(crate) const NON_EMPTY: &str = "must be non-empty";

pub fn max_len_message(max: usize) -> String {
    format!("must be no more than {max} characters")
}

pub(crate) fn max_bytes_message(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// `rule (e.g. 'x',  or 'y', regex used for validation is 'pattern')`.
pub fn pattern_message(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// Whether `s` is one of `first`, then any of `middle`, and ends in one of `last`: the shape of nearly all names.
fn is_shaped(s: &str, first: impl Fn(u8) -> bool, middle: impl Fn(u8) -> bool, last: impl Fn(u8) -> bool) -> bool {
    match s.as_bytes() {
        [] => false,
        [one] => first(*one),
        [head, mid @ .., tail] => first(*head) && last(*tail) && mid.iter().all(|b| middle(*b)),
    }
}

#[cfg(test)]
mod tests;
