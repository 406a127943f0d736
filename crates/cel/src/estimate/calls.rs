//! The cost of calls: operators, cel-go's libraries, Kubernetes' libraries.

use super::paths::{Path, Step};
use super::{Cost, Coster, Size};
use crate::ast::{Expr, ExprId, Literal};
use crate::libraries;
use crate::libraries::devices::MAX_VALUES;
use crate::types::Type;

/// For each character of a string that is read through.
const PER_CHARACTER: f64 = 0.1;
/// For each character of a regular expression.
const PER_REGEX_CHARACTER: f64 = 0.25;
/// An authorization check: two of them fit into an expression.
const AUTHORIZATION_CHECK: u64 = 350_000;
/// The longest regular expression of a named format, and the longest name of one.
const FORMAT_REGEX: f64 = 128.0;
const FORMAT_NAME: u64 = 64;

/// What a call costs beyond its arguments, and the size of its result if that is known.
struct Call {
    cost: Cost,
    size: Option<Size>,
}

/// An argument, with what is known of it.
#[derive(Clone, Copy)]
struct Arg<'a> {
    id: ExprId,
    of: &'a Type,
    path: Path,
    size: Option<Size>,
    cost: Cost,
}

fn call(cost: Cost) -> Option<Call> {
    Some(Call { cost, size: None })
}

fn sized(cost: Cost, size: Size) -> Option<Call> {
    Some(Call { cost, size: Some(size) })
}

