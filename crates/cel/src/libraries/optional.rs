//! Values that may be absent.

use super::{global, list, map, member, of, param};
use crate::decl::Function;
use crate::types::Type;

pub fn functions() -> Vec<Function> {
    const K: Type = param("K");
    const V: Type = param("V");
    let opt = Type::optional;
    vec![
        of("optional.of", [global("optional_of", [V], opt(V))]),
        of("optional.ofNonZeroValue", [global("optional_ofNonZeroValue", [V], opt(V))]),
        of("optional.none", [global("optional_none", [], opt(V))]),
        of("value", [member("optional_value", [opt(V)], V)]),
        of("hasValue", [member("optional_hasValue", [opt(V)], Type::Bool)]),
        of("or", [member("optional_or_optional", [opt(V), opt(V)], opt(V))]),
        of("orValue", [member("optional_orValue_value", [opt(V), V], V)]),
        of("_?._", [global("select_optional_field", [Type::Dyn, Type::String], opt(V))]),
        of(
            "_[?_]",
            [
                global("list_optindex_optional_int", [list(V), Type::Int], opt(V)),
                global("optional_list_optindex_optional_int", [opt(list(V)), Type::Int], opt(V)),
                global("map_optindex_optional_value", [map(K, V), K], opt(V)),
                global("optional_map_optindex_optional_value", [opt(map(K, V)), K], opt(V)),
            ],
        ),
        of(
            "_[_]",
            [
                global("optional_list_index_int", [opt(list(V)), Type::Int], opt(V)),
                global("optional_map_index_value", [opt(map(K, V)), K], opt(V)),
            ],
        ),
        of("last", [member("list_last", [list(V)], opt(V))]),
        of("first", [member("list_first", [list(V)], opt(V))]),
        of("optional.unwrap", [global("optional_unwrap", [list(opt(V))], list(V))]),
        of("unwrapOpt", [member("optional_unwrapOpt", [list(opt(V))], list(V))]),
    ]
}
