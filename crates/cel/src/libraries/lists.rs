//! Functions of lists: Kubernetes' own, and cel-go's.

use super::{MAX_ITEMS, Run, arithmetic, global, int, list, member, of, param};
use crate::decl::{Function, Overload};
use crate::types::Type;
use crate::value::{EvalError, ListView, Res, Val};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The types that can be ordered, with the names that Kubernetes' overloads have for them.
const COMPARABLE: [Type; 8] =
    [Type::Int, Type::Uint, Type::Double, Type::Bool, Type::Duration, Type::Timestamp, Type::String, Type::Bytes];

macro_rules! comparable_ids {
    ($before:literal, $between:literal) => {
        [
            concat!($before, "int", $between, "int"),
            concat!($before, "uint", $between, "uint"),
            concat!($before, "double", $between, "double"),
            concat!($before, "bool", $between, "bool"),
            concat!($before, "duration", $between, "duration"),
            concat!($before, "timestamp", $between, "timestamp"),
            concat!($before, "string", $between, "string"),
            concat!($before, "bytes", $between, "bytes"),
        ]
    };
}

macro_rules! runtime_ids {
    ($after:literal) => {
        [
            concat!("list_int", $after),
            concat!("list_uint", $after),
            concat!("list_double", $after),
            concat!("list_bool", $after),
            concat!("list_google.protobuf.Duration", $after),
            concat!("list_google.protobuf.Timestamp", $after),
            concat!("list_string", $after),
            concat!("list_bytes", $after),
        ]
    };
}

const IS_SORTED: [&str; 8] = [
    "list_int_is_sorted_bool",
    "list_uint_is_sorted_bool",
    "list_double_is_sorted_bool",
    "list_bool_is_sorted_bool",
    "list_duration_is_sorted_bool",
    "list_timestamp_is_sorted_bool",
    "list_string_is_sorted_bool",
    "list_bytes_is_sorted_bool",
];
const MAX: [&str; 8] = comparable_ids!("list_", "_max_");
const MIN: [&str; 8] = comparable_ids!("list_", "_min_");
const SORT: [&str; 8] = runtime_ids!("_sort");
const SORT_BY: [&str; 8] = runtime_ids!("_sortByAssociatedKeys");

fn each(ids: [&'static str; 8], overload: impl Fn(&'static str, Type) -> Overload) -> Vec<Overload> {
    ids.into_iter().zip(COMPARABLE).map(|(id, t)| overload(id, t)).collect()
}

/// Kubernetes' own.
pub fn functions() -> Vec<Function> {
    const A: Type = param("A");
    let picks = |id, t: Type| member(id, [list(t.clone())], t);
    let sum = |id, t: Type| member(id, [list(t.clone())], t);
    vec![
        of("isSorted", each(IS_SORTED, |id, t| member(id, [list(t)], Type::Bool))),
        of(
            "sum",
            [
                sum("list_int_sum_int", Type::Int),
                sum("list_uint_sum_uint", Type::Uint),
                sum("list_double_sum_double", Type::Double),
                sum("list_duration_sum_duration", Type::Duration),
            ],
        ),
        of("max", each(MAX, picks)),
        of("min", each(MIN, picks)),
        of("indexOf", [member("list_a_index_of_int", [list(A), A], Type::Int)]),
        of("lastIndexOf", [member("list_a_last_index_of_int", [list(A), A], Type::Int)]),
    ]
}

/// cel-go's, version 3.
pub fn ext_functions() -> Vec<Function> {
    const T: Type = param("T");
    vec![
        of("slice", [member("list_slice", [list(T), Type::Int, Type::Int], list(T))]),
        of(
            "flatten",
            [
                member("list_flatten", [list(list(T))], list(T)),
                member("list_flatten_int", [list(Type::Dyn), Type::Int], list(Type::Dyn)),
            ],
        ),
        of("sort", each(SORT, |id, t| member(id, [list(t.clone())], list(t)))),
        of("@sortByAssociatedKeys", each(SORT_BY, |id, t| member(id, [list(T), list(t)], list(T)))),
        of("lists.range", [global("lists_range", [Type::Int], list(Type::Int))]),
        of("reverse", [member("list_reverse", [list(T)], list(T))]),
        of("distinct", [member("list_distinct", [list(T)], list(T))]),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "list_a_index_of_int" => Run::Binary(|l, x| index_of(l, x, false)),
        "list_a_last_index_of_int" => Run::Binary(|l, x| index_of(l, x, true)),
        "list_int_sum_int" => Run::Unary(|l| sum(l, Val::Int(0))),
        "list_uint_sum_uint" => Run::Unary(|l| sum(l, Val::Uint(0))),
        "list_double_sum_double" => Run::Unary(|l| sum(l, Val::Double(0.0))),
        "list_duration_sum_duration" => Run::Unary(|l| sum(l, Val::Duration(0))),
        "list_slice" => Run::Many(|a| slice(&a[0], int(&a[1])?, int(&a[2])?)),
        "list_flatten" => Run::Unary(|l| flatten(l, None)),
        "list_flatten_int" => Run::Binary(|l, depth| flatten(l, Some(depth))),
        "lists_range" => Run::Unary(range),
        "list_reverse" => Run::Unary(reverse),
        "list_distinct" => Run::Unary(distinct),
        id if IS_SORTED.contains(&id) => Run::Unary(is_sorted),
        id if MAX.contains(&id) => Run::Unary(|l| pick(l, "max", Ordering::Less)),
        id if MIN.contains(&id) => Run::Unary(|l| pick(l, "min", Ordering::Greater)),
        _ => return None,
    })
}

fn items<'v, 'a>(list: &'v Val<'a>) -> Result<ListView<'v, 'a>, EvalError> {
    list.as_list().ok_or_else(EvalError::no_overload)
}

