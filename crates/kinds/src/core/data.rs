//! What config maps and secrets share.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_rules::common::{Fields, same_member};

/// Of all values together.
pub const MAX_BYTES: usize = 1 << 20;

const FROZEN: &str = "field is immutable when `immutable` is set";

pub fn check_frozen(new: &Value, old: &Value, fields: &[&str], errors: &mut ErrorList) {
    if !old.flag("immutable") {
        return;
    }
    if !new.flag("immutable") {
        errors.push(Error::forbidden(&Path::new("immutable"), FROZEN));
    }
    for field in fields.iter().filter(|field| !same_member(new, old, field)) {
        errors.push(Error::forbidden(&Path::new(field), FROZEN));
    }
}

/// The bytes that base64 text stands for.
pub fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take(2).filter(|b| *b == b'=').count()
}
