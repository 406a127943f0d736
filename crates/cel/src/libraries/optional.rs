//! Values that may be absent.

use super::{Run, global, list, map, member, of, param};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Res, Val};

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

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "optional_of" => Run::Unary(|x| Ok(Val::some(x.clone()))),
        "optional_ofNonZeroValue" => {
            Run::Unary(|x| Ok(if x.is_zero() { Val::Optional(None) } else { Val::some(x.clone()) }))
        }
        "optional_none" => Run::Many(|_| Ok(Val::Optional(None))),
        "optional_value" => Run::Unary(|x| match x {
            Val::Optional(Some(of)) => Ok((**of).clone()),
            _ => Err(EvalError::fixed("optional.none() dereference")),
        }),
        "optional_hasValue" => Run::Unary(|x| Ok(Val::Bool(matches!(x, Val::Optional(Some(_)))))),
        "list_last" => Run::Unary(|list| at(list, |len| len.checked_sub(1))),
        "list_first" => Run::Unary(|list| at(list, |len| (len > 0).then_some(0))),
        "optional_unwrap" | "optional_unwrapOpt" => Run::Unary(unwrap),
        _ => return None,
    })
}

fn at<'a>(list: &Val<'a>, index: impl Fn(usize) -> Option<usize>) -> Res<'a> {
    let list = list.as_list().ok_or_else(EvalError::no_overload)?;
    match index(list.len()) {
        Some(i) => Ok(Val::some(list.at(i)?)),
        None => Ok(Val::Optional(None)),
    }
}

fn unwrap<'a>(list: &Val<'a>) -> Res<'a> {
    let list = list.as_list().ok_or_else(EvalError::no_overload)?;
    let mut out = Vec::new();
    for item in list.iter() {
        match item? {
            Val::Optional(Some(of)) => out.push((*of).clone()),
            Val::Optional(None) => {}
            other => return Err(EvalError::new(format!("value {other} is not optional"))),
        }
    }
    Val::list(out)
}
