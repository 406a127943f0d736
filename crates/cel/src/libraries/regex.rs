//! Finding what a regular expression matches.

use super::{list, member, of};
use crate::decl::Function;
use crate::types::Type;

pub fn functions() -> Vec<Function> {
    use Type::{Int, String};
    vec![
        of("find", [member("string_find_string", [String, String], String)]),
        of(
            "findAll",
            [
                member("string_find_all_string", [String, String], list(String)),
                member("string_find_all_string_int", [String, String, Int], list(String)),
            ],
        ),
    ]
}