fn index_of<'a>(list: &Val<'a>, item: &Val<'a>, last: bool) -> Res<'a> {
    let list = items(list)?;
    let is = |i: &usize| list.at(*i).is_ok_and(|x| matches!(x.equal(item), Ok(true)));
    let found = if last { (0..list.len()).rev().find(is) } else { (0..list.len()).find(is) };
    Ok(Val::Int(found.map_or(-1, |i| i as i64)))
}

fn sum<'a>(list: &Val<'a>, zero: Val<'a>) -> Res<'a> {
    let mut total = zero;
    for item in items(list)?.iter() {
        let item = item?;
        total = arithmetic::add(&total, &item)?;
    }
    Ok(total)
}

fn is_sorted<'a>(list: &Val<'a>) -> Res<'a> {
    let mut before: Option<Val<'a>> = None;
    for item in items(list)?.iter() {
        let item = item?;
        if !item.is_comparable() {
            return Err(EvalError::no_overload());
        }
        if before.is_some_and(|b| matches!(b.compare(&item), Ok(Ordering::Greater))) {
            return Ok(Val::Bool(false));
        }
        before = Some(item);
    }
    Ok(Val::Bool(true))
}

/// The least or the greatest. What cannot be compared (NaN) is passed over.
fn pick<'a>(list: &Val<'a>, name: &str, replaced: Ordering) -> Res<'a> {
    let mut best: Option<Val<'a>> = None;
    for item in items(list)?.iter() {
        let item = item?;
        if !item.is_comparable() {
            return Err(EvalError::no_overload());
        }
        match &best {
            Some(so_far) if !matches!(so_far.compare(&item), Ok(o) if o == replaced) => {}
            _ => best = Some(item),
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn slice<'a>(list: &Val<'a>, start: i64, end: i64) -> Res<'a> {
    let list = items(list)?;
    let failed = |why: String| Err(EvalError::new(format!("cannot slice({start}, {end}), {why}")));
    if start < 0 || end < 0 {
        return failed("negative indexes not supported".into());
    }
    if start > end {
        return failed("start index must be less than or equal to end index".into());
    }
    if (list.len() as i64) < end {
        return failed(format!("list is length {}", list.len()));
    }
    Val::list((start as usize..end as usize).map(|i| list.at(i)).collect::<Result<_, _>>()?)
}

fn flatten<'a>(list: &Val<'a>, depth: Option<&Val<'a>>) -> Res<'a> {
    let levels = depth.map_or(Some(1), Val::as_int);
    let (Some(view), Some(levels)) = (list.as_list(), levels) else {
        let (of, depth) = (shown_type(list), depth.map_or("", shown_type));
        return Err(EvalError::new(format!("no such overload: {of}.flatten({depth})")));
    };
    if levels < 0 {
        return Err(EvalError::fixed("level must be non-negative"));
    }
    let mut out = Vec::new();
    flatten_into(view, levels, &mut out)?;
    Val::list(out)
}

/// A type with what is in it, which is anything when it is asked of a value.
fn shown_type<'v>(val: &'v Val<'_>) -> &'v str {
    match val.type_name() {
        "list" => "list(dyn)",
        "map" => "map(dyn, dyn)",
        other => other,
    }
}

fn flatten_into<'a>(list: ListView<'_, 'a>, depth: i64, out: &mut Vec<Val<'a>>) -> Result<(), EvalError> {
    for item in list.iter() {
        let item = item?;
        match item.as_list() {
            Some(inner) if depth > 0 => flatten_into(inner, depth - 1, out)?,
            _ => out.push(item),
        }
        if out.len() > MAX_ITEMS {
            return Err(EvalError::size());
        }
    }
    Ok(())
}

fn range<'a>(n: &Val<'a>) -> Res<'a> {
    let n = int(n)?;
    if n > MAX_ITEMS as i64 {
        return Err(EvalError::size());
    }
    Ok(Val::flat((0..n).map(Val::Int)))
}

fn reverse<'a>(list: &Val<'a>) -> Res<'a> {
    let list = items(list)?;
    Val::list((0..list.len()).rev().map(|i| list.at(i)).collect::<Result<_, _>>()?)
}

fn distinct<'a>(list: &Val<'a>) -> Res<'a> {
    let view = items(list)?;
    if view.is_empty() {
        return Ok(list.clone());
    }
    let mut seen = HashSet::new();
    let mut out: Vec<Val<'a>> = Vec::with_capacity(view.len());
    for item in view.iter() {
        let item = item?;
        // Texts are found by their hash; other values are compared with each, as numbers of different types are equal.
        let is_new = match &item {
            Val::Str(_) | Val::Text(_) => seen.insert(item.as_str().unwrap_or_default().to_owned()),
            _ => !out.iter().any(|other| matches!(item.equal(other), Ok(true))),
        };
        if is_new {
            out.push(item);
        }
    }
    Val::list(out)
}

/// A list in the order of other values, one for each of its elements.
pub fn sort_by<'a>(list: &Val<'a>, keys: &Val<'a>) -> Res<'a> {
    let view = list.as_list().ok_or_else(|| arithmetic::no_operator(list, "@sortByAssociatedKeys"))?;
    let keys = items(keys)?;
    if view.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            view.len(),
            keys.len()
        )));
    }
    if view.is_empty() {
        return Ok(list.clone());
    }
    let keys = keys.iter().collect::<Result<Vec<_>, _>>()?;
    if !keys[0].is_comparable() {
        return Err(EvalError::fixed("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != keys[0].type_name()) {
        return Err(EvalError::fixed("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*a].compare(&keys[*b]).unwrap_or(Ordering::Equal));
    Val::list(order.into_iter().map(|i| view.at(i)).collect::<Result<_, _>>()?)
}
