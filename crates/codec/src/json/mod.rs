//! JSON as kube-apiserver reads and writes it.
//!
//! `parse` gives a `Value` for untyped places, [`crate::typed`] decodes against a schema while it reads;
//! both use one lexer. Errors are worded as Go's.

mod error;
pub(crate) mod fields;
mod keys;
pub(crate) mod lexer;
pub(crate) mod number;
pub(crate) mod parse;
mod select;
mod skip;
mod strict;
#[cfg(test)]
mod tests;
mod type_meta;
mod write;

pub(crate) use keys::SeenKeys;
pub(crate) use strict::StrictErrors;

pub use crate::error::DecodeError;
pub use error::{SyntaxError, SyntaxErrorKind};
pub use lexer::MAX_DEPTH;
pub use number::{stored_form, write_float, write_int};
pub use parse::{
    Decoded, PatchText, parse, parse_document, parse_finished, parse_patch, parse_stored, parse_strict, validate,
};
pub use select::{Select, parse_selected};
pub use strict::{MAX_STRICT_ERRORS, StrictError, Strictness};
pub use type_meta::{TypeMeta, type_meta};
pub use write::{compact, raw, reindent, to_string, to_vec, unfold_fields, write, write_pretty, write_string};