impl<'a> Coster<'a> {
    pub(super) fn call(&mut self, id: ExprId) -> Cost {
        let Expr::Call { function, target, args } = self.expr(id) else { return Cost::default() };
        let ids = self.checked.ast.list(*args);
        if let ("dyn", &[arg]) = (function.as_str(), ids) {
            let cost = Cost::fixed(1) + self.cost(arg);
            self.copy_sizes(id, arg);
            return cost;
        }
        let args: Vec<Arg<'a>> = ids.iter().map(|arg| self.arg(*arg)).collect();
        let target = target.map(|target| self.arg(target));
        let mut of_call: Option<Cost> = None;
        let mut size: Option<Size> = None;
        let checked = self.checked;
        for overload in checked.overloads(id) {
            let estimate = self.overload(id, function, overload.id, target.as_ref(), &args);
            of_call = Some(of_call.map_or(estimate.cost, |known| known.union(estimate.cost)));
            if let Some(more) = estimate.size {
                size = Some(size.map_or(more, |known| known.union(more)));
            }
            let step = match overload.id {
                "index_list" => Some(Step::Items),
                "index_map" => Some(Step::Values),
                _ => None,
            };
            if let (Some(step), Some(container)) = (step, ids.first()) {
                size = self.entries_of(*container).map(|entries| entries.value);
                let path = self.path(*container);
                self.node_paths[id.0 as usize] = self.paths.extend(path, step);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        // A call without overloads was not checked.
        let Some(of_call) = of_call else { return Cost::default() };
        if let Some(size) = size {
            self.sizes[id.0 as usize] = Some(size);
        }
        target.map_or(of_call, |target| target.cost + of_call)
    }

    fn arg(&mut self, id: ExprId) -> Arg<'a> {
        let cost = self.cost(id);
        let path = self.path(id);
        Arg { id, of: self.type_of(id), path, size: self.size(id), cost }
    }

    /// The cost of a call with its arguments.
    fn overload(
        &mut self,
        id: ExprId,
        function: &str,
        overload: &str,
        target: Option<&Arg<'a>>,
        args: &[Arg<'a>],
    ) -> Call {
        let sum = args.iter().fold(Cost::default(), |sum, arg| sum + arg.cost);
        let with_args = |c: Call| Call { cost: c.cost + sum, size: c.size };
        if let Some(found) = self.extension(overload, target, args) {
            return with_args(found);
        }
        if let Some(found) = self.kubernetes(function, overload, target, args) {
            return with_args(found);
        }
        match self.lazy(id, overload, args) {
            Some(found) => found,
            None => with_args(
                self.standard(id, overload, target, args).unwrap_or(Call { cost: Cost::fixed(1), size: None }),
            ),
        }
    }

    /// A node's size, or what its schema says of it.
    fn known_size(&self, arg: &Arg<'_>) -> Size {
        arg.size.or_else(|| self.paths.size(arg.path)).unwrap_or(Size::UNKNOWN)
    }

    /// Operators that do not look at all of their arguments.
    fn lazy(&mut self, id: ExprId, overload: &str, args: &[Arg<'a>]) -> Option<Call> {
        match (overload, args) {
            ("logical_or" | "logical_and", [left, right]) => {
                call(Cost { min: left.cost.min, max: (left.cost + right.cost).max })
            }
            ("conditional", [condition, yes, no]) => {
                let size = yes.size.unwrap_or(Size::UNKNOWN).union(no.size.unwrap_or(Size::UNKNOWN));
                self.join_entries(id, yes.id, no.id);
                sized(condition.cost + yes.cost.union(no.cost), size)
            }
            _ => None,
        }
    }

    fn join_entries(&mut self, id: ExprId, a: ExprId, b: ExprId) {
        if let (Some(a), Some(b)) = (self.entries_of(a), self.entries_of(b)) {
            let joined = super::Entries { kind: a.kind, key: a.key.union(b.key), value: a.value.union(b.value) };
            self.entries[id.0 as usize] = Some(joined);
        }
    }

    /// cel-go's own figures.
    fn standard(&mut self, id: ExprId, overload: &str, target: Option<&Arg<'a>>, args: &[Arg<'a>]) -> Option<Call> {
        let size = |arg: &Arg<'a>| arg.size.unwrap_or(Size::UNKNOWN);
        match (overload, target, args) {
            ("string_format", Some(target), _) => call(size(target).by(PER_CHARACTER)),
            ("string_to_bytes", _, [arg]) => {
                let size = size(arg);
                sized(size.by(PER_CHARACTER), Size { min: size.min, max: size.max.wrapping_mul(4) })
            }
            ("bytes_to_string", _, [arg]) => {
                let size = size(arg);
                sized(size.by(PER_CHARACTER), Size { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [arg]) => {
                let size = size(arg);
                let quoted = Size { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
                sized(size.by(PER_CHARACTER), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => call(size(arg).by(PER_CHARACTER)),
            ("in_list", _, [_, list]) => call(size(list).by(1.0)),
            ("matches_string", Some(target), [pattern]) => {
                let text = (size(target) + Size::fixed(1)).by(PER_CHARACTER);
                call(text.multiply(size(pattern).by(PER_REGEX_CHARACTER)))
            }
            ("contains_string", Some(target), [part]) => {
                call(size(target).by(PER_CHARACTER).multiply(size(part).by(PER_CHARACTER)))
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let result = size(left) + size(right);
                self.join_entries(id, left.id, right.id);
                let cost = if overload == "add_list" { Cost::fixed(1) } else { result.by(PER_CHARACTER) };
                sized(cost, result)
            }
            (_, _, [left, right]) if is_comparison(overload) => {
                let max = size(left).max.min(size(right).max);
                call(Cost { min: max.min(1), max }.by(PER_CHARACTER))
            }
            _ => None,
        }
    }

    /// cel-go's lists and sets.
    fn extension(&self, overload: &str, target: Option<&Arg<'a>>, args: &[Arg<'a>]) -> Option<Call> {
        let made = |factor: f64, size: Size| sized(size.by(factor) + Cost::fixed(1) + Cost::fixed(10), size);
        match (overload, target, args) {
            ("list_slice", Some(list), [start, end]) => {
                let start = self.int(start, 0);
                let end = self.int(end, self.known_size(list).max);
                made(1.0, Size::fixed(end.wrapping_sub(start)))
            }
            ("list_flatten", Some(list), []) => made(1.0, self.known_size(list)),
            ("list_flatten_int", Some(list), [depth]) => made(self.int(depth, u64::MAX) as f64, self.known_size(list)),
            ("lists_range", None, [count]) => made(1.0, Size::fixed(self.int(count, u64::MAX))),
            ("list_reverse", Some(list), []) => made(1.0, self.known_size(list)),
            ("list_distinct", Some(list), []) => {
                let size = self.known_size(list);
                made(2.0, size.multiply(size))
            }
            ("list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list", _, [a, b]) => {
                let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
                call(self.known_size(a).multiply(self.known_size(b)).by(factor) + Cost::fixed(1))
            }
            _ => {
                let (keys, sorted) = match (target, args) {
                    (Some(list), []) => (list, overload.strip_suffix("_sort")?),
                    (Some(_), [keys]) => (keys, overload.strip_suffix("_sortByAssociatedKeys")?),
                    _ => return None,
                };
                let text = matches!(sorted, "list_string" | "list_bytes");
                let size = self.known_size(keys);
                made(if text { 2.0 + PER_CHARACTER } else { 2.0 }, size.multiply(size))
            }
        }
    }

    /// The value of an argument that is written as a number; what is below zero is zero.
    fn int(&self, arg: &Arg<'_>, otherwise: u64) -> u64 {
        match self.expr(arg.id) {
            Expr::Literal(Literal::Int(n)) => u64::try_from(*n).unwrap_or(0),
            _ => otherwise,
        }
    }

    /// Kubernetes' figures; they go by the function's name, whatever library it is of.
    fn kubernetes(&self, function: &str, overload: &str, target: Option<&Arg<'a>>, args: &[Arg<'a>]) -> Option<Call> {
        let read = |arg: &Arg<'a>, factor: f64| self.known_size(arg).by(factor * PER_CHARACTER);
        match (function, target, args) {
            ("check", _, _) => call(Cost::fixed(AUTHORIZATION_CHECK)),
            ("fieldSelector" | "labelSelector", _, [selector]) => call(selector_cost(self.known_size(selector))),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                call(self.traversal(target))
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => sized(read(text, 1.0), self.known_size(text)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                sized(read(text, 1.0), self.known_size(text))
            }
            ("replace", Some(text), [from, to, ..]) => {
                let size = replaced(self.known_size(text), self.known_size(from), self.known_size(to));
                sized(read(text, 2.0), size)
            }
            ("split", Some(text), _) => {
                let mut max = self.known_size(text).max;
                if let Some(limit) = args.get(1)
                    && let Expr::Literal(Literal::Int(n)) = self.expr(limit.id)
                {
                    max = *n as u64;
                }
                sized(read(text, 2.0), Size { min: 0, max })
            }
            ("join", Some(list), _) => {
                let size = self.joined(list, args.first());
                sized(size.by(PER_CHARACTER), size)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = self.known_size(text);
                let regex = self.known_size(pattern).by(PER_REGEX_CHARACTER);
                let cost = (size + Size::fixed(1)).by(PER_CHARACTER).multiply(regex);
                sized(cost, Size { min: 0, max: size.max })
            }
            ("ip", _, _) if overload == "cidr_ip" => call(Cost::fixed(1)),
            ("ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver", _, [text, ..]) => {
                call(read(text, 1.0))
            }
            ("ip.isCanonical", _, [text, ..]) => call(read(text, 2.0)),
            ("containsIP" | "containsCIDR", _, [other, ..]) => {
                let address = Size { min: 4, max: 16 };
                let mut cost = (address + address).by(PER_CHARACTER);
                if function == "containsCIDR" {
                    cost = cost + address.by(PER_CHARACTER) + Cost::fixed(1);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost + read(other, 1.0);
                }
                call(cost)
            }
            ("validate", _, [text, ..]) => call(read(text, 1.0).by(FORMAT_REGEX * PER_REGEX_CHARACTER)),
            ("includes", Some(_), _) => call(Size { min: 0, max: MAX_VALUES as u64 }.times(Cost::fixed(1))),
            ("_==_", _, [left, right]) => self.equality(left, right),
            _ if is_nominal(function) => call(Cost::fixed(1)),
            _ => None,
        }
    }

    /// One for each element, and a read of each if they are texts.
    fn traversal(&self, target: &Arg<'a>) -> Cost {
        let size = self.known_size(target);
        match element_type(target.of) {
            None => size.by(PER_CHARACTER),
            Some(Type::String | Type::Bytes) => {
                size.times(Cost::fixed(1) + self.element_size(target).by(PER_CHARACTER))
            }
            Some(_) => size.times(Cost::fixed(1)),
        }
    }

    fn element_size(&self, list: &Arg<'a>) -> Size {
        self.paths.item_size(list.path).unwrap_or(Size::UNKNOWN)
    }

    fn joined(&self, list: &Arg<'a>, separator: Option<&Arg<'a>>) -> Size {
        let count = self.known_size(list);
        let mut size = Size::fixed(0);
        if element_type(list.of).is_some() {
            size = count.multiply(self.element_size(list));
        }
        if let Some(separator) = separator {
            let between = Size { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size + self.known_size(separator).multiply(between);
        }
        size
    }

    /// Values of libraries are compared at once, or as the texts they were made of.
    fn equality(&self, left: &Arg<'a>, right: &Arg<'a>) -> Option<Call> {
        let (Type::Named(left), Type::Named(name)) = (left.of, right.of) else { return None };
        if left != name {
            return None;
        }
        match *name {
            libraries::NAMED_FORMAT => call(Cost { min: 1, max: FORMAT_NAME }.by(PER_CHARACTER)),
            libraries::URL => call(Cost { min: 1, max: right.size.map_or(1, |size| size.max) }.by(PER_CHARACTER)),
            _ => call(Cost::fixed(1)),
        }
    }
}

/// What is inside of a type's brackets, first.
fn element_type(of: &Type) -> Option<&Type> {
    match of {
        Type::List(t) | Type::Optional(t) | Type::Type(Some(t)) => Some(t),
        Type::Map(kv) => Some(&kv.0),
        _ => None,
    }
}

/// Functions that cost one, whatever they are given.
fn is_nominal(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

/// Comparisons that read both sides up to the end of the shorter one.
fn is_comparison(overload: &str) -> bool {
    matches!(
        overload,
        "equals"
            | "not_equals"
            | "less_string"
            | "less_equals_string"
            | "greater_string"
            | "greater_equals_string"
            | "less_bytes"
            | "less_equals_bytes"
            | "greater_bytes"
            | "greater_equals_bytes"
    )
}

/// A selector is read, and a requirement made of every two characters.
fn selector_cost(length: Size) -> Cost {
    Cost::fixed(10) + length.by(PER_CHARACTER) + length.by(0.5).by(50.0)
}

/// The size of a text in which parts were replaced.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let count = |text: u64, part: u64| (text as f64 / part as f64).ceil() as u64;
    let (max_count, max_kept) = if from.min == 0 {
        // Nothing is replaced between all characters, and at both ends.
        (text.max.saturating_add(1), text.max)
    } else if to.max <= from.min {
        (0, text.max)
    } else {
        (count(text.max, from.min), 0)
    };
    let (min_count, min_kept) = if from.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if from.max <= to.min {
        (0, text.min)
    } else {
        (count(text.min, from.max), 0)
    };
    Size { min: min_count, max: max_count }.multiply(to) + Size { min: min_kept, max: max_kept }
}
