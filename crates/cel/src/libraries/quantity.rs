//! Amounts of resources.

use super::{QUANTITY, Run, global, int, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Opaque, Res, Val};
use kubelith_meta::Quantity;
use kubelith_meta::quantity::Format;

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

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "string_to_quantity" => Run::Unary(|s| match Quantity::parse(text(s)?) {
            Ok(amount) => Ok(Val::opaque(Opaque::Quantity { amount, computed: false })),
            Err(e) => Err(EvalError::new(e.to_string())),
        }),
        "is_quantity_string" => Run::Unary(|s| Ok(Val::Bool(Quantity::parse(text(s)?).is_ok()))),
        "quantity_sign" => Run::Unary(|q| Ok(Val::Int(amount(q)?.signum().into()))),
        "quantity_is_greater_than" => Run::Binary(|a, b| Ok(Val::Bool(amount(a)? > amount(b)?))),
        "quantity_is_less_than" => Run::Binary(|a, b| Ok(Val::Bool(amount(a)? < amount(b)?))),
        "quantity_compare_to" => Run::Binary(|a, b| Ok(Val::Int(amount(a)?.cmp(amount(b)?) as i64))),
        "quantity_get_float" => Run::Unary(|q| Ok(Val::Double(amount(q)?.as_approximate_f64()))),
        "quantity_get_int" => Run::Unary(|q| match amount(q)?.as_i64() {
            Some(i) => Ok(Val::Int(i)),
            None => Err(EvalError::fixed("cannot convert value to integer")),
        }),
        "quantity_is_integer" => Run::Unary(|q| Ok(Val::Bool(amount(q)?.as_i64().is_some()))),
        "quantity_add" => Run::Binary(|a, b| change(a, amount(b)?, |a, b| *a += b)),
        "quantity_add_int" => Run::Binary(|a, b| change(a, &whole(b)?, |a, b| *a += b)),
        "quantity_sub" => Run::Binary(|a, b| change(a, amount(b)?, |a, b| *a -= b)),
        "quantity_sub_int" => Run::Binary(|a, b| change(a, &whole(b)?, |a, b| *a -= b)),
        _ => return None,
    })
}

fn amount<'v>(val: &'v Val<'_>) -> Result<&'v Quantity, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Quantity { amount, .. }) => Ok(amount),
        _ => Err(EvalError::no_overload()),
    }
}

fn whole(val: &Val<'_>) -> Result<Quantity, EvalError> {
    Ok(Quantity::new(int(val)?, Format::DecimalExponent))
}

fn change<'a>(a: &Val<'a>, b: &Quantity, op: impl Fn(&mut Quantity, &Quantity)) -> Res<'a> {
    let mut amount = amount(a)?.clone();
    op(&mut amount, b);
    Ok(Val::opaque(Opaque::Quantity { amount, computed: true }))
}
