//! Semantic versions.

use super::{SEMVER, global, member, of};
use crate::decl::Function;
use crate::types::Type;

const THIS: Type = Type::Named(SEMVER);

pub fn functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    let part = |name, id| of(name, [member(id, [THIS], Int)]);
    vec![
        of(
            "semver",
            [global("string_to_semver", [String], THIS), global("string_bool_to_semver", [String, Bool], THIS)],
        ),
        of(
            "isSemver",
            [global("is_semver_string", [String], Bool), global("is_semver_string_bool", [String, Bool], Bool)],
        ),
        of("isGreaterThan", [member("semver_is_greater_than", [THIS, THIS], Bool)]),
        of("isLessThan", [member("semver_is_less_than", [THIS, THIS], Bool)]),
        of("compareTo", [member("semver_compare_to", [THIS, THIS], Int)]),
        part("major", "semver_major"),
        part("minor", "semver_minor"),
        part("patch", "semver_patch"),
    ]
}
