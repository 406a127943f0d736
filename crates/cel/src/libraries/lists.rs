//! Functions of lists: Kubernetes' own, and cel-go's.

use super::{global, list, member, of, param};
use crate::decl::{Function, Overload};
use crate::types::Type;

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
