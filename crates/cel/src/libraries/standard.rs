//! The functions every CEL environment has: operators, conversions, sizes, strings, times.

use super::{Run, list, map, member, of, param, text};
use crate::decl::{Function, Overload};
use crate::types::Type;
use crate::value::{Res, Val};

const A: Type = param("A");
const B: Type = param("B");

pub fn functions() -> Vec<Function> {
    let mut all = logic();
    all.extend(arithmetic());
    all.extend(comparisons());
    all.extend(collections());
    all.extend(conversions());
    all.extend(strings());
    all.extend(times());
    all
}

fn logic() -> Vec<Function> {
    let bools = || vec![Type::Bool, Type::Bool];
    vec![
        of("_?_:_", [Overload::global("conditional", [Type::Bool, A, A], A)]),
        of("_&&_", [Overload::global("logical_and", bools(), Type::Bool)]),
        of("_||_", [Overload::global("logical_or", bools(), Type::Bool)]),
        of("!_", [Overload::global("logical_not", [Type::Bool], Type::Bool)]),
        of("@not_strictly_false", [Overload::global("not_strictly_false", [Type::Bool], Type::Bool)]),
        of("_==_", [Overload::global("equals", [A, A], Type::Bool)]),
        of("_!=_", [Overload::global("not_equals", [A, A], Type::Bool)]),
    ]
}

fn arithmetic() -> Vec<Function> {
    use self::Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let same = |id, t: Type| Overload::global(id, [t.clone(), t.clone()], t);
    let mixed = |id, a, b, r| Overload::global(id, [a, b], r);
    vec![
        of(
            "_+_",
            [
                same("add_bytes", Bytes),
                same("add_double", Double),
                same("add_duration_duration", Duration),
                mixed("add_duration_timestamp", Duration, Timestamp, Timestamp),
                mixed("add_timestamp_duration", Timestamp, Duration, Timestamp),
                same("add_int64", Int),
                same("add_list", list(A)),
                same("add_string", String),
                same("add_uint64", Uint),
            ],
        ),
        of("_/_", [same("divide_double", Double), same("divide_int64", Int), same("divide_uint64", Uint)]),
        of("_%_", [same("modulo_int64", Int), same("modulo_uint64", Uint)]),
        of("_*_", [same("multiply_double", Double), same("multiply_int64", Int), same("multiply_uint64", Uint)]),
        of("-_", [Overload::global("negate_double", [Double], Double), Overload::global("negate_int64", [Int], Int)]),
        of(
            "_-_",
            [
                same("subtract_double", Double),
                same("subtract_duration_duration", Duration),
                same("subtract_int64", Int),
                mixed("subtract_timestamp_duration", Timestamp, Duration, Timestamp),
                mixed("subtract_timestamp_timestamp", Timestamp, Timestamp, Duration),
                same("subtract_uint64", Uint),
            ],
        ),
    ]
}

