//! Lists as sets.

use super::{global, list, of, param};
use crate::decl::Function;
use crate::types::Type;

pub fn functions() -> Vec<Function> {
    const T: Type = param("T");
    let test = |name, id| of(name, [global(id, [list(T), list(T)], Type::Bool)]);
    vec![
        test("sets.contains", "list_sets_contains_list"),
        test("sets.equivalent", "list_sets_equivalent_list"),
        test("sets.intersects", "list_sets_intersects_list"),
    ]
}
