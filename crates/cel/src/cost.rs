//! What calls cost at run time, as cel-go and Kubernetes count them.

use crate::libraries::named_format::NamedFormat;
use crate::value::{EvalError, Opaque, Res, Val};

/// The most that one evaluation may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

pub const LIST: u64 = 10;
pub const MAP: u64 = 30;
pub const STRUCT: u64 = 40;

/// How the cost of a call is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Fixed(u64),
    /// A tenth of the size of the first argument, times a factor.
    Text(u64),
    /// The size of the list.
    InList,
    /// A tenth of the smaller size.
    Smaller,
    /// As `Smaller`, but one for values of Kubernetes' libraries.
    Equals,
    /// A tenth of both sizes.
    Both,
    /// A text against a pattern.
    Pattern,
    Contains,
    /// Walking through all of the first argument.
    Traversal,
    /// A tenth of the result, twice.
    Join,
    Selector,
    /// Bytes of the range; with a text that must be read.
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    Validate,
    /// The size of the list that comes out.
    Output,
    Flatten,
    /// Every element with every other, of the argument with this index.
    Pairs(usize),
    Sets(u64),
}

impl Cost {
    /// By the function and the overload, if it is known which one is called.
    pub fn of(function: &str, overload: &str) -> Cost {
        by_library(overload).or_else(|| by_function(function, overload)).unwrap_or_else(|| by_overload(overload))
    }

    /// What the reference crashes on while it counts, which ends the evaluation. `None` is an argument that is an error.
    pub fn crash(self, args: &[Option<&Val<'_>>]) -> Option<EvalError> {
        let go_type = |arg: Option<&Val<'_>>| arg.map_or("*types.Err", Val::go_type);
        match self {
            Cost::Pairs(of) => {
                let list = args.get(of).copied().flatten();
                if list.is_some_and(|list| list.as_list().is_some()) {
                    return None;
                }
                // Go names the first method that a type does not have.
                let missing = if list.is_some_and(can_add) { "Contains" } else { "Add" };
                let problem = format!("{} is not traits.Lister: missing method {missing}", go_type(list));
                Some(EvalError::conversion(&problem))
            }
            Cost::Flatten => match args.get(1) {
                None | Some(Some(Val::Int(_))) => None,
                Some(depth) => Some(EvalError::conversion(&format!("ref.Val is {}, not types.Int", go_type(*depth)))),
            },
            _ => None,
        }
    }

    /// `None` is an argument that is an error.
    pub fn count(self, args: &[Option<&Val<'_>>], result: &Res<'_>) -> u64 {
        let size = |i: usize| args.get(i).copied().flatten().map_or(1, Val::cost_size);
        match self {
            Cost::Fixed(n) => n,
            Cost::Text(factor) => tenth((size(0) * factor) as f64),
            Cost::InList => deep_size(args[1]),
            Cost::Equals if args[0].is_some_and(|v| matches!(v, Val::Opaque(_))) => 1,
            Cost::Smaller | Cost::Equals => tenth(deep_size(args[0]).min(deep_size(args[1])) as f64),
            Cost::Both => tenth((size(0) + size(1)) as f64),
            Cost::Pattern => tenth(1.0 + size(0) as f64) * quarter(size(1)),
            Cost::Contains => tenth(size(0) as f64) * tenth(size(1) as f64),
            Cost::Traversal => args.first().map_or(0, |v| v.map_or(1, traversal)),
            Cost::Join => tenth(result.as_ref().map_or(1, Val::cost_size) as f64 * 2.0),
            Cost::Selector => {
                let requirements = (size(1) as f64 * 0.5).ceil();
                LIST + tenth(size(1) as f64) + (requirements * (LIST + STRUCT) as f64).ceil() as u64
            }
            Cost::ContainsIp { text } => tenth((size(0) * 2) as f64) + if text { tenth(size(1) as f64) } else { 0 },
            Cost::ContainsCidr { text } => {
                let read = if text { tenth(size(1) as f64) } else { 0 };
                tenth((size(0) * 2) as f64) + tenth(size(0) as f64) + 1 + read
            }
            Cost::Validate => match args[0] {
                Some(Val::Opaque(opaque)) => match &**opaque {
                    Opaque::Format(format) => {
                        tenth(1.0 + size(1) as f64) * quarter(NamedFormat::pattern_length(*format))
                    }
                    _ => 1,
                },
                _ => 1,
            },
            Cost::Output => match (result, args[0]) {
                // A range too long to be made costs as if it was.
                (Err(e), Some(Val::Int(n))) if e.is_end() => allocating(1.0, (*n).max(0) as u64),
                (result, _) => allocating(1.0, result.as_ref().map_or(1, Val::cost_size)),
            },
            Cost::Flatten => {
                let depth = if let Some(Some(Val::Int(depth))) = args.get(1) { *depth as f64 } else { 1.0 };
                allocating(depth, size(0))
            }
            Cost::Pairs(of) => pairs(args.get(of).copied().flatten()),
            Cost::Sets(factor) => 1 + size(0).saturating_mul(size(1)).saturating_mul(factor),
        }
    }
}

/// A tenth, rounded up.
fn tenth(size: f64) -> u64 {
    (size * 0.1).ceil() as u64
}

fn quarter(size: u64) -> u64 {
    (size as f64 * 0.25).ceil() as u64
}

/// A factor below zero makes the cost smaller, or wraps it round to a number that is above every limit.
fn allocating(factor: f64, size: u64) -> u64 {
    const HALF: f64 = (1u64 << 63) as f64;
    let product = size as f64 * factor;
    let product = match product {
        p if (-HALF..HALF).contains(&p) => (p as i64).cast_unsigned(),
        p if (HALF..HALF * 2.0).contains(&p) => p as u64,
        // What does not fit is this to the processor.
        _ => 1 << 63,
    };
    product.wrapping_add(1 + LIST)
}

/// Whether values of its type have a `+`.
fn can_add(val: &Val<'_>) -> bool {
    let is_number = matches!(val, Val::Int(_) | Val::Uint(_) | Val::Double(_));
    is_number
        || matches!(val, Val::Duration(_) | Val::Timestamp(_))
        || val.as_str().is_some()
        || val.as_bytes().is_some()
}

fn pairs(list: Option<&Val<'_>>) -> u64 {
    let Some(view) = list.and_then(Val::as_list) else { return 1 };
    let size = view.len() as u64;
    let is_text = size > 0 && view.at(0).is_ok_and(|first| first.as_str().is_some() || first.as_bytes().is_some());
    allocating(if is_text { 2.1 } else { 2.0 }, size.saturating_mul(size))
}

/// Optionals have the size of what is in them.
fn deep_size(val: Option<&Val<'_>>) -> u64 {
    match val {
        Some(Val::Optional(Some(of))) => deep_size(Some(of)),
        Some(val) => val.cost_size(),
        None => 1,
    }
}

/// What it costs to walk through a value.
fn traversal(val: &Val<'_>) -> u64 {
    if let Some(text) = val.as_str() {
        return (text.len() as f64 * 0.1) as u64;
    }
    if let Some(bytes) = val.as_bytes() {
        return (bytes.len() as f64 * 0.1) as u64;
    }
    if let Some(list) = val.as_list() {
        return list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum();
    }
    if let Some(map) = val.as_map() {
        let entry = |(key, value): (Val<'_>, Res<'_>)| traversal(&key) + value.as_ref().map_or(1, traversal);
        return map.entries().into_iter().map(entry).sum();
    }
    1
}

fn by_library(overload: &str) -> Option<Cost> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => Cost::Output,
        "list_flatten" | "list_flatten_int" => Cost::Flatten,
        "list_distinct" => Cost::Pairs(0),
        "list_sets_contains_list" | "list_sets_intersects_list" => Cost::Sets(1),
        "list_sets_equivalent_list" => Cost::Sets(2),
        id if id.starts_with("list_") && id.ends_with("_sort") => Cost::Pairs(0),
        id if id.ends_with("_sortByAssociatedKeys") => Cost::Pairs(1),
        _ => return None,
    })
}

