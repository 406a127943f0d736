//! Lists as sets.

use super::{Run, global, list, of, param};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, ListView, Res, Val};

pub fn functions() -> Vec<Function> {
    const T: Type = param("T");
    let test = |name, id| of(name, [global(id, [list(T), list(T)], Type::Bool)]);
    vec![
        test("sets.contains", "list_sets_contains_list"),
        test("sets.equivalent", "list_sets_equivalent_list"),
        test("sets.intersects", "list_sets_intersects_list"),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(Run::Binary(match id {
        "list_sets_contains_list" => |list, part| contains(list, part).map(Val::Bool),
        "list_sets_equivalent_list" => |a, b| Ok(Val::Bool(contains(a, b)? && contains(b, a)?)),
        "list_sets_intersects_list" => intersects,
        _ => return None,
    }))
}

fn items<'v, 'a>(list: &'v Val<'a>) -> Result<ListView<'v, 'a>, EvalError> {
    list.as_list().ok_or_else(EvalError::no_overload)
}

fn contains<'a>(list: &Val<'a>, part: &Val<'a>) -> Result<bool, EvalError> {
    let list = items(list)?;
    for item in items(part)?.iter() {
        if !list.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(a: &Val<'a>, b: &Val<'a>) -> Res<'a> {
    let (a, b) = (items(a)?, items(b)?);
    for item in a.iter() {
        if matches!(b.contains(&item?), Ok(true)) {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}
