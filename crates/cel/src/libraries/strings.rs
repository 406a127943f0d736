//! More functions of strings (cel-go's extension).

use super::{global, list, member, of};
use crate::decl::Function;
use crate::types::Type;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V0,
    /// With `format` and `strings.quote`.
    V2,
}

pub fn functions(version: Version) -> Vec<Function> {
    use Type::{Int, String};
    let mut all = vec![
        of("charAt", [member("string_char_at_int", [String, Int], String)]),
        of(
            "indexOf",
            [
                member("string_index_of_string", [String, String], Int),
                member("string_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        of(
            "lastIndexOf",
            [
                member("string_last_index_of_string", [String, String], Int),
                member("string_last_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        of("lowerAscii", [member("string_lower_ascii", [String], String)]),
        of(
            "replace",
            [
                member("string_replace_string_string", [String, String, String], String),
                member("string_replace_string_string_int", [String, String, String, Int], String),
            ],
        ),
        of(
            "split",
            [
                member("string_split_string", [String, String], list(String)),
                member("string_split_string_int", [String, String, Int], list(String)),
            ],
        ),
        of(
            "substring",
            [
                member("string_substring_int", [String, Int], String),
                member("string_substring_int_int", [String, Int, Int], String),
            ],
        ),
        of("trim", [member("string_trim", [String], String)]),
        of("upperAscii", [member("string_upper_ascii", [String], String)]),
    ];
    if version == Version::V2 {
        all.push(of("format", [member("string_format", [String, list(Type::Dyn)], String)]));
        all.push(of("strings.quote", [global("strings_quote", [String], String)]));
    }
    all.push(of(
        "join",
        [member("list_join", [list(String)], String), member("list_join_string", [list(String), String], String)],
    ));
    all
}