fn by_function(function: &str, overload: &str) -> Option<Cost> {
    Some(match function {
        "check" => Cost::Fixed(350_000),
        "fieldSelector" | "labelSelector" => Cost::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Cost::Traversal,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => Cost::Text(1),
        "replace" | "split" => Cost::Text(2),
        "join" => Cost::Join,
        "find" | "findAll" => Cost::Pattern,
        "ip" if overload == "cidr_ip" => Cost::Fixed(1),
        "cidr" | "isIP" | "isCIDR" | "ip" => Cost::Text(1),
        "ip.isCanonical" => Cost::Text(2),
        "containsIP" => Cost::ContainsIp { text: overload == "cidr_contains_ip_string" },
        "containsCIDR" => Cost::ContainsCidr { text: overload == "cidr_contains_cidr_string" },
        "quantity" | "isQuantity" | "semver" | "isSemver" => Cost::Text(1),
        "validate" => Cost::Validate,
        "_==_" => Cost::Equals,
        _ => return None,
    })
}

fn by_overload(overload: &str) -> Cost {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string" | "strings_quote"
        | "string_format" => Cost::Text(1),
        "in_list" => Cost::InList,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "not_equals" => Cost::Smaller,
        "add_string" | "add_bytes" => Cost::Both,
        "matches_string" => Cost::Pattern,
        "contains_string" => Cost::Contains,
        _ => Cost::Fixed(1),
    }
}
