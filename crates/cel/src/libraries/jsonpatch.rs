//! Paths of JSON patches, for mutations.

use super::{Run, global, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::Val;

pub fn functions() -> Vec<Function> {
    vec![of("jsonpatch.escapeKey", [global("string_jsonpatch_escapeKey_string", [Type::String], Type::String)])]
}

pub fn run(id: &str) -> Option<Run> {
    match id {
        "string_jsonpatch_escapeKey_string" => {
            Some(Run::Unary(|key| Ok(Val::text(text(key)?.replace('~', "~0").replace('/', "~1")))))
        }
        _ => None,
    }
}