/// The names of the overloads of one comparison, in the order of [`COMPARED`].
type Names = [&'static str; 14];

fn comparisons() -> Vec<Function> {
    macro_rules! names {
        ($op:literal) => {
            [
                concat!($op, "_bool"),
                concat!($op, "_int64"),
                concat!($op, "_int64_double"),
                concat!($op, "_int64_uint64"),
                concat!($op, "_uint64"),
                concat!($op, "_uint64_double"),
                concat!($op, "_uint64_int64"),
                concat!($op, "_double"),
                concat!($op, "_double_int64"),
                concat!($op, "_double_uint64"),
                concat!($op, "_string"),
                concat!($op, "_bytes"),
                concat!($op, "_timestamp"),
                concat!($op, "_duration"),
            ]
        };
    }
    vec![
        comparison("_<_", names!("less")),
        comparison("_<=_", names!("less_equals")),
        comparison("_>_", names!("greater")),
        comparison("_>=_", names!("greater_equals")),
    ]
}

const COMPARED: [(Type, Type); 14] = {
    use self::Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    [
        (Bool, Bool),
        (Int, Int),
        (Int, Double),
        (Int, Uint),
        (Uint, Uint),
        (Uint, Double),
        (Uint, Int),
        (Double, Double),
        (Double, Int),
        (Double, Uint),
        (String, String),
        (Bytes, Bytes),
        (Timestamp, Timestamp),
        (Duration, Duration),
    ]
};

fn comparison(name: &'static str, ids: Names) -> Function {
    let overloads = ids.into_iter().zip(COMPARED).map(|(id, (a, b))| Overload::global(id, [a, b], Type::Bool));
    Function::new(name, overloads.collect())
}

fn collections() -> Vec<Function> {
    use self::Type::{Bool, Bytes, Int, String};
    let size = |global, inst, t: Type| [Overload::global(global, [t.clone()], Int), member(inst, [t], Int)];
    let sizes = [
        size("size_bytes", "bytes_size", Bytes),
        size("size_list", "list_size", list(A)),
        size("size_map", "map_size", map(A, B)),
        size("size_string", "string_size", String),
    ];
    vec![
        of(
            "_[_]",
            [Overload::global("index_list", [list(A), Int], A), Overload::global("index_map", [map(A, B), A], B)],
        ),
        of("@in", [Overload::global("in_list", [A, list(A)], Bool), Overload::global("in_map", [A, map(A, B)], Bool)]),
        of("size", sizes.into_iter().flatten()),
    ]
}

fn conversions() -> Vec<Function> {
    use self::Type::{Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};
    let convert = |name, to: Type, from: Vec<(&'static str, Type)>| {
        of(name, from.into_iter().map(move |(id, t)| Overload::global(id, [t], to.clone())))
    };
    vec![
        of("type", [Overload::global("type", [A], self::type_of(A))]),
        convert("bool", Bool, vec![("bool_to_bool", Bool), ("string_to_bool", String)]),
        convert("bytes", Bytes, vec![("bytes_to_bytes", Bytes), ("string_to_bytes", String)]),
        convert(
            "double",
            Double,
            vec![
                ("double_to_double", Double),
                ("int64_to_double", Int),
                ("string_to_double", String),
                ("uint64_to_double", Uint),
            ],
        ),
        convert(
            "duration",
            Duration,
            vec![("duration_to_duration", Duration), ("int64_to_duration", Int), ("string_to_duration", String)],
        ),
        of("dyn", [Overload::global("to_dyn", [A], Dyn)]),
        convert(
            "int",
            Int,
            vec![
                ("int64_to_int64", Int),
                ("double_to_int64", Double),
                ("duration_to_int64", Duration),
                ("string_to_int64", String),
                ("timestamp_to_int64", Timestamp),
                ("uint64_to_int64", Uint),
            ],
        ),
        convert(
            "string",
            String,
            vec![
                ("string_to_string", String),
                ("bool_to_string", Bool),
                ("bytes_to_string", Bytes),
                ("double_to_string", Double),
                ("duration_to_string", Duration),
                ("int64_to_string", Int),
                ("timestamp_to_string", Timestamp),
                ("uint64_to_string", Uint),
            ],
        ),
        convert(
            "timestamp",
            Timestamp,
            vec![("timestamp_to_timestamp", Timestamp), ("int64_to_timestamp", Int), ("string_to_timestamp", String)],
        ),
        convert(
            "uint",
            Uint,
            vec![
                ("uint64_to_uint64", Uint),
                ("double_to_uint64", Double),
                ("int64_to_uint64", Int),
                ("string_to_uint64", String),
            ],
        ),
    ]
}

fn type_of(of: Type) -> Type {
    Type::type_of(of)
}

fn strings() -> Vec<Function> {
    use self::Type::{Bool, String};
    let test = |name, id| of(name, [member(id, [String, String], Bool)]);
    vec![
        test("contains", "contains_string"),
        test("endsWith", "ends_with_string"),
        test("startsWith", "starts_with_string"),
        of(
            "matches",
            [Overload::global("matches", [String, String], Bool), member("matches_string", [String, String], Bool)],
        ),
    ]
}

fn times() -> Vec<Function> {
    use self::Type::{Duration, Int, String, Timestamp};
    let part = |name, id, zoned, duration: Option<&'static str>| {
        let of_time = [member(id, [Timestamp], Int), member(zoned, [Timestamp, String], Int)];
        of(name, of_time.into_iter().chain(duration.map(|id| member(id, [Duration], Int))))
    };
    vec![
        part("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", None),
        part("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", None),
        part("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", None),
        part("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", None),
        part("getDate", "timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz", None),
        part("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", None),
        part("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", Some("duration_to_hours")),
        part("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", Some("duration_to_minutes")),
        part("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", Some("duration_to_seconds")),
        part(
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            Some("duration_to_milliseconds"),
        ),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(Run::Binary(match id {
        "contains_string" => {
            |s, part| both(s, part, |s, part| memchr::memmem::find(s.as_bytes(), part.as_bytes()).is_some())
        }
        "ends_with_string" => |s, end| both(s, end, |s, end| s.ends_with(end)),
        "starts_with_string" => |s, start| both(s, start, |s, start| s.starts_with(start)),
        _ => return None,
    }))
}

fn both<'a>(a: &Val<'a>, b: &Val<'a>, test: impl Fn(&str, &str) -> bool) -> Res<'a> {
    Ok(Val::Bool(test(text(a)?, text(b)?)))
}
