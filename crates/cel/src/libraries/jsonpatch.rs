//! Paths of JSON patches, for mutations.

use super::{global, of};
use crate::decl::Function;
use crate::types::Type;

pub fn functions() -> Vec<Function> {
    vec![of("jsonpatch.escapeKey", [global("string_jsonpatch_escapeKey_string", [Type::String], Type::String)])]
}
