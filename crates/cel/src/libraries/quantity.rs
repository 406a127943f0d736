//! Amounts of resources.

use super::{QUANTITY, global, member, of};
use crate::decl::Function;
use crate::types::Type;

const THIS: Type = Type::Named(QUANTITY);

pub fn functions() -> Vec<Function> {
    use Type::{Bool, Double, Int, String};
    vec![
        of("quantity", [global("string_to_quantity", [String], THIS)]),
        of("isQuantity", [global("is_quantity_string", [String], Bool)]),
        of("sign", [global("quantity_sign", [THIS], Int)]),
        of("isGreaterThan", [member("quantity_is_greater_than", [THIS, THIS], Bool)]),
        of("isLessThan", [member("quantity_is_less_than", [THIS, THIS], Bool)]),
        of("compareTo", [member("quantity_compare_to", [THIS, THIS], Int)]),
        of("asApproximateFloat", [member("quantity_get_float", [THIS], Double)]),
        of("asInteger", [member("quantity_get_int", [THIS], Int)]),
        of("isInteger", [member("quantity_is_integer", [THIS], Bool)]),
        of("add", [member("quantity_add", [THIS, THIS], THIS), member("quantity_add_int", [THIS, Int], THIS)]),
        of("sub", [member("quantity_sub", [THIS, THIS], THIS), member("quantity_sub_int", [THIS, Int], THIS)]),
    ]
}
