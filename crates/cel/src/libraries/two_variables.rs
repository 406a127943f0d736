//! What the comprehensions with two variables build maps with.

use super::{global, map, of, param};
use crate::decl::Function;
use crate::types::Type;

pub fn functions() -> Vec<Function> {
    const K: Type = param("K");
    const V: Type = param("V");
    vec![of(
        "cel.@mapInsert",
        [
            global("@mapInsert_map_key_value", [map(K, V), K, V], map(K, V)),
            global("@mapInsert_map_map", [map(K, V), map(K, V)], map(K, V)),
        ],
    )]
}
