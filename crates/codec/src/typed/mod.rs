//! JSON decoded against a schema of built-in types, in one pass over the text.
//!
//! The result is pruned and type-correct: unknown fields are gone, nulls mean absent, quantities, times and
//! base64 are in the form that the reference would print. Custom resources have no Go types behind them; their
//! schemas are applied elsewhere, to what [`crate::json::parse`] gives.
//!
//! As in the reference, a wrong type does not stop decoding: a syntax error anywhere comes first, then an error
//! of a value that parses itself (a quantity, a time), then the first wrong type.

mod context;
mod decoder;
mod from_value;
mod go_names;
mod merge;
mod special;
#[cfg(test)]
mod tests;

pub use from_value::{from_value, from_value_exactly};

use crate::error::DecodeError;
use crate::json::{Decoded, Strictness};
use kubelith_schema::{Form, TypedSchema};

/// Decodes one JSON document as a value of `schema`.
pub fn decode(data: &[u8], schema: &TypedSchema, strictness: Strictness) -> Result<Decoded, DecodeError> {
    decoder::Decoder::new(data, &schema.table, strictness, Form::Sent).document(&schema.root)
}

/// As `decode`, but fields that are always printed are there. The form is that of the value, which mostly is canonical
/// then: clients rarely send what is empty.
pub fn decode_printed(
    data: &[u8],
    schema: &TypedSchema,
    strictness: Strictness,
) -> Result<(Decoded, Form), DecodeError> {
    let mut decoder = decoder::Decoder::new(data, &schema.table, strictness, Form::Canonical);
    let decoded = decoder.document(&schema.root);
    if decoder.has_repeated {
        // What was added to one of the values would seem to be given where they are merged.
        return Ok((decode(data, schema, strictness)?, Form::Sent));
    }
    Ok((decoded?, decoder.form))
}
